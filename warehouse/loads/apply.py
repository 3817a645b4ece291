"""One load, inside its transaction: every table by its kind, then what is known about the reading.

Of accumulating tables the service shows only a part, so rows are added and updated and none is removed. Their
entries have no id: the key is `identity-occurrence`, where entries of one identity (a group) are numbered in
response order. Not here: listings (`listing`)."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import duckdb

from warehouse.loads import coverage, drift
from warehouse.loads.arrow import PART, RESPONSE
from warehouse.loads.listing import ALL, load_listing, mark_deleted, take_entry_hashes
from warehouse.loads.load import Load
from warehouse.loads.staging import Staged
from warehouse.loads.target import ScopeResult, TableReport, Target
from warehouse.loads.upsert import upsert
from warehouse.sql import literal, query, quoted
from warehouse.tables import TABLES, Accumulate, Snapshot, Window


def apply_tables(connection: duckdb.DuckDBPyConnection, load: Load, staged: Staged) -> list[TableReport]:
    """Fill the load's tables and write the coverage. The caller has begun a transaction and commits it."""
    as_of = staged.as_of or load.logged_at
    last = max(load.request_ids, default=load.place)
    targets = [
        Target(connection, TABLES[name], load.account, as_of, staged, load.zone, last) for name in load.tables
    ]
    results = [(target, result) for target in targets for result in _fill(target, load, staged)]
    coverage.write_coverage(results, due_at=load.due_at, service_count=load.service_count, zone=load.zone)
    coverage.write_rejected(targets, load.scope)
    drift.note(targets, staged.shapes, load.asset)
    for target in targets:
        _take_along(target, targets)
    coverage.note_contacts(targets, staged)
    return [target.report for target in targets]


def _fill(target: Target, load: Load, staged: Staged) -> list[ScopeResult]:
    kind = target.table.load
    if kind.detail and not kind.listing:
        take_entry_hashes(target, TABLES[kind.within])
    if kind.per_address:
        coverage.drop_orphans(target)
    if isinstance(kind, Snapshot | Window):
        return load_listing(target, load.scope, is_complete=load.is_complete, shrink_limit=load.shrink_limit)
    if isinstance(kind, Accumulate):
        _accumulate(target, staged.whole)
    else:
        _forget_days_to_come(target, ZoneInfo(load.zone))
        target.merge_parts()
        upsert(target)
    return [
        ScopeResult(ALL, load.is_complete, None, None if load.is_complete else "not everything could be had")
    ]


def _accumulate(target: Target, whole: frozenset[int]) -> None:
    """Apply the staged rows; `whole` are the responses (by index) that the service did not cut.

    A group that was served whole, or with at least as many entries as are stored, updates the stored rows one
    by one. A smaller group of a cut response may be any of the stored ones: only content that is not there
    yet is added, as new rows."""
    if not target.report.received:
        return
    target.merge_parts()
    of_group = f"exists (from {target.staged} s where {target.on('s', 't', but_last=True)})"
    stored = target.make(
        "held",
        f"select rowid as rid, * from {target.table.qualified} t where account = {target.account} "
        f"and {of_group}",
    )
    target.held = target.temp("held")
    if stored and len(whole) < len(target.responses):
        _renumber_small_groups(target, whole)
    upsert(target)


def _renumber_small_groups(target: Target, whole: frozenset[int]) -> None:
    """Of groups of cut responses with fewer entries than are stored keep only content that is not stored,
    numbered behind what is."""
    *outer, last = target.key
    served_whole = ", ".join(map(str, sorted(whole)))
    terms = {
        "outer": "".join(f"{name}, " for name in outer),
        "identity": f"split_part({last}, '-', 1) as _identity",
        "staged": target.staged,
        "held": target.held,
        "small": target.temp("small"),
    }
    is_whole = f"bool_or({RESPONSE} in ({served_whole}))" if whole else "false"
    if target.make("small", query("small_groups").format(**terms, is_whole=is_whole)):
        content = f"hash({', '.join(quoted(column.name) for column in target.table.values)})"
        target.make(
            "sifted", query("renumbered_groups").format(**terms, content=content, last=last, part=PART)
        )
        target.staged = target.temp("sifted")


def _forget_days_to_come(target: Target, zone: ZoneInfo) -> None:
    """Take out of a daily table what earlier responses are dated of days after the newest response's: a clock
    was ahead then, and such rows would stand for what is current until those days come. Of which day they
    are, nobody knows; the archive keeps them."""
    newest = max((head.requested_at for head in target.responses), default=None)
    if newest is None or target.is_first:
        return
    later = f"observed_on > date '{newest.astimezone(zone).date()}'"
    newer = (
        f"select 1 from sync.coverage where account = {target.account} and table_name = "
        f"{literal(target.table.name)}"
    )
    if target.value(f"{newer} and last_request > {target.last_request}") is None:
        rids = f"select rowid from {target.table.qualified} where account = {target.account} and {later}"
        if count := target.make("to_come", rids):
            target.run(f"delete from {target.table.qualified} where rowid in (from {target.temp('to_come')})")
            target.report.deleted += count


def _take_along(target: Target, targets: Sequence[Target]) -> None:
    """Rows that are gone take with them what other tables hold within them: a list its contacts and
    fields."""
    if not target.report.deleted:
        return
    for table in TABLES.values():
        if table.load.within != target.table.name:
            continue
        gone = f"(from {target.temp('missing')} m where {target.on('m', 'c')})"
        rids = (
            f"select rowid from {table.qualified} c where account = {target.account} and _deleted_at is "
            f"null and exists {gone}"
        )
        if (child := next((other for other in targets if other.table is table), None)) is not None:
            child.report.deleted += int(target.value(f"select count(*) from ({rids})"))
        mark_deleted(target, table, rids)
        coverage.forget_scopes(target, table)
