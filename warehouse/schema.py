"""Creates the schemas and tables of a warehouse file with their COMMENTs, and adds the columns that declarations gained.

Not here: what the tables are (`table`, `tables`, `sync_tables`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache

import duckdb

from warehouse.sql import literal, quoted, rows, transaction, value
from warehouse.sync_tables import SYNC_TABLES, SyncTable
from warehouse.table import Table
from warehouse.version import stamp_version

#: Typed mirror of the service, its changes over time, the answers made from both, and what is known about the reading.
SCHEMAS = ("source", "history", "marts", "sync")


def ensure_schema(connection: duckdb.DuckDBPyConnection, tables: Iterable[Table]) -> None:
    """Create what is missing; one look-up when nothing is. Not to be called within a transaction.

    Tables keep columns that are no longer declared. A column whose type changed needs a rebuild.
    """
    wanted: tuple[Table | SyncTable, ...] = (*tables, *SYNC_TABLES)
    fingerprint = _fingerprint(wanted)
    if _stored_fingerprint(connection) == fingerprint:
        return
    with transaction(connection):
        _make(connection, wanted, fingerprint)


def _make(connection: duckdb.DuckDBPyConnection, wanted: Iterable[Table | SyncTable], fingerprint: str) -> None:
    for schema in SCHEMAS:
        connection.execute(f"create schema if not exists {schema}")
    for table in wanted:
        for statement in statements(table, _columns(connection, table)):
            connection.execute(statement)
    stamp_version(connection)
    connection.execute("delete from sync.meta where name = 'tables'")
    connection.execute("insert into sync.meta values ('tables', ?)", [fingerprint])


def statements(table: Table | SyncTable, existing: Iterable[str] = ()) -> Iterator[str]:
    """The DDL that makes or completes a table with `existing` columns."""
    present = set(existing)
    columns = ", ".join(f"{quoted(column.name)} {column.sql_type}" for column in table.columns)
    yield f"create table if not exists {table.qualified} ({columns})"
    yield f"comment on table {table.qualified} is {literal(table.doc)}"
    for column in table.columns:
        if present and column.name not in present:
            yield f"alter table {table.qualified} add column {quoted(column.name)} {column.sql_type}"
        yield f"comment on column {table.qualified}.{quoted(column.name)} is {literal(column.comment)}"


def _columns(connection: duckdb.DuckDBPyConnection, table: Table | SyncTable) -> list[str]:
    schema, name = table.qualified.split(".")
    found = rows(
        connection,
        "select column_name from duckdb_columns() where database_name = current_database() and schema_name = ? and table_name = ?",
        [schema, name],
    )
    return [row[0] for row in found]


@cache
def _fingerprint(tables: tuple[Table | SyncTable, ...]) -> str:
    text = "\n".join(statement for table in tables for statement in statements(table))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _stored_fingerprint(connection: duckdb.DuckDBPyConnection) -> str | None:
    try:
        found = value(connection, "select value from sync.meta where name = 'tables'")
    except duckdb.CatalogException:
        return None
    return None if found is None else str(found)
