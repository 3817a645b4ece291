"""Creates the schemas and tables of a warehouse file with their COMMENTs, and adds the columns that declarations gained.

Not here: what the tables are (`table`, `tables`, `sync_tables`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache

import duckdb

from warehouse.errors import WarehouseError
from warehouse.sql import literal, quoted, rows, transaction, value
from warehouse.sync_tables import SYNC_TABLES, SyncTable
from warehouse.table import Table
from warehouse.version import stamp_version

#: Typed mirror of the service, its changes over time, the answers made from both, and what is known about the reading.
SCHEMAS = ("source", "history", "marts", "sync")


_FULL_NAMES = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}


def ensure_schema(connection: duckdb.DuckDBPyConnection, tables: Iterable[Table]) -> None:
    """Create what is missing; one look-up when nothing is. Not to be called within a transaction.

    Tables keep columns that are no longer declared. WarehouseError when a column's values do not fit its new type.
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
        for statement in statements(table, _types(connection, table)):
            try:
                rows(connection, statement)
            except duckdb.ConversionException as problem:
                raise WarehouseError(f"{table.qualified} cannot be adapted to this version: run `marketing-sync rebuild`") from problem
    stamp_version(connection)
    connection.execute("delete from sync.meta where name = 'tables'")
    connection.execute("insert into sync.meta values ('tables', ?)", [fingerprint])


def statements(table: Table | SyncTable, existing: Mapping[str, str] | None = None) -> Iterator[str]:
    """The DDL that makes a table, or completes the one with the `existing` columns (name → type)."""
    columns = ", ".join(f"{quoted(column.name)} {column.sql_type}" for column in table.columns)
    yield f"create table if not exists {table.qualified} ({columns})"
    yield f"comment on table {table.qualified} is {literal(table.doc)}"
    for column in table.columns:
        if existing and column.name not in existing:
            yield f"alter table {table.qualified} add column {quoted(column.name)} {column.sql_type}"
        elif existing and existing[column.name] != _FULL_NAMES.get(column.sql_type, column.sql_type):
            yield f"alter table {table.qualified} alter column {quoted(column.name)} set data type {column.sql_type}"
        yield f"comment on column {table.qualified}.{quoted(column.name)} is {literal(column.comment)}"


def comments(
    connection: duckdb.DuckDBPyConnection, schema: str, name: str, columns: Container[str] | None = None, *, kind: str = "table"
) -> Iterator[str]:
    """The statements that give a table the COMMENTs that it has here, to be run in another file, where it is of `kind`."""
    here = f"database_name = current_database() and schema_name = {literal(schema)} and comment is not null"
    table = f"{quoted(schema)}.{quoted(name)}"
    for here_kind in ("table", "view"):
        sql = f"select comment from duckdb_{here_kind}s() where {here} and {here_kind}_name = {literal(name)}"
        for (comment,) in rows(connection, sql):
            yield f"comment on {kind} {table} is {literal(comment)}"
    for column, comment in rows(
        connection, f"select column_name, comment from duckdb_columns() where {here} and table_name = {literal(name)}"
    ):
        if columns is None or column in columns:
            yield f"comment on column {table}.{quoted(column)} is {literal(comment)}"


def _types(connection: duckdb.DuckDBPyConnection, table: Table | SyncTable) -> dict[str, str]:
    schema, name = table.qualified.split(".")
    found = rows(
        connection,
        "select column_name, data_type from duckdb_columns() "
        "where database_name = current_database() and schema_name = ? and table_name = ?",
        [schema, name],
    )
    return dict(found)


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
