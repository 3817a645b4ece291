"""Reading columnar input: Parquet files, and queries on the warehouse, which can neither write nor reach anything but its tables."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.settings import INPUT_LIMIT, QUERY_SECONDS
from pipelines.write_back.input.grid import InputError, RequestBudget, Rows, rows_of_columns
from warehouse.connection import DEADLINE_S, OnWait, connect

#: These talk about the query alone; the messages of others may hold values of the tables.
_ABOUT_THE_QUERY = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException)
_FIRST_ROW = 2
_BATCH = 50_000


def read_parquet(name: str, content: bytes, budget: RequestBudget) -> Rows:
    """The rows of a Parquet file. Raises InputError."""
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        return _rows(name, file.schema_arrow, file.iter_batches(_BATCH), budget)
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"{name} is not a whole Parquet file: write it anew, or give the data as CSV") from None


def read_query(
    warehouse: Path,
    sql: str,
    *,
    deadline_s: float = DEADLINE_S,
    on_wait: OnWait | None = None,
    seconds: float = QUERY_SECONDS,
    limit: int = INPUT_LIMIT,
) -> Rows:
    """The rows of one SELECT on the warehouse at this path. Raises InputError, and what `warehouse.connection.connect` raises.

    It runs on an instance of its own that is read-only, reaches no other file, and keeps its settings; for `seconds`, until it has
    returned `limit` bytes, and with as much memory.
    """
    memory = f"{limit // 10**6 + 1}MB"
    with (
        connect(warehouse, is_sealed=True, deadline_s=deadline_s, memory_limit=memory, on_wait=on_wait) as connection,
        _interrupted_after(seconds, connection) as is_over,
    ):
        try:
            _check_single_select(connection, sql)
            with connection.sql(sql).to_arrow_reader(_BATCH) as batches:
                return _rows("query", batches.schema, batches, RequestBudget("the query's result", limit))
        except (duckdb.Error, pa.ArrowException, OSError) as problem:
            said = str(problem)
            if is_over.is_set():
                said = f"it takes longer than {seconds:g} s: let it do less, or allow more with MARKETING_QUERY_SECONDS"
            elif "Out of Memory" in said or "max_temp_directory_size" in said:
                said = f"it takes more than {memory} of memory: let it do less, or allow more with MARKETING_INPUT_LIMIT"
            else:
                said = _explained(problem)
            raise InputError(f"the query cannot be run: {said}") from None


@contextmanager
def _interrupted_after(seconds: float, connection: duckdb.DuckDBPyConnection) -> Iterator[threading.Event]:
    """End what the connection does after so long; the event tells whether that was so."""
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        connection.interrupt()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
        timer.join()


def _check_single_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise InputError(f"the query has to be one SELECT, and this is {len(statements) or 'no'} statements")
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = statements[0].type.name.replace("_", " ")
        raise InputError(f"the query has to be a SELECT, and this is {kind}: queries may read the warehouse and nothing else")
    if statements[0].named_parameters:
        raise InputError("the query has parameters like ? or $name: write their values instead")


def _explained(problem: Exception) -> str:
    """The message where it is about the query, else only what kind of error it is: it may quote values of the tables."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if isinstance(problem, duckdb.PermissionException):
        return "it may read the warehouse's tables and nothing else, no files, extensions or settings"
    if isinstance(problem, _ABOUT_THE_QUERY) and lines:
        hint = next((f" ({line})" for line in lines[1:] if line.startswith("Did you mean")), "")
        return lines[0] + hint
    kind = lines[0].partition(":")[0] if lines else type(problem).__name__
    return f"{kind} (its message is not shown, since it may hold personal data; try the query on the published copy)"


def _rows(name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], budget: RequestBudget) -> Rows:
    columns: list[list[Any]] = [[] for _ in schema.names]
    count = 0
    for batch in batches:
        budget.take(batch.nbytes, cells=batch.num_rows * (batch.num_columns or 1))
        count += batch.num_rows
        for column, values in zip(columns, batch.columns, strict=True):
            column += _values(values)
    return rows_of_columns(name, schema.names, columns, list(range(_FIRST_ROW, _FIRST_ROW + count)))


def _values(column: pa.Array) -> list[Any]:
    """Python values. Nanoseconds, which Python has no type for, are cut."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values: list[Any] = column.to_pylist()
    return values
