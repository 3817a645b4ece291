"""The rows of one SELECT on the warehouse, which can read only its tables
(`warehouse.sealed_query`). Not here: files (`files`), what columns mean (`columns`)."""

import duckdb
import pyarrow as pa

from home.door import open_warehouse
from home.settings import Settings
from warehouse.custom_tables import make_needed, read_files
from warehouse.sealed_query import QueryFailed, QueryLimits, limit_query, seal_connection
from warehouse.sql import fetch_rows
from write_back.input.files import BATCH, InputBudget, rows_of_batches
from write_back.input.rows import InputError, Rows, show_name

_RESULT = "the query's result"
#: Types whose values would come out as others: -1 for 2^128 - 1, a time without its offset.
_LOSSY_TYPES = ("UHUGEINT", "TIME WITH TIME ZONE")
#: Statements that put a view before each table. It has the rows of one account if there is a column
#: `account`: ids of two accounts may be equal.
_OWN_ROWS = """
select 1, format('create schema if not exists memory.{}', schema_name)
from duckdb_schemas() where database_name = current_database() and not internal
union all
select 2, format(
    'create view memory.{0}.{1} as from {2}.{0}.{1}{3}', schema_name, table_name, database_name,
    if(bool_or(column_name = 'account'), format(' where account = $${}$$', $account), '')
)
from duckdb_columns() where database_name = current_database() and not internal
group by schema_name, table_name, database_name
union all
select 3, format('set search_path = $$memory,{}$$', current_database())
order by all"""


def read_query(settings: Settings, sql: str, account: str, zone: str = "UTC") -> Rows:
    """The rows. The query sees only the account's part of each table. Times without a zone are in
    `zone`. The result and the query's memory have the limit of an input file. Raises InputError,
    and what `open_warehouse` raises."""
    limits = QueryLimits(
        seconds=settings.query_seconds,
        memory_bytes=settings.input_limit,
        zone=zone,
        memory_setting="MARKETING_INPUT_LIMIT",
    )
    with open_warehouse(settings, is_unshared=True, memory_limit=None) as connection:
        for _, statement in fetch_rows(connection, _OWN_ROWS, {"account": account}):
            fetch_rows(connection, statement)
        try:
            seal_connection(connection, limits)
            make_needed(connection, sql, read_files(settings.home), limits)
            with limit_query(connection, sql, limits):
                found = fetch_result(connection, sql, settings.input_limit)
        except QueryFailed as failure:
            raise InputError(str(failure)) from None
    budget = InputBudget(_RESULT, settings.input_limit)
    return rows_of_batches("query", found.schema, found.to_batches(), budget)


def fetch_result(connection: duckdb.DuckDBPyConnection, sql: str, limit: int) -> pa.Table:
    """The rows of the query, in at most `limit` bytes. Raises QueryFailed."""
    budget = InputBudget(_RESULT, limit)
    found = connection.sql(sql)
    for name, kind in zip(found.columns, found.types, strict=True):
        if any(lossy in str(kind) for lossy in _LOSSY_TYPES):
            raise QueryFailed(
                f"the query's column {show_name(name)} is of the type {kind}: cast it to varchar"
            )
    with found.to_arrow_reader(BATCH) as batches:
        try:
            return pa.Table.from_batches(budget.limit_batches(batches), batches.schema)
        except InputError as refusal:
            raise QueryFailed(str(refusal)) from None
