"""Writes down, per contact, when its timeline and its coupons were requested and whether that brought something new.

This is what a plan of what to fetch next is made from. Only a response newer than the last one counts, so that loading twice
counts once. Not here: the plan itself, coverage of whole tables (`coverage`).
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from warehouse.loads.listing import mark_deleted
from warehouse.loads.staging import ResponseHead, Staged
from warehouse.loads.target import Target
from warehouse.sql import literal, query, rows

_COLUMNS = ("first_asked_at", "asked_at", "request", "changed_at", "times_asked", "times_changed")


#: Of each kind of call, by the prefix of its columns: those that come from responses.
_RECEIVED = {"timeline": ("timeline_served", "timeline_total", "timeline_digest"), "coupon": ("coupon_count",)}


def note_contacts(connection: duckdb.DuckDBPyConnection, account: str, staged: Staged, targets: Sequence[Target]) -> None:
    """Note the responses that are about one contact or address each, as their tables declare it."""
    if timelines := [target for target in targets if target.table.load.contact_parameter]:
        _note_timelines(connection, account, timelines, staged)
    for target in targets:
        if target.table.load.per_address:
            _note_coupons(connection, account, target)


def _note_timelines(connection: duckdb.DuckDBPyConnection, account: str, targets: Sequence[Target], staged: Staged) -> None:
    """Count the timeline responses, and note what they hold."""
    contacts = {one.index: one.contact for one in staged.responses if one.contact is not None}
    if not contacts:
        return
    table = _as_arrow(
        [staged.responses[index] for index in contacts],
        contact_id=pa.array(list(contacts.values()), pa.int64()),
        timeline_served=pa.array([staged.extents[index][0] for index in contacts], pa.int64()),
        timeline_total=pa.array([staged.extents[index][1] for index in contacts], pa.int64()),
        timeline_digest=pa.array([staged.digests[contact] for contact in contacts.values()], pa.string()),
    )
    # a response that is loaded late, behind newer ones, counts for nothing here, but its rows are the last that were loaded
    connection.register("arrow_responses", table)
    rows(
        connection,
        f"""
        update sync.contact_coverage as c set timeline_digest = null from arrow_responses a
        where c.account = {literal(account)} and c.contact_id = a.contact_id and c.timeline_request >= a.request_id
            and c.timeline_digest is distinct from a.timeline_digest
        """,
    )
    connection.unregister("arrow_responses")
    received = [target for target in targets if target.report.received]
    changes = [f"select contact_id from {target.temp('change')} join {target.staged} using (_part)" for target in received]
    changed = " union ".join(["select null::bigint as contact_id where false", *changes])
    _note(connection, account, "timeline", table, "select *, null::varchar as email from arrow_responses", changed)


def _note_coupons(connection: duckdb.DuckDBPyConnection, account: str, target: Target) -> None:
    """Count the coupon responses, for every contact that has the address (or had it when it was requested before)."""
    heads = [one for one in target.responses if set(one.params) == {"email"} and one.index not in target.unbelieved]  # else again
    if not heads:
        return
    table = _as_arrow(
        heads,
        address=pa.array([one.params["email"].strip().lower() for one in heads], pa.string()),
        coupon_count=pa.array([one.entries[target.table.name] for one in heads], pa.int64()),
    )
    here, requested = f"account = {literal(account)}", "lower(trim(email)) in (select address from arrow_responses)"
    contacts = (
        f"select contact_id, min(email) as email from source.contacts where {here} and _deleted_at is null and {requested} "
        f"group by contact_id union select contact_id, email from sync.contact_coverage where {here} and {requested}"
    )
    joined = f"arrow_responses a join ({contacts}) p on lower(trim(p.email)) = a.address"
    responses = f"select a.* exclude (address), p.contact_id, p.email from {joined}"
    addresses = (
        f"select lower(trim(s.email)) from {target.temp('change')} join {target.staged} s using (_part) "
        f"union select lower(trim(t.email)) from {target.table.qualified} t where rowid in (select rid from {target.temp('missing')})"
    )
    changed = f"select contact_id from ({contacts}) where lower(trim(email)) in ({addresses})"
    _note(connection, account, "coupon", table, responses, changed)


def drop_orphans(target: Target) -> None:
    """Mark coupons as deleted whose address only contacts have that are gone, once every list was read completely.

    Who comes back is fetched like one who never was, which brings the coupons back. Comparing a million contacts takes a while: they
    are looked at when they were read since the last load of coupons.
    """
    here = f"account = {target.account}"
    read = f"select max(last_request) from sync.coverage where {here} and table_name in"
    if not target.value(f"select ({read} ('contacts', 'lists')) > coalesce(({read} ('coupons')), 0)"):
        return
    target.report.deleted += target.make("orphans", query("orphaned_coupons").format(account=target.account))
    mark_deleted(target, target.table, f"select rid from {target.temp('orphans')}")
    target.run(
        f"update sync.contact_coverage set coupon_asked_at = null where {here} "
        f"and lower(trim(email)) in (select address from {target.temp('orphans')})"
    )


def _as_arrow(heads: Sequence[ResponseHead], **columns: pa.Array) -> pa.Table:
    times, ids = ([getattr(one, name) for one in heads] for name in ("requested_at", "request_id"))
    return pa.table({"requested_at": pa.array(times, pa.timestamp("us", "UTC")), "request_id": pa.array(ids, pa.int64()), **columns})


def _note(connection: duckdb.DuckDBPyConnection, account: str, name: str, received: pa.Table, responses: str, changed: str) -> None:
    """Replace the coverage of the contacts that were requested. `changed`: ids of contacts whose rows are new, changed or deleted."""
    here, columns = literal(account), _RECEIVED[name]
    sql = query("contact_coverage").format(
        account=here,
        name=name,
        responses=responses,
        changed=changed,
        newest_columns="".join(f"arg_max_null(a.{column}, a.request_id) as {column}, " for column in columns),
        own_columns=", ".join([f"{name}_{column}" for column in _COLUMNS] + list(columns)),
        received_columns=", ".join(f"f.{column}" for column in columns),
    )
    connection.register("arrow_responses", received)
    rows(connection, sql)
    connection.unregister("arrow_responses")
    rows(connection, f"delete from sync.contact_coverage where account = {here} and contact_id in (select contact_id from noted)")
    rows(connection, "insert into sync.contact_coverage by name from noted order by contact_id")
    rows(connection, "drop table noted")
