"""Runs SELECTs that somebody wrote in a process of its own, which can read the tables of one DuckDB file
and nothing else.

DuckDB cannot be interrupted in every function and does not count all the memory that it takes. So the
operating system limits the memory of the process, and the process is killed at its time limit. This module
asks and is quick to import; the process itself is `warehouse.sealed_connection`, with a module that writes
the result."""

from contextlib import closing
from pathlib import Path

import msgspec

from warehouse.child import START_S, Child, Ended, Silent

#: What the process may take besides the memory that DuckDB counts.
OVERHEAD_BYTES = 1_000_000_000


class QueryFailed(Exception):
    """Why the query has no result: a sentence that begins with "the query"."""


class SealedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What the process runs, and how.

    `result`: the file that the module writes, in a folder of the query's own, which also takes what does not
    fit into memory. `is_writable`: the module writes into the database itself. `memory_bytes`: for DuckDB.
    `zone`: of times. `zones`: time zones of accounts as the settings have them; then times are in the zone
    that all accounts have, and `zone` is that of an account without one. `may_quote`: whoever reads the
    messages may read the tables, too. `memory_setting`: the setting that allows more memory."""

    database: str
    sql: str
    result: str
    memory_bytes: int
    is_writable: bool = False
    zone: str = "UTC"
    zones: dict[str, str] | None = None
    may_quote: bool = False
    memory_setting: str = ""

    @property
    def needs_memory(self) -> str:
        """The sentence for a query that needs more memory than it may have."""
        more = f", or allow more with {self.memory_setting}" if self.memory_setting else ""
        return (
            f"the query cannot be run: it takes more than {self.memory_bytes // 10**6 + 1}MB of memory: "
            f"let it do less{more}"
        )


class Reply(msgspec.Struct, frozen=True):
    """`problem`: why there is no result; empty when there is one. `report`: what the module says of it."""

    problem: str = ""
    report: str = ""


class SealedProcess:
    """`python -m MODULE`, which runs one query after another. When a query ends the process, the next query
    starts another one."""

    def __init__(self, module: str, folder: Path) -> None:
        self._module, self._folder = module, folder
        self._child: Child | None = None

    def run_query(self, query: SealedQuery, seconds: float) -> str:
        """Have the module write the result of the query; returns its report. Raises QueryFailed."""
        try:
            if self._child is None:
                self._child = Child(self._module, self._folder)
                self._child.receive_line(START_S)
            self._child.send_line(msgspec.json.encode(query).decode())
            reply = msgspec.json.decode(self._child.receive_line(seconds), type=Reply)
        except Silent:
            self._child = None
            raise QueryFailed(
                f"the query cannot be run: it takes longer than {seconds:g} s: let it do less, or allow more "
                "with MARKETING_QUERY_SECONDS"
            ) from None
        except Ended:
            self._child = None
            raise QueryFailed(query.needs_memory) from None
        if reply.problem:
            raise QueryFailed(reply.problem)
        return reply.report

    def close(self) -> None:
        if self._child is not None:
            self._child.kill_child()


def run_sealed(module: str, query: SealedQuery, seconds: float) -> str:
    """The same, of one query alone."""
    with closing(SealedProcess(module, Path(query.result).parent)) as process:
        return process.run_query(query, seconds)
