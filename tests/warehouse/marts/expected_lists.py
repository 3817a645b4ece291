"""How lists do over 90 days, worked out without SQL."""

import datetime as dt
from collections import Counter
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped, row_of, share
from tests.warehouse.marts.expected_contacts import contact_campaign, is_known_opening
from tests.warehouse.marts.expected_engagement import address
from tests.warehouse.marts.expected_growth import Readings


def list_performance(source: Source) -> Found:
    """Of a warehouse whose models are built for the first time: nobody's status has changed yet."""
    messages = grouped(
        [row for row in contact_campaign(source) if is_known_opening(row)], "account", "contact_id"
    )
    members = grouped(source.rows("contacts", deleted=True), "account", "list_id")
    found = []
    for one in source.rows("lists", deleted=True):
        key = (one["account"], one["list_id"])
        readings, today = Readings(source, key[0]), source.today(key[0])
        mine = members.get(key, [])
        first_at = readings.first(key[1], mine) if mine else None
        is_deleted = one["_deleted_at"] is not None
        row = row_of("account list_id list_name is_deleted", *key, one["name"], is_deleted)
        row["first_read_on"] = readings.day(first_at) if first_at else None
        row |= _people(mine)
        if key[1] not in readings.new_lists:  # the generated nights are fewer than 90
            row |= {name: None for name in row if "90d" in name}
        since = today - dt.timedelta(days=89)
        told = [
            message
            for member in mine
            for message in messages.get((key[0], member["contact_id"]), [])
            if message["sent_at"]
            and since <= (source.local_date(key[0], message["sent_at"]) or since) <= today
            if _is_there(member, message["sent_at"], first_at)
        ]
        opened, clicked = (sum(one[name] for one in told) for name in ("is_opened", "is_clicked"))
        row |= row_of("sent_90d_count opened_90d_count clicked_90d_count", len(told), opened, clicked)
        row["open_of_sent_90d_rate"] = share(opened, len(told))
        row["click_of_sent_90d_rate"] = share(clicked, len(told))
        found.append(row)
    return found


def _is_there(member: dict[str, Any], moment: dt.datetime, first_at: dt.datetime | None) -> bool:
    """Whether the contact was on the list then, as far as readings show."""
    came_late = first_at is not None and member["_first_seen_at"] > first_at
    has_come = not came_late or moment >= member["_first_seen_at"] - dt.timedelta(days=1)
    return has_come and (member["_deleted_at"] is None or moment < member["_deleted_at"])


def _people(members: Found) -> dict[str, Any]:
    """Of a list that came in the generated nights, which are fewer than 90: nobody was on it before them,
    and whoever was ever active was so within them."""
    now: dict[str | int, set[str]] = {}
    ever = set[str | int]()
    for member in members:
        person = address(member["email"]) or member["contact_id"]
        if member["_deleted_at"] is None:
            now.setdefault(person, set()).add(member["status"])
        if member["status"] == "active":
            ever.add(person)
    active = {person for person, statuses in now.items() if "active" in statuses}
    fates = Counter[str]()
    for person in ever - active:
        words = [status for status in ("bounced", "unsubscribed") if status in now.get(person, ())]
        fates["left" if person not in now else words[0] if words else "other"] += 1
    lost = len(ever - active)
    columns = "address_count active_count active_90d_count lost_90d_count active_change_90d"
    row = row_of(columns, len(now), len(active), len(ever), lost, len(active))
    row |= {f"{fate}_90d_count": fates[fate] for fate in ("left", "unsubscribed", "bounced", "other")}
    return row | {"churn_90d_rate": share(lost, len(ever))}
