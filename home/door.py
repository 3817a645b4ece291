"""The one door to a home: where its parts are that packages above `warehouse` share, and how they are opened.
Not here: making a home (`folder`), what is in its parts."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb

from home.progress import report_waiting
from home.settings import Settings
from warehouse.archive import Archive
from warehouse.archive.disk import Workspace
from warehouse.connection import MEMORY_LIMIT, connect
from warehouse.schema import ensure_schema
from warehouse.sql import rows
from warehouse.warehouse import Warehouse


def archive_of(home: Path) -> Path:
    return home / "archive"


def report_of(home: Path) -> Path:
    return home / "report" / "index.html"


def sandbox_state(home: Path) -> Path:
    """What was written to the embedded sandbox."""
    return home / "sandbox.jsonl"


def scratch(home: Path, work: str) -> AbstractContextManager[Workspace]:
    """A folder of this process for the length of some work."""
    return closing(Workspace(home / "tmp" / work))


def open_archive(home: Path) -> Archive:
    return Archive(archive_of(home))


def waits(settings: Settings) -> dict[str, Any]:
    """How whoever opens the warehouse waits for another program that has it open."""
    return {"deadline_s": settings.lock_seconds, "on_wait": report_waiting}


def open_warehouse(
    settings: Settings, *, read_only: bool = False
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """The warehouse's file, as it is. Raises what `connect` raises."""
    path = settings.warehouse_path
    return connect(path, read_only=read_only, memory_limit=MEMORY_LIMIT, **waits(settings))


@contextmanager
def open_tables(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same for writing, with all tables of this version and times in UTC."""
    with open_warehouse(settings) as connection:
        rows(connection, "set timezone = 'UTC'")
        ensure_schema(connection)
        yield connection


def warehouse_of(settings: Settings, archive: Archive) -> Warehouse:
    """What applies loads and looks things up."""
    return Warehouse(settings.home, archive, **waits(settings))
