"""Which version of our own schema a DuckDB file holds, kept in `sync.meta` inside it.

Not here: the version of DuckDB's file format (`connection`), the tables themselves (`tables`).
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from warehouse.errors import NotAWarehouse, WarehouseTooNew

#: Goes up when a program of the version before could no longer load into the file or would damage it.
SCHEMA_VERSION = 3

_OURS = {"source", "history", "marts", "sync"}


def stamp_version(connection: duckdb.DuckDBPyConnection, version: int = SCHEMA_VERSION) -> None:
    """Write down that the file's schema is of `version`; called by whoever creates or migrates the tables, in its transaction."""
    connection.execute("create schema if not exists sync")
    connection.execute("create table if not exists sync.meta (name varchar, value varchar)")
    connection.execute("comment on table sync.meta is 'Facts about this file; one row per name.'")
    connection.execute("comment on column sync.meta.name is 'schema_version: the version of the tables in this file.'")
    connection.execute("comment on column sync.meta.value is 'The fact, as text.'")
    connection.execute("delete from sync.meta where name = 'schema_version'")
    connection.execute("insert into sync.meta values ('schema_version', ?)", [str(version)])


def schema_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """The file's version; None when it was never stamped (an empty or foreign file). Not to be called within a transaction."""
    try:
        found = connection.execute("select value::integer from sync.meta where name = 'schema_version'").fetchall()
    except duckdb.CatalogException:
        return None
    return int(found[0][0]) if found else None


def check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """WarehouseTooNew when the file needs a newer program, NotAWarehouse when it holds somebody else's tables."""
    version = schema_version(connection)
    if version is None:
        _check_schemas(connection, path)
    elif version > SCHEMA_VERSION:
        raise WarehouseTooNew(
            f"{path} has schema version {version}, this installation knows {SCHEMA_VERSION}: upgrade marketing-sync "
            "(or move the file away and run `marketing-sync rebuild`)"
        )


def _check_schemas(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    found = connection.execute("select distinct schema_name from duckdb_tables() where database_name = current_database()").fetchall()
    if (schemas := {schema for (schema,) in found}) and not schemas & _OURS:
        raise NotAWarehouse(f"{path} is a DuckDB file with tables of something else in {', '.join(sorted(schemas))}: choose another home")
