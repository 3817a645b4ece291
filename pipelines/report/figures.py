"""What the report computes: counts by day and week, key figures, what changed. Pure. Not here: SQL (`queries`), looks (`templates/`)."""

import datetime as dt
import math
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from pipelines.report.charts import Column
from pipelines.report.formatting import UNKNOWN, change_of, cut, day, number, plural, rating, share
from pipelines.report.queries import AccountData, Row, Rows

_DAY, _WEEK = dt.timedelta(days=1), dt.timedelta(days=7)
_CAMPAIGN_DAYS = dt.timedelta(days=90)
#: Weeks before the last one that tell what is usual; of a normal distribution, 1.4826 median absolute deviations are one standard one.
_WEEKS, _LEAST_WEEKS, _TO_DEVIATION = 8, 4, 1.4826
#: A newer campaign is news; how much more or less than usual is worth a word; campaigns in the line below their share.
_NEWS_DAYS, _LEAST_POINTS, _TREND = dt.timedelta(days=14), 0.01, 12

_DECLARED: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: Tiers in the order of worth, with their rule in words.
TIERS: Mapping[str, str] = _DECLARED["tiers"]


@dataclass(frozen=True, slots=True)
class Change:
    """Counts of yesterday, of the week that ends with it, of the week before, None where not known; the `usual` range of a week."""

    yesterday: float | None
    week: float | None
    week_before: float | None
    usual: tuple[float, float] | None = None

    @property
    def surprise(self) -> float:
        """How far the week's count is outside of what is usual, in widths of that range; 0 within."""
        if self.usual is None or self.week is None:
            return 0
        low, high = self.usual
        return max(self.week - high, low - self.week, 0) / max(high - low, 1)

    @property
    def is_known(self) -> bool:
        """Whether there is anything to show."""
        return any(count is not None for count in (self.yesterday, self.week, self.week_before))

    @property
    def difference(self) -> float | None:
        """Of the two weeks."""
        return None if self.week is None or self.week_before is None else self.week - self.week_before


class Figure(NamedTuple):
    """One large number: its name, the number as shown, a line below, and a series beside it, oldest first, with what that is."""

    name: str
    value: str
    below: str = ""
    trend: tuple[float, ...] = ()
    trend_name: str = ""


def change(rows: Iterable[Row], column: str, today: dt.date, *, is_seen: bool = False) -> Change:
    """Of rows with `day_on` and the count in `column`; days without a row had nothing. A span with a day that is not known is not known.

    `is_seen`: a change since the night before, which happened on the day before `day_on`; the next night shows what a missing one would.
    """
    shift = _DAY if is_seen else dt.timedelta()
    counts = {row["day_on"] - shift: row[column] for row in rows}
    if is_seen:
        last = max((on for on, value in counts.items() if value is not None), default=today)
        counts = {on: value for on, value in counts.items() if value is not None or on > last}
    week, *before = (_sum(counts, today - (back + 1) * _WEEK, today - back * _WEEK) for back in range(_WEEKS + 1))
    return Change(_sum(counts, today - _DAY, today), week, before[0], _usual(before))


def _usual(weeks: Iterable[float | None]) -> tuple[float, float] | None:
    """Around the middle of earlier weeks, twice their median absolute deviation or a count's own root; None with too few weeks."""
    known = [week for week in weeks if week is not None]
    if len(known) < _LEAST_WEEKS:
        return None
    middle = statistics.median(known)
    spread = _TO_DEVIATION * statistics.median(abs(week - middle) for week in known)
    reach = 2 * max(spread, math.sqrt(abs(middle)), 1)
    return max(math.floor(middle - reach), 0), math.ceil(middle + reach)


def _sum(counts: Mapping[dt.date, float | None], first: dt.date, until: dt.date) -> float | None:
    known = [on for on, value in counts.items() if value is not None]
    return None if not known or min(known) > first else _whole(value for on, value in counts.items() if first <= on < until)


def _whole(counts: Iterable[float | None]) -> float | None:
    """The sum, unless one of them is not known."""
    values = list(counts)
    return None if None in values else sum(value for value in values if value is not None)


def changes_of(account: AccountData) -> list[tuple[str, Change]]:
    """What is counted by day, in the order of the page."""
    days = account.rows["days"]
    found = [(name, change(days, column, account.today, is_seen=is_seen)) for name, column, is_seen in _DECLARED["counts"]]
    return [*found, ("Coupons redeemed", change(account.rows["coupon_days"], "redeemed", account.today))]


def headline(account: AccountData) -> list[str]:
    """What a person would say first, in up to three sentences: what left its usual range most, and the newest campaign."""
    changes = changes_of(account)
    known = [(name, found.week, found.usual, found.surprise) for name, found in changes if found.usual and found.week is not None]
    moved = sorted((each for each in known if each[-1]), key=lambda each: -each[-1])[:2]
    sentences = [f"{name}: {number(week)} in 7 days, where {' to '.join(map(number, usual))} are usual." for name, week, usual, _ in moved]
    if known and not moved:
        sentences.append(f"The last 7 days were as usual: none of the {len(known)} counts left its usual range.")
    return [*sentences, *_news(account)]


def _news(account: AccountData) -> Iterator[str]:
    """Of the newest campaign, when it is new and its openings are known."""
    for row in account.rows["campaigns"][:1]:
        sent, points = row["sent_at"], row["open_rate_over_median"]
        if sent and points is not None and account.today - sent.astimezone(ZoneInfo(account.zone)).date() <= _NEWS_DAYS:
            against = f"{abs(100 * points):.1f} points {'more' if points > 0 else 'less'} than usual"
            against = against if abs(points) >= _LEAST_POINTS else "as usual"
            yield f"“{cut(row['subject'] or '(no subject)', 60)}”, sent {day(sent)}, was opened by {share(row['open_rate'])}: {against}."


def by_week(days: Iterable[Row], up: str, down: str, today: dt.date, count: int) -> list[Column]:
    """The last weeks, the newest of them ending today, from the first that is known on; a week is known when all of its days are."""
    by_day = {row["day_on"]: row for row in days}
    found: list[Column] = []
    for back in reversed(range(count)):
        begins = today - back * _WEEK - _WEEK + _DAY
        week = [by_day.get(begins + place * _DAY, {}) for place in range(7)]
        column = Column(begins, *(_whole(day.get(name) for day in week) for name in (up, down)))
        if found or column.up is not None or column.down is not None:
            found.append(column)
    return found


def key_figures(account: AccountData) -> list[Figure]:
    """Four numbers that show how the account stands."""
    return [_contacts(account), _openings(account), _rating(account), _coupons(account)]


def _contacts(account: AccountData) -> Figure:
    tiers = account.rows["tiers"]
    reachable = sum(row["addresses"] for row in tiers if row["engagement_tier"] != "unreachable")
    net = change(account.rows["days"], "net_change", account.today, is_seen=True).week
    below = f"{change_of(net)} contacts in 7 days" if tiers and net is not None else ""
    trend = tuple(row["member_count"] for row in account.rows["days"][-_CAMPAIGN_DAYS.days :] if row["member_count"] is not None)
    return Figure("Reachable people", number(reachable) if tiers else UNKNOWN, below, trend, "all contacts, 90 days")


def _openings(account: AccountData) -> Figure:
    first, zone = account.today - _CAMPAIGN_DAYS, ZoneInfo(account.zone)
    known = [row for row in account.rows["campaigns"] if row["opened_count"] is not None and row["delivered_count"] is not None]
    dated = [(row, row["sent_at"] or row["created_at"]) for row in known]
    recent = [row for row, moment in dated if moment and moment.astimezone(zone).date() > first]
    opened, delivered = total(recent, "opened_count"), total(recent, "delivered_count")
    below = plural(len(recent), "campaign") if recent else "no campaign"
    rates = [row["open_rate"] for row, _ in dated if row["open_rate"] is not None]
    trend = tuple(reversed(rates[:_TREND]))
    rate = opened / delivered if delivered else None
    return Figure("Messages opened", share(rate), f"{below} in 90 days", trend, f"the last {len(trend)} campaigns")


def _rating(account: AccountData) -> Figure:
    rated = [row for row in account.rows["channels"] if row["average_rating"] is not None and row["review_count"]]
    reviews = total(rated, "review_count")
    mean = sum(row["average_rating"] * row["review_count"] for row in rated) / reviews if reviews else None
    return Figure("Rating on review sites", rating(mean), f"of 5, {plural(int(reviews), 'review')}" if reviews else "no rated reviews")


def _coupons(account: AccountData) -> Figure:
    issued, redeemed = (total(account.rows["coupons"], column) for column in ("issued_count", "redeemed_count"))
    below = f"{number(redeemed)} of {number(issued)}" if issued else "none issued"
    return Figure("Coupons redeemed", share(redeemed / issued if issued else None), below)


def total(rows: Rows, column: str) -> float:
    return sum(row[column] or 0 for row in rows)


def tiers_of(account: AccountData) -> dict[str, int]:
    """How many addresses are in each tier, in the order of worth; tiers that this version does not know come last."""
    counts = {row["engagement_tier"]: row["addresses"] for row in account.rows["tiers"]}
    return {tier: counts.get(tier, 0) for tier in [*TIERS, *counts]} if counts else {}


def is_lacking(row: Row) -> bool:
    """Whether something of it was not read, cannot be read, or is late."""
    return (row["coverage_rate"] or 0) < 1 or bool(row["rejected_count"]) or bool(row["is_overdue"])


def is_mostly_unread(row: Row) -> bool:
    """Whether less than half of it was read."""
    return (row["coverage_rate"] or 0) < 0.5
