"""Writes down how far each table is read: `sync.coverage`, and when listings were: `sync.readings`.

Everything follows from the load and its answers, so that a rebuild writes the same. Not here: single contacts
(`contact_coverage`), what could not be read (`unread`).
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Sequence

import pyarrow as pa

from warehouse.loads.result import ScopeResult
from warehouse.loads.scopes import ALL
from warehouse.loads.target import Target
from warehouse.sql import literal, quoted
from warehouse.table import Snapshot, Table, Window

#: How late a night's reading may be before what it should have read is overdue: who comes to work after it sees that it failed.
GRACE = dt.timedelta(hours=6)
#: How old the newest answer may be: reading is due every night.
FRESH_FOR = dt.timedelta(days=1) + GRACE


def write_coverage(
    results: Sequence[tuple[Target, ScopeResult]], *, due_at: dt.datetime | None, service_count: int | None, zone: str
) -> None:
    """Replace the coverage of the scopes that were loaded. A row count that is not told grows by the rows that are new."""
    if not results:
        return
    target = results[0][0]
    target.connection.register("arrow_coverage", _as_arrow(results, service_count))
    as_of, last = target.as_of, target.last_request
    if not target.asked:
        as_of, last = (f"case when n.is_complete then {new} else o.{old} end" for new, old in ((as_of, "as_of"), (last, "last_request")))
    due = f"timestamptz {literal(due_at.isoformat())}" if due_at else "null"
    target.run(
        f"""
        create or replace temp table covered as
        select {target.account} as account, n.table_name, n.scope, {as_of} as as_of, {last}::bigint as last_request, {due} as due_at,
            n.is_complete, coalesce(n.rows, coalesce(o.rows, 0) + n.new) as rows, n.service_count, n.reason
        from arrow_coverage n
        left join sync.coverage o on o.account = {target.account} and o.table_name = n.table_name and o.scope = n.scope
        """
    )
    target.connection.unregister("arrow_coverage")
    target.run(
        f"delete from sync.coverage where account = {target.account} and (table_name, scope) in (select (table_name, scope) from covered)"
    )
    target.run("insert into sync.coverage by name from covered")
    if listed := {target.table.name for target, _ in results if _is_listed_by_scope(target.table)}:
        _write_readings(target, listed, zone)
    for each, result in results:
        if isinstance(each.table.load, Window) and result.scope != ALL:
            _take_out(each, result.scope)


def _is_listed_by_scope(table: Table) -> bool:
    """Whether its rows come and go scope by scope, as contacts do list by list; parts of a single entry are no listing."""
    return isinstance(table.load, Snapshot) and bool(table.load.scope) and not table.load.is_whole


def _write_readings(target: Target, tables: Collection[str], zone: str) -> None:
    """Keep that these scopes were read: figures of a day that was observed rest on it."""
    new = f"(from covered where as_of is not null and table_name in ({', '.join(map(literal, tables))}))"
    same = "r.account = n.account and r.table_name = n.table_name and r.scope = n.scope and r.as_of = n.as_of"
    target.run(f"delete from sync.readings r where exists (from {new} n where {same})")
    target.run(
        f"insert into sync.readings by name select account, table_name, scope, as_of, {literal(zone)} as timezone, is_complete from {new}"
    )


def _take_out(target: Target, scope: str) -> None:
    """What was read of a range that was not complete leaves it; its other days stay as they are."""
    first, last = (f"date {literal(day)}" for day in scope.split(".."))
    begin, end = (f"split_part(scope, '..', {place})::date" for place in (1, 2))
    old = (
        f"account = {target.account} and table_name = {literal(target.table.name)} and not is_complete and contains(scope, '..') "
        f"and scope <> {literal(scope)} and {begin} <= {last} and {end} >= {first}"
    )
    before = f"case when {begin} < {first} then concat({begin}, '..', {first} - 1) end"
    after = f"case when {end} > {last} then concat({last} + 1, '..', {end}) end"
    if target.make("left", f"select * replace (unnest([{before}, {after}]) as scope) from sync.coverage where {old}"):
        target.run(f"delete from sync.coverage where {old}")
        known = f"select scope from sync.coverage where account = {target.account} and table_name = {literal(target.table.name)}"
        target.run(f"insert into sync.coverage by name from {target.temp('left')} where scope is not null and scope not in ({known})")


def _as_arrow(results: Sequence[tuple[Target, ScopeResult]], service_count: int | None) -> pa.Table:
    """The service's count is that of the load's only scope."""
    scopes = Counter(target.table.name for target, _ in results)
    counts = [service_count if scopes[target.table.name] == 1 else None for target, _ in results]
    return pa.table(
        {
            "table_name": pa.array([target.table.name for target, _ in results], pa.string()),
            "scope": pa.array([result.scope for _, result in results], pa.string()),
            "is_complete": pa.array([result.is_complete for _, result in results], pa.bool_()),
            "rows": pa.array([result.rows for _, result in results], pa.int64()),
            "new": pa.array([target.report.new for target, _ in results], pa.int64()),
            "service_count": pa.array(counts, pa.int64()),
            "reason": pa.array([result.reason for _, result in results], pa.string()),
        }
    )


def forget_scopes(target: Target, table: Table) -> None:
    """Drop the coverage of scopes of `table` that are gone with rows of the target."""
    if not isinstance(table.load, Snapshot) or not _is_listed_by_scope(table):
        return
    label = " || ', ' || ".join(f"{literal(name + '=')} || {quoted(name)}" for name in table.load.scope)
    target.run(
        f"delete from sync.coverage where account = {target.account} and table_name = {literal(table.name)} "
        f"and scope in (select {label} from {target.temp('missing')})"
    )
