"""How lists do over 90 days, worked out without SQL."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped, share
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
        readings, today = Readings(source, key[0]), source.local_date(key[0], source.as_of(key[0]))
        assert today
        mine = members.get(key, [])
        first_at = readings.first(key[1], mine) if mine else None
        row: dict[str, Any] = {
            "account": key[0],
            "list_id": key[1],
            "list_name": one["name"],
            "is_deleted": one["_deleted_at"] is not None,
        }
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
        counts = {
            "sent": len(told),
            "opened": sum(one["is_opened"] for one in told),
            "clicked": sum(one["is_clicked"] for one in told),
        }
        row |= {f"{name}_90d_count": count for name, count in counts.items()}
        row |= {
            f"{name}_of_sent_90d_rate": share(counts[part], counts["sent"])
            for name, part in (("open", "opened"), ("click", "clicked"))
        }
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
    fates = Counter(
        "left"
        if person not in now
        else next((status for status in ("bounced", "unsubscribed") if status in now[person]), "other")
        for person in ever - active
    )
    lost = len(ever - active)
    return {
        **{
            "address_count": len(now),
            "active_count": len(active),
            "active_90d_count": len(ever),
            "lost_90d_count": lost,
        },
        **{f"{fate}_90d_count": fates[fate] for fate in ("left", "unsubscribed", "bounced", "other")},
        "active_change_90d": len(active),
        "churn_90d_rate": share(lost, len(ever)),
    }
