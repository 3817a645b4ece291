"""One table's part of a load, inside the transaction: its staged rows as an SQL relation, and the terms SQL
is written in.

The account, the load's moment and other facts of it are variables of the connection (`apply`). Not here: what
the load modes do with the rows (`listing`, `apply`, `upsert`).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from marketing_api.operation import Operation
from warehouse.loads.arrow import ENTRY_HASH, KNOWN, PART, RESPONSE
from warehouse.loads.load import TableReport
from warehouse.loads.staging import ResponseHead, Staged
from warehouse.sql import literal, query, quoted, rows, value
from warehouse.tables import EXTRA, Table


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """One scope of one table after a load; `rows` is None when it should stay as it was, counted up by what
    is new."""

    scope: str
    is_complete: bool
    rows: int | None
    reason: str | None = None


class Target:
    """A table that is being loaded. `source` names the relation of its staged rows, `staged` that of those
    to be applied: one row per key once `merge_parts` has run."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: Table, staged: Staged) -> None:
        self._connection = connection
        self.table = table
        self.responses = staged.responses
        self.key = [quoted(name) for name in table.key]
        #: Each column's bit in the mask of those that a response knows.
        self.bits = {quoted(column.name): 1 << bit for bit, column in enumerate(table.record_columns)}
        #: The account's rows that may have staged keys, with their rowid as `rid`.
        self.stored = (
            f"(select rowid as rid, * from {table.qualified} where account = getvariable('account'))"
        )
        #: Of a call that was made twice, what the later response has.
        calls = {(head.operation, *sorted(head.params.items())): head.index for head in staged.responses}
        last = set(calls.values())
        self.rejects = [each for each in staged.rejects if each.table == table.name and each.response in last]
        #: By response, what it leaves open: entries of this table, and of those before it, which may be what
        #: its rows hang on.
        before = list(staged.rows)[: list(staged.rows).index(table.name) + 1]
        self.unreadable = {
            head.index: sum(head.unreadable[name] for name in before) for head in staged.responses
        }
        self.unbelieved: set[int] = set()  # responses that were not applied, or not in full
        flawed = sum(reject.is_loaded for reject in self.rejects)
        received, rejected = staged.counts[table.name], len(self.rejects) - flawed
        self.report = TableReport(table.name, received, rejected=rejected, flawed=flawed)
        self.has_extra = table.name in staged.with_extra
        if table.is_composed:
            self.run(query("merged"))
        self.source = self.staged = self._relation(staged.rows[table.name])

    def is_listing(self, head: ResponseHead) -> bool:
        """Whether the response proves which rows exist."""
        listing = self.table.load.listing
        return listing is None or head.operation == listing.name

    @cached_property
    def is_first(self) -> bool:
        """Whether the table held nothing of the account before this load (ask before writing): nothing to
        compare with, which costs more than all else about a small load."""
        return self.value(f"select 1 from {self.stored} limit 1") is None

    # -- SQL

    def on(self, left: str, right: str, *, but_last: bool = False) -> str:
        """The condition that two relations' rows have the same key, or agree in all of it but its last
        column."""
        names = self.key[:-1] if but_last else self.key
        return " and ".join(f"{left}.{name} = {right}.{name}" for name in names) or "true"

    def temp(self, name: str) -> str:
        """A temporary relation of this table's own."""
        return f"temp.{name}_{self.table.name}"

    def run(self, sql: str, **given: pa.Table) -> list[tuple[Any, ...]]:
        return rows(self._connection, sql, **given)

    def value(self, sql: str) -> Any:
        return value(self._connection, sql)

    def make(self, name: str, sql: str) -> int:
        """Keep the rows of a query as the temporary table `name`; returns their number."""
        return int(self.value(f"create or replace temp table {name}_{self.table.name} as {sql}") or 0)

    # -- staged rows

    def _relation(self, staged: pa.Table | Path) -> str:
        load = self.table.load
        listed = self._served_by(load.listing) if load.listing else "true"
        detailed = self._served_by(load.detail) if load.detail else "false"
        sql = f"select *, {listed} as _is_listed, {detailed} as _has_detail from"
        if isinstance(staged, Path):
            source = f"read_parquet({literal(str(staged))})"
            self.run(f"create or replace temp view staged_{self.table.name} as {sql} {source}")
        else:
            made = f"create or replace temp table staged_{self.table.name} as {sql} arrow_staged"
            self.run(made, arrow_staged=staged)
        return self.temp("staged")

    def _served_by(self, operation: Operation) -> str:
        indexes = [str(head.index) for head in self.responses if head.operation == operation.name]
        return f"{RESPONSE} in ({', '.join(indexes) or '-1'})"

    def merge_parts(self) -> None:
        """One row per key: of what several responses say about a column the last one that knows it counts."""
        key = ", ".join(self.key) or "()"
        repeated = f"select 1 from {self.staged} group by {key} having count(*) > 1 limit 1"
        if self.value(repeated) is None:
            return
        values = [quoted(column.name) for column in self.table.values]
        merged = "arg_max_null(extra, _part)"
        if self.table.is_composed:
            known = "list(extra order by _part) filter (extra is not null)"
            merged = f"list_reduce(nullif({known}, []), lambda a, b: merged(a, b))"
        columns = [
            *self.key,
            *(
                f"arg_max_null({name}, {PART}) filter ({KNOWN} & {self.bits[name]} <> 0) as {name}"
                for name in values
            ),
            f"{merged} as {EXTRA.name}",
            f"max({RESPONSE}) as {RESPONSE}, max({PART}) as {PART}, bit_or({KNOWN}) as {KNOWN}",
            f"arg_max({ENTRY_HASH}, {PART}) filter (_is_listed) as {ENTRY_HASH}",
            "bool_or(_is_listed) as _is_listed, bool_or(_has_detail) as _has_detail",
        ]
        self.make("merged", f"select {', '.join(columns)} from {self.staged} group by {key}")
        self.staged = self.temp("merged")
