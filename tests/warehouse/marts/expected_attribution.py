"""What visits and redeemed coupons go back to, worked out without SQL."""

from __future__ import annotations

import datetime as dt
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped
from tests.warehouse.marts.expected_contacts import contact_campaign
from tests.warehouse.marts.expected_engagement import address

WINDOW = dt.timedelta(hours=120)
_UTM = ("utm_source", "utm_medium", "utm_campaign")


def attribution(source: Source, *, is_first: bool) -> Found:
    """attribution_first_touch, or attribution_last_touch."""
    touches = _touches(source)
    found = []
    for visit in source.rows("timeline_visits"):
        clicks = [touch for touch in touches.get((visit["account"], visit["contact_id"]), []) if touch["touch"] == "click"]
        outcome = {name: visit[name] for name in ("account", "contact_id", "link")}
        outcome |= {"outcome": "visit", "outcome_key": f"{visit['contact_id']}/{visit['visit_key']}", "email": None}
        outcome |= {"outcome_at": visit["visited_at"], **{f"visit_{name}": visit[name] for name in _UTM}}
        found.append(outcome | _touch(clicks, visit["visited_at"] - WINDOW, visit["visited_at"], is_first=is_first))
    people: dict[tuple[str, str], set[int]] = {}
    for row in source.rows("contacts"):
        people.setdefault((row["account"], address(row["email"])), set()).add(row["contact_id"])
    for coupon in source.rows("coupons"):
        if coupon["is_redeemed"] and coupon["redeemed_on"]:
            account, email = coupon["account"], address(coupon["email"])
            mine = [touch for contact_id in people.get((account, email), ()) for touch in touches.get((account, contact_id), [])]
            begin, end = _day(source, account, coupon["redeemed_on"])
            outcome = {"account": account, "outcome": "redemption", "outcome_key": str(coupon["coupon_id"]), "email": email}
            outcome |= dict.fromkeys(("contact_id", "link", *(f"visit_{name}" for name in _UTM)))
            found.append(outcome | {"outcome_at": end} | _touch(mine, begin - WINDOW, end, is_first=is_first))
    return found


def _day(source: Source, account: str, day: dt.date) -> tuple[dt.datetime, dt.datetime]:
    """The first and the last moment of a local day."""
    zone = source.zones[account]
    begin, end = (dt.datetime.combine(date, dt.time(), zone).astimezone(dt.UTC) for date in (day, day + dt.timedelta(days=1)))
    return begin, end - dt.timedelta(microseconds=1)


def _touches(source: Source) -> dict[tuple[Any, ...], Found]:
    """Clicks on messages and visits, by account and contact."""
    touches = []
    for message in contact_campaign(source):
        if message["clicked_at"]:
            touch = {"touch": "click", "key": message["message_key"], "at": message["clicked_at"], "campaign_id": message["campaign_id"]}
            touches.append({"account": message["account"], "contact_id": message["contact_id"], **touch, **dict.fromkeys(_UTM)})
    for visit in source.rows("timeline_visits"):
        touch = {"touch": "visit", "key": visit["visit_key"], "at": visit["visited_at"], "campaign_id": None}
        utm = {name: visit[name] for name in _UTM}
        touches.append({"account": visit["account"], "contact_id": visit["contact_id"], **touch, **utm})
    return grouped(touches, "account", "contact_id")


def _touch(touches: Found, begin: dt.datetime, end: dt.datetime, *, is_first: bool) -> dict[str, Any]:
    """Of a click and a visit at the same moment the click counts: it is what led there."""
    clicks_at = -1 if is_first else 1
    inside = sorted(
        (touch for touch in touches if begin <= touch["at"] <= end),
        key=lambda touch: (touch["at"], clicks_at * (touch["touch"] == "click"), touch["key"]),
    )
    if not inside:
        return {"touch_count": 0, "touch": "none", **dict.fromkeys(("touched_at", "campaign_id", *_UTM, "hours_since_touch"))}
    touch = inside[0 if is_first else -1]
    hours = int(end.timestamp()) - int(touch["at"].timestamp())
    found = {"touch_count": len(inside), "touched_at": touch["at"], "hours_since_touch": hours / 3600}
    return found | {name: touch[name] for name in ("touch", "campaign_id", *_UTM)}
