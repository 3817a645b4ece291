"""Computes the report's key figures and headline from its rows, without I/O. Not here: SQL
(`queries`), layout (`templates/`)."""

import datetime as dt
import math
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from home.formatting import (
    UNKNOWN,
    change_of,
    count_of,
    cut_text,
    days_of,
    format_day,
    format_number,
    format_points,
    format_rating,
    format_share,
    short_day,
)
from report.queries import AccountData
from report.row_types import Campaign, RefusedListing, Row, Rows, Subject

#: The age up to which a campaign is news.
_NEWS_DAYS = dt.timedelta(days=14)
#: How many refused listings are named.
_NAMED_LISTINGS = 4
#: The weeks of a key figure, the weeks that define the usual range, and a year.
SPAN_WEEKS = 13
_USUAL_WEEKS = 8
_YEAR_WEEKS = 52

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: Tier → its rule in words, the best tier first.
TIERS: Mapping[str, str] = _TEXTS["tiers"]
TIERS_NOTE = "Each address counts once. Unreachable people are in no other tier."
#: Anchor → the section's name and contents, in the order of the page.
SECTIONS: Mapping[str, Any] = _TEXTS["sections"]
#: Column → its name and what it counts, in the order of the page.
MEASURES: Mapping[str, Sequence[str]] = _TEXTS["measures"]


class Figure(NamedTuple):
    """A large number with its name. `below`: its sample and its period; `sample`: how many
    campaigns or reviews it is of; `trend`: a series, the oldest value first, with `trend_name` as
    its period and `trend_label` as its text alternative."""

    name: str
    value: str
    below: str
    compared: str = ""
    trend: tuple[float, ...] = ()
    trend_name: str = ""
    trend_label: str = ""
    sample: str = ""

    @property
    def value_of_sample(self) -> str:
        """The value with its sample: `5.0, 1 review`."""
        return add_sample(self.value, self.sample)


def add_sample(value: str, sample: str) -> str:
    """A value, and what it is of in words, unless one of them is unknown."""
    return f"{value}, {sample}" if sample and value != UNKNOWN else value


class Change(NamedTuple):
    """A measure in the last whole week, the week before, 52 weeks before, and so far in the running
    week, as texts. `usual`: the usual range; `surprise`: how far the last week is outside of it, in
    widths of the range."""

    name: str
    last: str
    before: str
    difference: str
    year_before: str
    so_far: str
    usual: tuple[int, int] | None
    surprise: float
    is_known: bool


def last_week(account: AccountData) -> dt.date:
    """The Monday of the last whole week."""
    return account.today - dt.timedelta(days=account.today.weekday() + 7)


def format_measure(column: str, value: float | None) -> str:
    """A measure's value as text."""
    if column.endswith("_rate"):
        return format_share(value)
    return format_rating(value) if column == "average_rating" else format_number(value)


def list_known_measures(rows: Rows) -> list[str]:
    """The measures that are known for at least one period, in the order of the page."""
    return [column for column in MEASURES if any(row.get(column) is not None for row in rows)]


def show_measure(row: Row, column: str) -> str:
    """A measure of a period as text; an average rating with the number of its reviews."""
    value = format_measure(column, row.get(column))
    count = row.get("rating_count") if column == "average_rating" else None
    return add_sample(value, "" if count is None else count_of(int(count), "review"))


def format_difference(column: str, value: float | None, before: float | None) -> str:
    """The difference between two values of a measure as text."""
    if value is None or before is None:
        return UNKNOWN
    if column.endswith("_rate"):
        return format_points(value - before)
    return change_of(value - before, 1 if column == "average_rating" else 0)


def list_changes(account: AccountData) -> list[Change]:
    """The changes of all measures. Rates have no usual range, and neither has what is sent, which
    the owner decides."""
    weeks = account.rows["weeks"]
    if not weeks:
        return []
    found = []
    for column, (name, _) in MEASURES.items():
        _, last, before, *_ = values = [row[column] for row in weeks]
        is_usual = column.endswith("_count") and column not in ("sent_count", "automation_count")
        usual = usual_range(values[2 : 2 + _USUAL_WEEKS]) if is_usual and last is not None else None
        surprise = (
            max(last - usual[1], usual[0] - last, 0) / max(usual[1] - usual[0], 1) if usual else 0
        )
        found.append(
            Change(
                name,
                show_measure(weeks[1], column),
                show_measure(weeks[2], column),
                format_difference(column, last, before),
                show_measure(weeks[1 + _YEAR_WEEKS], column),
                show_measure(weeks[0], column),
                usual,
                surprise,
                is_known=any(value is not None for value in values[:3]),
            )
        )
    return found


def usual_range(values: Sequence[float | None]) -> tuple[int, int] | None:
    """The median of earlier weeks, plus and minus twice their standard deviation, estimated as
    1.4826 median absolute deviations, and at least as large as the median's square root. It
    includes all weeks but the lowest and the highest one, since visits follow campaigns: most weeks
    have none. None with less than four weeks."""
    known = sorted(value for value in values if value is not None)
    if len(known) < _USUAL_WEEKS / 2:
        return None
    middle = statistics.median(known)
    spread = 1.4826 * statistics.median(abs(value - middle) for value in known)
    reach = 2 * max(spread, math.sqrt(middle), 1)
    least = min(middle - reach, known[1])
    most = max(middle + reach, known[-2])
    return max(math.floor(least), 0), math.ceil(most)


#: Measures that need data of two nights.
_NEED_TWO_NIGHTS = ("joined_count", "left_count", "social_click_count", "online_review_count")


def explain_unknown(changes: Sequence[Change]) -> list[str]:
    """Which measures of the last weeks are unknown, and why: a sentence per reason."""
    known = {change.name for change in changes if change.is_known}
    reasons: dict[str, list[str]] = {}
    for column, (name, _) in MEASURES.items():
        if name not in known:
            reasons.setdefault(_explain_column(column), []).append(name.lower())
    return [f"No figures for {', '.join(names)}: {reason}." for reason, names in reasons.items()]


def _explain_column(column: str) -> str:
    if column in _NEED_TWO_NIGHTS:
        return (
            "they compare each night with the night before, so they begin with the first complete "
            "week after the first sync"
        )
    if column in ("open_rate", "click_rate"):
        return "no campaign with known results was sent in these weeks"
    if column == "average_rating":
        return "no review with a rating is known of these weeks"
    if column == "automation_count":
        return "no message of an automation is known"
    return "none have been read"


def find_empty_sections(account: AccountData) -> dict[str, str]:
    """Section without content → why: there is nothing, or not everything was read."""
    known = {
        "changes": any(change.is_known for change in list_changes(account)),
        "months": any(list_known_measures(account.rows["months"])),
        "data": True,
    }
    empty = {
        name: section
        for name, section in SECTIONS.items()
        if not known.get(name, any(map(account.rows.get, section.get("rows", ()))))
    }
    unread = [name for name, section in empty.items() if not account.is_read(*section["read"])]
    names = ", ".join(SECTIONS[name]["name"] for name in unread)
    return {
        name: f"Not read completely yet: {names}." if name in unread else section["absent"]
        for name, section in empty.items()
    }


def find_newest_campaign(account: AccountData) -> Campaign | None:
    """The campaign that was sent last."""
    return next(
        (row for row in account.rows["campaigns"] if row["type"] != "automated" and row["sent_at"]),
        None,
    )


def describe_refusals(account: AccountData) -> str:
    """Which listings the shrink check refused; empty without any."""
    names = [_name_listing(row) for row in account.rows["refused"]]
    if not names:
        return ""
    hidden_count = len(names) - _NAMED_LISTINGS
    more = f" and {hidden_count} more" if hidden_count > 0 else ""
    return (
        f"Most rows are suddenly missing: {', '.join(names[:_NAMED_LISTINGS])}{more}. The earlier "
        "rows are still counted. Compare this with the service. If the rows are really gone, ask "
        "the person who runs marketing-sync to run marketing-sync sync --accept-shrink."
    )


def _name_listing(row: RefusedListing) -> str:
    name = row["table_name"].replace("_", " ")
    return f"{name} of “{cut_text(row['list_name'], 60)}”" if row["list_name"] else name


def write_headline(account: AccountData) -> list[str]:
    """The sentences at the top: last week in figures, what was unusual, and the newest
    campaign."""
    return [*_describe_week(account), *_describe_unusual(account), *_describe_newest(account)]


def _describe_week(account: AccountData) -> Iterator[str]:
    """The known figures of the last whole week."""
    row = account.rows["weeks"][1] if account.rows["weeks"] else {}
    parts = _describe_messages(row)
    pairs = (
        ("contact", "joined", "joined_count", "left", "left_count"),
        ("good review", "on the feedback page", "good_count", "bad", "bad_count"),
    )
    for unit, verb, column, other, second in pairs:
        if row.get(column) is not None:
            more = f", {format_number(row[second])} {other}" if row[second] is not None else ""
            parts.append(f"{count_of(int(row[column]), unit)} {verb}{more}")
    count = row.get("online_review_count")
    if count is not None:
        mean = (
            f", average {format_rating(row['average_rating'])} of 5"
            if row["average_rating"] is not None
            else ""
        )
        parts.append(f"{count_of(int(count), 'review')} on review sites{mean}")
    if row.get("redeemed_count") is not None:
        parts.append(f"{count_of(int(row['redeemed_count']), 'coupon')} redeemed")
    if parts:
        yield f"Last complete week, {days_of(last_week(account))}: {'; '.join(parts)}."


def _describe_messages(row: Row) -> list[str]:
    parts = []
    if row.get("campaign_count"):
        opened = (
            f", {format_share(row['open_rate'])} opened" if row["open_rate"] is not None else ""
        )
        count = row["sent_count"]
        messages = f" with {count_of(count, 'message')}" if count is not None else ""
        parts.append(f"{count_of(row['campaign_count'], 'campaign')}{messages}{opened}")
    elif row.get("campaign_count") == 0:
        parts.append("no campaign was sent")
    if row.get("automation_count"):
        parts.append(f"{count_of(row['automation_count'], 'automation message')}")
    return parts


def _describe_unusual(account: AccountData) -> Iterator[str]:
    """The measures of the last whole week farthest outside their usual range, in up to two
    sentences. A campaign is mentioned, since it causes visits and the like."""
    known = [change for change in list_changes(account) if change.usual]
    moved = sorted(
        (change for change in known if change.surprise), key=lambda change: -change.surprise
    )[:2]
    after = (
        " A campaign was sent that week."
        if moved and account.rows["weeks"][1]["campaign_count"]
        else ""
    )
    for change in moved:
        least, most = change.usual or (0, 0)
        usual = f"usually {format_number(least)} to {format_number(most)}"
        yield f"{change.name}: {change.last} in that week, {usual}.{after}"
    if known and not moved:
        yield f"Nothing in that week was unusual, compared with the {_USUAL_WEEKS} weeks before."


def _describe_newest(account: AccountData) -> Iterator[str]:
    """A sentence about the newest campaign if it is news and its open rate is known."""
    row = find_newest_campaign(account)
    if row:
        sent = row["sent_at"]
        median = row["median_open_rate_90d"]
        age = account.today - sent.astimezone(ZoneInfo(account.zone)).date()
        if row["open_rate"] is not None and median is not None and age <= _NEWS_DAYS:
            yield (
                f"“{cut_text(row['subject'] or '(no subject)', 60)}”, sent {format_day(sent)}: "
                f"{format_share(row['open_rate'])} opened so far, usually {format_share(median)}."
            )


def key_figures(account: AccountData) -> list[Figure]:
    """Four numbers: active contacts, and open rate, rating and coupons of the 13 weeks to last
    Sunday."""
    return [_make_contacts_figure(account), *_make_span_figures(account)]


def _make_contacts_figure(account: AccountData) -> Figure:
    name = "Active contacts"
    counts: dict[dt.date, int] = {}
    member_count = None
    for row in account.rows["days"]:
        if row["active_member_count"] is not None:
            counts[row["day_on"]] = row["active_member_count"]
            member_count = row["member_count"]
    if not counts:
        return Figure(name, UNKNOWN, "")
    last_day = max(counts)
    first = account.today - dt.timedelta(weeks=SPAN_WEEKS)
    trend = tuple(count for day, count in counts.items() if day >= first)
    before = counts.get(last_day - dt.timedelta(days=7))
    compared = f"{change_of(counts[last_day] - before)} in 7 days" if before is not None else ""
    trend_name = f"since {format_day(max(first, min(counts)))}"
    return Figure(
        name,
        format_number(counts[last_day]),
        f"of {format_number(member_count)}, on {format_day(last_day)}",
        compared,
        trend,
        trend_name,
        _describe_trend(f"{name}, {trend_name}", "active_member_count", trend),
    )


def _make_span_figures(account: AccountData) -> Iterator[Figure]:
    """The figures of 13 weeks, compared with the 13 weeks before and with a year before."""
    spans = account.rows["spans"] or [{}] * 3
    ends = f"{SPAN_WEEKS} weeks to {short_day(last_week(account) + dt.timedelta(days=6))}"
    weeks = account.rows["weeks"][SPAN_WEEKS:0:-1]
    for column, count_column, unit in (
        ("open_rate", "campaign_count", "campaign"),
        ("average_rating", "rating_count", "review"),
        ("redeemed_count", "", "coupon"),
    ):
        now = format_measure(column, _read_value(spans[0], column))
        _, before, year = (
            show_measure({**span, column: _read_value(span, column)}, column) for span in spans
        )
        count = spans[0].get(count_column)
        trend = tuple(row[column] for row in weeks if row[column] is not None)
        trend_name = f"each week with a {unit}" if count_column else "each week"
        sample = count_of(int(count), unit) if count is not None else ""
        # a share of all their messages, unlike the median of campaigns that a single one is held to
        together = " together" if column == "open_rate" else ""
        earlier = {f"{SPAN_WEEKS} weeks before": before, "a year before": year}
        yield Figure(
            MEASURES[column][0],
            now,
            f"{sample}{together} in the {ends}" if sample else ends,
            "; ".join(f"{when}: {text}" for when, text in earlier.items() if text != UNKNOWN),
            trend,
            trend_name,
            _describe_trend(f"{MEASURES[column][0]}, {trend_name}", column, trend),
            sample,
        )


def _describe_trend(title: str, column: str, trend: Sequence[float]) -> str:
    if not trend:
        return ""
    first = format_measure(column, trend[0])
    last = format_measure(column, trend[-1])
    return f"{title}: from {first} to {last}"


def _read_value(span: Row, column: str) -> float | None:
    if column == "open_rate":
        delivered = span.get("delivered_count")
        return span["opened_count"] / delivered if delivered else None
    value: float | None = span.get(column)
    return value


def count_tiers(account: AccountData) -> dict[str, int]:
    """Tier → number of addresses, the best tier first and unknown tiers last; nobody needs to know
    that no timeline is unread."""
    counts = {row["engagement_tier"]: row["addresses"] for row in account.rows["tiers"]}
    tiers = [tier for tier in TIERS if tier in counts or tier != "unread"]
    return {tier: counts.get(tier, 0) for tier in [*tiers, *counts]} if counts else {}


def is_lacking(row: Subject) -> bool:
    """Whether a subject's data is incomplete, rejected, late, or has impossible dates."""
    flaws = (row["rejected_count"], row["is_overdue"], row["odd_date_count"])
    return (row["coverage_rate"] or 0) < 1 or any(flaws)


def is_mostly_unread(row: Subject) -> bool:
    """Whether less than half of a subject was read."""
    return (row["coverage_rate"] or 0) < 0.5
