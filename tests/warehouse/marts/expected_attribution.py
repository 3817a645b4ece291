"""What visits, redeemed coupons and reached goals go back to, worked out without SQL."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped, once, pick, row_of, unknown
from tests.warehouse.marts.expected_contacts import contact_campaign
from tests.warehouse.marts.expected_engagement import address
from tests.warehouse.marts.expected_goals import is_told, reached, value_of

WINDOW = dt.timedelta(hours=120)
_UTM = "utm_source utm_medium utm_campaign"


def _day(source: Source, account: str, day: dt.date) -> tuple[dt.datetime, dt.datetime]:
    """The first and the last moment of a local day."""
    begin, end = (
        dt.datetime.combine(date, dt.time(), source.zones[account]).astimezone(dt.UTC)
        for date in (day, day + dt.timedelta(days=1))
    )
    return begin, end - dt.timedelta(microseconds=1)


def _touches(source: Source) -> dict[tuple[Any, ...], Found]:
    """Clicks on messages and visits, by account and contact."""
    touches = []
    for message in contact_campaign(source):
        if message["clicked_at"]:
            touch = {"touch": "click", "key": message["message_key"], "at": message["clicked_at"]}
            touches.append(pick(message, "account contact_id campaign_id channel") | touch | unknown(_UTM))
    for visit in source.rows("timeline_visits"):
        if _tag(visit):
            touch = {"touch": "visit", "key": visit["visit_key"], "at": visit["visited_at"]}
            touch |= unknown("campaign_id channel")
            touches.append(pick(visit, f"account contact_id {_UTM}") | touch)
    return grouped(touches, "account", "contact_id")


def _untimed(source: Source) -> dict[tuple[Any, ...], Found]:
    """Messages clicked nobody knows when, by account and contact."""
    clicked = [one for one in contact_campaign(source) if one["click_count"] and not one["clicked_at"]]
    return grouped(clicked, "account", "contact_id")


def _missing(
    untimed: dict[tuple[Any, ...], Found], account: str, contacts: Iterable[int], by: dt.datetime
) -> int:
    mine = [one for number in contacts for one in untimed.get((account, number), [])]
    return sum(one["sent_at"] is None or one["sent_at"] <= by for one in mine)


def _tag(visit: dict[str, Any]) -> str | None:
    """The source that a visit names, else its medium."""
    tags = ((visit[name] or "").strip().lower() for name in ("utm_source", "utm_medium"))
    return next(filter(None, tags), None)


@once
def attribution(source: Source) -> Found:
    touches, untimed = _touches(source), _untimed(source)
    contacts: dict[tuple[str, str], set[int]] = {}
    for row in source.rows("contacts", deleted=True):
        contacts.setdefault((row["account"], address(row["email"])), set()).add(row["contact_id"])

    def of_all(account: str, numbers: Iterable[int]) -> Found:
        return [touch for number in numbers for touch in touches.get((account, number), [])]

    found = []
    for visit in source.rows("timeline_visits"):
        account, mine = visit["account"], [visit["contact_id"]]
        missing = _missing(untimed, account, mine, visit["visited_at"])
        rows = _of_visit(visit, of_all(account, mine))
        found += [row | {"untimed_click_count": missing} for row in rows]
    for coupon in source.rows("coupons", deleted=True):
        if coupon["is_redeemed"] and coupon["redeemed_on"]:
            ids = contacts.get((coupon["account"], address(coupon["email"])), set())
            rows = _of_coupon(source, coupon, of_all(coupon["account"], ids))
            missing = _missing(untimed, coupon["account"], ids, rows[0]["outcome_at"])
            found += [row | {"untimed_click_count": missing} for row in rows]
    strangers: Counter[tuple[str, int]] = Counter()
    for one in sorted(reached(source), key=lambda one: str(one["person"])):
        account, goal, person = one["account"], one["goal"], one["person"]
        mine = contacts.get((account, person), set()) if isinstance(person, str) else set()
        visit = one["visit"] or unknown(f"visited_at link {_UTM}")
        if one["visit"]:
            contact_id = visit["contact_id"]
        else:
            contact_id = min(mine, default=None)
            strangers[account, goal["goal_id"]] += 1
        name = contact_id if contact_id is not None else f"clicker {strangers[account, goal['goal_id']]}"
        outcome = {"account": account, "outcome": "goal", "outcome_key": f"{goal['goal_id']}/{name}"}
        outcome |= {"contact_id": contact_id, "email": person if isinstance(person, str) else None}
        outcome |= {"goal_id": goal["goal_id"], "value": value_of(goal)}
        outcome |= _visited(visit)
        if one["visit"]:
            at, mine = visit["visited_at"], mine | {contact_id}
            outcome["untimed_click_count"] = _missing(untimed, account, mine, at)
            found += _credited(outcome, _inside(of_all(account, mine), at - WINDOW, at))
        else:
            campaign = min(one["campaigns"]) if len(one["campaigns"]) == 1 else None
            click = {"touch": "click", "key": "clickers", "campaign_id": campaign}
            click |= unknown(f"at channel contact_id {_UTM}")
            found += _credited(outcome | {"untimed_click_count": None}, [click])
    return found


def _visited(visit: dict[str, Any]) -> dict[str, Any]:
    utm = {f"visit_{name}": visit[name] for name in _UTM.split()}
    return {"outcome_at": visit["visited_at"], "link": visit["link"], **utm}


def _of_visit(visit: dict[str, Any], touches: Found) -> Found:
    outcome = pick(visit, "account contact_id") | {"outcome": "visit"} | unknown("email goal_id value")
    outcome |= {"outcome_key": f"{visit['contact_id']}/{visit['visit_key']}", **_visited(visit)}
    clicks = [touch for touch in touches if touch["touch"] == "click"]
    return _credited(outcome, _inside(clicks, visit["visited_at"] - WINDOW, visit["visited_at"]))


def _of_coupon(source: Source, coupon: dict[str, Any], touches: Found) -> Found:
    account, email = coupon["account"], address(coupon["email"])
    begin, end = _day(source, account, coupon["redeemed_on"])
    columns = "account outcome outcome_key email outcome_at"
    outcome = row_of(columns, account, "redemption", str(coupon["coupon_id"]), email, end)
    outcome |= unknown("contact_id goal_id link value") | {f"visit_{name}": None for name in _UTM.split()}
    return _credited(outcome, _inside(touches, begin - WINDOW, end))


def _inside(touches: Found, begin: dt.datetime, end: dt.datetime) -> Found:
    return sorted(
        (one for one in touches if begin <= one["at"] <= end),
        key=lambda one: (one["at"], one["touch"] != "click", one["key"]),
    )


def _credited(outcome: dict[str, Any], touches: Found) -> Found:
    """The outcome with each of its touches, in their order."""
    if not touches:
        row = outcome | unknown(f"touch_key channel touched_at campaign_id {_UTM} hours_since_touch")
        row |= {"first_credit": 1, "last_credit": 1, "linear_credit": 1, "is_landing": False}
        return [row | {"touch_number": 1, "touch_count": 0, "touch": "none", "source": "(none)"}]
    clicks = {(one["contact_id"], one["at"]) for one in touches if one["touch"] == "click"}
    landings = [one["touch"] == "visit" and (one["contact_id"], one["at"]) in clicks for one in touches]
    last = max(
        range(len(touches)),
        key=lambda place: (touches[place]["at"], touches[place]["touch"] == "click", touches[place]["key"]),
    )
    found = []
    for place, (one, is_landing) in enumerate(zip(touches, landings, strict=True)):
        seconds = int(outcome["outcome_at"].timestamp()) - int(one["at"].timestamp()) if one["at"] else None
        row = outcome | pick(one, f"touch campaign_id channel {_UTM}")
        row |= {"touch_number": place + 1, "touch_count": len(touches), "touch_key": one["key"]}
        row |= {"touched_at": one["at"], "source": _tag(one) or "(click)", "is_landing": is_landing}
        row["hours_since_touch"] = None if seconds is None else seconds / 3600
        row |= {"first_credit": float(place == 0), "last_credit": float(place == last)}
        row["linear_credit"] = 0 if is_landing else 1 / (len(touches) - sum(landings))
        found.append(row)
    return found


def goal_conversions(source: Source) -> Found:
    campaigns = source.by("campaigns", "account", "campaign_id")
    goals = [row for row in attribution(source) if row["outcome"] == "goal" and not row["is_landing"]]
    touches = grouped(goals, "account", "goal_id")
    found = []
    for goal in source.rows("goals"):
        account, value = goal["account"], value_of(goal)
        credited = grouped(touches.get((account, goal["goal_id"]), []), "campaign_id", "source")
        for (campaign_id, name), some in (credited or {(None, "(none)"): []}).items():
            row = {"account": account, "goal_id": goal["goal_id"], "goal_name": goal["name"]}
            row |= {"campaign_id": campaign_id, "source": name, "credited_to": str(campaign_id or "(none)")}
            row["subject"] = campaigns.get((account, campaign_id), {}).get("subject")
            row |= {"can_be_told": is_told(goal), "goal_value": value}
            for credit in ("first", "last", "linear"):
                count = sum(one[f"{credit}_credit"] for one in some) if is_told(goal) else None
                row[f"{credit}_touch_count"] = count
                row[f"{credit}_touch_value"] = None if None in (count, value) else count * (value or 0)
            found.append(row)
    return found
