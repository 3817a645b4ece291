"""New and changed rows by key: the incremental part that all load modes share. The cost of writing follows
the rows that differ.

Rows are replaced by DELETE and INSERT without a primary key, which measured fastest. Not here: rows that are
missing."""

from warehouse.loads.arrow import ENTRY_HASH, KNOWN, PART
from warehouse.loads.target import Target
from warehouse.sql import query, quoted
from warehouse.tables import EXTRA


def upsert(target: Target) -> None:
    """Bring the staged rows (one per key) into the table; what changed stands in `change` afterwards."""
    _find_changes(target)
    counts = query("change_counts").format(change=target.temp("change"), staged=target.staged)
    ((new, changed, stored, written, present),) = target.rows(counts)
    target.report.new += new
    target.report.changed += changed
    target.report.unchanged += present - new - changed
    if written:
        _write(target, replaces=stored > 0)


def _find_changes(target: Target) -> None:
    """(part, stored row, is_new, is_different, is_back) of every staged row that is not stored as it is.

    Columns that every staged row knows are compared by one hash, so that the join holds two numbers per row;
    the others one by one, where they are known."""
    may_show = (
        "s._is_listed"
        if target.table.is_composed and any(map(target.is_listing, target.responses))
        else "true"
    )
    if target.is_first:
        fresh = f"select {PART}, null::bigint as rid, true as is_new, false as is_different, false as is_back"
        target.make("change", f"{fresh} from {target.staged} s where {may_show}")
        return
    partial = _partial_columns(target)
    always = [name for name in _value_names(target) if name not in partial]
    both = ", ".join([*target.key, f"hash({', '.join(always) or '0'}) as _hash", *partial, EXTRA.name])
    differs = ["s._hash <> t._hash", f"{_new_extra(target)} is distinct from t.{EXTRA.name}"]
    differs += [
        f"(s.{KNOWN} & {target.bit(name)} <> 0 and s.{name} is distinct from t.{name})" for name in partial
    ]
    present = {column.name for column in target.table.system_columns}
    system = ", ".join(
        name if name in present else f"null as {name}" for name in ("_deleted_at", "_listing_hash")
    )
    relations = {
        "staged": target.staged,
        "stored": target.stored,
        "same_key": target.on("s", "t"),
        "may_show": may_show,
    }
    columns = {"part": PART, "known": KNOWN, "entry_hash": ENTRY_HASH, "system": system, "columns": both}
    sql = query("changes").format(**relations, **columns, differs=" or ".join(differs))
    target.make("change", sql)


def _write(target: Target, *, replaces: bool) -> None:
    """Write the changed rows, in the place of stored ones or beside what is stored.

    Deleted rows stay deleted unless they are back; the listing's hash is renewed with the detail only.
    """
    change, table, partial = target.temp("change"), target.table, _partial_columns(target)
    values = [
        f"case when s.{KNOWN} & {target.bit(name)} <> 0 then s.{name} else t.{name} end as {name}"
        if name in partial
        else f"s.{name}"
        for name in _value_names(target)
    ]
    new = {
        "_first_seen_at": f"coalesce(t._first_seen_at, {target.as_of})",
        "_changed_at": f"case when is_new or is_different or is_back then {target.as_of} else "
        "t._changed_at end",
        "_deleted_at": "case when is_back then null else t._deleted_at end",
        "_listing_hash": f"case when s._has_detail then coalesce(s.{ENTRY_HASH}, t._listing_hash) else "
        "t._listing_hash end",
    }
    system = [f"{new[column.name]} as {column.name}" for column in table.system_columns]
    columns = [
        *(f"s.{name}" for name in target.key),
        *values,
        f"{_new_extra(target)} as {EXTRA.name}",
        *system,
    ]
    fresh = f"""
        select {target.account} as account, {", ".join(columns)}
        from {change} c join {target.staged} s using ({PART})
        left join {target.stored} t on t.rid = c.rid
        """
    if replaces:
        target.make("fresh", fresh)
        target.run(f"delete from {table.qualified} where rowid in (select rid from {change})")
        fresh = f"from {target.temp('fresh')}"
    target.run(f"insert into {table.qualified} by name {fresh}")


def _value_names(target: Target) -> list[str]:
    return [quoted(column.name) for column in target.table.values]


def _partial_columns(target: Target) -> list[str]:
    """Columns that some staged row does not know."""
    if not target.table.is_partial:
        return []
    known = target.value(f"select bit_and({KNOWN}) from {target.staged}")
    return [name for name in _value_names(target) if known is not None and not known & target.bit(name)]


def _new_extra(target: Target) -> str:
    """A composed row keeps the unknown fields of the operations that were not requested this time."""
    if not target.table.is_composed:
        return f"s.{EXTRA.name}"
    stored, received = f"t.{EXTRA.name}", f"s.{EXTRA.name}"
    return (
        f"case when {received} is null then {stored} when {stored} is null then {received} else "
        f"merged({stored}, {received}) end"
    )
