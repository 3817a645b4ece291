"""What the report computes: key figures, the headline. Pure. Not here: SQL (`queries`), looks
(`templates/`)."""

import datetime as dt
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from home.formatting import UNKNOWN, change_of, cut, day, number, plural, rating, share
from pipelines.report.queries import AccountData, Row, Rows

_CAMPAIGN_DAYS = dt.timedelta(days=90)
#: A newer campaign is news; how much more or less than usual is worth a word; campaigns in the line below
#: their share.
_NEWS_DAYS, _LEAST_POINTS, _TREND = dt.timedelta(days=14), 0.01, 12

#: Tiers in the order of worth, with their rule in words.
TIERS: Mapping[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[
    "tiers"
]


class Figure(NamedTuple):
    """One large number: its name, the number as shown, a line below, and a series beside it, oldest first,
    with what that is."""

    name: str
    value: str
    below: str = ""
    trend: tuple[float, ...] = ()
    trend_name: str = ""


def headline(account: AccountData) -> list[str]:
    """What a person would say first, in up to three sentences: what left its usual range most, and the newest
    campaign."""
    known = [
        row for row in account.rows["changes"] if row["week"] is not None and row["usual_most"] is not None
    ]
    moved = sorted((row for row in known if row["surprise"]), key=lambda row: -row["surprise"])[:2]
    sentences = [
        f"{row['name']}: {number(row['week'])} in 7 days, where {number(row['usual_least'])} to "
        f"{number(row['usual_most'])} are usual."
        for row in moved
    ]
    if known and not moved:
        sentences.append(
            f"The last 7 days were as usual: none of the {len(known)} counts left its usual range."
        )
    return [*sentences, *_news(account)]


def _news(account: AccountData) -> Iterator[str]:
    """Of the newest campaign, when it is new and its openings are known."""
    for row in account.rows["campaigns"][:1]:
        sent, points = row["sent_at"], row["open_rate_over_median"]
        if (
            sent
            and points is not None
            and account.today - sent.astimezone(ZoneInfo(account.zone)).date() <= _NEWS_DAYS
        ):
            against = f"{abs(100 * points):.1f} points {'more' if points > 0 else 'less'} than usual"
            against = against if abs(points) >= _LEAST_POINTS else "as usual"
            yield (
                f"“{cut(row['subject'] or '(no subject)', 60)}”, sent {day(sent)}, was opened by "
                f"{share(row['open_rate'])}: {against}."
            )


def key_figures(account: AccountData) -> list[Figure]:
    """Four numbers that show how the account stands."""
    return [_contacts(account), _openings(account), _rating(account), _coupons(account)]


def _contacts(account: AccountData) -> Figure:
    tiers = account.rows["tiers"]
    reachable = sum(row["addresses"] for row in tiers if row["engagement_tier"] != "unreachable")
    weeks = {row["name"]: row["week"] for row in account.rows["changes"]}
    joined, left = weeks.get("Contacts joined"), weeks.get("Contacts left")
    below = (
        f"{change_of(joined - left)} contacts in 7 days"
        if tiers and joined is not None and left is not None
        else ""
    )
    trend = tuple(
        row["member_count"]
        for row in account.rows["days"][-_CAMPAIGN_DAYS.days :]
        if row["member_count"] is not None
    )
    return Figure(
        "Reachable people", number(reachable) if tiers else UNKNOWN, below, trend, "all contacts, 90 days"
    )


def _openings(account: AccountData) -> Figure:
    known = [
        row for row in account.rows["campaigns"] if None not in (row["opened_count"], row["delivered_count"])
    ]
    recent = [row for row in known if _is_recent(row, account)]
    opened, delivered = total(recent, "opened_count"), total(recent, "delivered_count")
    below = plural(len(recent), "campaign") if recent else "no campaign"
    rates = [row["open_rate"] for row in known if row["open_rate"] is not None]
    trend = tuple(reversed(rates[:_TREND]))
    rate = opened / delivered if delivered else None
    return Figure(
        "Messages opened", share(rate), f"{below} in 90 days", trend, f"the last {len(trend)} campaigns"
    )


def _is_recent(campaign: Row, account: AccountData) -> bool:
    moment = campaign["sent_at"] or campaign["created_at"]
    return bool(moment) and moment.astimezone(ZoneInfo(account.zone)).date() > account.today - _CAMPAIGN_DAYS


def _rating(account: AccountData) -> Figure:
    rated = [
        row for row in account.rows["channels"] if row["average_rating"] is not None and row["review_count"]
    ]
    reviews = total(rated, "review_count")
    mean = sum(row["average_rating"] * row["review_count"] for row in rated) / reviews if reviews else None
    return Figure(
        "Rating on review sites",
        rating(mean),
        f"of 5, {plural(int(reviews), 'review')}" if reviews else "no rated reviews",
    )


def _coupons(account: AccountData) -> Figure:
    issued, redeemed = (
        total(account.rows["coupons"], column) for column in ("issued_count", "redeemed_count")
    )
    below = f"{number(redeemed)} of {number(issued)}" if issued else "none issued"
    return Figure("Coupons redeemed", share(redeemed / issued if issued else None), below)


def total(rows: Rows, column: str) -> float:
    return sum(row[column] or 0 for row in rows)


def tiers_of(account: AccountData) -> dict[str, int]:
    """How many addresses are in each tier, in the order of worth; tiers that this version does not know come
    last."""
    counts = {row["engagement_tier"]: row["addresses"] for row in account.rows["tiers"]}
    return {tier: counts.get(tier, 0) for tier in [*TIERS, *counts]} if counts else {}


def is_lacking(row: Row) -> bool:
    """Whether something of it was not read, cannot be read, or is late."""
    return (row["coverage_rate"] or 0) < 1 or bool(row["rejected_count"]) or bool(row["is_overdue"])


def is_mostly_unread(row: Row) -> bool:
    """Whether less than half of it was read."""
    return (row["coverage_rate"] or 0) < 0.5
