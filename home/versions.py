"""Which versions the files of a home have: newer ones are refused, earlier ones completed in one transaction
each.

`version` in the home says what its files are versions of, so that nothing has to be opened to know. Not here:
how tables change (`warehouse.schema`, `outbox.store`)."""

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import duckdb
import msgspec

from home.failures import HomeError
from home.progress import report_waiting
from warehouse.archive.archive import ARCHIVE_VERSION
from warehouse.archive.disk import exclusive, no_folder, write_file
from warehouse.connection import MEMORY_LIMIT, connect
from warehouse.errors import NotAWarehouse
from warehouse.schema import SCHEMA_VERSION, ensure_schema
from warehouse.sql import rows
from write_back.outbox.store import VERSION as OUTBOX_VERSION
from write_back.outbox.store import Store

#: Each number goes up when a program of the version before could no longer go on with what it counts.
VERSIONS = {"warehouse": SCHEMA_VERSION, "outbox": OUTBOX_VERSION, "archive": ARCHIVE_VERSION, "dagster": 2}
VERSION_FILE = "version"
_WAREHOUSE, _OUTBOX = "warehouse.duckdb", "outbox.sqlite"


def open_warehouse(
    home: Path, lock_seconds: float, *, read_only: bool = False
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """The home's warehouse, as `connect` opens it."""
    path = home / _WAREHOUSE
    return connect(
        path, deadline_s=lock_seconds, read_only=read_only, memory_limit=MEMORY_LIMIT, on_wait=report_waiting
    )


def complete(home: Path, lock_seconds: float) -> None:
    """Bring what there is to this program's versions, and note them. Raises what `connect` and
    `ensure_schema` raise, and OutboxError.

    A file that is none of ours is left to whoever uses it, and says what to do.
    """
    with exclusive(home):
        if (home / _WAREHOUSE).exists():
            with contextlib.suppress(NotAWarehouse):
                complete_tables(home, lock_seconds)
        if (home / _OUTBOX).exists():
            Store(home / _OUTBOX).close()
        note_versions(home)


def complete_tables(home: Path, lock_seconds: float) -> None:
    """Those of the warehouse, as this version declares them."""
    with open_warehouse(home, lock_seconds) as connection:
        rows(connection, "set timezone = 'UTC'")
        ensure_schema(connection)


def noted_versions(home: Path) -> dict[str, int]:
    """Those that `version` in the home names; none where it is not there or cannot be read: its files have to
    be looked into."""
    try:
        return msgspec.json.decode((home / VERSION_FILE).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}


def note_versions(home: Path) -> None:
    """That all of it is of this program's versions."""
    write_file(no_folder(home / VERSION_FILE), msgspec.json.encode(VERSIONS))


def check_not_newer(home: Path) -> None:
    """Raises HomeError."""
    newer = {name: number for name, number in noted_versions(home).items() if number > VERSIONS.get(name, 0)}
    if newer:
        raise HomeError(
            f"the home {home} is of a newer version of marketing-sync than this one "
            f"({versions_in_words(newer)}; known here: "
            f"{versions_in_words(VERSIONS)}): upgrade this installation. If it never was, move "
            f"{home / VERSION_FILE} away"
        )


def versions_in_words(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
