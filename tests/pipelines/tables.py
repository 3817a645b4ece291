"""What a night left in the warehouse, as plain values that can be compared."""

from pathlib import Path
from typing import Any

import duckdb

#: Columns that tell when we asked, which differs between two runs.
WHEN = ("_first_seen_at", "_changed_at", "_deleted_at")

Tables = dict[str, list[tuple[Any, ...]]]


def query(home: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def rows(home: Path, schema: str, *left_out: str) -> Tables:
    """Every row of every table of a schema, in an order of its own, without the columns `left_out`."""
    found = {}
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        tables = connection.execute(
            "select table_name, list(column_name order by column_index) from duckdb_columns() where "
            "schema_name = ? group by 1",
            [schema],
        ).fetchall()
        for table, columns in tables:
            shown = ", ".join(f'"{column}"' for column in columns if column not in left_out)
            found[table] = connection.execute(
                f'select {shown} from {schema}."{table}" order by all'
            ).fetchall()
    return found


def source(home: Path) -> Tables:
    """The mirror of the account. Two runs of one account agree on it."""
    return rows(home, "source", *WHEN)


def differing(one: Tables, other: Tables) -> set[str]:
    """Names of the tables that are not the same in both."""
    return {table for table in one.keys() | other.keys() if one.get(table) != other.get(table)}
