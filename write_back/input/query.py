"""The rows of one SELECT on the warehouse, read in a sealed process (`warehouse.sealed_query`). Not here:
files (`files`), what columns mean (`columns`)."""

from collections.abc import Mapping
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa

from home.door import open_warehouse
from home.settings import Settings
from warehouse.custom_tables import CustomFile, make_needed, read_files
from warehouse.disk import open_scratch
from warehouse.sealed_connection import serve_queries
from warehouse.sealed_query import QueryFailed, SealedQuery, run_sealed
from write_back.input.files import BATCH, InputBudget, rows_of_batches
from write_back.input.rows import InputError, Rows, show_name

_RESULT = "the query's result"
#: Types whose values would come out as others: -1 for 2^128 - 1, a time without its offset.
_LOSSY_TYPES = ("UHUGEINT", "TIME WITH TIME ZONE")


class PushQuery(SealedQuery, frozen=True, kw_only=True):
    """May read the tables of the user's files, which are made for it."""

    files: Mapping[str, CustomFile] = msgspec.field(default_factory=dict)


def read_query(settings: Settings, sql: str, zone: str = "UTC") -> Rows:
    """The rows, with times that have no zone taken as those of `zone`. The result may be as large as an
    input, and the query may take that much memory. Raises InputError, and what `connect` raises."""
    with (
        open_warehouse(settings, is_unshared=True, memory_limit=None),  # so that the process need not wait
        open_scratch(settings.home, "queries") as workspace,
    ):
        target = workspace.place_file("rows.arrow")
        query = PushQuery(
            database=str(settings.warehouse_path),
            sql=sql,
            result=str(target),
            memory_bytes=settings.input_limit,
            zone=zone,
            memory_setting="MARKETING_INPUT_LIMIT",
            files=read_files(settings.home),
        )
        try:
            run_sealed(__name__, query, settings.query_seconds)
        except QueryFailed as failure:
            raise InputError(str(failure)) from None
        with pa.ipc.open_stream(target) as batches:
            budget = InputBudget(_RESULT, settings.input_limit)
            return rows_of_batches("query", batches.schema, batches, budget)


def write_rows(connection: duckdb.DuckDBPyConnection, query: PushQuery) -> str:
    """Write the rows as a stream of Arrow batches. Raises QueryFailed."""
    make_needed(connection, query, query.files)
    budget, found = InputBudget(_RESULT, query.memory_bytes), connection.sql(query.sql)
    for name, kind in zip(found.columns, found.types, strict=True):
        if any(lossy in str(kind) for lossy in _LOSSY_TYPES):
            raise QueryFailed(
                f"the query's column {show_name(name)} is of the type {kind}: cast it to varchar"
            )
    with (
        found.to_arrow_reader(BATCH) as batches,
        pa.ipc.new_stream(Path(query.result), batches.schema) as file,
    ):
        try:
            for batch in budget.limit_batches(batches):
                file.write(batch)
        except InputError as refusal:
            raise QueryFailed(str(refusal)) from None
    return ""


if __name__ == "__main__":
    serve_queries(PushQuery, write_rows)
