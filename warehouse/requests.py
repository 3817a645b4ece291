"""Fills `sync.requests` from the archive's sealed files, each file once."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from warehouse.archive import Archive
from warehouse.sql import rows, transaction


def load_requests(connection: duckdb.DuckDBPyConnection, archive: Archive) -> int:
    """Add the requests of files that are not shown yet; a file and its requests commit together. Returns how many came."""
    loaded = {row[0] for row in rows(connection, "select archive_file from sync.archive_files")}
    added = 0
    for name, exchanges in archive.exchanges(exclude=loaded):
        _load_file(connection, name, exchanges)
        added += exchanges.num_rows
    return added


def _load_file(connection: duckdb.DuckDBPyConnection, name: str, exchanges: pa.Table) -> None:
    connection.register("arrow_requests", exchanges)
    with transaction(connection):
        rows(connection, "insert into sync.requests by name from arrow_requests")
        rows(connection, "insert into sync.archive_files values (?, ?)", [name, exchanges.num_rows])
    connection.unregister("arrow_requests")
