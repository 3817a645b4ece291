"""Snapshots and windows: what a load has read of its scopes, and what of them is gone.

Absence is proven or it is not believed. A row counts as gone (soft delete: `_deleted_at`) only when every
page of its scope came, no response contradicts its own count, everything in it could be understood, and not
too much is gone at once. Not here: new and changed rows (`upsert`)."""

from collections import Counter
from collections.abc import Callable, Sequence

from warehouse.loads.load import Load
from warehouse.loads.scopes import ALL, Scope, in_scope, scopes_of, these
from warehouse.loads.target import ScopeResult, Target
from warehouse.loads.upsert import upsert
from warehouse.sql import literal, query
from warehouse.tables import Snapshot, Table

#: Parts of single entries (the fields of a list, the coupons of an address) come and go: so many may,
#: whatever share they are.
FEW = 9


def load_listing(target: Target, load: Load) -> list[ScopeResult]:
    """Apply the staged rows; what is known of each scope goes to the coverage."""
    scopes = scopes_of(target, load)
    target.merge_parts()
    _find_absent(target, scopes)
    stale = _stale(target, scopes)
    target.report.stale += [scope.label for scope in stale]
    current = [scope for scope in scopes if scope not in stale]
    refused = _refuse_shrunk(target, current, load.shrink_limit)
    _set_aside(target, stale + refused)
    upsert(target)
    kept = [scope for scope in current if scope not in refused]
    flawed = [scope for scope in kept if scope.is_flawed]
    target.report.unproven += _sentences(target, flawed, _flaws)
    _mark_missing(target, kept)
    target.unbelieved.update(*(scope.responses for scope in scopes if not scope.is_read))
    return _results(target, kept, refused, is_complete=load.is_complete)


def _stale(target: Target, scopes: Sequence[Scope]) -> list[Scope]:
    """Scopes of which a newer response is loaded already: a slower run must not put older rows over newer
    ones."""
    if not isinstance(target.table.load, Snapshot) or target.table.load.is_whole:
        return []
    newer = target.run(
        f"select scope from sync.coverage where account = getvariable('account') and "
        f"table_name = {literal(target.table.name)} and last_request > getvariable('last_request')"
    )
    return [scope for scope in scopes if (scope.label,) in newer]


def _find_absent(target: Target, scopes: Sequence[Scope]) -> None:
    """Keep as `absent` what is there of the scopes that were read and their listings do not have."""
    columns = ", ".join(f"t.{name}" for name in ("rid", *target.key))
    read = [scope for scope in scopes if scope.is_read and scope.values is not None]
    if not read or target.is_first:
        target.make("absent", f"select {columns}, 0 as _scope from {target.stored} t limit 0")
        return
    terms = {"stored": target.stored, "staged": target.staged, "scopes": these(target, read)}
    same = {"in_scope": _in_scope(target, "t"), "same_key": target.on("s", "t")}
    if target.make("absent", query("absent").format(columns=columns, **terms, **same)):
        for number, count in target.run(f"select _scope, count(*) from {target.temp('absent')} group by all"):
            scopes[number].absent = count


def _refuse_shrunk(target: Target, scopes: Sequence[Scope], limit: float | None) -> list[Scope]:
    """Scopes whose complete listing is smaller by more than `limit`, or has others in the place of more than
    that.

    Members of a list may all be others from one day to the next, so these are judged as a share of all that
    the account has. Parts of single entries are judged one by one, where many are gone, and together: many
    small ones may be emptied by one fault."""
    checked = [scope for scope in scopes if scope.proves_absence]
    if limit is None or not any(scope.absent for scope in checked):
        return []
    is_whole = target.table.load.is_whole
    live = _count_by_scope(target, checked, _live(target))
    received = _count_by_scope(target, checked, f"(from {target.staged} where _is_listed)")
    for scope in checked:
        scope.live, scope.received = live.get(scope.number, 0), received.get(scope.number, 0)
    every = 0 if is_whole else target.value(f"select count(*) from {_live(target)}")

    def is_shrunk(scopes: Sequence[Scope]) -> bool:
        before, now, gone = _totals(scopes)
        is_exchanged = gone > FEW and gone > limit * (before if is_whole else every)
        return is_exchanged or (not is_whole and now < (1 - limit) * before)

    def sentence(scopes: Sequence[Scope]) -> str:
        before, now, gone = _totals(scopes)
        listed = f"{now} rows were listed where {before} are known, {gone} of them not"
        return f"{listed}: more than {limit:.0%} would be deleted; not applied"

    refused = [scope for scope in checked if is_shrunk([scope])]
    rest = [scope for scope in checked if scope not in refused]
    if is_whole and is_shrunk(rest):
        refused += [scope for scope in rest if scope.absent]
    target.report.refused += _sentences(target, refused, sentence)
    for scope in refused:
        scope.is_read = False
    return refused


def _totals(scopes: Sequence[Scope]) -> tuple[int, int, int]:
    """Rows that are known, that were listed, and that are known and were not listed."""
    return (
        sum(scope.live for scope in scopes),
        sum(scope.received for scope in scopes),
        sum(scope.absent for scope in scopes),
    )


def _sentences(
    target: Target, scopes: Sequence[Scope], sentence: Callable[[Sequence[Scope]], str]
) -> list[str]:
    """Why something of these scopes is not believed; single entries (an address) are not named."""
    for scope in scopes:
        scope.reason = sentence([scope])
    if target.table.load.is_whole:
        return [sentence(scopes)] if scopes else []
    return [f"{scope.label}: {scope.reason}" if scope.label != ALL else str(scope.reason) for scope in scopes]


def _flaws(scopes: Sequence[Scope]) -> str:
    reasons = Counter(scope.reason for scope in scopes)
    return "; ".join(
        f"{reason} ({count} responses)" if count > 1 else str(reason) for reason, count in reasons.items()
    )


def _unproven(scopes: Sequence[Scope]) -> str:
    absent = sum(scope.absent for scope in scopes)
    unreadable = sum(scope.unreadable for scope in scopes)
    return (
        f"{absent} rows were not listed, and {unreadable} entries or collections could not be read: nothing "
        "was marked as deleted"
    )


def _set_aside(target: Target, scopes: Sequence[Scope]) -> None:
    """Leave the rows of these scopes out of the load."""
    if scopes:
        others = f"not exists (from {these(target, scopes)} x where {_in_scope(target, 's')})"
        target.make("kept", f"select s.* from {target.staged} s where {others}")
        target.staged = target.temp("kept")


def _mark_missing(target: Target, scopes: Sequence[Scope]) -> None:
    """What a scope had and its listing has no longer is deleted as of the listing; the keys stand in
    `missing` afterwards.

    Where the listing proves nothing, because something in it could not be understood, such rows stay, and
    that is reported."""
    proven = ", ".join(str(scope.number) for scope in scopes if scope.proves_absence)
    columns = ", ".join(f"t.{name}" for name in ("rid", *target.key))  # details may have rewritten such rows
    absent = f"{target.stored} t join {target.temp('absent')} a on {target.on('a', 't')}"
    if target.make("missing", f"select {columns} from {absent} where a._scope in ({proven or 'null'})"):
        missing = f"select rid from {target.temp('missing')}"
        target.report.deleted += mark_deleted(target, target.table, missing)
    staying = [scope for scope in scopes if scope.is_read and scope.unreadable and scope.absent]
    target.report.unproven += _sentences(target, staying, _unproven)
    for scope in staying:
        scope.is_read = False


def mark_deleted(target: Target, table: Table, rids: str) -> int:
    """Mark rows as deleted as of the load; returns how many."""
    now = "getvariable('as_of')"
    sql = f"update {table.qualified} set _deleted_at = {now}, _changed_at = {now} where rowid in ({rids})"
    return int(target.value(sql))


def _live(target: Target) -> str:
    return f"(from {target.table.qualified} where account = getvariable('account') and _deleted_at is null)"


def _in_scope(target: Target, alias: str) -> str:
    return in_scope(target.table, alias, "getvariable('zone')")


def _count_by_scope(target: Target, scopes: Sequence[Scope], relation: str) -> dict[int, int]:
    if not (scopes := [scope for scope in scopes if scope.values is not None]):
        return {}
    here = f"{these(target, scopes)} x on {_in_scope(target, 't')}"
    return dict(target.run(f"select x._scope, count(*) from {relation} t join {here} group by all"))


def _results(
    target: Target, kept: Sequence[Scope], refused: Sequence[Scope], *, is_complete: bool
) -> list[ScopeResult]:
    """One line per scope; tables whose scopes are single entries have one line in all
    (`sync.contact_coverage` has the others)."""
    report, unread = target.report, None
    if report.rejected:
        unread = f"{report.rejected} entries could not be read: nothing was marked as deleted"
    if target.table.load.is_whole:
        reasons = "; ".join([*report.refused, *report.unproven])
        reason = reasons or unread or (None if is_complete else "not everything could be had")
        count = target.value(f"select count(*) from {_live(target)}")
        return [ScopeResult(ALL, is_complete and not reasons, count, reason)]
    is_snapshot = isinstance(target.table.load, Snapshot)
    scopes = [*kept, *refused]
    counts = _count_by_scope(target, scopes if is_snapshot else refused, _live(target))
    otherwise = 0 if is_snapshot else report.new + report.changed + report.unchanged
    return [
        ScopeResult(
            scope.label,
            scope.is_read,
            counts.get(scope.number, otherwise),
            scope.reason
            or (unread if scope.unreadable else None)
            or (None if scope.is_read else "not every page could be had"),
        )
        for scope in scopes
    ]
