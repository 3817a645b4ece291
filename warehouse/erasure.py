"""Deletes people from a DuckDB file, row by row.

DuckDB keeps the bytes of deleted rows in blocks that it does not use, so the file is then copied.
Not here: which rows are about somebody (`person`)."""

from collections.abc import Collection
from pathlib import Path

import duckdb

from warehouse.forgetting import Person
from warehouse.person import columns_beside, condition_about, tables_of
from warehouse.sql import (
    add_normal_form,
    fetch_rows,
    fetch_value,
    quote_name,
    quote_relation,
    quote_text,
    transaction,
)


def count_rows(connection: duckdb.DuckDBPyConnection, people: Collection[Person]) -> dict[str, int]:
    """How many rows of each table are about these people; tables without any are left out."""
    add_normal_form(connection)
    counts = {}
    for table, columns in tables_of(connection):
        about = condition_about(people, table, columns)
        if count := fetch_value(
            connection, f"select count(*) from {quote_relation(table)} as t where {about}"
        ):
            counts[table] = int(count)
    return counts


def delete_rows(
    connection: duckdb.DuckDBPyConnection, people: Collection[Person]
) -> dict[str, int]:
    """Delete the rows about these people, and empty their addresses in rows about others. Returns
    what `count_rows` did before."""
    counts = count_rows(connection, people)
    for table, columns in tables_of(connection):
        name = quote_relation(table)
        with transaction(connection):
            if table in counts:
                fetch_rows(
                    connection,
                    f"delete from {name} as t where {condition_about(people, table, columns)}",
                )
            for column, is_named in columns_beside(people, table, columns):
                fetch_rows(
                    connection,
                    f"update {name} as t set {quote_name(column)} = null where {is_named}",
                )
    return counts


def copy_database(connection: duckdb.DuckDBPyConnection, target: Path) -> None:
    """Write the current database as the new file `target`, in the storage version that it has."""
    here = "database_name = current_database()"
    sql = (
        "select database_name, rtrim(tags['storage_version'], '+') from duckdb_databases() where "
        f"{here}"
    )
    ((own, version),) = fetch_rows(connection, sql)
    fetch_rows(
        connection,
        f"attach {quote_text(str(target))} as copied (storage_version {quote_text(version)})",
    )
    fetch_rows(connection, f"copy from database {quote_name(own)} to copied")
    fetch_rows(connection, "detach copied")
