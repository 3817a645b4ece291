"""Deletes people from a DuckDB file, row by row.

DuckDB keeps the bytes of deleted rows in blocks that it does not use, so the file is then copied. Not here:
which rows are about somebody (`person`)."""

from collections.abc import Collection
from pathlib import Path

import duckdb

from warehouse.forgetting import Person
from warehouse.person import columns_beside, condition_about, tables_of
from warehouse.sql import add_normal_form, literal, qualified, quoted, rows, transaction, value


def count_rows(connection: duckdb.DuckDBPyConnection, people: Collection[Person]) -> dict[str, int]:
    """How many rows of each table are about these people; tables without any are left out."""
    add_normal_form(connection)
    counts = {}
    for table, columns in tables_of(connection):
        about = condition_about(people, table, columns)
        if count := value(connection, f"select count(*) from {qualified(table)} as t where {about}"):
            counts[table] = int(count)
    return counts


def delete_rows(connection: duckdb.DuckDBPyConnection, people: Collection[Person]) -> dict[str, int]:
    """Delete the rows about these people, and empty their addresses in rows about others. Returns what
    `count_rows` did before."""
    counts = count_rows(connection, people)
    for table, columns in tables_of(connection):
        name = qualified(table)
        with transaction(connection):
            if table in counts:
                rows(connection, f"delete from {name} as t where {condition_about(people, table, columns)}")
            for column, is_named in columns_beside(people, table, columns):
                rows(connection, f"update {name} as t set {quoted(column)} = null where {is_named}")
    return counts


def copy_database(connection: duckdb.DuckDBPyConnection, target: Path) -> None:
    """Write the current database as the new file `target`, in the storage version that it has."""
    here = "database_name = current_database()"
    sql = f"select database_name, rtrim(tags['storage_version'], '+') from duckdb_databases() where {here}"
    ((own, version),) = rows(connection, sql)
    rows(connection, f"attach {literal(str(target))} as copied (storage_version {literal(version)})")
    rows(connection, f"copy from database {quoted(own)} to copied")
    rows(connection, "detach copied")
