"""A name means one thing: windows have exactly the days they say, a rate one denominator everywhere."""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest

from docs.generate import definitions
from tests.warehouse.marts.comparing import is_same
from tests.warehouse.marts.described import described
from tests.warehouse.marts.expected import row_of
from tests.warehouse.marts.rows import Row, together, write
from tests.warehouse.selected import selected
from warehouse.models import build_models

_WINDOW = re.compile(r"_(\d+)d(?=_|$)")
#: The account's days: numbers 0 to TODAY, and two that its clock has not reached.
TODAY = 120

#: Zones west and east of UTC, at moments when it is another day there, and beside days on which clocks
#: change.
ACCOUNTS = {
    "midway": ("Pacific/Midway", dt.datetime(2026, 3, 20, 5, 0, tzinfo=dt.UTC)),
    "kiritimati": ("Pacific/Kiritimati", dt.datetime(2026, 3, 20, 15, 0, tzinfo=dt.UTC)),
    "new york": ("America/New_York", dt.datetime(2026, 3, 9, 3, 30, tzinfo=dt.UTC)),
    "berlin": ("Europe/Berlin", dt.datetime(2026, 3, 29, 22, 30, tzinfo=dt.UTC)),
    "azores": (
        "Atlantic/Azores",
        dt.datetime(2026, 1, 23, 12, tzinfo=dt.UTC),
    ),  # 90 days since midnight came twice
}
#: Long before every window.
OLD = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_CLICKED = '[{"key": "subject", "value": "x"}, {"key": "links-clicked", "value": "1"}]'


def edges(account: str) -> dict[str, list[Row]]:
    """Events in the first and last moment of every local day; totals that grow with the day's number."""
    name, now = ACCOUNTS[account]
    zone = ZoneInfo(name)
    first = now.astimezone(zone).date() - dt.timedelta(days=TODAY)
    days = [first + dt.timedelta(days=number) for number in range(TODAY + 3)]
    nights = list(enumerate(days[: TODAY + 1]))
    times = (dt.time(0), dt.time(23, 59, 59, 999_999))
    moments = [
        (number, dt.datetime.combine(day, time, zone)) for number, day in enumerate(days) for time in times
    ]
    # what is dated of the day after would be a day read
    known = [(place, *moment) for place, moment in enumerate(moments) if moment[0] != TODAY + 1]

    def rows(columns: str, some: Iterable[tuple[Any, ...]], **same: Any) -> list[Row]:
        seen = {"account": account, "_first_seen_at": now, "_changed_at": now}
        return [{**seen, **same, **row_of(columns, *values)} for values in some]

    def read(table: str, scope: str) -> Row:
        return {"account": account, "table_name": table, "scope": scope, "as_of": now, "is_complete": True}

    def messages(letter: str, **told: Any) -> list[Row]:
        some = ((f"{letter}{place}", moment) for place, (_, moment) in enumerate(moments))
        return rows("event_key occurred_at", some, contact_id=1, snippet="x", **told)

    campaigns = [(place, f"s{place}", moment) for place, _, moment in known]
    asked = [*((place, days[TODAY]) for place, *_ in campaigns), *((-1, day) for day in days[: TODAY + 1])]
    by_day = ("review_stats", "feedback_views", "sentiment_mentions")
    person = {"email": "a@b.example", "status": "active", "registered_at": OLD}
    mentions = [
        (f"{polarity} {number}", polarity, days[number])
        for number in [*range(TODAY + 1), TODAY + 2]
        for polarity in ("positive", "negative")
    ]
    return {
        "business": rows("business_id timezone", [(1, name)]),
        "sync.coverage": [
            read("business", "all"),
            *(read(table, f"{first}..{days[TODAY]}") for table in by_day),
        ],
        "lists": rows("list_id name", [(1, "x")], _first_seen_at=OLD),
        "contacts": rows("list_id contact_id", [(1, 1)], _first_seen_at=OLD, _changed_at=OLD, **person),
        "sync.contact_coverage": [{"account": account, "contact_id": 1, "timeline_asked_at": now}],
        "timeline_events": [
            *messages("e", key="email-campaign-sent", details=_CLICKED),
            *messages("s", key="sms-sent"),
        ],
        "campaigns": [
            *rows("campaign_id subject created_at", campaigns, type="standard", status="sent"),
            *rows("campaign_id created_at", [(-1, OLD)], type="automated", status="automation"),
        ],
        "campaign_stats": rows(
            "campaign_id observed_on opened_count unopened_count",
            ((number, day, number + 1, 999 - number) for number, day in asked),
            bounced_count=0,
        ),
        "campaign_links": rows("click_count observed_on", nights, campaign_id=-1, url="u", clicker_count=1),
        "social_links": rows("link_id short_url created_at", [(1, "u", OLD)]),
        "social_link_clicks": rows("click_count observed_on", nights, link_id=1, network="x"),
        "social_media_stats": rows("mention_count period_on", nights, network="x"),
        "direct_reviews": rows("review_id reviewed_at", ((place, moment) for place, _, moment in known)),
        "online_reviews": rows(
            "review_key rating reviewed_at",
            ((f"r{place}", number, moment) for place, number, moment in known),
            channel="Yelp",
        ),
        "online_review_channels": rows(
            "average_rating review_count observed_on",
            ((number / 100, number, day) for number, day in nights),
            channel="Yelp",
        ),
        "sentiment_mentions": rows("mention_key polarity reviewed_on", mentions, channel="Yelp"),
        "review_stats": rows("good_count period_on", nights, bad_count=1),
        "feedback_views": rows("view_count period_on", nights),
    }


Expected = Callable[[int], float]


def middle(days: int, last: int = TODAY) -> float:
    """The mean of the numbers of the last days."""
    return last - (days - 1) / 2


def whole(days: int) -> float:
    """The same of days that were over when they were read."""
    return middle(days, TODAY - 1)


def good(days: int) -> float:
    return days * whole(days)


_TWICE: Expected = lambda days: 2 * days  # noqa: E731 - a row of a table
_GOOD_RATE: Expected = lambda days: good(days) / (good(days) + days)  # noqa: E731

#: (mart, which of its rows) → column, as with N for its days → what it must be of N days.
WINDOWS: dict[tuple[str, str], dict[str, Expected]] = {
    ("contact_engagement", "true"): {
        **dict.fromkeys(
            ("sent_Nd_count", "opened_Nd_count", "clicked_Nd_count", "sms_sent_Nd_count"), _TWICE
        ),
        "open_of_sent_Nd_rate": lambda days: 1,
    },
    ("deliverability_by_domain", "true"): {
        **dict.fromkeys(("sent_Nd_count", "opened_Nd_count"), _TWICE),
        **dict.fromkeys(("open_of_sent_Nd_rate", "relative_open_Nd"), lambda days: 1),
    },
    ("list_performance", "true"): {
        **dict.fromkeys(("sent_Nd_count", "opened_Nd_count", "clicked_Nd_count"), _TWICE),
        **dict.fromkeys(("open_of_sent_Nd_rate", "click_of_sent_Nd_rate", "active_Nd_count"), lambda days: 1),
        **dict.fromkeys(
            (f"{fate}_Nd_count" for fate in ("lost", "left", "unsubscribed", "bounced", "other")),
            lambda days: 0,
        ),
        **dict.fromkeys(("active_change_Nd", "churn_Nd_rate"), lambda days: 0),
    },
    ("campaign_performance", f"campaign_id = {2 * TODAY + 1}"): {
        "comparable_count_Nd": lambda days: 2 * days - 1,
        "median_open_rate_Nd": lambda days: (2 * TODAY + 2 - days) / 1000,
        "median_click_rate_Nd": lambda days: 0,
        **dict.fromkeys(("open_rank_Nd", "click_rank_Nd"), lambda days: 1),
    },
    ("campaign_link_clicks", "true"): {"click_count_Nd": lambda days: days},
    ("social_link_performance", "true"): {"click_count_Nd": lambda days: days},
    ("social_daily", "day_on = today"): {"mention_count_mean_Nd": middle},
    ("review_daily", "day_on = today - 1"): {
        **dict.fromkeys(("good_count_mean_Nd", "view_count_mean_Nd", "average_rating_Nd"), whole),
        "bad_count_mean_Nd": lambda days: 1,
        "online_review_count_mean_Nd": lambda days: 2,
        "good_rate_Nd": _GOOD_RATE,
        "positive_rate_Nd": lambda days: 0.5,
    },
    ("reputation_overview", "channel = 'Yelp'"): {
        "average_rating_change_Nd": lambda days: days / 100,
        "average_rating_Nd": whole,
        "review_count_Nd": _TWICE,
        **dict.fromkeys(("positive_count_Nd", "negative_count_Nd"), lambda days: days),
        "positive_rate_Nd": lambda days: 0.5,
    },
    ("reputation_overview", "kind = 'feedback page'"): {
        "review_count_Nd": _TWICE,
        "good_count_Nd": good,
        "bad_count_Nd": lambda days: days,
        "good_rate_Nd": _GOOD_RATE,
        "view_count_mean_Nd": whole,
    },
}


def windowed() -> set[tuple[str, str]]:
    """(mart, column) of everything that names a number of days."""
    return {
        (mart.table, name) for mart in described("marts") for name in mart.columns if _WINDOW.search(name)
    }


@pytest.fixture(scope="module")
def on_edges(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    path: Path = tmp_path_factory.mktemp("edges") / "warehouse.duckdb"
    write(path, together(edges(account) for account in ACCOUNTS))
    report = build_models(path, select=selected(*{f"+{mart}" for mart, _ in WINDOWS}))
    assert not report.failure_summary, report.failure_summary
    return duckdb.connect(str(path), read_only=True)


def test_every_column_that_names_days_is_checked() -> None:
    checked = {(mart, name) for (mart, _), columns in WINDOWS.items() for name in columns}
    assert {(mart, _WINDOW.sub("_Nd", name)) for mart, name in windowed()} == checked


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize(("mart", "chosen"), WINDOWS, ids=lambda part: str(part))
def test_n_days_are_n_days_of_the_account(
    account: str, mart: str, chosen: str, on_edges: duckdb.DuckDBPyConnection
) -> None:
    zone, now = ACCOUNTS[account]
    today = now.astimezone(ZoneInfo(zone)).date()
    sql = f"from marts.{mart} where account = ? and " + chosen.replace("today", f"date '{today}'")
    for name in sorted(column for owner, column in windowed() if owner == mart):
        expected = WINDOWS[mart, chosen].get(_WINDOW.sub("_Nd", name))
        if expected is not None:
            days = int(_WINDOW.findall(name)[0])
            found = on_edges.execute(f"select {name} {sql} and {name} is not null", [account]).fetchall()
            assert found, f"{name} is not known"
            assert all(is_same(value, expected(days)) for (value,) in found), f"{name}: {found}"


def _rates() -> list[tuple[str, str, str]]:
    """(mart, column, description) of every rate."""
    columns = [(mart.table, name, text) for mart in described("marts") for name, text in mart.columns.items()]
    return [column for column in columns if _WINDOW.sub("", column[1]).endswith("_rate")]


def test_a_rate_of_one_name_is_defined_once() -> None:
    texts = definitions()
    for mart, column, text in _rates():
        if not column.startswith(("median_", "account_")):
            assert text.startswith(texts[_WINDOW.sub("", column)]), f"{mart}.{column}"


#: Rates whose denominator is in no column beside them → what it is.
_ELSEWHERE = {
    ("campaign_link_clicks", "click_rate"): (
        "clicker_count / (select delivered_count from marts.campaign_performance as c "
        "where c.account = m.account and c.campaign_id = m.campaign_id)"
    ),
    ("campaign_link_clicks", "click_share_rate"): (
        "click_count / (case when bool_and(click_count is not null) over (partition by account, campaign_id) "
        "then sum(click_count) over (partition by account, campaign_id) end)"
    ),
    ("social_link_performance", "top_network_rate"): None,
    ("automation_activity", "open_of_sent_rate"): "opened_count / open_known_count",
    ("automation_activity", "click_of_sent_rate"): "clicked_count / click_known_count",
    **{
        ("campaign_performance", f"opened_within_{hours}h_rate"): (
            "(select count(*) from marts.contact_campaign as c where c.account = m.account "
            "and c.campaign_id = m.campaign_id "
            f"and date_diff('minute', sent_at, opened_at) between -1 and {60 * hours}) / timed_open_count"
        )
        for hours in (1, 24, 48)
    },
}


@pytest.mark.parametrize(
    ("mart", "column", "text"), _rates(), ids=[f"{mart}.{column}" for mart, column, _ in _rates()]
)
def test_a_rate_has_the_denominator_that_its_definition_names(
    mart: str, column: str, text: str, marts: duckdb.DuckDBPyConnection
) -> None:
    """Over the made-up accounts: the counts stand beside the rate."""
    days = "".join(f"_{found}d" for found in _WINDOW.findall(column))
    if column.startswith("median_") or ((mart, column) == ("review_daily", column) and days):
        return  # of several rows: the windows are checked above
    formula = _ELSEWHERE.get((mart, column), text.split("`")[1])
    if formula is None:
        return
    if days:  # opened_90d_count, good_count_28d
        columns = next(one for one in described("marts") if one.table == mart).columns

        def windowed_name(part: re.Match[str]) -> str:
            names = (f"{part[1]}{days}_count", f"{part[1]}_count{days}")
            return next(name for name in names if name in columns)

        formula = re.sub(r"(\w+)_count", windowed_name, formula)
    part, whole = formula.split(" / ", 1)
    known = f"coalesce({whole} > 0 and {part} between 0 and {whole}, false)"
    rows = marts.execute(f"select {column}, {part}, {whole}, {known} from marts.{mart} as m").fetchall()
    # known where there is something to divide by
    assert [row for row in rows if (row[0] is not None) != row[3]] == []
    assert [row for row in rows if row[3] and not is_same(row[0], row[1] / row[2])] == []
    assert any(row[3] for row in rows)
