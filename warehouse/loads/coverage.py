"""Writes what is known about the reading: `sync.coverage`, `sync.readings`, `sync.rejected_records`, and per
contact `sync.contact_coverage`. Everything follows from the load and its responses, so that a rebuild writes
the same."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from marketing_api.address import normal_form
from warehouse.loads.listing import ALL, days_of, label_of, label_of_days, mark_deleted
from warehouse.loads.staging import ResponseHead, Staged
from warehouse.loads.target import ScopeResult, Target
from warehouse.sql import literal, query, quoted
from warehouse.tables import REJECTED_RECORDS, Table, Window

#: How late a night's reading may be before what it should have read is overdue: who comes to work after it
#: sees that it failed.
GRACE = dt.timedelta(hours=6)
#: How old the newest response may be: reading is due every night.
FRESH_FOR = dt.timedelta(days=1) + GRACE


def write_coverage(
    results: Sequence[tuple[Target, ScopeResult]],
    *,
    due_at: dt.datetime | None,
    service_count: int | None,
    zone: str,
) -> None:
    """Replace the coverage of the scopes that were loaded. A row count that is not known grows by the rows
    that are new."""
    if not results:
        return
    target = results[0][0]
    as_of, last = target.as_of, target.last_request
    if not target.responses:
        as_of, last = (
            f"case when n.is_complete then {new} else o.{old} end"
            for new, old in ((as_of, "as_of"), (last, "last_request"))
        )
    due = f"timestamptz {literal(due_at.isoformat())}" if due_at else "null"
    listed = ", ".join(
        sorted({literal(each.table.name) for each, _ in results if _is_listed_by_scope(each.table)})
    )
    terms = {"as_of": as_of, "last": last, "due": due, "listed": listed or "null", "zone": literal(zone)}
    target.run(
        query("coverage").format(account=target.account, **terms),
        arrow_coverage=_as_arrow(results, service_count),
    )
    for each, result in results:
        if isinstance(each.table.load, Window) and result.scope != ALL:
            first, last = map(literal, result.scope.split(".."))
            range_ = {
                "table": literal(each.table.name),
                "scope": literal(result.scope),
                "first": first,
                "last": last,
            }
            each.run(query("cut_ranges").format(account=each.account, **range_))


def _is_listed_by_scope(table: Table) -> bool:
    """Whether its rows come and go scope by scope, as contacts do list by list; parts of a single entry are
    no listing."""
    return bool(table.load.scope) and not table.load.is_whole


_REJECTED = pa.schema([(column.name, column.arrow_type) for column in REJECTED_RECORDS.columns[2:]])
_RESULTS = pa.schema(
    [
        *((name, pa.string()) for name in ("table_name", "scope", "reason")),
        *((name, pa.int64()) for name in ("rows", "new", "service_count")),
        ("is_complete", pa.bool_()),
    ]
)


def _as_arrow(results: Sequence[tuple[Target, ScopeResult]], service_count: int | None) -> pa.Table:
    """The service's count is that of the load's only scope."""
    scopes = Counter(target.table.name for target, _ in results)
    entries = [
        {
            **asdict(result),
            "table_name": target.table.name,
            "new": target.report.new,
            "service_count": service_count if scopes[target.table.name] == 1 else None,
        }
        for target, result in results
    ]
    return pa.Table.from_pylist(entries, _RESULTS)


def forget_scopes(target: Target, table: Table) -> None:
    """Drop the coverage of scopes of `table` that are gone with rows of the target."""
    if not _is_listed_by_scope(table):
        return
    label = " || ', ' || ".join(f"{literal(name + '=')} || {quoted(name)}" for name in table.load.scope)
    target.run(
        f"delete from sync.coverage where account = {target.account} and table_name = {literal(table.name)} "
        f"and scope in (select {label} from {target.temp('missing')})"
    )


def write_rejected(targets: Sequence[Target], scope: Mapping[str, Any]) -> None:
    """Set aside what could not be read, in place of what was set aside when the same scope was read
    before."""
    if not targets:
        return
    known = targets[0].rows(
        f"select distinct table_name from sync.rejected_records where account = {targets[0].account}"
    )
    for target in targets:
        if target.rejects or (target.table.name,) in known:
            _replace_rejected(target, scope)


def _replace_rejected(target: Target, scope: Mapping[str, Any]) -> None:
    """Of a range, also what belongs to ranges that lie within it."""
    table, is_window = literal(target.table.name), isinstance(target.table.load, Window)
    here = f"account = {target.account} and table_name = {table}"
    labels = {head.index: _scope_label(target, head, scope) for head in target.responses}
    known = sorted(set(labels.values()))
    same = [f"scope in ({', '.join(map(literal, known)) or 'null'})"]
    for first, last in (map(literal, label.split("..")) for label in known if is_window and ".." in label):
        same.append(
            f"(split_part(scope, '..', 1) >= {first} and split_part(scope, '..', 2) between "
            f"{first} and {last})"
        )
    target.run(f"delete from sync.rejected_records where {here} and ({' or '.join(same)})")
    if not target.rejects:
        return
    heads = {head.index: head for head in target.responses}
    entries = [
        {
            "scope": labels[reject.response],
            "request_id": heads[reject.response].request_id,
            "requested_at": heads[reject.response].requested_at,
            "reason": reject.reason,
            "raw": reject.raw,
        }
        for reject in target.rejects
    ]
    sql = (
        f"insert into sync.rejected_records by name select {target.account} as account, {table} as "
        "table_name, * from arrow_rejected"
    )
    if is_window:  # ranges overlap: an entry that an earlier range had, too, moves to this one
        sql = (
            f"delete from sync.rejected_records where {here} and raw in (select raw::json from "
            f"arrow_rejected); {sql}"
        )
    target.run(sql, arrow_rejected=pa.Table.from_pylist(entries, _REJECTED))


def _scope_label(target: Target, head: ResponseHead, scope: Mapping[str, Any]) -> str:
    """The scope of one response: the entry it is about, the range, or the listing that it is a page of."""
    load = target.table.load
    if isinstance(load, Window):
        return label_of_days(days_of(scope))
    if load.scope and all(name in head.params for name in load.scope.values()):
        return label_of(load.scope, [head.params[name] for name in load.scope.values()])
    if "id" in head.params and target.table.key:
        return label_of(target.table.key[:1], [head.params["id"]])
    return ALL


# ---- single contacts: when the timeline and the coupons of each were requested, and whether that brought
# something new


_CALL_COLUMNS = ("first_asked_at", "asked_at", "request", "changed_at", "times_asked", "times_changed")
#: Of each kind of call, by the prefix of its columns: those that come from responses.
_RECEIVED = {
    "timeline": ("timeline_served", "timeline_total", "timeline_digest"),
    "coupon": ("coupon_count",),
}


def note_contacts(targets: Sequence[Target], staged: Staged) -> None:
    """Note the responses that are about one contact or address each, as their tables declare it. Only a
    response newer than the last one counts, so that loading twice counts once."""
    if timelines := [target for target in targets if target.table.load.contact_parameter]:
        _note_timelines(timelines, staged)
    for target in targets:
        if target.table.load.per_address:
            _note_coupons(target)


def _note_timelines(targets: Sequence[Target], staged: Staged) -> None:
    """Count the timeline responses, and note what they hold."""
    contacts = {one.index: one.contact for one in staged.responses if one.contact is not None}
    if not contacts:
        return
    table = _calls_as_arrow(
        [staged.responses[index] for index in contacts],
        contact_id=pa.array(list(contacts.values()), pa.int64()),
        timeline_served=pa.array([staged.extents[index][0] for index in contacts], pa.int64()),
        timeline_total=pa.array([staged.extents[index][1] for index in contacts], pa.int64()),
        timeline_digest=pa.array([staged.digests[contact] for contact in contacts.values()], pa.string()),
    )
    first = targets[0]
    first.run(query("late_timelines").format(account=first.account), arrow_responses=table)
    received = [target for target in targets if target.report.received]
    changes = [
        f"select contact_id from {target.temp('change')} join {target.staged} using (_part)"
        for target in received
    ]
    changed = " union ".join(["select null::bigint as contact_id where false", *changes])
    _note(first, "timeline", table, "select *, null::varchar as email from arrow_responses", changed)


def _note_coupons(target: Target) -> None:
    """Count the coupon responses, for every contact that has the address (or had it when it was requested
    before)."""
    heads = [
        one for one in target.responses if set(one.params) == {"email"} and one.index not in target.unbelieved
    ]  # else again
    if not heads:
        return
    table = _calls_as_arrow(
        heads,
        address=pa.array([normal_form(one.params["email"]) for one in heads], pa.string()),
        coupon_count=pa.array([one.entries[target.table.name] for one in heads], pa.int64()),
    )
    contacts = query("contacts_of_addresses").format(account=target.account)
    joined = f"arrow_responses a join ({contacts}) p on p.email_normalized = a.address"
    responses = f"select a.* exclude (address), p.contact_id, p.email from {joined}"
    addresses = (
        f"select s.email_normalized from {target.temp('change')} join {target.staged} s using (_part) "
        f"union select t.email_normalized from {target.table.qualified} t where rowid in (select rid from "
        f"{target.temp('missing')})"
    )
    changed = f"select contact_id from ({contacts}) where email_normalized in ({addresses})"
    _note(target, "coupon", table, responses, changed)


def drop_orphans(target: Target) -> None:
    """Mark coupons as deleted whose address only contacts have that are gone, once every list was read
    completely. Who comes back is fetched like one who never was. Contacts are looked at, which takes a while,
    when they were read since the last load of coupons."""
    here = f"account = {target.account}"
    read = f"select max(last_request) from sync.coverage where {here} and table_name in"
    if not target.value(f"select ({read} ('contacts', 'lists')) > coalesce(({read} ('coupons')), 0)"):
        return
    target.report.deleted += target.make("orphans", query("orphaned_coupons").format(account=target.account))
    mark_deleted(target, target.table, f"select rid from {target.temp('orphans')}")
    target.run(
        f"update sync.contact_coverage set coupon_asked_at = null where {here} "
        f"and email_normalized in (select address from {target.temp('orphans')})"
    )


def _calls_as_arrow(heads: Sequence[ResponseHead], **columns: pa.Array) -> pa.Table:
    times, ids = ([getattr(one, name) for one in heads] for name in ("requested_at", "request_id"))
    return pa.table(
        {
            "requested_at": pa.array(times, pa.timestamp("us", "UTC")),
            "request_id": pa.array(ids, pa.int64()),
            **columns,
        }
    )


def _note(target: Target, name: str, received: pa.Table, responses: str, changed: str) -> None:
    """Replace the coverage of the contacts that were requested. `changed`: ids of contacts whose rows are
    new, changed or deleted."""
    columns = _RECEIVED[name]
    sql = query("contact_coverage").format(
        account=target.account,
        name=name,
        responses=responses,
        changed=changed,
        newest_columns="".join(f"arg_max_null(a.{column}, a.request_id) as {column}, " for column in columns),
        own_columns=", ".join([f"{name}_{column}" for column in _CALL_COLUMNS] + list(columns)),
        received_columns=", ".join(f"f.{column}" for column in columns),
    )
    target.run(sql, arrow_responses=received)
