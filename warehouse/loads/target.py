"""One table's part of a load, inside the transaction: its staged rows as an SQL relation, SQL
terms, and new and changed rows by key, which all load modes share.

The account, the load's time and other facts are variables of the connection (`apply`). The cost of
writing depends on the rows that differ: they are replaced by DELETE and INSERT without a primary
key, which was the fastest in measurements. Not here: missing rows (`listing`)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from marketing_api.operation import Operation
from warehouse.loads.load import TableReport
from warehouse.loads.staging import ENTRY_HASH, KNOWN, PART, RESPONSE, ResponseHead, Staged
from warehouse.sql import fetch_rows, fetch_value, load_query, quote_name, quote_text
from warehouse.tables import EXTRA, Table


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """One scope of one table after a load; `rows` is None if the count should stay, plus new rows.
    `is_refused`: the shrink check refused its listing."""

    scope: str
    is_complete: bool
    rows: int | None
    reason: str | None = None
    is_refused: bool = False


class Upsert(NamedTuple):
    """The SQL relations that `upsert_rows` compares: `staged` rows, one per key, and the `stored`
    rows that may have one of these keys."""

    staged: str
    stored: str


class Target:
    """A table that is being loaded. `source` names the relation of its staged rows, `stored` that
    of the account's rows in it, with their rowid as `rid`. Each step before `upsert_rows` takes a
    relation of staged rows and returns the one for the next step."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: Table, staged: Staged) -> None:
        self._connection = connection
        self.table = table
        self.responses = staged.responses
        self.key = [quote_name(name) for name in table.key]
        #: Each column's bit in the mask of those that a response knows.
        self.bits = {
            quote_name(column.name): 1 << bit for bit, column in enumerate(table.record_columns)
        }
        self.stored = (
            f"(select rowid as rid, * from {table.qualified} where account = "
            "getvariable('account'))"
        )
        #: If a call was made twice, the later response counts.
        calls = {
            (head.operation, *sorted(head.params.items())): head.index for head in staged.responses
        }
        last = set(calls.values())
        self.rejects = [
            reject
            for reject in staged.rejects
            if reject.table == table.name and reject.response in last
        ]
        #: By response, what it leaves open: entries of this table, and of earlier tables to which
        #: its rows may belong.
        before = list(staged.rows)[: list(staged.rows).index(table.name) + 1]
        self.unreadable = {
            head.index: sum(head.unreadable[name] for name in before) for head in staged.responses
        }
        self.unbelieved: set[int] = set()  # responses that were not applied, or only in part
        flawed = sum(reject.is_loaded for reject in self.rejects)
        received = staged.counts[table.name]
        rejected = len(self.rejects) - flawed
        self.report = TableReport(table.name, received, rejected=rejected, flawed=flawed)
        self.has_extra = table.name in staged.with_extra
        if table.is_composed:
            self.run_sql(load_query("merged"))
        self.source = self._register_staged(staged.rows[table.name])

    def is_listing(self, head: ResponseHead) -> bool:
        """Whether the response proves which rows exist."""
        listing = self.table.load.listing
        return listing is None or head.operation == listing.name

    # -- SQL

    def join_condition(self, left: str, right: str, *, but_last: bool = False) -> str:
        """The condition that the rows of two relations have the same key, or the same key without
        its last column."""
        names = self.key[:-1] if but_last else self.key
        return " and ".join(f"{left}.{name} = {right}.{name}" for name in names) or "true"

    def temporary_name(self, name: str) -> str:
        """A name of a temporary relation for this table."""
        return f"temp.{name}_{self.table.name}"

    def run_sql(self, sql: str, **relations: pa.Table) -> list[tuple[Any, ...]]:
        return fetch_rows(self._connection, sql, **relations)

    def fetch_value(self, sql: str) -> Any:
        return fetch_value(self._connection, sql)

    def make_temporary(self, name: str, sql: str) -> int:
        """Keep the rows of a query as the temporary table `name`; returns their number."""
        return int(
            self.fetch_value(f"create or replace temp table {name}_{self.table.name} as {sql}") or 0
        )

    # -- staged rows

    def _register_staged(self, staged: pa.Table | Path) -> str:
        load = self.table.load
        listed = self._served_by(load.listing) if load.listing else "true"
        detailed = self._served_by(load.detail) if load.detail else "false"
        sql = f"select *, {listed} as _is_listed, {detailed} as _has_detail from"
        if isinstance(staged, Path):
            source = f"read_parquet({quote_text(str(staged))})"
            self.run_sql(f"create or replace temp view staged_{self.table.name} as {sql} {source}")
        else:
            made = f"create or replace temp table staged_{self.table.name} as {sql} arrow_staged"
            self.run_sql(made, arrow_staged=staged)
        return self.temporary_name("staged")

    def _served_by(self, operation: Operation) -> str:
        indexes = [str(head.index) for head in self.responses if head.operation == operation.name]
        return f"{RESPONSE} in ({', '.join(indexes) or '-1'})"

    def merge_parts(self, staged: str) -> str:
        """The staged rows with one row per key: if several responses have a column, the last one
        counts."""
        key = ", ".join(self.key) or "()"
        repeated = f"select 1 from {staged} group by {key} having count(*) > 1 limit 1"
        if self.fetch_value(repeated) is None:
            return staged
        values = [quote_name(column.name) for column in self.table.values]
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
        self.make_temporary("merged", f"select {', '.join(columns)} from {staged} group by {key}")
        return self.temporary_name("merged")


def upsert_rows(target: Target, upsert: Upsert) -> None:
    """Write the staged rows into the table. The temporary relation `change` has what changed."""
    values = [quote_name(column.name) for column in target.table.values]
    partial = _partial_columns(target, upsert.staged, values)
    always = [name for name in values if name not in partial]
    _find_changes(target, upsert, always, partial)
    counts = load_query("change_counts").format(
        change=target.temporary_name("change"), staged=upsert.staged
    )
    ((new, changed, stored, written, present),) = target.run_sql(counts)
    target.report.new += new
    target.report.changed += changed
    target.report.unchanged += present - new - changed
    if written:
        _write_changes(target, upsert, values, partial, replaces=stored > 0)


def _partial_columns(target: Target, staged: str, values: list[str]) -> list[str]:
    """Columns that some staged rows lack."""
    if not target.table.is_partial:
        return []
    known = target.fetch_value(f"select bit_and({KNOWN}) from {staged}")
    return [name for name in values if known is not None and not known & target.bits[name]]


def _find_changes(target: Target, upsert: Upsert, always: list[str], partial: list[str]) -> None:
    """(part, stored row, is_new, is_different, is_back) for every staged row that differs from the
    stored one.

    Columns that every staged row has are compared by one hash, so that the join holds two numbers
    per row; the others one by one, where they are known."""
    may_show = "true"
    if target.table.is_composed and any(map(target.is_listing, target.responses)):
        may_show = "s._is_listed"
    columns = [*target.key, f"hash({', '.join(always) or '0'}) as _hash", *partial, EXTRA.name]
    differs = [
        "s._hash <> t._hash",
        f"{_new_extra(target)} is distinct from t.{EXTRA.name}",
        *(
            f"({_knows_condition(target, name)} and s.{name} is distinct from t.{name})"
            for name in partial
        ),
    ]
    present = {column.name for column in target.table.system_columns}
    system = [
        name if name in present else f"null as {name}" for name in ("_deleted_at", "_listing_hash")
    ]
    sql = load_query("changes").format(
        staged=upsert.staged,
        stored=upsert.stored,
        same_key=target.join_condition("s", "t"),
        may_show=may_show,
        system=", ".join(system),
        columns=", ".join(columns),
        differs=" or ".join(differs),
    )
    target.make_temporary("change", sql)


def _write_changes(
    target: Target, upsert: Upsert, values: list[str], partial: list[str], *, replaces: bool
) -> None:
    """Write the changed rows: replace stored ones, add new ones.

    Deleted rows stay deleted unless they are back; the listing's hash is only updated with the
    detail."""
    change = target.temporary_name("change")
    table = target.table
    now = "getvariable('as_of')"
    system = {
        "_first_seen_at": f"coalesce(t._first_seen_at, {now})",
        "_changed_at": f"if(is_new or is_different or is_back, {now}, t._changed_at)",
        "_deleted_at": "if(is_back, null, t._deleted_at)",
        "_listing_hash": (
            f"if(s._has_detail, coalesce(s.{ENTRY_HASH}, t._listing_hash), t._listing_hash)"
        ),
    }
    terms = {
        "account": "getvariable('account')",
        **{name: f"s.{name}" for name in (*target.key, *values)},
        **{name: f"if({_knows_condition(target, name)}, s.{name}, t.{name})" for name in partial},
        EXTRA.name: _new_extra(target),
        **{column.name: system[column.name] for column in table.system_columns},
    }
    fresh = f"""
        select {", ".join(f"{term} as {name}" for name, term in terms.items())}
        from {change} c join {upsert.staged} s using ({PART})
        left join {upsert.stored} t on t.rid = c.rid
        """
    if replaces:
        target.make_temporary("fresh", fresh)
        target.run_sql(f"delete from {table.qualified} where rowid in (select rid from {change})")
        fresh = f"from {target.temporary_name('fresh')}"
    target.run_sql(f"insert into {table.qualified} by name {fresh}")


def _knows_condition(target: Target, name: str) -> str:
    return f"s.{KNOWN} & {target.bits[name]} <> 0"


def _new_extra(target: Target) -> str:
    """A composed row keeps the unknown fields of operations that were not requested this time."""
    if not target.table.is_composed:
        return "s.extra"
    return "if(s.extra is null, t.extra, if(t.extra is null, s.extra, merged(t.extra, s.extra)))"
