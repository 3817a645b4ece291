"""One table's part of a load, inside the transaction: its staged rows as an SQL relation, and the terms SQL
is written in.

Not here: what the load modes do with them (`listing`, `apply`, `upsert`).
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.loads.arrow import ENTRY_HASH, KNOWN, PART, RESPONSE
from warehouse.loads.staging import ResponseHead, Staged
from warehouse.sql import literal, query, quoted, value
from warehouse.sql import rows as sql_rows
from warehouse.tables import EXTRA, Table


@dataclass
class TableReport:
    """What a load did to one table, in rows; `refused` says of which scopes nothing was applied, and why."""

    table: str
    received: int = 0
    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0  # of those received: timelines that say what was loaded last are not read
    rejected: int = 0
    flawed: int = 0  # of those received: a value could not be read
    refused: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)  # why rows that were not listed are kept
    drift: list[str] = field(default_factory=list)  # how its responses differ from those before, a line each
    stale: list[str] = field(default_factory=list)  # scopes of which a newer response was loaded before


class Target:
    """A table that is being loaded. `staged` names the relation with one row per key once `merge_parts` has
    run.

    `as_of` dates its rows, `last_request` (of a listing) tells which of two loads is the newer: clocks do
    not."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        table: Table,
        account: str,
        as_of: dt.datetime,
        rows: Staged,
        zone: str = "UTC",
        last_request: int | None = None,
    ) -> None:
        self.connection = connection
        self.table = table
        self.account = literal(account)
        self.as_of = f"timestamptz {literal(as_of.astimezone(dt.UTC).isoformat())}"
        self.responses = rows.responses
        last_request = max(
            (head.request_id for head in rows.responses if self.is_listing(head)), default=last_request
        )
        self.last_request = "null" if last_request is None else str(last_request)
        self.zone = zone
        last = set(
            {(head.operation, *sorted(head.params.items())): head.index for head in rows.responses}.values()
        )
        #: Of a call that was made twice, what the later response has.
        self.rejects = [each for each in rows.rejects if each.table == table.name and each.response in last]
        self.unreadable = rows.unreadable_of(table.name)  # by response
        self.flaws = rows.flaws
        self.unbelieved: set[int] = set()  # responses that were not applied, or not in full
        flawed = sum(reject.is_loaded for reject in self.rejects)
        received, rejected = rows.counts[table.name], len(self.rejects) - flawed
        self.report = TableReport(table.name, received, rejected=rejected, flawed=flawed)
        self.has_extra = table.name in rows.with_extra
        self.held = ""  # a temporary relation that stands for `stored`
        if table.is_composed:
            self.run(query("merged"))
        self.source = self.staged = self._relation(rows.rows[table.name])

    # -- what the declaration says about responses

    def is_listing(self, head: ResponseHead) -> bool:
        """Whether the response proves which rows exist."""
        listing = self.table.load.listing
        return listing is None or head.operation == listing.name

    @cached_property
    def is_first(self) -> bool:
        """Whether the table held nothing of the account before this load (ask before writing): nothing to
        compare with, which costs more than all else about a small load."""
        return (
            self.value(f"select 1 from {self.table.qualified} where account = {self.account} limit 1") is None
        )

    # -- SQL terms

    @property
    def key(self) -> list[str]:
        return [quoted(name) for name in self.table.key]

    def on(self, left: str, right: str, *, but_last: bool = False) -> str:
        """The condition that two relations' rows have the same key, or agree in all of it but its last
        column."""
        return (
            " and ".join(
                f"{left}.{name} = {right}.{name}" for name in (self.key[:-1] if but_last else self.key)
            )
            or "true"
        )

    @property
    def stored(self) -> str:
        """The account's rows that may have staged keys, with their rowid as `rid`."""
        return (
            self.held
            or f"(select rowid as rid, * from {self.table.qualified} where account = {self.account})"
        )

    def temp(self, name: str) -> str:
        """A temporary relation of this table's own."""
        return f"temp.{name}_{self.table.name}"

    def run(self, sql: str, **given: pa.Table) -> None:
        sql_rows(self.connection, sql, **given)

    def value(self, sql: str) -> Any:
        return value(self.connection, sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return sql_rows(self.connection, sql)

    def make(self, name: str, query: str) -> int:
        """Keep the rows of `query` as the temporary table `name`; returns their number."""
        return int(self.value(f"create or replace temp table {name}_{self.table.name} as {query}") or 0)

    # -- staged rows

    def _relation(self, rows: pa.Table | Path) -> str:
        source = f"read_parquet({literal(str(rows))})"
        if isinstance(rows, pa.Table):
            source = f"arrow_{self.table.name}"
            self.connection.register(source, rows)
        detail = self.table.load.detail
        listed = (
            _among(head.index for head in self.responses if self.is_listing(head))
            if self.table.is_composed
            else "true"
        )
        detailed = (
            _among(head.index for head in self.responses if head.operation == detail.name)
            if detail
            else "false"
        )
        query = f"select *, {listed} as _is_listed, {detailed} as _has_detail from {source}"
        if isinstance(rows, pa.Table):
            self.make("staged", query)
            self.connection.unregister(source)
        else:
            self.run(f"create or replace temp view staged_{self.table.name} as {query}")
        return self.temp("staged")

    def merge_parts(self) -> None:
        """One row per key: of what several responses say about a column the last one that knows it counts."""
        key = ", ".join(self.key) or "()"
        repeated = f"select 1 from {self.staged} group by {key} having count(*) > 1 limit 1"
        if self.value(repeated) is None:
            return
        names, extra = [quoted(column.name) for column in self.table.values], EXTRA.name
        last = [
            f"arg_max_null({name}, {PART}) filter (where {KNOWN} & {self.bit(name)} <> 0) as {name}"
            for name in names
        ]
        if self.table.is_composed:
            merged = (
                f"list_reduce(list({extra} order by {PART}) filter (where {extra} is not "
                "null), lambda a, "
                "b: merged(a, b))"
            )
            extra = f"case when count({extra}) > 0 then {merged} end as {extra}"
        else:
            extra = f"arg_max_null({extra}, {PART}) as {extra}"
        columns = [
            *(*self.key, *last, extra),
            f"max({RESPONSE}) as {RESPONSE}, max({PART}) as {PART}, bit_or({KNOWN}) as {KNOWN}",
            f"arg_max({ENTRY_HASH}, {PART}) filter (where _is_listed) as {ENTRY_HASH}",
            "bool_or(_is_listed) as _is_listed, bool_or(_has_detail) as _has_detail",
        ]
        self.make("merged", f"select {', '.join(columns)} from {self.staged} group by {key}")
        self.staged = self.temp("merged")

    def bit(self, name: str) -> int:
        """The column's bit in the mask of known columns."""
        names = [column.name for column in self.table.record_columns]
        return 1 << names.index(name.strip('"'))


def _among(indexes: Iterable[int]) -> str:
    chosen = ", ".join(str(index) for index in indexes)
    return f"{RESPONSE} in ({chosen})" if chosen else "false"


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """One scope of one table after a load; `rows` is None when it should stay as it was, counted up by what
    is new."""

    scope: str
    is_complete: bool
    rows: int | None
    reason: str | None = None
