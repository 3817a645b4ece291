"""Reading columnar input: Parquet files, and queries on the warehouse, which can neither write nor reach anything but its tables."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.write_back.input.grid import InputError, Rows, rows_of_columns
from warehouse.connection import DEADLINE_S, OnWait, connect

#: These talk about the query alone; the messages of others may hold values of the tables.
_ABOUT_THE_QUERY = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException)
_FIRST_ROW = 2


def read_parquet(name: str, content: bytes) -> Rows:
    """The rows of a Parquet file. Raises InputError."""
    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"{name} is not a whole Parquet file: write it anew, or give the data as CSV") from None
    return _rows(name, table)


def read_query(warehouse: Path, sql: str, *, deadline_s: float = DEADLINE_S, on_wait: OnWait | None = None) -> Rows:
    """The rows of one SELECT on the warehouse at this path. Raises InputError, and what `warehouse.connection.connect` raises.

    It runs on an instance of its own that is read-only, reaches no other file, and keeps its settings.
    """
    with connect(warehouse, is_sealed=True, deadline_s=deadline_s, on_wait=on_wait) as connection:
        try:
            _check_single_select(connection, sql)
            result = connection.sql(sql)
            table = result.to_arrow_table()
        except duckdb.Error as problem:
            raise InputError(f"the query cannot be run: {_explained(problem)}") from None
    return _rows("query", table)


def _check_single_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise InputError(f"the query has to be one SELECT, and this is {len(statements) or 'no'} statements")
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = statements[0].type.name.replace("_", " ")
        raise InputError(f"the query has to be a SELECT, and this is {kind}: queries may read the warehouse and nothing else")
    if statements[0].named_parameters:
        raise InputError("the query has parameters like ? or $name: write their values instead")


def _explained(problem: duckdb.Error) -> str:
    """The message where it is about the query, else only what kind of error it is: it may quote values of the tables."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if isinstance(problem, duckdb.PermissionException):
        return "it may read the warehouse's tables and nothing else, no files, extensions or settings"
    if isinstance(problem, _ABOUT_THE_QUERY) and lines:
        hint = next((f" ({line})" for line in lines[1:] if line.startswith("Did you mean")), "")
        return lines[0] + hint
    kind = lines[0].partition(":")[0] if lines else type(problem).__name__
    return f"{kind} (its message is not shown, since it may hold personal data; try the query on the published copy)"


def _rows(name: str, table: pa.Table) -> Rows:
    numbers = list(range(_FIRST_ROW, _FIRST_ROW + table.num_rows))
    return rows_of_columns(name, table.column_names, [_values(column) for column in table.columns], numbers)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Python values. Nanoseconds, which Python has no type for, are cut."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values: list[Any] = column.to_pylist()
    return values
