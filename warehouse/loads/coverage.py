"""Writes the facts about the reading: `sync.coverage`, `sync.readings`, `sync.rejected_records`,
and per contact `sync.contact_coverage`. They follow from the load and its responses, so that a
rebuild writes the same."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from marketing_api.address import normal_form
from warehouse.arrow_types import arrow_fields
from warehouse.loads.listing import mark_deleted
from warehouse.loads.scopes import ALL, days_of, label_of, label_of_days
from warehouse.loads.staging import ResponseHead
from warehouse.loads.target import ScopeResult, Target
from warehouse.sql import load_query, quote_name, quote_text
from warehouse.tables import CONTACT_COVERAGE, REJECTED_RECORDS, Table, Window

_TEXT = pa.string()
_NUMBER = pa.int64()
_FLAG = pa.bool_()
_RESULTS = pa.schema(
    [
        *((name, _TEXT) for name in ("table_name", "scope", "reason")),
        *((name, _NUMBER) for name in ("rows", "new", "service_count")),
        *((name, _FLAG) for name in ("is_complete", "is_refused", "is_listed")),
    ]
)
_SCOPES = pa.schema([("table_name", _TEXT), ("scope", _TEXT), ("is_range", _FLAG)])
_REJECTED = pa.schema(
    [
        *arrow_fields(REJECTED_RECORDS.columns[1:]),
        pa.field("is_range", _FLAG),
    ]
)


def write_coverage(
    results: Sequence[tuple[Target, ScopeResult]], service_count: int | None
) -> None:
    """Replace the coverage of the loaded scopes. An unknown row count grows by the number of new
    rows. The service's count is that of the load's only scope."""
    if not results:
        return
    scopes = Counter(target.table.name for target, _ in results)
    entries = []
    ranges = []
    for target, result in results:
        name = target.table.name
        entries.append(
            {
                **asdict(result),
                "table_name": name,
                "new": target.report.new,
                "service_count": service_count if scopes[name] == 1 else None,
                "is_listed": _is_listed_by_scope(target.table),
            }
        )
        if isinstance(target.table.load, Window) and result.scope != ALL:
            ranges.append({"table_name": name, "scope": result.scope, "is_range": True})
    target = results[0][0]
    target.run_sql(load_query("coverage"), arrow_coverage=pa.Table.from_pylist(entries, _RESULTS))
    if ranges:
        target.run_sql(load_query("cut_ranges"), arrow_ranges=pa.Table.from_pylist(ranges, _SCOPES))


def _is_listed_by_scope(table: Table) -> bool:
    """Whether its rows are listed scope by scope, like contacts list by list. Parts of a single
    entry are no listing."""
    return bool(table.load.scope) and not table.load.is_whole


def forget_scopes(target: Target, table: Table) -> None:
    """Drop the coverage of scopes of `table` that were deleted with rows of the target."""
    if not _is_listed_by_scope(table):
        return
    label = " || ', ' || ".join(
        f"{quote_text(name + '=')} || {quote_name(name)}" for name in table.load.scope
    )
    target.run_sql(
        f"delete from sync.coverage where account = getvariable('account') and "
        f"table_name = {quote_text(table.name)} and scope in "
        f"(select {label} from {target.temporary_name('missing')})"
    )


def write_rejected(targets: Sequence[Target], scope: Mapping[str, Any]) -> None:
    """Write unreadable entries, and replace those from earlier reads of the same scope."""
    if not targets:
        return
    sql = (
        "select distinct table_name from sync.rejected_records where account = "
        "getvariable('account')"
    )
    known = targets[0].run_sql(sql)
    scopes = list[dict[str, Any]]()
    rejected = list[dict[str, Any]]()
    for target in targets:
        if not target.rejects and (target.table.name,) not in known:
            continue
        heads = {
            head.index: {
                "table_name": target.table.name,
                "scope": (label := _scope_label(target.table, head, scope)),
                "is_range": isinstance(target.table.load, Window) and label != ALL,
                "request_id": head.request_id,
                "requested_at": head.requested_at,
            }
            for head in target.responses
        }
        scopes += heads.values()
        rejected += [
            heads[reject.response] | {"reason": reject.reason, "raw": reject.raw}
            for reject in target.rejects
        ]
    if scopes:
        targets[0].run_sql(
            load_query("rejected"),
            arrow_scopes=pa.Table.from_pylist(scopes, _SCOPES),
            arrow_rejected=pa.Table.from_pylist(rejected, _REJECTED),
        )


def _scope_label(table: Table, head: ResponseHead, scope: Mapping[str, Any]) -> str:
    """The scope of one response: its entry, its range, or its listing."""
    load = table.load
    if isinstance(load, Window):
        return label_of_days(days_of(scope))
    if load.scope and all(name in head.params for name in load.scope.values()):
        return label_of(load.scope, [head.params[name] for name in load.scope.values()])
    if "id" in head.params and table.key:
        return label_of(table.key[:1], [head.params["id"]])
    return ALL


# ---- single contacts: when the timeline and the coupons of each were requested, and whether the
# response had something new


def note_contacts(targets: Sequence[Target]) -> None:
    """Record the responses that are about one contact or address, as their tables declare it. Only
    a response that is newer than the last one counts, so that loading twice counts once."""
    timelines = [target for target in targets if target.table.load.contact_parameter]
    if timelines:
        _note_timelines(timelines)
    for target in targets:
        if target.table.load.per_address:
            _note_coupons(target)


def _note_timelines(targets: Sequence[Target]) -> None:
    """Count the timeline responses, and note their extent."""
    first = targets[0]
    heads = [head for head in first.responses if head.contact is not None]
    if not heads:
        return
    contacts = [head.contact for head in heads if head.contact is not None]
    served, total = zip(*(head.extent or (None, None) for head in heads), strict=True)
    received = _calls_as_arrow(
        heads,
        contact_id=contacts,
        timeline_served=served,
        timeline_total=total,
    )
    changed = " union ".join(
        f"select contact_id from {target.temporary_name('change')} join {target.source} using "
        "(_part)"
        for target in targets
        if target.report.received
    )
    _note_contacts(
        first,
        "timeline",
        received,
        "select *, null::varchar as email from arrow_responses",
        changed or "select null::bigint as contact_id where false",
    )


def _note_coupons(target: Target) -> None:
    """Count the coupon responses, for every contact that has the address (or had it at an earlier
    request). A response that was not believed is requested again."""
    (parameter,) = target.table.load.scope.values()
    heads = [
        head
        for head in target.responses
        if set(head.params) == {parameter} and head.index not in target.unbelieved
    ]
    if not heads:
        return
    received = _calls_as_arrow(
        heads,
        address=[normal_form(head.params[parameter]) for head in heads],
        coupon_count=[head.entries[target.table.name] for head in heads],
    )
    contacts = load_query("contacts_of_addresses")
    addresses = (
        f"select s.email_normalized from {target.temporary_name('change')} "
        f"join {target.source} s using (_part) "
        f"union select t.email_normalized from {target.table.qualified} t "
        f"where rowid in (select rid from {target.temporary_name('missing')})"
    )
    _note_contacts(
        target,
        "coupon",
        received,
        "select a.* exclude (address), p.contact_id, p.email from arrow_responses a join "
        f"({contacts}) p on p.email_normalized = a.address",
        f"select contact_id from ({contacts}) where email_normalized in ({addresses})",
    )


def drop_orphans(target: Target) -> None:
    """Mark coupons as deleted if only deleted contacts have their address, once every list was read
    completely. A contact that comes back is fetched like a new one. This takes a while, so it only
    runs if contacts were read since the last load of coupons."""
    read = (
        "select max(last_request) from sync.coverage where account = getvariable('account') and "
        "table_name"
    )
    if not target.fetch_value(
        f"select ({read} in ('contacts', 'lists')) > coalesce(({read} = 'coupons'), 0)"
    ):
        return
    target.make_temporary("orphans", load_query("orphaned_coupons"))
    target.report.deleted += mark_deleted(
        target, target.table, f"select rid from {target.temporary_name('orphans')}"
    )
    target.run_sql(
        "update sync.contact_coverage set coupon_asked_at = null where account = "
        "getvariable('account') and email_normalized in (select address from "
        f"{target.temporary_name('orphans')})"
    )


def _calls_as_arrow(heads: Sequence[ResponseHead], **columns: Sequence[Any]) -> pa.Table:
    """The responses with their facts, which are numbers except for addresses."""
    return pa.table(
        {
            "requested_at": pa.array(
                [head.requested_at for head in heads], pa.timestamp("us", "UTC")
            ),
            "request_id": pa.array([head.request_id for head in heads], _NUMBER),
            **{
                name: pa.array(values, _TEXT if name == "address" else _NUMBER)
                for name, values in columns.items()
            },
        }
    )


def _note_contacts(
    target: Target, name: str, received: pa.Table, responses: str, changed: str
) -> None:
    """Replace the coverage of the requested contacts. `changed`: ids of contacts whose rows are
    new, changed or deleted."""
    columns = [column for column in received.column_names if column.startswith(f"{name}_")]
    own = [column.name for column in CONTACT_COVERAGE.columns if column.name.startswith(f"{name}_")]
    sql = load_query("contact_coverage").format(
        name=name,
        responses=responses,
        changed=changed,
        newest_columns="".join(
            f"arg_max_null(a.{column}, a.request_id) as {column}, " for column in columns
        ),
        own_columns=", ".join(own),
        received_columns=", ".join(f"f.{column}" for column in columns),
    )
    target.run_sql(sql, arrow_responses=received)
