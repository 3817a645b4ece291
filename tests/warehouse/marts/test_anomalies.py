"""Unusual days, where the truth is known because somebody planted it."""

import datetime as dt
from collections.abc import Iterable

import duckdb
import numpy as np
import pandas as pd
import pytest

from warehouse.models import ModelSettings

TODAY = dt.date(2026, 3, 20)  # a Friday
FIGURES = ["joined_count", "left_count", "visit_count", "good_count", "bad_count", "online_review_count"]
FIGURES += ["view_count", "positive_count", "negative_count", "social_click_change"]
#: What may have come about over several days.
_SPANS = {"joined_count": "list", "left_count": "list", "social_click_change": "social"}


def anomalies(days: pd.DataFrame, campaign_at: str | None = None) -> pd.DataFrame:
    """What the mart makes of days (account, day_on, any of FIGURES, days covered) and a campaign."""
    models = [node for node in ModelSettings().list_nodes() if not node.is_test]
    node = next(node for node in models if node.relation == "marts.anomalies")
    with duckdb.connect() as connection:
        connection.execute("create schema marts; create schema staging; create schema intermediate")
        accounts = pd.DataFrame({"account": days["account"].unique(), "today": TODAY})
        wanted = {**dict.fromkeys(FIGURES), "list_days_covered": 1, "social_days_covered": 1}
        filled = days.assign(**{name: value for name, value in wanted.items() if name not in days})
        connection.register("accounts", accounts)
        connection.register("days", filled)
        (home,) = [needed for needed in node.needs if needed.endswith(".int_accounts")]
        at = f"timestamptz '{campaign_at or '2020-01-01'}'"
        for table, rows in (
            (home, "account, 'Europe/Berlin' as timezone, today::date as today from accounts"),
            ("marts.campaign_performance", f"'main' as account, {at} as sent_at, 900 as sent_count"),
            ("marts.account_daily", "* replace (day_on::date as day_on) from days"),
        ):
            connection.execute(f"create table {table} as select {rows}")
        for name in FIGURES:
            connection.execute(f"alter table marts.account_daily alter {name} type bigint")
        return connection.execute(node.sql).df()


def days_of(account: str, name: str, values: Iterable[float | None], **more: object) -> pd.DataFrame:
    """Values of the days up to yesterday."""
    known = list(values)
    on = [TODAY - dt.timedelta(days=ago) for ago in range(len(known), 0, -1)]
    return pd.DataFrame({"account": account, "day_on": on, name: pd.array(known, dtype="Int64"), **more})


def test_a_day_is_compared_with_the_same_weekday_before() -> None:
    """Thursdays have 10, other days 100; yesterday's had 60. The band: (√10.375 ± 2)² - 0.375."""
    values: list[float | None] = [10 if ago % 7 == 1 else 100 for ago in range(92, 0, -1)]
    values[-1] = 60
    (found,) = anomalies(days_of("main", "view_count", values)).to_dict("records")
    assert (found["day_on"].date(), found["figure"]) == (dt.date(2026, 3, 19), "view_count")
    assert (found["value"], found["usual_value"]) == (60, 10)
    band = ((10.375**0.5 - 2) ** 2 - 0.375, (10.375**0.5 + 2) ** 2 - 0.375)
    assert (found["usual_low"], found["usual_high"]) == pytest.approx(band)
    assert found["deviation"] == pytest.approx(2 * 60.375**0.5 - 2 * 10.375**0.5)
    assert (
        found["sentence"]
        == "Views of the feedback page: 60 on Thursday, 19 March 2026, usually 10 on a Thursday"
    )


@pytest.mark.parametrize(
    ("sent_at", "is_said"),
    [
        ("2026-03-19 22:59+00", True),
        ("2026-03-17 23:00+00", True),
        ("2026-03-17 22:59+00", False),
        ("2026-03-19 23:00+00", False),
    ],
)
def test_a_campaign_of_that_day_or_the_one_before_is_said(sent_at: str, is_said: bool) -> None:
    """In the account's time zone, an hour ahead of UTC."""
    found = anomalies(days_of("main", "visit_count", [5] * 91 + [60]), sent_at)
    said = " (a campaign was just sent)" if is_said else ""
    assert found["sentence"].tolist() == [
        f"Visits: 60 on Thursday, 19 March 2026, usually 5 on a Thursday{said}"
    ]
    assert found["is_after_campaign"].tolist() == [is_said]


@pytest.mark.parametrize(
    "days",
    [
        days_of("main", "view_count", [5] * 41 + [90]),  # five earlier Thursdays
        days_of("main", "view_count", [5] * 91 + [None]),  # not known is not nothing
        days_of("main", "view_count", [0, 1, 2] * 30 + [0, 3]),  # small numbers
        days_of("main", "social_click_change", [5] * 91 + [-1]),  # the service corrected itself
        *(
            days_of("main", figure, [5] * 91 + [90], **{f"{kind}_days_covered": [1] * 91 + [days]})
            for figure, kind in _SPANS.items()
            for days in (4, None)  # of four days together; nobody knows of how many
        ),
        # of the Thursdays before, only five were of a day alone
        days_of("main", "joined_count", [5] * 91 + [90], list_days_covered=[2] * 56 + [1] * 36),
    ],
)
def test_what_nothing_can_be_said_about_is_not_unusual(days: pd.DataFrame) -> None:
    assert anomalies(days).empty


def test_planted_breaks_are_found_where_a_threshold_for_all_is_not_enough() -> None:
    """200 accounts with quiet weekends, growth and sizes of their own; each second one has a day of a third,
    or of three times as much.

    The plain threshold: half and twice the mean of the 28 days before, which is what people set by hand.
    """
    rng = np.random.default_rng(1)
    accounts, planted, plain = [], set(), set()
    for number in range(200):
        size, growth = rng.lognormal(4, 0.7), rng.uniform(0.7, 1.5)
        ago = np.arange(180, 0, -1)
        is_weekend = [(TODAY - dt.timedelta(days=int(day))).weekday() >= 5 for day in ago]
        weekly = np.where(is_weekend, rng.uniform(0.2, 0.6), 1.0)
        means = rng.gamma(25, size / 25, 180) * weekly * growth ** ((180 - ago) / 180)
        values = rng.poisson(means).astype(float)
        if number % 2:
            place = int(rng.integers(100, 180))
            values[place] = round(values[place] * rng.choice([3, 1 / 3]))
            planted.add((f"a{number}", TODAY - dt.timedelta(days=int(ago[place]))))
        means = pd.Series(values).rolling(28).mean().shift().to_numpy()
        odd = [place for place in range(90, 180) if not means[place] / 2 <= values[place] <= means[place] * 2]
        plain |= {(f"a{number}", TODAY - dt.timedelta(days=int(ago[place]))) for place in odd}
        accounts.append(days_of(f"a{number}", "visit_count", values))
    rows = anomalies(pd.concat(accounts))
    found = {(account, day.date()) for account, day in zip(rows["account"], rows["day_on"], strict=True)}
    ours, theirs = (
        (len(planted & some) / len(some), len(planted & some) / len(planted)) for some in (found, plain)
    )
    assert ours[0] > 10 * theirs[0]
    assert ours[1] > 0.5
