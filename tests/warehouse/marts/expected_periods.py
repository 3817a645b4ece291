"""Weeks, months and quarters, and what cohorts do month by month, worked out without SQL."""

import datetime as dt
from typing import Any

from tests.warehouse.marts.expected import Found, Source, added, known, mean, row_of, share
from tests.warehouse.marts.expected_contacts import contact_campaign
from tests.warehouse.marts.expected_engagement import address, by_address
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
        today = source.today(account)
        first = min(day for some in things.values() for day, _ in some if source.is_plausible(account, day))
        for period, days in (("week", 7), ("month", 31), ("quarter", 95)):
            rows, day = dict[dt.date, dict[str, Any]](), begin(period, first)
            while day <= today:
                after = begin(period, day + days * _DAY)
                inside = {
                    name: [thing for on, thing in some if day <= on < after and on <= today]
                    for name, some in things.items()
                }
                rows[day] = row_of("begins_on ends_on is_over", day, after - _DAY, after <= today)
                rows[day] |= _summed(day, min(after, today) - _DAY, inside, things)
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
    sent = [row for row in performed if (row["account"], row["type"]) == (account, "standard")]
    unknown = (None, "sent")  # sent, though nobody tells to how many
    sent = [
        row for row in sent if (row["sent_count"] or 0) > 0 or (row["sent_count"], row["status"]) == unknown
    ]
    dated = {
        "campaigns": [(source.local_date(account, row["sent_at"] or row["created_at"]), row) for row in sent],
        "ratings": [
            (source.local_date(account, row["reviewed_at"]), row["rating"])
            for row in source.of(account, "online_reviews", deleted=True)
        ],
        "coupons": [
            (row["redeemed_on"], row)
            for row in source.of(account, "coupons", deleted=True)
            if row["is_redeemed"]
        ],
        "days": [(row["day_on"], row) for row in account_daily(source) if row["account"] == account],
    }
    return {name: [(day, thing) for day, thing in some if day] for name, some in dated.items()}


def _summed(
    begins_on: dt.date, ends_on: dt.date, inside: Things | dict[str, list[Any]], everything: Things
) -> dict[str, Any]:
    campaigns: Any = inside["campaigns"]
    told = [row for row in campaigns if None not in (row["opened_count"], row["delivered_count"])]
    sent = added(*(one["sent_count"] for one in campaigns))
    row: dict[str, Any] = {"campaign_count": len(campaigns), "sent_count": sent}
    for name in _MAILS:
        counts = known(told, name)
        is_unread = len(counts) < len(told)
        row[name] = sum(counts) if (counts and not is_unread) or not campaigns else None
    if not everything["campaigns"]:
        row |= dict.fromkeys(("campaign_count", "sent_count", *_MAILS))
    for name, part in (("open", "opened"), ("click", "clicker"), ("unsubscribe", "unsubscribed")):
        row[f"{name}_rate"] = share(row[f"{part}_count"], row["delivered_count"])
    for name in ("joined_count", "online_review_count"):
        days = [on for on, one in everything["days"] if one[name] is not None]
        counts = known(list(inside["days"]), name)
        row[name] = sum(counts) if counts and min(days) <= begins_on and ends_on <= max(days) else None
    return row | {
        "average_rating": mean(list(inside["ratings"])),
        "rating_count": sum(rating is not None for rating in inside["ratings"]) or None,
        "redeemed_count": len(inside["coupons"]) if everything["coupons"] else None,
    }


def cohort_retention(source: Source) -> Found:
    coverage = source.rows("sync.contact_coverage")
    asked = {(row["account"], row["contact_id"]) for row in coverage if row["timeline_asked_at"]}
    people = by_address([row for row in source.rows("contacts", deleted=True) if address(row["email"])])
    ids: dict[tuple[str, int], set[str]] = {}
    for (_, email), rows in people.items():
        for row in rows:
            ids.setdefault((row["account"], row["contact_id"]), set()).add(email)
    reactions = _reactions(source, ids)
    cohorts: dict[tuple[str, dt.date], list[tuple[str, bool]]] = {}
    for (account, email), rows in people.items():
        if moments := source.plausible(account, (row["registered_at"] for row in rows)):
            month = begin("month", source.local_date(account, min(moments)) or dt.date.max)
            is_read = any((account, row["contact_id"]) in asked for row in rows)
            cohorts.setdefault((account, month), []).append((email, is_read))
    found = []
    for (account, registered), some in cohorts.items():
        today, month, number = source.today(account), registered, 0
        read = [email for email, is_read in some if is_read]
        while month <= today:
            after = begin("month", month + 31 * _DAY)
            kinds = [reactions.get((account, email, month), set[str]()) for email in read]
            clickers, mailed = (sum(kind in one for one in kinds) for kind in ("click", "message"))
            responders = sum(bool(one - {"message"}) for one in kinds)
            columns = "account registered_month months_since month_on is_over"
            row = row_of(columns, account, registered, number, month, after <= today)
            columns = "address_count read_count mailed_count responder_count clicker_count"
            row |= row_of(columns, len(some), len(read), mailed, responders, clickers)
            row["responder_rate"] = share(responders, len(read))
            found.append(row | {"clicker_rate": share(clickers, len(read))})
            month, number = after, number + 1
    return found


def _reactions(
    source: Source, ids: dict[tuple[str, int], set[str]]
) -> dict[tuple[str, str, dt.date], set[str]]:
    """(account, address, month) → what the address did in it, and `message` where it was sent one."""
    moments = [(row, "open", row["opened_at"]) for row in contact_campaign(source) if row["is_opened"]]
    clicked = [row for row in contact_campaign(source) if row["is_clicked"]]
    moments += [(row, "click", row["clicked_at"] or row["opened_at"]) for row in clicked]
    moments += [(row, "message", row["sent_at"]) for row in contact_campaign(source)]
    moments += [(row, "visit", row["visited_at"]) for row in source.rows("timeline_visits")]
    found: dict[tuple[str, str, dt.date], set[str]] = {}
    for row, kind, moment in moments:
        day = source.local_date(row["account"], moment)
        if day and source.is_plausible(row["account"], day):
            for email in ids.get((row["account"], row["contact_id"]), ()):
                found.setdefault((row["account"], email, begin("month", day)), set()).add(kind)
    return found
