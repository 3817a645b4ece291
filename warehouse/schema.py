"""Creates the schemas and tables of a warehouse file with their COMMENTs, and checks its version.

Schema evolution: new columns of declarations are added when the file is opened; a rebuild fills
them from the archive. The version is in `sync.meta`. Not here: the tables (`tables`), DuckDB's file
format (`connection`)."""

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import duckdb

from warehouse.errors import NotAWarehouse, WarehouseError, WarehouseTooNew
from warehouse.sql import (
    fetch_rows,
    fetch_value,
    load_query,
    quote_name,
    quote_relation,
    quote_text,
    transaction,
)
from warehouse.tables import ALL_TABLES, EMAIL, EMAIL_NORMALIZED, SyncTable, Table

#: Schemas: a typed copy of the service's data, its changes over time, the marts made from both, and
#: facts about the reading.
SCHEMAS = ("source", "history", "marts", "sync")
_FULL_NAMES = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}


def ensure_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Create what is missing; a single look-up if nothing is. Must not be called within a
    transaction.

    Tables keep columns that are no longer declared. Raises WarehouseError if a column's values do
    not fit its new type, or if the tables are from before the first release."""
    if is_current(connection):
        return
    found = schema_version(connection)
    if found is not None and found < _OLDEST:
        raise WarehouseError(
            f"the warehouse has schema version {found}, of before the first release: run "
            "`marketing-sync rebuild`"
        )
    with transaction(connection):
        for statement in _completing_statements(
            connection, SCHEMA_VERSION if found is None else found
        ):
            try:
                fetch_rows(connection, statement)
            except duckdb.ConversionException as error:
                raise WarehouseError(
                    f"`{statement}` does not fit the tables of the warehouse: run `marketing-sync "
                    "rebuild`"
                ) from error
        stamp_version(connection, SCHEMA_VERSION)
        note_fact(connection, "tables", _schema_fingerprint())


def _completing_statements(connection: duckdb.DuckDBPyConnection, version: int) -> Iterator[str]:
    """The statements; run each before you take the next."""
    yield from (f"create schema if not exists {schema}" for schema in SCHEMAS)
    for since in sorted(MIGRATIONS):
        yield from MIGRATIONS[since] if since > version else ()
    for table, columns in columns_of(connection).items():
        # tables of `history` that a rebuild copied may lack the columns of normal forms
        is_own = table.startswith(("source.", "history.", "sync."))
        if is_own and EMAIL in columns and EMAIL_NORMALIZED not in columns:
            yield f"alter table {table} add column {EMAIL_NORMALIZED} varchar"
            yield f"update {table} set {EMAIL_NORMALIZED} = nullif(normal_form({EMAIL}), '')"
    existing = columns_of(connection)
    for declared in ALL_TABLES:
        yield from table_statements(declared, existing.get(declared.qualified))


def is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the tables are as this version declares them. Must not be called within a
    transaction."""
    return read_fact(connection, "tables") == _schema_fingerprint()


def _schema_fingerprint() -> str:
    """A hash of the declared tables and the version, since a migration may only change rows."""
    return f"{SCHEMA_VERSION}-{_digest_of_tables()}"


@cache
def _digest_of_tables() -> str:
    declared = [
        (
            table.qualified,
            table.doc,
            [(column.name, column.sql_type, column.comment) for column in table.columns],
        )
        for table in ALL_TABLES
    ]
    return hashlib.blake2b(repr(declared).encode(), digest_size=16).hexdigest()


def columns_of(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Table (`schema.table`) → its columns, name → type."""
    found: dict[str, dict[str, str]] = {}
    sql = (
        "select schema_name || '.' || table_name, column_name, data_type from duckdb_columns() "
        "where database_name = current_database()"
    )
    for table, column, sql_type in fetch_rows(connection, sql):
        found.setdefault(table, {})[column] = sql_type
    return found


def kinds_of(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Relation (`schema.table`) → table or view, for all relations of the current file."""
    sql = (
        "select table_schema || '.' || table_name, if(table_type = 'VIEW', 'view', 'table') "
        "from information_schema.tables where table_catalog = current_database()"
    )
    return dict(fetch_rows(connection, sql))


def row_counts(connection: duckdb.DuckDBPyConnection, relations: Iterable[str]) -> dict[str, int]:
    return {
        relation: fetch_value(connection, f"select count(*) from {quote_relation(relation)}")
        for relation in relations
    }


def version_of(connection: duckdb.DuckDBPyConnection, relation: str) -> str:
    """A version of the table's rows; it does not depend on their order."""
    sql = (
        f"select concat_ws('/', count(*), sum(hash(each))) from {quote_relation(relation)} as each"
    )
    return str(fetch_value(connection, sql))


def table_statements(
    table: Table | SyncTable, existing: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The DDL that creates a table, or adds what is missing to one with the `existing` columns
    (name → type)."""
    columns = ", ".join(f"{quote_name(column.name)} {column.sql_type}" for column in table.columns)
    yield f"create table if not exists {table.qualified} ({columns})"
    yield f"comment on table {table.qualified} is {quote_text(table.doc)}"
    for column in table.columns:
        if existing and column.name not in existing:
            yield (
                f"alter table {table.qualified} add column {quote_name(column.name)} "
                f"{column.sql_type}"
            )
        elif existing and existing[column.name] != _FULL_NAMES.get(
            column.sql_type, column.sql_type
        ):
            yield (
                f"alter table {table.qualified} alter column {quote_name(column.name)} set data "
                f"type {column.sql_type}"
            )
        yield (
            f"comment on column {table.qualified}.{quote_name(column.name)} is "
            f"{quote_text(column.comment)}"
        )


def comment_statements(
    connection: duckdb.DuckDBPyConnection,
    relations: Mapping[str, Container[str]],
    views: Container[str] = (),
) -> dict[str, list[str]]:
    """Relation → the statements that copy its COMMENTs, and those of its columns (`relations`), to
    another file, where `views` are views."""
    here = "where database_name = current_database() and comment is not null"
    of_table = f"schema_name || '.' || table_name, null, comment from duckdb_tables() {here}"
    of_view = f"schema_name || '.' || view_name, null, comment from duckdb_views() {here}"
    of_column = (
        f"schema_name || '.' || table_name, column_name, comment from duckdb_columns() {here}"
    )
    sql = f"select {of_table} union all select {of_view} union all select {of_column} order by all"
    found: dict[str, list[str]] = {}
    for name, column, comment in fetch_rows(connection, sql):
        if name in relations and column is None:
            kind = "view" if name in views else "table"
            found.setdefault(name, []).append(
                f"comment on {kind} {quote_relation(name)} is {quote_text(comment)}"
            )
        elif name in relations and column in relations[name]:
            place = f"{quote_relation(name)}.{quote_name(column)}"
            found.setdefault(name, []).append(f"comment on column {place} is {quote_text(comment)}")
    return found


def read_fact(connection: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """The value in `sync.meta` with this name; None if it has none, or does not exist. Must not be
    called within a transaction."""
    try:
        found: str | None = fetch_value(
            connection, "select value from sync.meta where name = ?", [name]
        )
    except duckdb.CatalogException:
        return None
    return found


def read_facts(connection: duckdb.DuckDBPyConnection, prefix: str) -> dict[str, str]:
    """The facts in `sync.meta` whose names begin with this: the rest of the name → the fact."""
    sql = (
        "select substr(name, length($prefix) + 1), value from sync.meta where starts_with(name, "
        "$prefix)"
    )
    return dict(fetch_rows(connection, sql, {"prefix": prefix}))


def note_fact(connection: duckdb.DuckDBPyConnection, name: str, text: str) -> None:
    """Write a fact into `sync.meta`, in the caller's transaction."""
    fetch_rows(connection, "delete from sync.meta where name = ?", [name])
    fetch_rows(connection, "insert into sync.meta values (?, ?)", [name, text])


#: Raised if an older program could no longer load into the file, or would damage it.
SCHEMA_VERSION = 5
#: The lowest version of a file from a release.
_OLDEST = 5
#: Version → the statements that convert the tables of the version before, as far as `ensure_schema`
#: does not: a renamed column, changed rows. They run in their order, in one transaction.
MIGRATIONS: dict[int, Sequence[str]] = {}


def stamp_version(connection: duckdb.DuckDBPyConnection, version: int = SCHEMA_VERSION) -> None:
    """Write the version into the file; called after creating or migrating the tables, in the same
    transaction."""
    connection.execute(load_query("meta"))
    note_fact(connection, "schema_version", str(version))


def schema_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """The file's version; None if it has none (an empty or foreign file). Must not be called within
    a transaction."""
    found = read_fact(connection, "schema_version")
    return None if found is None else int(found)


def check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raises WarehouseTooNew if the file needs a newer program, and NotAWarehouse if it holds
    tables of another program."""
    version = schema_version(connection)
    if version is None:
        schemas = {table.partition(".")[0] for table in columns_of(connection)}
        if schemas and not schemas.intersection(SCHEMAS):
            names = ", ".join(sorted(schemas))
            raise NotAWarehouse(
                f"{path} is a DuckDB file with tables of something else in {names}: choose another "
                "home"
            )
    elif version > SCHEMA_VERSION:
        raise WarehouseTooNew(
            f"{path} has schema version {version}, this installation knows {SCHEMA_VERSION}: "
            "upgrade marketing-sync (or move the file away and run `marketing-sync rebuild`)"
        )
