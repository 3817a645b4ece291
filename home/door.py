"""The single entry to a home: the paths of the parts that packages above `warehouse` share, and how
to open them. Not here: creating a home (`folder`), the content of its parts, the archive and the
code that loads it (`loading`)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypedDict

import duckdb

from home.progress import report_waiting
from home.settings import Settings
from warehouse.connection import MEMORY_LIMIT, OnWait, open_database
from warehouse.schema import ensure_schema
from warehouse.sql import fetch_rows


def archive_of(home: Path) -> Path:
    return home / "archive"


def outbox_of(home: Path) -> Path:
    return home / "outbox.sqlite"


def sender_of(home: Path, account: str) -> Path:
    """The lock of the process that sends pushes of the account."""
    return home / f"sender-{account}.lock"


def pushes_of(home: Path) -> Path:
    """A folder for each push: its rows, and the rejected ones."""
    return home / "pushes"


def report_of(home: Path) -> Path:
    return home / "report" / "index.html"


def sandbox_state(home: Path) -> Path:
    """The journal of writes to the embedded sandbox."""
    return home / "sandbox.jsonl"


class WaitingOptions(TypedDict):
    """How long to wait for another program that has the warehouse open, and how to report it."""

    deadline_s: float
    on_wait: OnWait


def waiting_options(settings: Settings) -> WaitingOptions:
    return WaitingOptions(deadline_s=settings.lock_seconds, on_wait=report_waiting)


def open_warehouse(
    settings: Settings,
    *,
    read_only: bool = False,
    is_unshared: bool = False,
    memory_limit: str | None = MEMORY_LIMIT,
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """The warehouse's file, unchanged. Raises what `open_database` raises."""
    return open_database(
        settings.warehouse_path,
        read_only=read_only,
        is_unshared=is_unshared,
        memory_limit=memory_limit,
        **waiting_options(settings),
    )


@contextmanager
def open_tables(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same for writing, with all tables of this version and times in UTC."""
    with open_warehouse(settings) as connection:
        fetch_rows(connection, "set timezone = 'UTC'")
        ensure_schema(connection)
        yield connection
