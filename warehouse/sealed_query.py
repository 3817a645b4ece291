"""Restricts SQL from users to the tables of one open DuckDB file: it reads no other file and no
network, changes no setting, and ends at a limit of time and of memory.

The settings hold for the whole instance of DuckDB, so the caller must own it
(`connection.open_private`, or `open_database` with `is_unshared`)."""

import re
import resource
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.duckdb_errors import explain_query_error, is_out_of_memory
from warehouse.sql import fetch_rows, not_one_select, quote_text

#: Memory that a query may use in addition to what DuckDB counts.
OVERHEAD_BYTES = 1_000_000_000
#: Longest message of a query, in characters.
_MESSAGE_LENGTH = 500

_ZONES = """
select account, (select max(name) from pg_timezone_names() where name = business.timezone)
from source.business where _deleted_at is null"""


class QueryFailed(Exception):
    """Why the query has no result: a sentence that begins with "the query"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """How long a query may take, how much of DuckDB's memory it may use, and the zone of its times.

    `zones`: time zones of accounts in the settings. With them, times are in the zone that all
    accounts have, and `zone` is that of an account without one. `may_quote`: people who read the
    messages may also read the tables. `memory_setting`: the setting that allows more memory."""

    seconds: float = 600.0
    memory_bytes: int = 2_000_000_000
    zone: str = "UTC"
    zones: Mapping[str, str] | None = None
    may_quote: bool = False
    memory_setting: str = ""

    @property
    def memory(self) -> str:
        return f"{self.memory_bytes // 10**6 + 1}MB"


def seal_in(zone: str) -> tuple[str, ...]:
    """Settings for SQL from users, in this order: the last one makes them final. Times are in
    `zone`."""
    return (
        f"set session timezone = {quote_text(zone)}",
        f"set global timezone = {quote_text(zone)}",
        "set global max_temp_directory_size = '4GB'",  # by default nine tenths of the free disk
        # otherwise a table's name could mean a variable of this program
        "set python_enable_replacements = false",
        "set autoload_known_extensions = false",
        "set enable_external_access = false",
        "set lock_configuration = true",
    )


SEAL = seal_in("UTC")


def seal_connection(connection: duckdb.DuckDBPyConnection, limits: QueryLimits) -> None:
    """Restrict queries of the connection to its tables, permanently."""
    fetch_rows(connection, f"set memory_limit = '{limits.memory}'")
    for setting in seal_in(_find_zone(connection, limits)):
        fetch_rows(connection, setting)


def _find_zone(connection: duckdb.DuckDBPyConnection, limits: QueryLimits) -> str:
    """The zone that all accounts have, as in the marts; UTC if there are several."""
    zones = limits.zones
    if zones is None:
        return limits.zone
    found = {
        zones.get(account) or own or limits.zone for account, own in fetch_rows(connection, _ZONES)
    }
    return found.pop() if len(found) == 1 else "UTC"


@contextmanager
def limit_query(
    connection: duckdb.DuckDBPyConnection, sql: str, limits: QueryLimits
) -> Iterator[None]:
    """Run the query, which must be one SELECT, within this context. Errors in it, and queries that
    exceed the limits, are raised as QueryFailed."""
    ends = time.monotonic() + limits.seconds
    timer = threading.Timer(limits.seconds, connection.interrupt)
    timer.start()
    try:
        with limit_memory(limits.memory_bytes + OVERHEAD_BYTES):
            reason = not_one_select(connection, sql)
            if reason:
                raise QueryFailed(f"the query {reason}")
            yield
    except QueryFailed:
        raise
    except Exception as error:  # includes errors of libraries that write the result
        if is_out_of_memory(error):
            raise QueryFailed(_describe_memory(limits)) from None
        if time.monotonic() >= ends:
            raise QueryFailed(
                f"the query took longer than {limits.seconds:g} s: simplify it, or raise "
                "MARKETING_QUERY_SECONDS"
            ) from None
        reason = explain_query_error(error, may_quote=limits.may_quote)[:_MESSAGE_LENGTH]
        raise QueryFailed(f"the query cannot be run: {reason}") from None
    finally:
        timer.cancel()
        timer.join()


def _describe_memory(limits: QueryLimits) -> str:
    more = f", or allow more with {limits.memory_setting}" if limits.memory_setting else ""
    return (
        f"the query cannot be run: it takes more than {limits.memory} of memory: simplify it{more}"
    )


_LIMITING = threading.Lock()


@contextmanager
def limit_memory(more: int) -> Iterator[None]:
    """Let the process use `more` bytes than it has now; on Linux only. One caller at a time.

    DuckDB's own limit does not count lists such as those of `range(1000000000)`: they took 20 GB,
    and could not be interrupted."""
    with _LIMITING:
        before, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limits = {limit for limit in (before, hard) if limit != resource.RLIM_INFINITY}
        with suppress(OSError):  # if the system does not report it
            status = Path("/proc/self/status").read_text()
            data_size = re.search(r"^VmData:\s+(\d+) kB", status, re.MULTILINE)
            if data_size is not None:
                resource.setrlimit(
                    resource.RLIMIT_DATA, (min({int(data_size[1]) * 1024 + more, *limits}), hard)
                )
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (before, hard))
