"""One load, inside its transaction: every table by its load mode, then the facts about the reading.

The service shows only a part of accumulating tables, so rows are added and updated, and none is
removed. Their entries have no id: the key is `identity-occurrence`, where entries of one identity
(a group) are numbered in response order. Not here: listings (`listing`)."""

import datetime as dt
from collections.abc import Sequence

import duckdb

from warehouse.loads import coverage, drift
from warehouse.loads.listing import add_entry_hashes, load_listing, mark_deleted
from warehouse.loads.load import Load, TableReport
from warehouse.loads.scopes import ALL
from warehouse.loads.staging import Staged
from warehouse.loads.target import ScopeResult, Target, Upsert, upsert_rows
from warehouse.sql import fetch_rows, load_query, quote_name, quote_text
from warehouse.tables import TABLES, Accumulate, Snapshot, Window


def apply_tables(
    connection: duckdb.DuckDBPyConnection, load: Load, staged: Staged
) -> list[TableReport]:
    """Fill the load's tables and write the coverage. The caller has begun a transaction and commits
    it."""
    _set_variables(connection, load, staged)
    targets = [Target(connection, TABLES[name], staged) for name in load.tables]
    results = [(target, result) for target in targets for result in _fill_table(target, load)]
    count = None if load.service_count is None else load.service_count - staged.cut
    coverage.write_coverage(results, count)
    coverage.write_rejected(targets, load.scope)
    drift.note_drift(targets, staged.shapes)
    for target in targets:
        _take_along(target, targets)
    coverage.note_contacts(targets)
    return [target.report for target in targets]


def _set_variables(connection: duckdb.DuckDBPyConnection, load: Load, staged: Staged) -> None:
    """The facts about the load that SQL uses. `last_request` (of a listing) says which of two loads
    is newer; clocks do not."""
    listing = TABLES[load.tables[0]].load.listing if load.tables else None
    listed = [
        head.request_id
        for head in staged.responses
        if listing is None or head.operation == listing.name
    ]
    last = max(listed or load.request_ids, default=load.place)
    texts = {"account": load.account, "asset": load.asset, "zone": load.zone}
    values = {name: quote_text(text) for name, text in texts.items()} | {
        "as_of": _format_moment(staged.as_of or load.logged_at),
        "due_at": _format_moment(load.due_at),
        "last_request": "null::bigint" if last is None else f"{last}::bigint",
        "has_responses": str(bool(staged.responses)),
    }
    fetch_rows(
        connection, "; ".join(f"set variable {name} = {term}" for name, term in values.items())
    )


def _format_moment(moment: dt.datetime | None) -> str:
    return f"timestamptz {quote_text(moment.isoformat())}" if moment else "null::timestamptz"


def _fill_table(target: Target, load: Load) -> list[ScopeResult]:
    kind = target.table.load
    staged = target.source
    if kind.detail and not kind.listing:
        staged = add_entry_hashes(target, staged, TABLES[kind.within])
    if kind.per_address:
        coverage.drop_orphans(target)
    if isinstance(kind, Snapshot | Window):
        return load_listing(target, load, staged)
    if not isinstance(kind, Accumulate):
        _delete_future_days(target)
        upsert_rows(target, Upsert(target.merge_parts(staged), target.stored))
    elif target.report.received:
        _add_rows(target, staged)
    return [
        ScopeResult(ALL, load.is_complete, None, None if load.is_complete else "incomplete reading")
    ]


def _add_rows(target: Target, staged: str) -> None:
    """Apply the staged rows.

    A group that was served completely, or with at least as many entries as are stored, updates the
    stored rows one by one. A smaller group in a cut response may be any of the stored entries: only
    new content is added, as new rows."""
    staged = target.merge_parts(staged)
    same_group = target.join_condition("s", "t", but_last=True)
    stored_count = target.make_temporary(
        "held", f"from {target.stored} t where exists (from {staged} s where {same_group})"
    )
    held = target.temporary_name("held")
    if stored_count and not all(head.is_uncut for head in target.responses):
        staged = _renumber_small_groups(target, staged, held)
    upsert_rows(target, Upsert(staged, held))


def _renumber_small_groups(target: Target, staged: str, held: str) -> str:
    """The staged rows to apply. If a group of a cut response has fewer entries than are `held`,
    only its new content is kept, numbered after the stored rows."""
    *outer, last = target.key
    uncut = ", ".join(str(head.index) for head in target.responses if head.is_uncut)
    terms = {
        "outer": "".join(f"{name}, " for name in outer),
        "identity": f"split_part({last}, '-', 1) as _identity",
        "staged": staged,
        "held": held,
        "small": target.temporary_name("small"),
    }
    small_groups = load_query("small_groups").format(**terms, uncut=uncut or "-1")
    if not target.make_temporary("small", small_groups):
        return staged
    columns = ", ".join(quote_name(column.name) for column in target.table.values)
    renumbered = load_query("renumbered_groups").format(
        **terms, content=f"hash({columns})", last=last
    )
    target.make_temporary("sifted", renumbered)
    return target.temporary_name("sifted")


def _delete_future_days(target: Target) -> None:
    """Delete rows of a daily table that are dated after the newest response. A clock was ahead when
    they were received, and they would count as current until those days come. Their real day is
    unknown; the archive keeps them."""
    if target.responses:
        sql = load_query("days_to_come").format(table=target.table.name)
        count = target.make_temporary("to_come", sql)
        if count:
            to_come = target.temporary_name("to_come")
            target.run_sql(f"delete from {target.table.qualified} where rowid in (from {to_come})")
            target.report.deleted += count


def _take_along(target: Target, targets: Sequence[Target]) -> None:
    """Deleted rows delete the rows of other tables within them, too: a list its contacts and
    fields."""
    if not target.report.deleted:
        return
    for table in TABLES.values():
        if table.load.within != target.table.name:
            continue
        gone = (
            f"exists (from {target.temporary_name('missing')} m where "
            f"{target.join_condition('m', 'c')})"
        )
        here = f"account = getvariable('account') and _deleted_at is null and {gone}"
        count = mark_deleted(target, table, f"select rowid from {table.qualified} c where {here}")
        for other in targets:
            if other.table is table:
                other.report.deleted += count
        coverage.forget_scopes(target, table)
