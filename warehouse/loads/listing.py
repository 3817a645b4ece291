"""Snapshots and windows: what an answer proves to be all of a scope replaces what is stored of it; what is missing is marked as deleted.

Absence is proven or it is not believed. A row counts as gone only when every page of its scope came, no answer contradicts its
own count, everything in it could be understood, and not too much is gone at once. Not here: new and changed rows (`upsert`), which
scopes were read (`scopes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warehouse.loads.result import ScopeResult
from warehouse.loads.scopes import ALL, Scope, in_scope, make_scopes, scopes_of, these
from warehouse.loads.target import Target
from warehouse.loads.upsert import upsert
from warehouse.sql import literal
from warehouse.table import Snapshot, Table

#: Parts of single entries (the fields of a list, the coupons of an address) come and go: so many may, whatever share they are.
FEW = 9


def load_listing(target: Target, asked_scope: Mapping[str, Any], *, is_complete: bool, shrink_limit: float | None) -> list[ScopeResult]:
    """Apply the staged rows; what is said about each scope goes to the coverage."""
    scopes = scopes_of(target, asked_scope, is_complete)
    make_scopes(target, scopes)
    target.merge_parts()
    stale = _stale(target, scopes)
    refused = _refuse_shrunk(target, [scope for scope in scopes if scope not in stale], shrink_limit)
    target.report.stale += [scope.label for scope in stale]
    _set_aside(target, stale + refused)
    upsert(target)
    kept = [scope for scope in scopes if scope not in stale and scope not in refused]
    target.report.unproven += _sentences(target, [scope for scope in kept if not target.flaws.keys().isdisjoint(scope.responses)], _flaws)
    _mark_missing(target, kept)
    target.unbelieved.update(*(scope.responses for scope in scopes if not scope.is_read))
    return _results(target, kept, refused, is_complete=is_complete)


def _is_whole(target: Target) -> bool:
    return isinstance(target.table.load, Snapshot) and target.table.load.is_whole


def _stale(target: Target, scopes: Sequence[Scope]) -> list[Scope]:
    """Scopes of which a newer answer is loaded already: a slower run must not put older rows over newer ones."""
    if not isinstance(target.table.load, Snapshot) or _is_whole(target) or not scopes:
        return []
    newer = target.rows(
        f"select scope from sync.coverage where account = {target.account} and table_name = {literal(target.table.name)} "
        f"and last_request > {target.last_request}"
    )
    labels = {row[0] for row in newer}
    return [scope for scope in scopes if scope.label in labels]


def _refuse_shrunk(target: Target, scopes: Sequence[Scope], limit: float | None) -> list[Scope]:
    """Scopes whose complete listing lost more than `limit` of the rows that are there now.

    Parts of single entries are judged one by one, where many are gone, and together: many small ones may be emptied by one fault.
    """
    checked = [scope for scope in scopes if scope.proves_absence]
    if limit is None or not checked or target.is_first:
        return []
    is_guarded = not isinstance(target.table.load, Snapshot) or target.table.load.is_guarded
    live = _count_by_scope(target, checked, _live(target))
    received = _count_by_scope(target, checked, f"(from {target.staged} where _is_listed)") if live else {}

    def totals(scopes: Sequence[Scope]) -> tuple[int, int]:
        return sum(live.get(scope.number, 0) for scope in scopes), sum(received.get(scope.number, 0) for scope in scopes)

    def is_shrunk(scopes: Sequence[Scope]) -> bool:
        before, now = totals(scopes)
        return now < (1 - limit) * before and before - now > (0 if is_guarded else FEW)

    def sentence(scopes: Sequence[Scope]) -> str:
        before, now = totals(scopes)
        return f"{now} rows were listed where {before} are known: more than {limit:.0%} would be deleted; not applied"

    refused = [scope for scope in checked if is_shrunk([scope])]
    rest = [scope for scope in checked if scope not in refused]
    if not is_guarded and is_shrunk(rest):
        refused += [scope for scope in rest if live.get(scope.number, 0) > received.get(scope.number, 0)]
    target.report.refused += _sentences(target, refused, sentence)
    for scope in refused:
        scope.is_read = False
    return refused


def _sentences(target: Target, scopes: Sequence[Scope], sentence: Callable[[Sequence[Scope]], str]) -> list[str]:
    """Why something of these scopes is not believed; single entries (an address) are not named."""
    for scope in scopes:
        scope.reason = sentence([scope])
    if _is_whole(target):
        return [sentence(scopes)] if scopes else []
    return [f"{scope.label}: {scope.reason}" if scope.label != ALL else str(scope.reason) for scope in scopes]


def _flaws(scopes: Sequence[Scope]) -> str:
    reasons = Counter(scope.reason for scope in scopes)
    return "; ".join(f"{reason} ({count} answers)" if count > 1 else str(reason) for reason, count in reasons.items())


def _set_aside(target: Target, scopes: Sequence[Scope]) -> None:
    """Leave the rows of these scopes out of the load."""
    if scopes:
        target.make(
            "kept", f"select s.* from {target.staged} s where not exists (from {these(target, scopes)} x where {in_scope(target, 's')})"
        )
        target.staged = target.temp("kept")


def _mark_missing(target: Target, scopes: Sequence[Scope]) -> None:
    """What a scope had and its listing has no longer is deleted as of the listing; the keys stand in `missing` afterwards.

    Where the listing proves nothing, because something in it could not be understood, such rows stay, and that is said.
    """
    read = [scope for scope in scopes if scope.is_read and scope.values is not None]
    columns, stored = ", ".join(["rid", *target.key]), ", ".join(f"t.{name}" for name in ("rid", *target.key))
    if not read or target.is_first:
        target.make("missing", f"select {columns} from {target.stored} limit 0")
        return
    target.make(
        "absent",
        f"""
        select {stored}, x._scope from {target.stored} t join {these(target, read)} x on {in_scope(target, "t")}
        where t._deleted_at is null and not exists (from {target.staged} s where s._is_listed and {target.on("s", "t")})
        """,
    )
    proven = ", ".join(str(scope.number) for scope in read if scope.proves_absence)
    missing = target.make("missing", f"select {columns} from {target.temp('absent')} where _scope in ({proven or 'null'})")
    target.report.deleted += missing
    if missing:
        mark_deleted(target, target.table, f"select rid from {target.temp('missing')}")
    if doubtful := [scope for scope in read if scope.doubts]:
        _say_what_stays(target, doubtful)


def _say_what_stays(target: Target, scopes: Sequence[Scope]) -> None:
    left = dict(target.rows(f"select _scope, count(*) from {target.temp('absent')} group by all"))

    def sentence(scopes: Sequence[Scope]) -> str:
        count, doubts = sum(left.get(scope.number, 0) for scope in scopes), sum(scope.doubts for scope in scopes)
        return f"{count} rows were not listed, and {doubts} entries or collections could not be read: nothing was marked as deleted"

    staying = [scope for scope in scopes if scope.number in left]
    target.report.unproven += _sentences(target, staying, sentence)
    for scope in staying:
        scope.is_read = False


def mark_deleted(target: Target, table: Table, rids: str) -> None:
    """Mark the rows of `table` with these rowids as deleted as of the load."""
    target.run(f"update {table.qualified} set _deleted_at = {target.as_of}, _changed_at = {target.as_of} where rowid in ({rids})")


def _live(target: Target) -> str:
    return f"(from {target.table.qualified} where account = {target.account} and _deleted_at is null)"


def _count_by_scope(target: Target, scopes: Sequence[Scope], relation: str) -> dict[int, int]:
    scopes = [scope for scope in scopes if scope.values is not None]
    if not scopes:
        return {}
    here = f"{these(target, scopes)} x on {in_scope(target, 't')}"
    return dict(target.rows(f"select x._scope, count(*) from {relation} t join {here} group by all"))


def _results(target: Target, kept: Sequence[Scope], refused: Sequence[Scope], *, is_complete: bool) -> list[ScopeResult]:
    """One line per scope; tables whose scopes are single entries have one line in all (`contact_coverage` has the others)."""
    unread = f"{target.report.rejected} entries could not be read: nothing was marked as deleted"
    if _is_whole(target):
        said = "; ".join([*target.report.refused, *target.report.unproven])
        reason = said or (unread if target.report.rejected else None if is_complete else "not everything could be had")
        return [ScopeResult(ALL, is_complete and not said, target.value(f"select count(*) from {_live(target)}"), reason)]
    is_snapshot = isinstance(target.table.load, Snapshot)
    counts = _count_by_scope(target, [*kept, *refused] if is_snapshot else refused, _live(target))
    received = target.report.new + target.report.changed + target.report.unchanged
    return [
        ScopeResult(
            scope.label,
            scope.is_read,
            counts.get(scope.number, 0 if is_snapshot else received),
            scope.reason
            or (unread if scope.doubts and target.report.rejected else None if scope.is_read else "not every page could be had"),
        )
        for scope in (*kept, *refused)
    ]
