"""Rows of `source` and `sync` tables as tests write them, and the warehouse file that is made of them.

Not here: which rows (`generate*`, `by_hand`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from marketing_api.address import normal_form
from warehouse.arrow_types import arrow_fields
from warehouse.connection import open_database
from warehouse.schema import ensure_schema
from warehouse.tables import EMAIL, EMAIL_NORMALIZED, SYNC_TABLES, TABLES

Row = dict[str, Any]
#: Rows by table: `contacts`, `sync.coverage`. Columns that are not named are NULL.
Rows = Mapping[str, list[Row]]

_DECLARED = {table.name: table for table in TABLES.values()} | {
    table.qualified: table for table in SYNC_TABLES
}


def together(parts: Iterable[Rows]) -> dict[str, list[Row]]:
    """The rows of all parts."""
    found: dict[str, list[Row]] = defaultdict(list)
    for part in parts:
        for name, rows in part.items():
            found[name] += rows
    return dict(found)


def write(path: Path, rows: Rows) -> None:
    """A warehouse with these rows and the normal forms of their addresses; other tables are empty."""
    with open_database(path) as connection:
        ensure_schema(connection)
        for name, some in rows.items():
            table = _DECLARED[name]
            schema = pa.schema(arrow_fields(table.columns))
            unknown = {column for row in some for column in row} - set(schema.names)
            assert not unknown, f"{name} has no {unknown}"
            if EMAIL_NORMALIZED in schema.names:
                some = [row | {EMAIL_NORMALIZED: normal_form(row.get(EMAIL) or "") or None} for row in some]
            connection.register("arrow_rows", pa.Table.from_pylist(some, schema=schema))
            connection.execute(f"insert into {table.qualified} by name from arrow_rows")
            connection.unregister("arrow_rows")


def read(connection: duckdb.DuckDBPyConnection, schema: str) -> dict[str, pd.DataFrame]:
    """Every table of a schema, by its name."""
    connection.execute("set timezone = 'UTC'").fetchall()
    names = connection.execute(
        "select table_name from duckdb_tables() where schema_name = ?", [schema]
    ).fetchall()
    return {name: frame(connection, f'from {schema}."{name}"') for (name,) in names}


def frame(connection: duckdb.DuckDBPyConnection, sql: str) -> pd.DataFrame:
    """The rows of a query, by way of Arrow: DuckDB's own conversion calls what pandas warns of."""
    return connection.sql(sql).to_arrow_table().to_pandas()
