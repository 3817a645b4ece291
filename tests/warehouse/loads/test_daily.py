"""Daily tables: totals that the service shows only as of now, kept for each day they were asked."""

import datetime as dt
from pathlib import Path

from marketing_api.operations import campaigns
from tests.warehouse.answering import Home
from warehouse import tables

DAY = 24 * 60


def stats(home: Home, opened: int, minutes: float, campaign_id: int = 1) -> None:
    data = {"campaign": {"stats": {"open": f"{opened} (10%)", "unopened": "1 (1%)"}, "clicks": []}}
    home.load(
        [home.answer(campaigns.STATS, data, minutes, id=campaign_id, type="standard")], tables.CAMPAIGN_STATS
    )


def test_every_day_keeps_its_own_row(home: Home) -> None:
    stats(home, 5, 0)
    stats(home, 9, DAY)
    rows = home.rows(tables.CAMPAIGN_STATS, "observed_on::varchar as day, opened_count")
    assert [tuple(row.values()) for row in rows] == [("2026-03-02", 5), ("2026-03-03", 9)]


def test_the_last_answer_of_a_day_counts(home: Home) -> None:
    stats(home, 5, 0)
    stats(home, 6, 60)
    assert home.values(tables.CAMPAIGN_STATS, "opened_count") == [6]


def test_the_day_is_that_of_asking_in_the_accounts_zone(tmp_path: Path) -> None:
    home = Home(tmp_path, zone="America/Los_Angeles")
    stats(home, 5, -60)  # 07:00 UTC is 23:00 of the day before
    assert home.values(tables.CAMPAIGN_STATS, "observed_on") == [dt.date(2026, 3, 1)]
    home.close()


def test_other_keys_of_the_day_are_left_alone(home: Home) -> None:
    stats(home, 5, 0, campaign_id=1)
    stats(home, 7, 60, campaign_id=2)
    assert home.values(tables.CAMPAIGN_STATS, "opened_count") == [5, 7]
