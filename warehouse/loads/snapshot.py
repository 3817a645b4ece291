"""Snapshot tables: the complete listing of a scope replaces what is stored of it; what is missing is marked as deleted.

Not here: new and changed rows (`upsert`), which scopes were read (`scopes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from warehouse.loads.result import ScopeResult
from warehouse.loads.scopes import ALL, Scope, scopes_of
from warehouse.loads.target import Target
from warehouse.loads.upsert import upsert
from warehouse.sql import literal, quoted
from warehouse.table import Snapshot, Table


def load_snapshot(
    target: Target, load: Snapshot, asked_scope: Mapping[str, Any], *, is_complete: bool, shrink_limit: float | None
) -> list[ScopeResult]:
    """Apply the staged rows; what is said about each scope goes to the coverage."""
    scopes = scopes_of(target, load, asked_scope, is_complete)
    _make_scopes(target, load, scopes)
    target.merge_parts()
    stale = _stale(target, load, scopes)
    refused = _shrunk(target, load, [scope for scope in scopes if scope not in stale], shrink_limit)
    target.report.stale += [scope.label for scope in stale]
    target.report.refused += [f"{scope.label}: {scope.reason}" for scope in refused]
    _set_aside(target, load, stale + refused)
    upsert(target)
    kept = [scope for scope in scopes if scope not in stale and scope not in refused]
    _mark_missing(target, load, [scope for scope in kept if scope.proves_absence])
    return _results(target, load, kept, refused, is_complete=is_complete)


def _stale(target: Target, load: Snapshot, scopes: Sequence[Scope]) -> list[Scope]:
    """Scopes of which a newer answer is loaded already: a slower run must not put older rows over newer ones."""
    if load.is_whole or not scopes:
        return []
    newer = target.rows(
        f"select scope from sync.coverage where account = {target.account} and table_name = {literal(target.table.name)} "
        f"and last_request > {target.last_request}"
    )
    labels = {row[0] for row in newer}
    return [scope for scope in scopes if scope.label in labels]


def _shrunk(target: Target, load: Snapshot, scopes: Sequence[Scope], limit: float | None) -> list[Scope]:
    """Scopes whose complete listing lost more than `limit` of the rows that are there now."""
    if limit is None or not load.is_guarded or target.is_first:
        return []
    refused = []
    checked = [scope for scope in scopes if scope.proves_absence]
    live = _count_by_scope(
        target, load, checked, f"(from {target.table.qualified} where account = {target.account} and _deleted_at is null)"
    )
    received = _count_by_scope(target, load, checked, f"(from {target.staged} where _is_listed)") if live else {}
    for scope in checked:
        before, now = live.get(scope.number, 0), received.get(scope.number, 0)
        if now < (1 - limit) * before:
            scope.reason = f"{now} rows were listed where {before} are known: more than {limit:.0%} would be deleted; not applied"
            refused.append(scope)
    return refused


def _set_aside(target: Target, load: Snapshot, scopes: Sequence[Scope]) -> None:
    """Leave the rows of these scopes out of the load."""
    if not scopes:
        return
    aside = _these(target, scopes)
    target.make("kept", f"select s.* from {target.staged} s where not exists (from {aside} x where {_in_scope(target, load, 's')})")
    target.staged = target.temp("kept")


def _mark_missing(target: Target, load: Snapshot, scopes: Sequence[Scope]) -> None:
    """What a scope had and its listing has no longer is deleted as of the listing; the keys stand in `missing` afterwards."""
    columns = ", ".join(["rowid as rid", *target.key])
    if not scopes or target.is_first:
        target.make("missing", f"select {columns} from {target.table.qualified} limit 0")
        return
    missing = target.make(
        "missing",
        f"""
        select {columns} from {target.table.qualified} t
        where account = {target.account} and _deleted_at is null
            and exists (from {_these(target, scopes)} x where {_in_scope(target, load, "t")})
            and not exists (from {target.staged} s where s._is_listed and {target.on("s", "t")})
        """,
    )
    target.report.deleted += missing
    if missing:
        mark_deleted(target, target.table, f"select rid from {target.temp('missing')}")


def mark_deleted(target: Target, table: Table, rids: str) -> None:
    """Mark the rows of `table` with these rowids as deleted as of the load."""
    target.run(f"update {table.qualified} set _deleted_at = {target.as_of}, _changed_at = {target.as_of} where rowid in ({rids})")


def _make_scopes(target: Target, load: Snapshot, scopes: Sequence[Scope]) -> None:
    if not scopes:
        return
    columns = [target.table.column(name) for name in load.scope]
    arrays = [pa.array([scope.values[index] for scope in scopes], column.arrow_type) for index, column in enumerate(columns)]
    rows = pa.table([*arrays, pa.array([scope.number for scope in scopes])], names=[*load.scope, "_scope"])
    target.connection.register("arrow_scopes", rows)
    target.make("scopes", "from arrow_scopes")
    target.connection.unregister("arrow_scopes")


def _these(target: Target, scopes: Sequence[Scope]) -> str:
    """The relation of these scopes."""
    numbers = ", ".join(str(scope.number) for scope in scopes)
    return f"(from {target.temp('scopes')} where _scope in ({numbers}))"


def _count_by_scope(target: Target, load: Snapshot, scopes: Sequence[Scope], relation: str) -> dict[int, int]:
    if not scopes:
        return {}
    here = f"{_these(target, scopes)} x on {_in_scope(target, load, 't')}"
    return dict(target.rows(f"select x._scope, count(*) from {relation} t join {here} group by all"))


def _in_scope(target: Target, load: Snapshot, alias: str) -> str:
    """The condition that a row of `alias` is in scope `x`; text is compared as addresses are."""
    terms = [f"{_comparable(target, alias, name)} = x.{quoted(name)}" for name in load.scope]
    return " and ".join(terms) or "true"


def _comparable(target: Target, alias: str, name: str) -> str:
    column = f"{alias}.{quoted(name)}"
    return f"lower(trim({column}))" if target.table.column(name).sql_type == "VARCHAR" else column


def _results(target: Target, load: Snapshot, kept: Sequence[Scope], refused: Sequence[Scope], *, is_complete: bool) -> list[ScopeResult]:
    """One line per scope; tables whose scopes are single entries have one line in all (`contact_coverage` has the others)."""
    live = f"(from {target.table.qualified} where account = {target.account} and _deleted_at is null)"
    unread = f"{target.report.rejected} entries could not be read: nothing was marked as deleted"
    if load.is_whole:
        rows = target.value(f"select count(*) from {live}")
        reason = unread if target.report.rejected else None if is_complete else "not everything could be had"
        return [ScopeResult(ALL, is_complete, rows, reason)]
    counts = _count_by_scope(target, load, [*kept, *refused], live)
    return [
        ScopeResult(
            scope.label,
            scope.is_read and scope not in refused,
            counts.get(scope.number, 0),
            scope.reason or (unread if scope.unread else None if scope.is_read else "not every page could be had"),
        )
        for scope in (*kept, *refused)
    ]
