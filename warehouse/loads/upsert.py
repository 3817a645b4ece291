"""New and changed rows by key: the part that all load kinds share. The cost of writing follows the rows that differ.

Rows are replaced by DELETE and INSERT without a primary key, which measured fastest. Not here: rows that are missing.
"""

from __future__ import annotations

from warehouse.arrow import ENTRY_HASH, KNOWN, PART
from warehouse.loads.target import Target
from warehouse.sql import quoted
from warehouse.table import EXTRA, Snapshot


def upsert(target: Target) -> None:
    """Bring the staged rows (one per key) into the table; what changed stands in `change` afterwards."""
    _find_changes(target)
    ((new, changed, written),) = target.rows(
        f"select count(*) filter (where is_new), count(*) filter (where not is_new and (is_different or is_back)), count(*) "
        f"from {target.temp('change')}"
    )
    present = int(target.value(f"select count(*) from {target.staged}"))
    target.report.new += new
    target.report.changed += changed
    target.report.unchanged += present - new - changed
    if written:
        _write(target)


def _find_changes(target: Target) -> None:
    """(part, stored row, is_new, is_different, is_back) of every staged row that is not stored as it is.

    Columns that every staged row knows are compared by one hash, so that the join holds two numbers per row; the others
    one by one, where they are known.
    """
    table, is_snapshot = target.table, isinstance(target.table.load, Snapshot)
    partial = _partial_columns(target)
    always = [name for name in _value_names(target) if name not in partial]
    both = f"hash({', '.join(always) or '0'}) as _hash, {', '.join([*partial, EXTRA.name])}"
    key = ", ".join([*target.key, ""])
    has_hash = is_snapshot and bool(table.load.detail)  # type: ignore[union-attr]
    stored_system = ("_deleted_at, " if is_snapshot else "") + ("_listing_hash, " if has_hash else "")
    different = " or ".join(
        ["s._hash <> t._hash", f"{_new_extra(target)} is distinct from t.{EXTRA.name}"]
        + [f"(s.{KNOWN} & {target.bit(name)} <> 0 and s.{name} is distinct from t.{name})" for name in partial]
    )
    back = "t._deleted_at is not null" if is_snapshot else "false"
    touched = f"s._has_detail and s.{ENTRY_HASH} is distinct from t._listing_hash and s.{ENTRY_HASH} is not null" if has_hash else "false"
    may_show = "s._is_listed" if target.table.is_composed and target.has_listing else "true"
    target.make(
        "change",
        f"""
        with stored as (
            select rid, {key} {stored_system} {both} from {target.stored} t
            where exists (from {target.staged} s where {target.on("s", "t")})
        ),
        staged as (select {PART}, {key} {KNOWN}, {ENTRY_HASH}, _is_listed, _has_detail, {both} from {target.staged}),
        compared as (
            select s.{PART}, t.rid, t.rid is null as is_new, t.rid is not null and ({different}) as is_different,
                t.rid is not null and {back} and {may_show} as is_back, t.rid is not null and {touched} as is_touched,
                t.rid is not null or {may_show} as is_wanted
            from staged s left join stored t on {target.on("s", "t")}
        )
        select {PART}, rid, is_new, is_different, is_back from compared
        where is_wanted and (is_new or is_different or is_back or is_touched)
        """,
    )


def _write(target: Target) -> None:
    """Replace the changed rows. Deleted rows stay deleted unless they are back."""
    table, load = target.table, target.table.load
    partial = _partial_columns(target)
    values = [
        f"case when s.{KNOWN} & {target.bit(name)} <> 0 then s.{name} else t.{name} end as {name}" if name in partial else f"s.{name}"
        for name in _value_names(target)
    ]
    system = [
        f"coalesce(t._first_seen_at, {target.as_of}) as _first_seen_at",
        f"case when is_new or is_different or is_back then {target.as_of} else t._changed_at end as _changed_at",
    ]
    if isinstance(load, Snapshot):
        system.append("case when is_back then null else t._deleted_at end as _deleted_at")
        if load.detail:
            system.append(
                f"case when s._has_detail then coalesce(s.{ENTRY_HASH}, t._listing_hash) else t._listing_hash end as _listing_hash"
            )
    columns = [*(f"s.{name}" for name in target.key), *values, f"{_new_extra(target)} as {EXTRA.name}", *system]
    change = target.temp("change")
    target.make(
        "fresh",
        f"""
        select {target.account} as account, {", ".join(columns)}
        from {change} c join {target.staged} s using ({PART})
        left join {target.stored} t on t.rid = c.rid
        """,
    )
    target.run(f"delete from {table.qualified} where rowid in (select rid from {change})")
    target.run(f"insert into {table.qualified} by name from {target.temp('fresh')}")


def _value_names(target: Target) -> list[str]:
    return [quoted(column.name) for column in target.table.values]


def _partial_columns(target: Target) -> list[str]:
    """Columns that some staged row does not know."""
    if not target.table.is_partial:
        return []
    known = target.value(f"select bit_and({KNOWN}) from {target.staged}")
    return [name for name in _value_names(target) if known is not None and not known & target.bit(name)]


def _new_extra(target: Target) -> str:
    """A composed row keeps the unknown fields of the operations that were not asked this time."""
    if not target.table.is_composed:
        return f"s.{EXTRA.name}"
    stored, received = f"t.{EXTRA.name}", f"s.{EXTRA.name}"
    return f"case when {received} is null then {stored} when {stored} is null then {received} else merged({stored}, {received}) end"
