"""Snapshots and windows: what a load has read of its scopes, and which rows are gone.

A row is only deleted if its absence is proven. It counts as gone (soft delete: `_deleted_at`) if
every page of its scope came, no response contradicts its own count, every entry was readable, and
not too much is gone in one load. Not here: new and changed rows (`target`)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self
from zoneinfo import ZoneInfo

from marketing_api.exchange import Response
from marketing_api.parsing import parse_rows
from marketing_api.records.fields import Record
from warehouse.loads.load import Load
from warehouse.loads.scopes import ALL, Scope, in_scope, scopes_condition, scopes_of
from warehouse.loads.staging import entry_hash
from warehouse.loads.target import ScopeResult, Target, Upsert, upsert_rows
from warehouse.sql import load_query, quote_name, quote_text
from warehouse.tables import TABLES, Snapshot, Table

#: A listing may always lose this many rows, with the rows within them, whatever share that is:
#: short lists change often.
FEW = 9


def load_listing(target: Target, load: Load, staged: str) -> list[ScopeResult]:
    """Apply the staged rows. Returns the coverage of each scope."""
    scopes = scopes_of(target, load)
    staged = target.merge_parts(staged)
    _find_absent(target, staged, scopes)
    stale = _find_stale(target, scopes)
    target.report.stale += [scope.label for scope in stale]
    current = [scope for scope in scopes if scope not in stale]
    refused = _refuse_shrunk(target, staged, current, load.shrink_limit)
    applied = _exclude_scopes(target, staged, stale + refused)
    upsert_rows(target, Upsert(applied, target.stored))
    kept = [scope for scope in current if scope not in refused]
    flawed = [scope for scope in kept if scope.is_flawed]
    target.report.unproven += _describe_scopes(target, flawed, _describe_flaws)
    _mark_missing(target, kept)
    target.unbelieved.update(*(scope.responses for scope in scopes if not scope.is_read))
    return _make_results(target, kept, refused, is_complete=load.is_complete)


def _find_stale(target: Target, scopes: Sequence[Scope]) -> list[Scope]:
    """Scopes for which a newer response is already loaded: a slower run must not replace newer rows
    with older ones."""
    if not isinstance(target.table.load, Snapshot) or target.table.load.is_whole:
        return []
    newer = target.run_sql(
        "select scope from sync.coverage where account = getvariable('account') and table_name = "
        f"{quote_text(target.table.name)} and last_request > getvariable('last_request')"
    )
    return [scope for scope in scopes if (scope.label,) in newer]


def _find_absent(target: Target, staged: str, scopes: Sequence[Scope]) -> None:
    """Keep as `absent` the rows of the scopes that were read which their listings do not have."""
    columns = ", ".join(f"t.{name}" for name in ("rid", *target.key))
    read = [scope for scope in scopes if scope.is_read and scope.values is not None]
    if not read:
        target.make_temporary(
            "absent", f"select {columns}, 0 as _scope from {target.stored} t limit 0"
        )
        return
    terms = {
        "stored": target.stored,
        "staged": staged,
        "scopes": scopes_condition(target, read),
    }
    same = {"in_scope": in_scope(target.table, "t"), "same_key": target.join_condition("s", "t")}
    if target.make_temporary(
        "absent", load_query("absent").format(columns=columns, **terms, **same)
    ):
        for number, count in target.run_sql(
            f"select _scope, count(*) from {target.temporary_name('absent')} group by all"
        ):
            scopes[number].absent = count
        for table in TABLES.values():
            if table.load.within == target.table.name:
                on_key = target.join_condition("a", "t")
                within = (
                    f"{target.temporary_name('absent')} a join {_live_condition(table)} t on "
                    f"{on_key}"
                )
                for number, count in target.run_sql(
                    f"select _scope, count(*) from {within} group by all"
                ):
                    scopes[number].absent_within += count


def _refuse_shrunk(
    target: Target, staged: str, scopes: Sequence[Scope], limit: float | None
) -> list[Scope]:
    """Scopes whose complete listing lost more than the share `limit`, or in which more than that
    share was replaced by other rows.

    The members of a list may all change from one day to the next, so they are measured as a share
    of all rows of the account. Scopes are checked one by one and together, since one fault may
    empty many small ones."""
    checked = [scope for scope in scopes if scope.proves_absence]
    if limit is None or not any(scope.absent for scope in checked):
        return []
    _count_rows(target, staged, checked)
    every = None if target.table.load.is_whole else _count_live(target)
    refused = _find_shrunk(checked, limit, every)
    target.report.refused += _describe_scopes(
        target, refused, lambda scopes: _Shrinking.from_scopes(scopes).describe_shrinking(limit)
    )
    for scope in refused:
        scope.is_read = False
        scope.is_refused = True
    return refused


def _find_shrunk(scopes: Sequence[Scope], limit: float, every: int | None) -> list[Scope]:
    shrunk = [
        scope
        for scope in scopes
        if _Shrinking.from_scopes([scope]).is_beyond(limit, every, _count_allowed(scope, every))
    ]
    rest = [scope for scope in scopes if scope not in shrunk]
    if _Shrinking.from_scopes(rest).is_beyond(limit, every, FEW):
        shrunk += [scope for scope in rest if scope.absent]
    return shrunk


def _count_allowed(scope: Scope, every: int | None) -> int:
    """How many rows it may always lose. None if the listing is empty and the service states no
    count of 0, since that may be a fault."""
    return FEW if scope.received or scope.counts_nothing or every is None else 0


def _count_rows(target: Target, staged: str, scopes: Sequence[Scope]) -> None:
    live = _count_by_scope(target, scopes, _live_condition(target.table))
    received = _count_by_scope(target, scopes, f"(from {staged} where _is_listed)")
    for scope in scopes:
        scope.live, scope.received = live.get(scope.number, 0), received.get(scope.number, 0)


class _Shrinking(NamedTuple):
    """Counts of rows: known, listed, known but not listed, and rows of other tables within the
    latter."""

    before: int
    now: int
    gone: int
    gone_within: int

    @classmethod
    def from_scopes(cls, scopes: Sequence[Scope]) -> Self:
        counts = [
            (scope.live, scope.received, scope.absent, scope.absent_within) for scope in scopes
        ]
        return cls(*map(sum, zip((0, 0, 0, 0), *counts, strict=True)))

    def is_beyond(self, limit: float, every: int | None, few: int) -> bool:
        """`every`: the account's rows; None for parts of single entries."""
        is_exchanged = self.gone > limit * (self.before if every is None else every)
        is_shorter = self.now < (1 - limit) * self.before
        return self.gone + self.gone_within > few and (is_exchanged or is_shorter)

    def describe_shrinking(self, limit: float) -> str:
        listed = (
            f"{self.now} rows were listed where {self.before} are known, {self.gone} of them not"
        )
        return f"{listed}: more than {limit:.0%} would be deleted; not applied"


def _describe_scopes(
    target: Target, scopes: Sequence[Scope], sentence: Callable[[Sequence[Scope]], str]
) -> list[str]:
    """Why something in these scopes is not believed. Single entries (an address) are not named."""
    for scope in scopes:
        scope.reason = sentence([scope])
    if target.table.load.is_whole:
        return [sentence(scopes)] if scopes else []
    return [
        f"{scope.label}: {scope.reason}" if scope.label != ALL else str(scope.reason)
        for scope in scopes
    ]


def _describe_flaws(scopes: Sequence[Scope]) -> str:
    reasons = Counter(scope.reason for scope in scopes)
    return "; ".join(
        f"{reason} ({count} responses)" if count > 1 else str(reason)
        for reason, count in reasons.items()
    )


def _describe_unproven(scopes: Sequence[Scope]) -> str:
    absent = sum(scope.absent for scope in scopes)
    unreadable = sum(scope.unreadable for scope in scopes)
    return (
        f"{absent} rows were not listed, and {unreadable} entries or collections could not be "
        "read: nothing was marked as deleted"
    )


def _exclude_scopes(target: Target, staged: str, scopes: Sequence[Scope]) -> str:
    """The staged rows without those of these scopes."""
    if not scopes:
        return staged
    is_elsewhere = (
        f"not exists (from {scopes_condition(target, scopes)} x where "
        f"{in_scope(target.table, 's')})"
    )
    target.make_temporary("kept", f"select s.* from {staged} s where {is_elsewhere}")
    return target.temporary_name("kept")


def _mark_missing(target: Target, scopes: Sequence[Scope]) -> None:
    """Mark rows as deleted as of the listing that no longer has them. The temporary relation
    `missing` has their keys.

    If the listing proves nothing, because an entry could not be read, such rows stay, and that is
    reported."""
    proven = ", ".join(str(scope.number) for scope in scopes if scope.proves_absence)
    # details may have rewritten such rows
    columns = ", ".join(f"t.{name}" for name in ("rid", *target.key))
    absent = (
        f"{target.stored} t join {target.temporary_name('absent')} a on "
        f"{target.join_condition('a', 't')}"
    )
    if target.make_temporary(
        "missing", f"select {columns} from {absent} where a._scope in ({proven or 'null'})"
    ):
        missing = f"select rid from {target.temporary_name('missing')}"
        target.report.deleted += mark_deleted(target, target.table, missing)
    staying = [scope for scope in scopes if scope.is_read and scope.unreadable and scope.absent]
    target.report.unproven += _describe_scopes(target, staying, _describe_unproven)
    for scope in staying:
        scope.is_read = False


def mark_deleted(target: Target, table: Table, rids: str) -> int:
    """Mark rows as deleted as of the load; returns how many."""
    now = "getvariable('as_of')"
    sql = (
        f"update {table.qualified} set _deleted_at = {now}, _changed_at = {now} where rowid in "
        f"({rids})"
    )
    return int(target.fetch_value(sql))


def _live_condition(table: Table) -> str:
    return (
        f"(from {table.qualified} where account = getvariable('account') and _deleted_at is null)"
    )


def _count_live(target: Target) -> int:
    return int(target.fetch_value(f"select count(*) from {_live_condition(target.table)}"))


def _count_by_scope(target: Target, scopes: Sequence[Scope], relation: str) -> dict[int, int]:
    scopes = [scope for scope in scopes if scope.values is not None]
    if not scopes:
        return {}
    here = f"{scopes_condition(target, scopes)} x on {in_scope(target.table, 't')}"
    return dict(
        target.run_sql(f"select x._scope, count(*) from {relation} t join {here} group by all")
    )


def _make_results(
    target: Target, kept: Sequence[Scope], refused: Sequence[Scope], *, is_complete: bool
) -> list[ScopeResult]:
    """One line per scope. Tables whose scopes are single entries have one line for all
    (`sync.contact_coverage` has the others)."""
    report = target.report
    unread = None
    if report.rejected:
        unread = f"{report.rejected} entries could not be read: nothing was marked as deleted"
    if target.table.load.is_whole:
        reasons = "; ".join([*report.refused, *report.unproven])
        reason = reasons or unread or (None if is_complete else "incomplete reading")
        is_read = is_complete and not reasons
        is_refused = bool(report.refused)
        return [ScopeResult(ALL, is_read, _count_live(target), reason, is_refused)]
    is_snapshot = isinstance(target.table.load, Snapshot)
    scopes = [*kept, *refused]
    counts = _count_by_scope(
        target, scopes if is_snapshot else refused, _live_condition(target.table)
    )
    otherwise = 0 if is_snapshot else report.new + report.changed + report.unchanged
    return [_make_result(scope, counts.get(scope.number, otherwise), unread) for scope in scopes]


def _make_result(scope: Scope, count: int, unread: str | None) -> ScopeResult:
    reason = scope.reason or (unread if scope.unreadable else None)
    if not (reason or scope.is_read):
        reason = "pages are missing"
    return ScopeResult(scope.label, scope.is_read, count, reason, scope.is_refused)


# ---- details need a request each: hashes of the listing's entries say which rows are new or
# changed

Key = tuple[Any, ...]


def needs_detail(
    table: Table, responses: Iterable[Response], known: Mapping[Key, str], zone: ZoneInfo
) -> list[Record]:
    """The entries of a listing that are new, or have changed since their detail was requested: the
    last entry of each key, in order.

    `known` has the stored hashes by key (`Warehouse.listing_hashes`). Responses of operations that
    do not list are skipped."""
    listed: dict[Key, Record] = {}
    for response in responses:
        if response.call.operation != table.load.listing:
            continue
        for rows in parse_rows(response, zone, response.requested_at.astimezone(zone).date()):
            if rows.record is table.record:
                listed |= {
                    tuple(getattr(record, name) for name in table.key): record
                    for record in rows.records
                }
    return [record for key, record in listed.items() if known.get(key) != entry_hash(record)]


def row_hash(table: Table, alias: str) -> str:
    """The hash of a stored row that is itself the listing's entry, as SQL. It does not depend on
    settings of the session."""
    parts = []
    for column in table.record_columns:
        value = f"{alias}.{quote_name(column.name)}"
        if column.sql_type == "TIMESTAMPTZ":
            value = f"epoch_us({value})"
        parts.append(f"{quote_text(column.name)}: {value}")
    return f"md5(to_json({{{', '.join(parts)}}})::varchar)"


def add_entry_hashes(target: Target, staged: str, listing: Table) -> str:
    """The staged details, each with the hash of its entry in the `listing` table."""
    terms = {
        "staged": staged,
        "listing": listing.qualified,
        "same_key": target.join_condition("p", "s"),
    }
    target.make_temporary(
        "hashed", load_query("with_entry_hashes").format(**terms, row_hash=row_hash(listing, "p"))
    )
    return target.temporary_name("hashed")
