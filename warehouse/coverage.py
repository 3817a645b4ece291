"""Writes down how far each table is read: `sync.coverage`.

Everything follows from the load and its answers, so that a rebuild writes the same. Not here: single contacts
(`contact_coverage`), what could not be read (`unread`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa

from warehouse.loads.result import ScopeResult
from warehouse.loads.target import Target
from warehouse.sql import literal, quoted
from warehouse.table import Snapshot, Table


def write_coverage(target: Target, results: Sequence[ScopeResult], *, due_at: dt.datetime | None, service_count: int | None) -> None:
    """Replace the coverage of the scopes that were loaded. A row count that is not told grows by the rows that are new."""
    table = literal(target.table.name)
    rows = pa.table(
        {
            "scope": pa.array([result.scope for result in results], pa.string()),
            "is_complete": pa.array([result.is_complete for result in results], pa.bool_()),
            "rows": pa.array([result.rows for result in results], pa.int64()),
            "reason": pa.array([result.reason for result in results], pa.string()),
        }
    )
    due = f"timestamptz {literal(due_at.isoformat())}" if due_at else "null"
    target.connection.register("arrow_coverage", rows)
    target.make(
        "covered",
        f"""
        select {target.account} as account, {table} as table_name, n.scope, {target.as_of} as as_of, {due} as due_at, n.is_complete,
            coalesce(n.rows, coalesce(o.rows, 0) + {target.report.new}) as rows,
            {"null" if service_count is None or len(results) != 1 else service_count}::bigint as service_count, n.reason
        from arrow_coverage n
        left join sync.coverage o on o.account = {target.account} and o.table_name = {table} and o.scope = n.scope
        """,
    )
    target.connection.unregister("arrow_coverage")
    covered = target.temp("covered")
    target.run(
        f"delete from sync.coverage where account = {target.account} and table_name = {table} and scope in (select scope from {covered})"
    )
    target.run(f"insert into sync.coverage by name from {covered}")


def forget_scopes(target: Target, table: Table) -> None:
    """Drop the coverage of scopes of `table` that are gone with rows of the target."""
    load = table.load
    if not isinstance(load, Snapshot) or load.is_whole or not load.scope:
        return
    label = " || ', ' || ".join(f"{literal(name + '=')} || {quoted(name)}" for name in load.scope)
    target.run(
        f"delete from sync.coverage where account = {target.account} and table_name = {literal(table.name)} "
        f"and scope in (select {label} from {target.temp('missing')})"
    )
