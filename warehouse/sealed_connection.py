"""The process that runs the queries of `warehouse.sealed_query`: a connection that reads one DuckDB file,
reaches no other file and no network, and cannot change its settings."""

import re
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import msgspec

from warehouse.child import other_side
from warehouse.duckdb_errors import is_locked, is_out_of_memory, query_problem
from warehouse.errors import PublishedLocked
from warehouse.sealed_query import OVERHEAD_BYTES, QueryFailed, Reply, SealedQuery
from warehouse.sql import add_normal_form, fetch_rows, not_one_select, quote_name, quote_text

#: Longest message of a query, in characters.
_MESSAGE_LENGTH = 500

Query = TypeVar("Query", bound=SealedQuery)

_ZONES = """
select account, (select max(name) from pg_timezone_names() where name = business.timezone)
from source.business where _deleted_at is null"""


def seal_in(zone: str) -> tuple[str, ...]:
    """Settings for SQL that others wrote, in this order: the last makes them final. Times are in `zone`."""
    return (
        f"set global timezone = {quote_text(zone)}",
        "set global max_temp_directory_size = '4GB'",  # by default nine tenths of the free disk
        "set python_enable_replacements = false",  # or a table's name may mean a variable of this program
        "set autoload_known_extensions = false",
        "set enable_external_access = false",
        "set lock_configuration = true",
    )


SEAL = seal_in("UTC")

_BOUNDING = threading.Lock()


@contextmanager
def bounded_memory(more: int) -> Iterator[None]:
    """Let the process take `more` bytes than it has, and no others; on Linux only. One at a time.

    DuckDB's own limit does not count lists such as those of `range(1000000000)`: they took 20 GB, and could
    not be interrupted."""
    with _BOUNDING:
        before, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limits = {limit for limit in (before, hard) if limit != resource.RLIM_INFINITY}
        with suppress(OSError):  # where the system does not tell
            status = Path("/proc/self/status").read_text()
            taken = re.search(r"^VmData:\s+(\d+) kB", status, re.MULTILINE)
            if taken is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (min({int(taken[1]) * 1024 + more, *limits}), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


@contextmanager
def open_sealed(query: SealedQuery) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file of the query, sealed, and read-only unless it is writable."""
    config: dict[str, Any] = {
        "memory_limit": f"{query.memory_bytes // 10**6 + 1}MB",
        "temp_directory": str(Path(query.result).parent),
        "autoinstall_known_extensions": False,
    }
    name, mode = quote_name(Path(query.database).stem), "" if query.is_writable else "(read_only)"
    with duckdb.connect(config=config) as connection:
        add_normal_form(connection)
        fetch_rows(connection, f"attach {quote_text(query.database)} as {name} {mode}")
        fetch_rows(connection, f"use {name}")
        for setting in seal_in(find_zone(connection, query)):
            fetch_rows(connection, setting)
        yield connection


def find_zone(connection: duckdb.DuckDBPyConnection, query: SealedQuery) -> str:
    """The zone that all accounts have, as the marts take it; UTC where there are several."""
    if query.zones is None:
        return query.zone
    found = {query.zones.get(account) or own or query.zone for account, own in fetch_rows(connection, _ZONES)}
    return found.pop() if len(found) == 1 else "UTC"


def serve_queries(
    query_type: type[Query], write_result: Callable[[duckdb.DuckDBPyConnection, Query], str]
) -> None:
    """Be the process: run the queries that are sent and reply to each. `write_result` writes the file
    `query.result` and returns what is reported of it."""
    lines, send = other_side()
    send("ready")
    for line in lines:
        reply = answer_query(msgspec.json.decode(line, type=query_type), write_result)
        send(msgspec.json.encode(reply).decode())


def answer_query(query: Query, write_result: Callable[[duckdb.DuckDBPyConnection, Query], str]) -> Reply:
    try:
        with (
            in_words(query),
            open_sealed(query) as connection,
            bounded_memory(query.memory_bytes + OVERHEAD_BYTES),
        ):
            check_select(connection, query.sql)
            return Reply(report=write_result(connection, query))
    except QueryFailed as failure:
        return Reply(str(failure))


def check_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises QueryFailed unless it is one SELECT."""
    if reason := not_one_select(connection, sql):
        raise QueryFailed(f"the query {reason}")


@contextmanager
def in_words(query: SealedQuery) -> Iterator[None]:
    """Raises what goes wrong with the query as QueryFailed."""
    try:
        yield
    except QueryFailed:
        raise
    except Exception as error:  # also what libraries that write the result raise
        if is_out_of_memory(error):
            raise QueryFailed(query.needs_memory) from None
        if isinstance(error, duckdb.Error) and is_locked(error):
            raise QueryFailed(str(PublishedLocked(Path(query.database)))) from None
        reason = query_problem(error, may_quote=query.may_quote)[:_MESSAGE_LENGTH]
        raise QueryFailed(f"the query cannot be run: {reason}") from None
