"""Snapshots and windows: the scopes that a load has read, and what of them is gone.

Absence is proven or it is not believed. A row counts as gone (soft delete: `_deleted_at`) only when every
page of its scope came, no response contradicts its own count, everything in it could be understood, and not
too much is gone at once. A row's detail costs a request of its own: hashes of listing entries say which are
new or changed. Not here: new and changed rows (`upsert`)."""

import contextlib
import datetime as dt
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from marketing_api.address import normal_form
from marketing_api.exchange import Response
from marketing_api.parsing import parse_rows
from marketing_api.records.fields import Record
from warehouse.loads.arrow import ENTRY_HASH, entry_hash
from warehouse.loads.target import ScopeResult, Target
from warehouse.loads.upsert import upsert
from warehouse.sql import literal, query, quoted
from warehouse.tables import EMAIL, EMAIL_NORMALIZED, Snapshot, Table, Window

#: Parts of single entries (the fields of a list, the coupons of an address) come and go: so many may,
#: whatever share they are.
FEW = 9


#: The scope of a table that is listed for the whole account.
ALL = "all"


@dataclass
class Scope:
    """The rows whose scope columns have these `values` (or whose day lies between them; None: of which
    nothing is ever removed).

    `is_read`: every page came, and no response contradicts itself. `unreadable`: entries that could not be
    understood, or were left open."""

    number: int
    values: tuple[Any, ...] | None
    label: str
    is_read: bool
    responses: set[int] = field(default_factory=set)
    unreadable: int = 0
    reason: str | None = None

    @property
    def proves_absence(self) -> bool:
        """Whether a row that was not received is gone. An entry that could not be understood may be any
        row."""
        return self.values is not None and self.is_read and not self.unreadable

    def take(self, target: Target, response: int) -> None:
        """One of its responses, and what keeps it from being believed."""
        self.responses.add(response)
        self.unreadable += target.unreadable[response]
        if flaw := target.flaws.get(response):
            self.is_read, self.reason = False, flaw


def load_listing(
    target: Target, asked_scope: Mapping[str, Any], *, is_complete: bool, shrink_limit: float | None
) -> list[ScopeResult]:
    """Apply the staged rows; what is known of each scope goes to the coverage."""
    scopes = scopes_of(target, asked_scope, is_complete)
    make_scopes(target, scopes)
    target.merge_parts()
    _find_absent(target, scopes)
    stale = _stale(target, scopes)
    refused = _refuse_shrunk(target, [scope for scope in scopes if scope not in stale], shrink_limit)
    target.report.stale += [scope.label for scope in stale]
    _set_aside(target, stale + refused)
    upsert(target)
    kept = [scope for scope in scopes if scope not in stale and scope not in refused]
    flawed = [scope for scope in kept if not target.flaws.keys().isdisjoint(scope.responses)]
    target.report.unproven += _sentences(target, flawed, _flaws)
    _mark_missing(target, kept)
    target.unbelieved.update(*(scope.responses for scope in scopes if not scope.is_read))
    return _results(target, kept, refused, is_complete=is_complete)


def _stale(target: Target, scopes: Sequence[Scope]) -> list[Scope]:
    """Scopes of which a newer response is loaded already: a slower run must not put older rows over newer
    ones."""
    if not isinstance(target.table.load, Snapshot) or target.table.load.is_whole:
        return []
    here = f"account = {target.account} and table_name = {literal(target.table.name)}"
    labels = {
        label
        for (label,) in target.rows(
            f"select scope from sync.coverage where {here} and last_request > {target.last_request}"
        )
    }
    return [scope for scope in scopes if scope.label in labels]


def _find_absent(target: Target, scopes: Sequence[Scope]) -> None:
    """Keep as `absent` what is there of the scopes that were read and their listings do not have."""
    columns = ", ".join(f"t.{name}" for name in ("rid", *target.key))
    read = [scope for scope in scopes if scope.is_read and scope.values is not None]
    if not read or target.is_first:
        target.make("absent", f"select {columns}, 0 as _scope from {target.stored} t limit 0")
        return
    relations = {"stored": target.stored, "staged": target.staged, "scopes": these(target, read)}
    same = {"in_scope": in_scope(target, "t"), "same_key": target.on("s", "t")}
    target.make("absent", query("absent").format(columns=columns, **relations, **same))


def _absent(target: Target) -> dict[int, int]:
    """Rows that are absent, by the number of their scope."""
    return dict(target.rows(f"select _scope, count(*) from {target.temp('absent')} group by all"))


def _refuse_shrunk(target: Target, scopes: Sequence[Scope], limit: float | None) -> list[Scope]:
    """Scopes whose complete listing is smaller by more than `limit`, or has others in the place of more than
    that.

    Members of a list may all be others from one day to the next, so these are judged as a share of all that
    the account has. Parts of single entries are judged one by one, where many are gone, and together: many
    small ones may be emptied by one fault."""
    checked = [scope for scope in scopes if scope.proves_absence]
    absent = _absent(target)
    if limit is None or not checked or not absent:
        return []
    is_whole = target.table.load.is_whole
    live = _count_by_scope(target, checked, _live(target))
    received = _count_by_scope(target, checked, f"(from {target.staged} where _is_listed)")
    every = 0 if is_whole else target.value(f"select count(*) from {_live(target)}")

    def totals(scopes: Sequence[Scope]) -> list[int]:
        return [sum(counts.get(scope.number, 0) for scope in scopes) for counts in (live, received, absent)]

    def is_shrunk(scopes: Sequence[Scope]) -> bool:
        before, now, gone = totals(scopes)
        is_exchanged = gone > FEW and gone > limit * (before if is_whole else every)
        return is_exchanged or (not is_whole and now < (1 - limit) * before)

    def sentence(scopes: Sequence[Scope]) -> str:
        before, now, gone = totals(scopes)
        listed = f"{now} rows were listed where {before} are known, {gone} of them not"
        return f"{listed}: more than {limit:.0%} would be deleted; not applied"

    refused = [scope for scope in checked if is_shrunk([scope])]
    rest = [scope for scope in checked if scope not in refused]
    if is_whole and is_shrunk(rest):
        refused += [scope for scope in rest if absent.get(scope.number)]
    target.report.refused += _sentences(target, refused, sentence)
    for scope in refused:
        scope.is_read = False
    return refused


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


def _set_aside(target: Target, scopes: Sequence[Scope]) -> None:
    """Leave the rows of these scopes out of the load."""
    if scopes:
        others = f"not exists (from {these(target, scopes)} x where {in_scope(target, 's')})"
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
    missing = target.make("missing", f"select {columns} from {absent} where a._scope in ({proven or 'null'})")
    target.report.deleted += missing
    if missing:
        mark_deleted(target, target.table, f"select rid from {target.temp('missing')}")
    if unproven := [scope for scope in scopes if scope.is_read and scope.unreadable]:
        _report_unproven(target, unproven)


def _report_unproven(target: Target, scopes: Sequence[Scope]) -> None:
    left = _absent(target)

    def sentence(scopes: Sequence[Scope]) -> str:
        count, unreadable = (
            sum(left[scope.number] for scope in scopes),
            sum(scope.unreadable for scope in scopes),
        )
        return (
            f"{count} rows were not listed, and {unreadable} entries or collections could not be read: "
            "nothing was marked as deleted"
        )

    staying = [scope for scope in scopes if scope.number in left]
    target.report.unproven += _sentences(target, staying, sentence)
    for scope in staying:
        scope.is_read = False


def mark_deleted(target: Target, table: Table, rids: str) -> None:
    target.run(
        f"update {table.qualified} set _deleted_at = {target.as_of}, _changed_at = {target.as_of} where "
        f"rowid in ({rids})"
    )


def _live(target: Target) -> str:
    return f"(from {target.table.qualified} where account = {target.account} and _deleted_at is null)"


def _count_by_scope(target: Target, scopes: Sequence[Scope], relation: str) -> dict[int, int]:
    if not (scopes := [scope for scope in scopes if scope.values is not None]):
        return {}
    here = f"{these(target, scopes)} x on {in_scope(target, 't')}"
    return dict(target.rows(f"select x._scope, count(*) from {relation} t join {here} group by all"))


def _results(
    target: Target, kept: Sequence[Scope], refused: Sequence[Scope], *, is_complete: bool
) -> list[ScopeResult]:
    """One line per scope; tables whose scopes are single entries have one line in all
    (`sync.contact_coverage` has the others)."""
    unread = (
        f"{target.report.rejected} entries could not be read: nothing was marked as deleted"
        if target.report.rejected
        else ""
    )
    if target.table.load.is_whole:
        reasons = "; ".join([*target.report.refused, *target.report.unproven])
        reason = reasons or unread or (None if is_complete else "not everything could be had")
        return [
            ScopeResult(
                ALL,
                is_complete and not reasons,
                target.value(f"select count(*) from {_live(target)}"),
                reason,
            )
        ]
    is_snapshot = isinstance(target.table.load, Snapshot)
    counts = _count_by_scope(target, [*kept, *refused] if is_snapshot else refused, _live(target))
    received = target.report.new + target.report.changed + target.report.unchanged
    found = []
    for scope in (*kept, *refused):
        reason = (
            scope.reason
            or (unread if scope.unreadable else "")
            or (None if scope.is_read else "not every page could be had")
        )
        found.append(
            ScopeResult(
                scope.label, scope.is_read, counts.get(scope.number, 0 if is_snapshot else received), reason
            )
        )
    return found


def scopes_of(target: Target, asked_scope: Mapping[str, Any], is_complete: bool) -> list[Scope]:
    """The scopes that the load's listing responses are about; of a load without responses, those that it
    names."""
    load = target.table.load
    if not isinstance(load, Snapshot):
        days = days_of(asked_scope)
        reason = None if is_complete else str(asked_scope.get("reason", "not every page could be had"))
        scope = Scope(0, days if load.column else None, label_of_days(days), is_complete, reason=reason)
        for head in target.responses:
            scope.take(target, head.index)
        return [scope]
    columns = tuple(load.scope)
    found: dict[tuple[Any, ...], Scope] = {}
    for head in filter(target.is_listing, target.responses):
        values = [head.params[name] for name in load.scope.values() if name in head.params]
        typed = list(_typed(target.table, columns, [values] if len(values) == len(columns) else []))
        for each in typed or _from_rows(target, columns, head.index):
            is_read = is_complete or load.is_whole
            reason = None if is_read else asked_scope.get("reason")
            scope = found.setdefault(
                each, Scope(len(found), each, label_of(columns, each), is_read, reason=reason)
            )
            scope.take(target, head.index)
    if not target.responses:
        for each in _named(target.table, columns, asked_scope):
            found[each] = Scope(len(found), each, label_of(columns, each), is_complete)
    return list(found.values())


def days_of(scope: Mapping[str, Any]) -> tuple[dt.date, dt.date] | None:
    """First and last day of the load's scope; None when it names no range."""
    if "from_on" not in scope or "to_on" not in scope:
        return None
    return dt.date.fromisoformat(str(scope["from_on"])), dt.date.fromisoformat(str(scope["to_on"]))


def label_of_days(days: tuple[dt.date, dt.date] | None) -> str:
    return f"{days[0]}..{days[1]}" if days else ALL


def label_of(columns: Iterable[str], values: Iterable[Any]) -> str:
    """How `sync.coverage` calls the scope."""
    return ", ".join(f"{column}={value}" for column, value in zip(columns, values, strict=True)) or ALL


def make_scopes(target: Target, scopes: Sequence[Scope]) -> None:
    """Keep the scopes that rows may be in as the relation `scopes`, for `these` and `in_scope`."""
    scopes = [scope for scope in scopes if scope.values is not None]
    if isinstance(target.table.load, Snapshot):
        types = {name: target.table.column(name).arrow_type for name in target.table.load.scope}
    else:
        types = {"first": pa.date32(), "last": pa.date32()}
    arrays = [
        pa.array([scope.values[index] for scope in scopes if scope.values], type_)
        for index, type_ in enumerate(types.values())
    ]
    numbers = pa.array([scope.number for scope in scopes], pa.int64())
    rows = pa.table([*arrays, numbers], names=[*types, "_scope"])
    target.run(
        f"create or replace temp table scopes_{target.table.name} as from arrow_scopes", arrow_scopes=rows
    )


def these(target: Target, scopes: Sequence[Scope]) -> str:
    numbers = ", ".join(str(scope.number) for scope in scopes)
    return f"(from {target.temp('scopes')} where _scope in ({numbers or 'null'}))"


def in_scope(target: Target, alias: str) -> str:
    """The condition that a row of `alias` is in scope `x`."""
    return _in_scope(target.table, target.zone, alias)


def known_keys(table: Table, params: Mapping[str, Any], zone: str) -> str:
    """SQL of the rows of `$account` that a listing with these parameters should show: keys as
    `parsing.item_keys` makes them."""
    if isinstance(table.load, Window):
        scope = (
            f"select date {literal(str(params['from']))} as first, date {literal(str(params['to']))} as last"
        )
    else:
        types = {name: table.column(name).sql_type for name in table.load.scope}
        named = [
            f"{literal(str(params[wire]))}::{types[name]} as {quoted(name)}"
            for name, wire in table.load.scope.items()
        ]
        scope = f"select {', '.join(named) or '1'}"
    key = ", ".join(quoted(name) for name in table.key if name not in table.load.scope)
    there = f"account = $account and {table.is_there} and {_in_scope(table, zone, 't')}"
    return f"select concat_ws('/', {key}) from {table.qualified} t, ({scope}) x where {there}"


def _in_scope(table: Table, zone: str, alias: str) -> str:
    """Addresses are compared by their normal forms, days are those of the account."""
    load, terms = table.load, []
    if isinstance(load, Window):
        day = f"{alias}.{quoted(load.column)}"
        if table.column(load.column).sql_type == "TIMESTAMPTZ":
            day = f"({day} at time zone {literal(zone)})::date"
        return f"{day} between x.first and x.last"
    for name in load.scope:
        column = EMAIL_NORMALIZED if name == EMAIL else name
        terms.append(f"{alias}.{quoted(column)} = x.{quoted(name)}")
    return " and ".join(terms) or "true"


def _from_rows(target: Target, columns: tuple[str, ...], response: int) -> Iterator[tuple[Any, ...]]:
    """A response to a wider call that shows a row of a scope shows all of that scope (lists with their
    fields)."""
    sql = (
        f"select distinct {', '.join(columns)} from {target.source} where _response = {response} order by all"
    )
    return _typed(target.table, columns, target.rows(sql))


def _named(table: Table, columns: tuple[str, ...], scope: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    if not all(column in scope for column in columns):
        return
    many = [
        value if isinstance(value, list | tuple) else [value]
        for value in (scope[column] for column in columns)
    ]
    yield from _typed(table, columns, itertools.product(*many))


def _typed(
    table: Table, columns: tuple[str, ...], rows: Iterable[Iterable[Any]]
) -> Iterator[tuple[Any, ...]]:
    """As rows of the scope hold them: texts in the normal form of addresses. Those with a value that is no
    number are left out."""
    is_number = [table.column(column).sql_type == "BIGINT" for column in columns]
    for row in rows:
        with contextlib.suppress(ValueError):
            yield tuple(
                int(value) if number else normal_form(str(value))
                for number, value in zip(is_number, row, strict=True)
            )


Key = tuple[Any, ...]


def needs_detail(
    table: Table, responses: Iterable[Response], known: Mapping[Key, str], zone: ZoneInfo
) -> list[Record]:
    """The entries of a listing that are new or differ from when their detail was requested: the last of each
    key, in order.

    `known` has the stored hashes by key (`Warehouse.listing_hashes`). Responses of operations that do not
    list are passed over."""
    listed: dict[Key, Record] = {}
    for response in responses:
        if response.call.operation != table.load.listing:
            continue
        for rows in parse_rows(response, zone, response.requested_at.astimezone(zone).date()):
            if rows.record is table.record:
                listed |= {
                    tuple(getattr(record, name) for name in table.key): record for record in rows.records
                }
    return [record for key, record in listed.items() if known.get(key) != entry_hash(record)]


def row_hash(table: Table, alias: str) -> str:
    """The hash of a stored row that is itself the listing's entry, as SQL; it depends on no setting of the
    session."""
    parts = []
    for column in table.record_columns:
        name = f"{alias}.{quoted(column.name)}"
        parts.append(
            f"{literal(column.name)}: {f'epoch_us({name})' if column.sql_type == 'TIMESTAMPTZ' else name}"
        )
    return f"md5(to_json({{{', '.join(parts)}}})::varchar)"


def take_entry_hashes(target: Target, listing: Table) -> None:
    """Stage with each detail the hash of its entry in the `listing` table."""
    relations = {
        "staged": target.staged,
        "listing": listing.qualified,
        "account": target.account,
        "same_key": target.on("p", "s"),
    }
    target.make(
        "hashed",
        query("with_entry_hashes").format(
            **relations, row_hash=row_hash(listing, "p"), entry_hash=ENTRY_HASH
        ),
    )
    target.staged = target.temp("hashed")
