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
    values = [quoted(column.name) for column in target.table.values]
    partial = _partial(target, values)
    _find_changes(target, [name for name in values if name not in partial], partial)
    counts = query("change_counts").format(change=target.temp("change"), staged=target.staged)
    ((new, changed, stored, written, present),) = target.run(counts)
    target.report.new += new
    target.report.changed += changed
    target.report.unchanged += present - new - changed
    if written:
        _write(target, values, partial, replaces=stored > 0)


def _partial(target: Target, values: list[str]) -> list[str]:
    """Columns that some staged row does not know."""
    if not target.table.is_partial:
        return []
    known = target.value(f"select bit_and({KNOWN}) from {target.staged}")
    return [name for name in values if known is not None and not known & target.bits[name]]


def _find_changes(target: Target, always: list[str], partial: list[str]) -> None:
    """(part, stored row, is_new, is_different, is_back) of every staged row that is not stored as it is.

    Columns that every staged row knows are compared by one hash, so that the join holds two numbers per row;
    the others one by one, where they are known."""
    may_show = "true"
    if target.table.is_composed and any(map(target.is_listing, target.responses)):
        may_show = "s._is_listed"
    if target.is_first:
        fresh = f"select {PART}, null::bigint as rid, true as is_new, false as is_different, false as is_back"
        target.make("change", f"{fresh} from {target.staged} s where {may_show}")
        return
    columns = [*target.key, f"hash({', '.join(always) or '0'}) as _hash", *partial, EXTRA.name]
    differs = [
        "s._hash <> t._hash",
        f"{_new_extra(target)} is distinct from t.{EXTRA.name}",
        *(f"({_knows(target, name)} and s.{name} is distinct from t.{name})" for name in partial),
    ]
    present = {column.name for column in target.table.system_columns}
    system = [name if name in present else f"null as {name}" for name in ("_deleted_at", "_listing_hash")]
    sql = query("changes").format(
        staged=target.staged,
        stored=target.stored,
        same_key=target.on("s", "t"),
        may_show=may_show,
        system=", ".join(system),
        columns=", ".join(columns),
        differs=" or ".join(differs),
    )
    target.make("change", sql)


def _write(target: Target, values: list[str], partial: list[str], *, replaces: bool) -> None:
    """Write the changed rows, in the place of stored ones or beside what is stored.

    Deleted rows stay deleted unless they are back; the listing's hash is renewed with the detail only.
    """
    change, table, now = target.temp("change"), target.table, "getvariable('as_of')"
    system = {
        "_first_seen_at": f"coalesce(t._first_seen_at, {now})",
        "_changed_at": f"if(is_new or is_different or is_back, {now}, t._changed_at)",
        "_deleted_at": "if(is_back, null, t._deleted_at)",
        "_listing_hash": f"if(s._has_detail, coalesce(s.{ENTRY_HASH}, t._listing_hash), t._listing_hash)",
    }
    terms = {
        "account": "getvariable('account')",
        **{name: f"s.{name}" for name in (*target.key, *values)},
        **{name: f"if({_knows(target, name)}, s.{name}, t.{name})" for name in partial},
        EXTRA.name: _new_extra(target),
        **{column.name: system[column.name] for column in table.system_columns},
    }
    fresh = f"""
        select {", ".join(f"{term} as {name}" for name, term in terms.items())}
        from {change} c join {target.staged} s using ({PART})
        left join {target.stored} t on t.rid = c.rid
        """
    if replaces:
        target.make("fresh", fresh)
        target.run(f"delete from {table.qualified} where rowid in (select rid from {change})")
        fresh = f"from {target.temp('fresh')}"
    target.run(f"insert into {table.qualified} by name {fresh}")


def _knows(target: Target, name: str) -> str:
    return f"s.{KNOWN} & {target.bits[name]} <> 0"


def _new_extra(target: Target) -> str:
    """A composed row keeps the unknown fields of the operations that were not requested this time."""
    if not target.table.is_composed:
        return "s.extra"
    return "if(s.extra is null, t.extra, if(t.extra is null, s.extra, merged(t.extra, s.extra)))"
