"""One SELECT that somebody else wrote over the published file, as JSON, within limits of time, memory and
text; and what any query of somebody else's is read within (`opened`, `selecting`).

It runs in a process of its own, which is started for the first and again behind one that had to be ended:
DuckDB can neither be interrupted in every function nor counts all memory that it takes. Not here: who asks,
and how (`pipelines.commands.mcp`, `query`)."""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from warehouse.child import START_S, Child, Ended, Silent, other_side
from warehouse.connection import bounded_memory, seal_in
from warehouse.duckdb_errors import is_out_of_memory, query_problem
from warehouse.errors import NothingPublished, WarehouseError
from warehouse.policies import PersonalData
from warehouse.publish import Published, facts, read_facts
from warehouse.sql import not_one_select

#: Most rows of an answer; most bytes of its text, some 20,000 tokens; most letters of a message.
ROW_LIMIT, TEXT_LIMIT, MESSAGE_LIMIT = 1_000, 60_000, 500
QUERY_SECONDS = 30.0
_MEMORY_BYTES = 500_000_000
_MEMORY = f"{_MEMORY_BYTES // 10**6}MB"
#: Nothing is spilled to disk: a process that is killed would leave it there.
_CONFIG: dict[str, Any] = {
    "memory_limit": _MEMORY,
    "temp_directory": "",
    "autoinstall_known_extensions": False,
}

#: An answer as JSON: times in ISO 8601, NaN and infinity as null, types that JSON does not know as text.
encode = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode


class NoAnswer(Exception):
    """Why there is none, in a sentence."""


class PersonalDataKept(NoAnswer):
    """The copy holds personal data, and that may not be shown."""


@contextmanager
def opened(
    path: Path, *, allows_personal: bool, zone: str = "UTC", **config: Any
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Published]]:
    """The copy, sealed as for the query of a push: it reaches no other file and no network, loads nothing,
    and keeps its settings. `config`: other limits than an assistant's.

    Raises PersonalDataKept, NothingPublished, PublishedLocked.
    """
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_CONFIG | config)
        for setting in seal_in(zone):
            connection.execute(setting)
        published = read_facts(connection)
    except duckdb.Error:
        facts(path)  # raises PublishedLocked, which names the way out
        raise NothingPublished(path) from None
    with closing(connection):
        if published.personal_data is PersonalData.KEEP and not allows_personal:
            raise PersonalDataKept
        yield connection, published


@contextmanager
def selecting(connection: duckdb.DuckDBPyConnection, sql: str, memory: str) -> Iterator[None]:
    """What somebody's query is run and read within. NoAnswer when it is not one SELECT or cannot be run, in a
    sentence that may quote values: whoever reads it may read the tables."""
    try:
        if reason := not_one_select(connection, sql):
            raise NoAnswer(f"the query {reason}")
        yield
    except (duckdb.Error, MemoryError) as problem:
        is_too_much = is_out_of_memory(problem)
        reason = (
            f"it takes more than {memory} of memory: let it do less"
            if is_too_much
            else query_problem(problem, may_quote=True)
        )
        raise NoAnswer(f"the query cannot be run: {reason[:MESSAGE_LIMIT]}") from None


class Queries:
    """Runs queries on the copy at `path`, one at a time. Close it at the end."""

    def __init__(self, path: Path, *, allows_personal: bool = False, seconds: float = QUERY_SECONDS) -> None:
        self._path, self._allows_personal, self._seconds = path, allows_personal, seconds
        self._turn = threading.Lock()
        self._child: Child | None = None

    def run(self, sql: str, limit: int) -> msgspec.Raw:
        """Columns, rows and whether they were cut off, as JSON. Raises NoAnswer."""
        with self._turn:
            try:
                child = self._child or self._started()
                child.send(json.dumps([sql, limit]))
                refusal, answer = msgspec.json.decode(
                    child.receive(self._seconds), type=tuple[str, msgspec.Raw]
                )
            except (Silent, Ended) as end:
                self._child = None
                is_over = isinstance(end, Silent)
                reason = (
                    f"it takes longer than {self._seconds:g} s"
                    if is_over
                    else f"it takes more than {_MEMORY} of memory"
                )
                raise NoAnswer(f"the query cannot be run: {reason}: let it do less") from None
        if refusal:
            raise NoAnswer(refusal)
        return msgspec.Raw(bytes(answer))

    def _started(self) -> Child:
        self._child = Child(
            __name__, str(self._path), str(int(self._allows_personal)), folder=self._path.parent
        )
        self._child.receive(START_S)
        return self._child

    def close(self) -> None:
        if self._child is not None:
            self._child.end()


def _answer(path: Path, sql: str, limit: int, *, allows_personal: bool) -> dict[str, Any]:
    with (
        opened(path, allows_personal=allows_personal) as (connection, _),
        bounded_memory(_MEMORY_BYTES),
        selecting(connection, sql, _MEMORY),
    ):
        found = connection.execute(sql)
        columns = [{"name": name, "type": str(sql_type)} for name, sql_type, *_ in found.description or ()]
        most = min(max(limit, 1), ROW_LIMIT)
        return _result(columns, found.fetchmany(most + 1), most)


def _result(columns: Sequence[dict[str, Any]], found: Sequence[tuple[Any, ...]], most: int) -> dict[str, Any]:
    """As many rows as the limits allow. `found` has one more than `most` when there are more."""
    kept, size, reason = list[msgspec.Raw](), len(encode(columns)), ""
    for row in found[:most]:
        encoded = encode(row)
        size += len(encoded) + 1
        if size > TEXT_LIMIT:
            reason = f"the text would be longer than {TEXT_LIMIT:,} bytes"
            break
        kept.append(msgspec.Raw(encoded))
    if reason and not kept:
        raise NoAnswer(
            f"the first row alone takes more than {TEXT_LIMIT:,} bytes: select fewer columns, or parts "
            "of long texts"
        )
    if not reason and len(found) > most:
        reason = f"there are more than {most:,} rows"
    answer = {"columns": columns, "rows": kept, "is_cut_off": bool(reason)}
    return answer | ({"reason": reason} if reason else {})


def _serve(path: Path, *, allows_personal: bool) -> None:
    lines, send = other_side()
    send("ready")
    for line in lines:
        sql, limit = json.loads(line)
        try:
            reply = ("", _answer(path, sql, limit, allows_personal=allows_personal))
        except (NoAnswer, WarehouseError) as problem:
            reply = (str(problem) or "the copy that was published since holds personal data", {})
        send(encode(reply).decode())


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), allows_personal=sys.argv[2] == "1")
