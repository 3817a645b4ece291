"""The reputation marts and the freshness of the data, worked out without SQL."""

import datetime as dt
import re
import statistics
from collections import Counter
from typing import Any

from tests.warehouse.marts.expected import (
    Found,
    Source,
    added,
    grouped,
    known,
    less,
    mean,
    once,
    pick,
    row_of,
    share,
    unknown,
)
from tests.warehouse.marts.expected_contacts import contact_campaign
from tests.warehouse.marts.expected_engagement import address, by_address, contact_engagement

_RANGE = re.compile(r"(\d{4}-\d{2}-\d{2})\.\.(\d{4}-\d{2}-\d{2})")


def days_read(source: Source, *, is_over: bool = True) -> dict[tuple[str, str], dict[dt.date, bool]]:
    """(account, table) → day that was asked for → whether it was read completely, and was over then."""
    found: dict[tuple[str, str], dict[dt.date, bool]] = {}
    for row in source.rows("sync.coverage"):
        if (match := _RANGE.fullmatch(row["scope"])) is None:
            continue
        first, last = (dt.date.fromisoformat(text) for text in match.groups())
        days = found.setdefault((row["account"], row["table_name"]), {})
        for offset in range((last - first).days + 1):
            day = first + dt.timedelta(days=offset)
            is_whole = not is_over or day < (source.local_date(row["account"], row["as_of"]) or day)
            days[day] = days.get(day, False) or (is_whole and bool(row["is_complete"]))
    return found


@once
def review_daily(source: Source) -> Found:
    return [row for account in source.zones for row in _days(source, account)]


def _days(source: Source, account: str) -> Found:
    read = days_read(source)

    def is_read(table: str, day: dt.date) -> bool:
        return read.get((account, table), {}).get(day, False)

    tables = ("review_stats", "online_reviews", "sentiment_mentions", "feedback_views")
    mine = {table: source.of(account, table) for table in tables}
    stats = {row["period_on"]: row for row in mine["review_stats"]}
    views = {row["period_on"]: row["view_count"] for row in mine["feedback_views"]}
    ratings: dict[dt.date, list[float | None]] = {}
    for row in mine["online_reviews"]:
        if (day := source.local_date(account, row["reviewed_at"])) is not None:
            ratings.setdefault(day, []).append(row["rating"])
    mood = {day: rows for (day,), rows in grouped(mine["sentiment_mentions"], "reviewed_on").items() if day}
    told = [day for day in (*stats, *views, *ratings, *mood) if source.is_plausible(account, day)]
    by_day = ("review_stats", "sentiment_mentions", "feedback_views")
    asked = [day for table in by_day for day in read.get((account, table), {}) if is_read(table, day)]
    if not told + asked:
        return []
    sites = [row["observed_on"] for row in source.of(account, "online_review_channels")]
    first, last = min(sites, default=dt.date.max), max(sites, default=dt.date.min)
    found: Found = []
    begun = min(told + asked)
    for offset in range((max(told + asked) - begun).days + 1):
        day = begun + dt.timedelta(days=offset)
        row: dict[str, Any] = {"account": account, "day_on": day}
        for name in ("good_count", "bad_count"):
            row[name] = stats.get(day, {name: 0})[name] if is_read("review_stats", day) else None
        row["online_review_count"] = len(ratings.get(day, [])) if first <= day <= last else None
        row["ratings"] = [rating for rating in ratings.get(day, []) if rating is not None]
        for name in ("positive", "negative"):
            count = sum(one["polarity"] == name for one in mood.get(day, []))
            row[f"{name}_count"] = count if is_read("sentiment_mentions", day) else None
        row["view_count"] = views.get(day, 0) if is_read("feedback_views", day) else None
        found.append(row)
    return [_with_rates(row, found[max(0, place - 27) : place + 1]) for place, row in enumerate(found)]


def _with_rates(row: dict[str, Any], month: Found) -> dict[str, Any]:
    """`month`: the row and up to 27 days before."""
    full = {name: value for name, value in row.items() if name != "ratings"}
    full["good_rate"] = share(row["good_count"], added(row["good_count"], row["bad_count"]))
    full["positive_rate"] = share(row["positive_count"], added(row["positive_count"], row["negative_count"]))
    full["average_rating"] = mean(row["ratings"])
    for days in (7, 28):
        window = month[-days:]
        for name in ("good_count", "bad_count", "online_review_count", "view_count"):
            full[f"{name}_mean_{days}d"] = mean([one[name] for one in window])
        for name, other in (("good", "bad"), ("positive", "negative")):
            pairs = [(one[f"{name}_count"], one[f"{other}_count"]) for one in window]
            whole = [pair for pair in pairs if None not in pair]
            full[f"{name}_rate_{days}d"] = share(sum(pair[0] for pair in whole), sum(map(sum, whole)))
        full[f"average_rating_{days}d"] = mean([rating for one in window for rating in one["ratings"]])
    return full


def reputation_overview(source: Source) -> Found:
    found = []
    for (account,), rows in grouped(review_daily(source), "account").items():
        names = ("good_count", "positive_count", "view_count")
        told = [place for place, row in enumerate(rows, 1) if any(row[name] is not None for name in names)]
        days = rows[: max(told, default=len(rows))]
        found += [*_sites(source, account, days), _page(source, account, days)]
    return found


def _sites(source: Source, account: str, days: Found) -> Found:
    today = days[-1]["day_on"]
    tables = ("online_review_channels", "online_reviews", "sentiment_mentions")
    ratings, reviews, mentions = (grouped(source.of(account, table), "channel") for table in tables)
    found = []
    for (channel,) in {**ratings, **reviews, **mentions}:
        if not channel:
            continue
        row = row_of("account channel kind as_of_on", account, channel, "review site", today)
        row |= _rating(sorted(ratings.get((channel,), []), key=lambda one: one["observed_on"]))
        mine = reviews.get((channel,), [])
        dates = source.plausible(account, (one["reviewed_at"] for one in mine))
        row |= {"review_count": len(mine), "last_review_at": max(dates, default=None)}
        row |= unknown("view_count_mean_7d view_count_mean_28d")
        for length in (7, 28):
            start = today - dt.timedelta(days=length)
            dated = [(source.local_date(account, one["reviewed_at"]), one["rating"]) for one in mine]
            recent = [rating for day, rating in dated if day and start < day <= today]
            row[f"review_count_{length}d"] = len(recent)
            row[f"average_rating_{length}d"] = mean(recent)
            told = [one for one in mentions.get((channel,), []) if one["reviewed_on"]]
            mood = [one["polarity"] for one in told if start < one["reviewed_on"] <= today]
            counts: list[int | None] = [None, None]
            if _is_whole(days, length, "positive_count"):
                counts = [mood.count(polarity) for polarity in ("positive", "negative")]
            row |= _shares("positive", counts[0], "negative", counts[1], length)
            row |= unknown(f"good_count_{length}d bad_count_{length}d good_rate_{length}d")
        found.append(row)
    return found


def _rating(observations: Found) -> dict[str, Any]:
    nothing = unknown("observed_on average_rating review_count")
    last = observations[-1] if observations else nothing
    old = [one for one in observations if one["observed_on"] <= last["observed_on"] - dt.timedelta(days=28)]
    rated = [one for one in old if one["average_rating"] is not None]
    before = rated[-1] if rated else nothing
    change = less(last["average_rating"], before["average_rating"])
    if None in (last["review_count"], before["review_count"]):
        change = None
    columns = "average_rating_change_28d served_review_count served_review_count_before"
    counts = (last["review_count"], None if change is None else before["review_count"])
    return pick(last, "observed_on average_rating") | row_of(columns, change, *counts)


def _is_whole(days: Found, length: int, *names: str) -> bool:
    """Whether every day of the window is known."""
    recent = days[-length:]
    return len(recent) == length and all(day[name] is not None for day in recent for name in names)


def _shares(name: str, count: int | None, other: str, rest: int | None, length: int) -> dict[str, Any]:
    return {
        f"{name}_count_{length}d": count,
        f"{other}_count_{length}d": rest,
        f"{name}_rate_{length}d": share(count, added(count, rest)),
    }


def _page(source: Source, account: str, days: Found) -> dict[str, Any]:
    direct = [row["reviewed_at"] for row in source.of(account, "direct_reviews")]
    last = days[-1]
    row = row_of("account channel kind", account, "Feedback page", "feedback page")
    row |= unknown("average_rating average_rating_change_28d average_rating_7d average_rating_28d")
    row |= unknown("served_review_count served_review_count_before observed_on")
    row |= {"as_of_on": last["day_on"], "review_count": len(direct)}
    row["last_review_at"] = max(source.plausible(account, direct), default=None)
    dates = [date for moment in direct if (date := source.local_date(account, moment))]
    for length in (7, 28):
        good = bad = None
        if _is_whole(days, length, "good_count", "bad_count"):
            good, bad = (sum(known(days[-length:], name)) for name in ("good_count", "bad_count"))
        row |= _shares("good", good, "bad", bad, length)
        row |= unknown(f"positive_count_{length}d negative_count_{length}d positive_rate_{length}d")
        ages = [(last["day_on"] - date).days for date in dates]
        row[f"review_count_{length}d"] = sum(0 <= age < length for age in ages)
        row[f"view_count_mean_{length}d"] = last[f"view_count_mean_{length}d"]
    return row


_BY_CONTACT = (
    ("contact timelines", "timeline_asked_at", "timeline_events"),
    ("contact coupons", "coupon_asked_at", "coupons"),
)


def data_freshness(source: Source) -> Found:
    """`data_coverage` as the clock of the query says."""
    found = data_coverage(source)
    for row in found:
        for name in ("", "median_", "oldest_"):
            moment = row[f"{name}as_of"]
            row[f"{name}age_hours"] = (source.now - moment).total_seconds() / 3600 if moment else None
        row["is_overdue"] = bool(row["due_at"] and row["due_at"] + dt.timedelta(hours=6) < source.now)
        del row["median_as_of"], row["oldest_as_of"]
    return found


def data_coverage(source: Source) -> Found:
    found = []
    read = days_read(source, is_over=False)
    for (account, table), rows in grouped(source.rows("sync.coverage"), "account", "table_name").items():
        days = read.get((account, table))
        newest = max(rows, key=lambda row: (row["as_of"], row["scope"]))
        broken = [row for row in rows if not row["is_complete"] and row["reason"]]
        row = {"account": account, "subject": table, "part": "day" if days else "scope"}
        parts = list(days.values()) if days else [bool(one["is_complete"]) for one in rows]
        row |= {"part_count": len(parts), "read_part_count": sum(parts)}
        row["due_at"] = newest["due_at"] if days else min(known(rows, "due_at"), default=None)
        broken.sort(key=lambda one: (one["as_of"], one["scope"]))
        row["reason"] = broken[-1]["reason"] if broken else None
        found.append(_counted(source, row, [one["as_of"] for one in rows], is_days=bool(days)))
    due = {(row["account"], row["subject"]): row["due_at"] for row in found}
    asked = source.by("sync.contact_coverage", "account", "contact_id")
    for account in source.zones:
        ids = {row["contact_id"] for row in source.of(account, "contacts")}
        for subject, name, table in _BY_CONTACT:
            moments = [moment for one in ids if (moment := asked.get((account, one), {}).get(name))]
            row = row_of("account subject part part_count", account, subject, "contact", len(ids))
            row |= {"read_part_count": len(moments), "due_at": due.get((account, table)), "reason": None}
            found.append(_counted(source, row, moments, is_days=False))
    return found


def _counted(
    source: Source, row: dict[str, Any], moments: list[dt.datetime], *, is_days: bool
) -> dict[str, Any]:
    row |= {"as_of": max(moments, default=None), "median_as_of": None, "oldest_as_of": None}
    if moments and not is_days:
        middle = statistics.median(moment.timestamp() for moment in moments)
        row |= {"median_as_of": dt.datetime.fromtimestamp(middle, dt.UTC), "oldest_as_of": min(moments)}
    row["coverage_rate"] = share(row["read_part_count"], row["part_count"])
    odd_dates = Counter((one["account"], one["table"]) for one in _odd_dates_found(source))
    row["odd_date_count"] = odd_dates[row["account"], row["subject"]]
    rejected = source.of(row["account"], "sync.rejected_records")
    row["rejected_count"] = sum(one["table_name"] == row["subject"] for one in rejected)
    return row


_DATES = {
    "campaigns": "created_at",
    "contacts": "registered_at",
    "coupons": "redeemed_on",
    "direct_reviews": "reviewed_at",
    "feedback_views": "period_on",
    "online_reviews": "reviewed_at",
    "review_stats": "period_on",
    "sentiment_mentions": "reviewed_on",
    "social_links": "created_at",
    "social_media_stats": "period_on",
    "timeline_automations": "triggered_at",
    "timeline_events": "occurred_at",
    "timeline_visits": "visited_at",
}


@once
def _odd_dates_found(source: Source) -> Found:
    """A row for each row that the service dates before 2000 or after today."""
    found = []
    for table, column in _DATES.items():
        for row in source.rows(table, deleted=True):
            value, account = row[column], row["account"]
            day = source.local_date(account, value) if column.endswith("_at") else value
            if day and not source.is_plausible(account, day):
                found.append({"account": account, "table": table})
    return found


def reviews_waiting(source: Source) -> Found:
    people = {(row["account"], row["email"]): row for row in contact_engagement(source)}
    ids = by_address(source.rows("contacts", deleted=True))
    sent = grouped([row for row in contact_campaign(source) if row["sent_at"]], "account", "contact_id")
    pushed = [row for row in source.rows("sync.writebacks") if row["effect"] == "notes"]
    pushed = [row for row in pushed if row["state"] in ("applied", "verified")]
    found = []
    for review in source.rows("direct_reviews"):
        if review["rating"] != "Bad":
            continue
        account, email, at = review["account"], address(review["email"]) or None, review["reviewed_at"]
        mine = {row["contact_id"] for row in ids.get((account, email), [])}
        messages = [row["sent_at"] for number in mine for row in sent.get((account, number), [])]
        messages = [moment for moment in messages if moment >= at]
        about = [
            row
            for row in pushed
            if row["account"] == account
            and (row["contact_id"] in mine or (email and address(row["email"]) == email))
        ]
        moments = [row["done_at"] or row["sent_at"] for row in about]
        activity = min((moment for moment in moments if moment >= at), default=None)
        person, notes = people.get((account, email), {}), (review["notes"] or "").strip() or None
        day = source.local_date(account, at)
        row = pick(review, "account review_id reviewed_at inquiry") | {"email": email, "notes": notes}
        row["phone"] = (review["phone"] or "").strip() or None
        is_dated = day and source.is_plausible(account, day)
        row["days_since_review"] = (source.today(account) - day).days if is_dated else None
        row |= {"is_contact": bool(person), "status": person.get("status")}
        row["engagement_tier"] = person.get("engagement_tier")
        row |= {"message_count": len(messages), "first_message_at": min(messages, default=None)}
        row |= {"activity_pushed_at": activity, "is_waiting": notes is None and activity is None}
        found.append(row)
    return found
