"""Weeks, months and quarters, and what cohorts do month by month, worked out without SQL."""

from __future__ import annotations

import datetime as dt
from typing import Any

from tests.warehouse.marts.expected import Found, Source, added, mean, share
from tests.warehouse.marts.expected_contacts import contact_campaign
from tests.warehouse.marts.expected_engagement import address
from tests.warehouse.marts.expected_growth import account_daily

_DAY = dt.timedelta(days=1)
_MAILS = ("delivered_count", "opened_count", "clicker_count", "unsubscribed_count")
_COMPARED = (
    "sent_count",
    "open_rate",
    "click_rate",
    "unsubscribe_rate",
    "joined_count",
    "online_review_count",
    "average_rating",
    "rating_count",
    "redeemed_count",
)


def begin(period: str, day: dt.date) -> dt.date:
    """The first day of the week, month or quarter that the day is in."""
    if period == "week":
        return day - day.weekday() * _DAY
    return day.replace(month=day.month if period == "month" else (day.month - 1) // 3 * 3 + 1, day=1)


def period_summary(source: Source, performed: Found) -> Found:
    found = []
    for account in source.zones:
        things = _things(source, account, performed)
        today = source.local_date(account, source.as_of(account))
        assert today
        for period in ("week", "month", "quarter"):
            rows, day = (
                dict[dt.date, dict[str, Any]](),
                begin(
                    period,
                    min(
                        day
                        for some in things.values()
                        for day, _ in some
                        if source.is_plausible(account, day)
                    ),
                ),
            )
            while day <= today:
                after = begin(
                    period, day + (7 if period == "week" else 31 if period == "month" else 95) * _DAY
                )
                inside = {
                    name: [thing for on, thing in some if day <= on < after and on <= today]
                    for name, some in things.items()
                }
                rows[day] = {
                    "begins_on": day,
                    "ends_on": after - _DAY,
                    "is_over": after <= today,
                    **_summed(day, inside, things),
                }
                day = after
            for day, row in rows.items():
                year_before = day - 364 * _DAY if period == "week" else day.replace(year=day.year - 1)
                for suffix, other in (("before", begin(period, day - _DAY)), ("year_before", year_before)):
                    row |= {f"{name}_{suffix}": rows.get(other, {}).get(name) for name in _COMPARED}
                found.append({"account": account, "period": period, **row})
    return found


Things = dict[str, list[tuple[dt.date, Any]]]


def _things(source: Source, account: str, performed: Found) -> Things:
    """What happened on which day: campaigns, reviews, redeemed coupons, and what account_daily knows."""
    sent = [
        row
        for row in performed
        if row["account"] == account
        and row["type"] == "standard"
        and (row["status"] == "sent" if row["sent_count"] is None else row["sent_count"] > 0)
    ]
    mine = {
        name: [row for row in source.rows(name, deleted=True) if row["account"] == account]
        for name in ("online_reviews", "coupons")
    }
    dated = {
        "campaigns": [(source.local_date(account, row["sent_at"] or row["created_at"]), row) for row in sent],
        "ratings": [
            (source.local_date(account, row["reviewed_at"]), row["rating"]) for row in mine["online_reviews"]
        ],
        "coupons": [(row["redeemed_on"], row) for row in mine["coupons"] if row["is_redeemed"]],
        "days": [(row["day_on"], row) for row in account_daily(source) if row["account"] == account],
    }
    return {name: [(day, thing) for day, thing in some if day] for name, some in dated.items()}


def _summed(begins_on: dt.date, inside: Things | dict[str, list[Any]], everything: Things) -> dict[str, Any]:
    campaigns: Any = inside["campaigns"]
    told = [
        row for row in campaigns if row["opened_count"] is not None and row["delivered_count"] is not None
    ]
    row: dict[str, Any] = {
        "campaign_count": len(campaigns),
        "sent_count": added(*(one["sent_count"] for one in campaigns)),
    }
    for name in _MAILS:
        known = [one[name] for one in told if one[name] is not None]
        is_unread = name == "clicker_count" and len(known) < len(told)
        row[name] = sum(known) if (known and not is_unread) or not campaigns else None
    if not everything["campaigns"]:
        row |= dict.fromkeys(("campaign_count", "sent_count", *_MAILS))
    rates = (
        ("open_rate", "opened_count"),
        ("click_rate", "clicker_count"),
        ("unsubscribe_rate", "unsubscribed_count"),
    )
    row |= {name: share(row[part], row["delivered_count"]) for name, part in rates}
    for name in ("joined_count", "online_review_count"):
        known = [on for on, one in everything["days"] if one[name] is not None]
        counts = [one[name] for one in inside["days"] if one[name] is not None]
        row[name] = sum(counts) if counts and min(known) <= begins_on else None
    return row | {
        "average_rating": mean(list(inside["ratings"])),
        "rating_count": sum(rating is not None for rating in inside["ratings"]) or None,
        "redeemed_count": len(inside["coupons"]) if everything["coupons"] else None,
    }


def cohort_retention(source: Source) -> Found:
    asked = {
        (row["account"], row["contact_id"])
        for row in source.rows("sync.contact_coverage")
        if row["timeline_asked_at"]
    }
    ids: dict[tuple[str, int], set[str]] = {}
    people: dict[tuple[str, str], Found] = {}
    for row in source.rows("contacts", deleted=True):
        if address(row["email"]):
            ids.setdefault((row["account"], row["contact_id"]), set()).add(address(row["email"]))
            people.setdefault((row["account"], address(row["email"])), []).append(row)
    reactions = _reactions(source, ids)
    cohorts: dict[tuple[str, dt.date], list[tuple[str, bool]]] = {}
    for (account, email), rows in people.items():
        if known := source.plausible(account, (row["registered_at"] for row in rows)):
            month = begin("month", source.local_date(account, min(known)) or dt.date.max)
            is_read = any((account, row["contact_id"]) in asked for row in rows)
            cohorts.setdefault((account, month), []).append((email, is_read))
    found = []
    for (account, registered), some in cohorts.items():
        today, month, number = source.local_date(account, source.as_of(account)) or dt.date.min, registered, 0
        read = [email for email, is_read in some if is_read]
        while month <= today:
            after = begin("month", month + 31 * _DAY)
            kinds = [reactions.get((account, email, month), set[str]()) for email in read]
            clickers = sum("click" in one for one in kinds)
            mailed = sum("message" in one for one in kinds)
            row = {
                "account": account,
                "registered_month": registered,
                "months_since": number,
                "month_on": month,
                "is_over": after <= today,
            }
            row |= {
                "address_count": len(some),
                "read_count": len(read),
                "mailed_count": mailed,
                "responder_count": sum(bool(one - {"message"}) for one in kinds),
                "clicker_count": clickers,
            }
            found.append(
                row
                | {
                    f"{name}_rate": share(row[f"{name}_count"], len(read))
                    for name in ("responder", "clicker")
                }
            )
            month, number = after, number + 1
    return found


def _reactions(
    source: Source, ids: dict[tuple[str, int], set[str]]
) -> dict[tuple[str, str, dt.date], set[str]]:
    """(account, address, month) → what the address did in it, and `message` where it was sent one."""
    moments = [(row, "open", row["opened_at"]) for row in contact_campaign(source) if row["is_opened"]]
    moments += [
        (row, "click", row["clicked_at"] or row["opened_at"])
        for row in contact_campaign(source)
        if row["is_clicked"]
    ]
    moments += [(row, "message", row["sent_at"]) for row in contact_campaign(source)]
    moments += [(row, "visit", row["visited_at"]) for row in source.rows("timeline_visits")]
    found: dict[tuple[str, str, dt.date], set[str]] = {}
    for row, kind, moment in moments:
        if day := source.local_date(row["account"], moment):
            for email in ids.get((row["account"], row["contact_id"]), ()):
                found.setdefault((row["account"], email, begin("month", day)), set()).add(kind)
    return found
