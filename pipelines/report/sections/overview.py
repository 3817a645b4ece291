"""The numbers to know first, and what changed since yesterday and in the last week."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from pipelines.report import words
from pipelines.report.changes import Change, Row, change
from pipelines.report.data import AccountData
from pipelines.report.html import Html
from pipelines.report.parts import Figure, Heading, empty, note, section, table

_CAMPAIGN_DAYS = dt.timedelta(days=90)


def key_figures(account: AccountData) -> list[Figure]:
    """Four numbers that say how the account stands."""
    return [_contacts(account), _openings(account), _rating(account), _coupons(account)]


def what_changed(account: AccountData) -> Html:
    """Counts of yesterday, of the last seven days and of the seven before, with the difference."""
    yesterday = words.day(account.today - dt.timedelta(days=1))
    changes = changes_of(account)
    if all(one.week is None and one.yesterday is None for _, one in changes):
        return section(f"{account.name}-changes", "What changed", "", empty("Changes show from the second night on."))
    headings = [
        Heading("What", is_number=False),
        Heading("Yesterday"),
        Heading("Last 7 days"),
        Heading("7 days before", is_wide=True),
        Heading("Change"),
    ]
    rows = [
        [name, words.count(one.yesterday), words.count(one.week), words.count(one.week_before), words.change(one.difference)]
        for name, one in changes
    ]
    lead = f"Yesterday, {yesterday}, and the week that ends with it against the week before."
    seen = note(
        "Contacts that joined or left, messages and clicks are seen as changes from night to night, and count for the day before the "
        "night. Who moved to another list neither joined nor left. A dash is not known yet."
    )
    return section(f"{account.name}-changes", "What changed", lead, table(headings, rows), seen)


#: (what it is, column of `account_daily`, whether it is seen as a change since the night before)
_COUNTS = (
    ("Contacts joined", "joined_count", True),
    ("Contacts left", "left_count", True),
    ("Messages sent", "sent_change", True),
    ("Messages opened", "opened_change", True),
    ("Clicks in messages", "click_change", True),
    ("Unsubscribed by a message", "unsubscribed_change", True),
    ("Visits of contacts to your pages", "visit_count", False),
    ("Good reviews", "good_count", False),
    ("Bad reviews", "bad_count", False),
    ("Reviews on review sites", "online_review_count", False),
    ("Mentions on social networks", "mention_count", False),
    ("Clicks on links in posts", "social_click_change", True),
)


def changes_of(account: AccountData) -> list[tuple[str, Change]]:
    """What is counted by day, in the order of the page."""
    days = account.rows["days"]
    found = [(name, change(days, column, account.today, is_seen=is_seen)) for name, column, is_seen in _COUNTS]
    return [*found, ("Coupons redeemed", change(account.rows["coupon_days"], "redeemed", account.today))]


def _contacts(account: AccountData) -> Figure:
    reachable = sum(row["addresses"] for row in account.rows["tiers"] if row["engagement_tier"] != "unreachable")
    net = change(account.rows["days"], "net_change", account.today, is_seen=True)
    if not account.rows["tiers"]:
        return Figure("Reachable people", words.UNKNOWN)
    return Figure("Reachable people", words.count(reachable), "" if net.week is None else f"{words.change(net.week)} contacts in 7 days")


def _openings(account: AccountData) -> Figure:
    recent = [row for row in recent_campaigns(account) if row["opened_count"] is not None and row["delivered_count"] is not None]
    opened, delivered = _total(recent, "opened_count"), _total(recent, "delivered_count")
    rate = opened / delivered if delivered else None
    return Figure("Messages opened", words.share(rate), f"{words.plural(len(recent), 'campaign') if recent else 'no campaign'} in 90 days")


def recent_campaigns(account: AccountData) -> list[Row]:
    """Those of the last 90 days, newest first; of an account that sends more rarely none."""
    first, zone = account.today - _CAMPAIGN_DAYS, ZoneInfo(account.zone)
    dated = ((row, row["sent_at"] or row["created_at"]) for row in account.rows["campaigns"])
    return [row for row, moment in dated if moment and moment.astimezone(zone).date() > first]


def _total(rows: Sequence[Row], column: str) -> float:
    return sum(row[column] or 0 for row in rows)


def _rating(account: AccountData) -> Figure:
    rated = [row for row in account.rows["channels"] if row["average_rating"] is not None and row["review_count"]]
    reviews = _total(rated, "review_count")
    mean = sum(row["average_rating"] * row["review_count"] for row in rated) / reviews if reviews else None
    below = f"of 5, {words.plural(int(reviews), 'review')}" if reviews else "no rated reviews"
    return Figure("Rating on review sites", words.rating(mean), below)


def _coupons(account: AccountData) -> Figure:
    issued, redeemed = _total(account.rows["coupons"], "issued_count"), _total(account.rows["coupons"], "redeemed_count")
    rate = redeemed / issued if issued else None
    return Figure("Coupons redeemed", words.share(rate), f"{words.count(redeemed)} of {words.count(issued)}" if issued else "none issued")
