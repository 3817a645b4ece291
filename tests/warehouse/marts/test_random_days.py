"""Marts over random days with up to three readings each equal a calculation from what the readings showed."""

import datetime as dt
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Once
from tests.depth import DEEP
from tests.simulators.list_histories import FIRST_ROUND, ROUNDS_A_DAY, History
from tests.warehouse.marts import expected_attribution, expected_growth, expected_periods, expected_readings
from tests.warehouse.marts.comparing import differences
from tests.warehouse.marts.expected import Found, Source, row_of
from tests.warehouse.marts.expected_campaigns import performance
from tests.warehouse.marts.expected_contacts import sent_at
from tests.warehouse.marts.rows import Row, frame, read, together, write
from tests.warehouse.selected import selected
from warehouse.connection import open_database
from warehouse.models import build_models

_HISTORIES = 100
_DAYS = 6 if DEEP else 3
_SEED = 0
#: The first round of the last day: the days before it are over, but for the one west of UTC.
_LATE = ROUNDS_A_DAY * (_DAYS - 1)
_MARTS = ("list_growth_daily", "account_daily", "attribution", "period_summary")
_MEMBERS = (
    *("account", "day_on", "member_count", "active_member_count", "joined_count", "moved_in_count"),
    *("left_count", "moved_out_count", "list_days_covered"),
)
_PAGE = "https://shop.example.com/menu"


def _at(draw: random.Random) -> dt.datetime:
    return FIRST_ROUND + dt.timedelta(hours=draw.randint(-400, 24 * _DAYS))


def _behaviour(history: History) -> dict[str, list[Row]]:
    """What the first contacts were sent and did, their coupons, reviews and campaigns: it does not change."""
    draw, account = history.draw, history.account
    seen = {"account": account, "_first_seen_at": FIRST_ROUND, "_changed_at": FIRST_ROUND}
    emails = [row["email"] for row in history.rows.values() if row["email"]]
    rows: dict[str, list[Row]] = {
        "business": [{**seen, "business_id": 1, "timezone": str(history.zone)}],
        "goals": [seen | row_of("goal_id name value_type value links", 1, "Menu", "Fixed", 80, [_PAGE])],
        "sync.contact_coverage": [],
    }
    for number in (1, 2, 3):
        created_at = _at(draw)
        stats = {"opened_count": draw.randint(0, 9), "unopened_count": 5, "bounced_count": 1}
        campaign = row_of("campaign_id type status subject", number, "standard", "sent", f"Letter {number}")
        times = {"created_at": created_at, "sent_at": created_at + dt.timedelta(hours=1)}
        rows.setdefault("campaigns", []).append(seen | campaign | times)
        asked = row_of("campaign_id observed_on unsubscribed_count", number, FIRST_ROUND.date(), 0)
        rows.setdefault("campaign_stats", []).append(seen | asked | stats)
    for contact_id in sorted({contact_id for _, contact_id in history.rows}):
        contact = {**seen, "contact_id": contact_id}
        rows["sync.contact_coverage"].append(
            {"account": account, "contact_id": contact_id, "timeline_asked_at": FIRST_ROUND}
        )
        for number in range(draw.randint(0, 3)):
            sent, clicked = _at(draw), draw.random() < 0.7
            shown = (sent + dt.timedelta(minutes=90)).astimezone(history.zone)
            details = {"subject": f"Letter {draw.randint(1, 3)}", "links-clicked": str(int(clicked))}
            if clicked and draw.random() < 0.9:
                details["click-date"] = f"{shown:%Y-%m-%d %I:%M %p}"
            told = json.dumps([{"key": key, "value": value} for key, value in details.items()])
            event = {"key": "email-campaign-sent", "snippet": details["subject"], "occurred_at": sent}
            key = f"{contact_id}-{number}"
            rows.setdefault("timeline_events", []).append(
                contact | event | {"event_key": key, "details": told}
            )
            visit = {"link": _PAGE, "utm_source": draw.choice(("google", None)), "visited_at": _at(draw)}
            rows.setdefault("timeline_visits", []).append(contact | visit | {"visit_key": key})
    for number, email in enumerate(sorted(emails)):
        redeemed_on = draw.choice((None, _at(draw).date()))
        coupon = {"coupon_id": number, "email": email.upper(), "redeemed_on": redeemed_on}
        rows.setdefault("coupons", []).append({**seen, **coupon, "is_redeemed": redeemed_on is not None})
        review = seen | {"review_key": str(number), "channel": "Yelp", "reviewed_at": _at(draw)}
        review["rating"] = draw.choice((1.0, 4.5, None))
        rows.setdefault("online_reviews", []).append(review)
    return rows


def _readings(histories: list[History]) -> Iterator[dict[str, list[Row]]]:
    for history in histories:
        as_of = max(reading.moment for reading in history.readings)
        columns = "account table_name scope as_of is_complete"
        yield {
            "contacts": list(history.rows.values()),
            "lists": list(history.list_rows.values()),
            "sync.readings": history.reading_rows(),
            "sync.coverage": [row_of(columns, history.account, "contacts", "list_id=1", as_of, True)],
        }


def _histories() -> list[History]:
    return [History(f"a{seed:03}", random.Random(seed)) for seed in range(_SEED, _SEED + _HISTORIES)]


def _live(history: History, number: int) -> None:
    """One round, unless nobody reads then; the first one always happens."""
    if number:
        history.live()
    if not number or history.draw.random() < 0.8:
        history.read(number)


def _build(folder: Path) -> None:
    """Keep the versions of contacts after each round of readings, and build the marts at the end."""
    path, histories = folder / "warehouse.duckdb", _histories()
    for number in range(_DAYS * ROUNDS_A_DAY):
        for history in histories:
            _live(history, number)
        if number == 0:
            write(path, together(map(_behaviour, histories)))
        else:
            with open_database(path) as connection:
                for name in ("source.contacts", "source.lists", "sync.readings", "sync.coverage"):
                    connection.execute(f"delete from {name}")
        write(path, together(_readings(histories)))
        assert not build_models(path, select=["history_contacts"]).failure_summary
        if number == _LATE:
            models = selected("+list_growth_daily", "+account_daily")
            assert not build_models(path, select=models).failure_summary
            shutil.copyfile(path, folder / "late.duckdb")
    report = build_models(path, select=selected(*(f"+{name}" for name in _MARTS)))
    assert not report.failure_summary, report.failure_summary


@pytest.fixture(scope="module")
def marts(once: Once) -> Iterator[duckdb.DuckDBPyConnection]:
    path = once("random_days", _build) / "warehouse.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def histories() -> list[History]:
    """The same ones again: what is drawn for them is what was drawn when the models were built."""
    found = _histories()
    for number in range(_DAYS * ROUNDS_A_DAY):
        for history in found:
            _live(history, number)
            if number == 0:
                _behaviour(history)
    return found


@pytest.fixture(scope="module")
def source(marts: duckdb.DuckDBPyConnection, histories: list[History]) -> Source:
    """The tables, with the growth of lists as the readings tell it."""
    tables = read(marts, "source"), read(marts, "sync")
    found = Source(*tables, {one.account: one.zone for one in histories}, FIRST_ROUND)
    growth = [row for history in histories for row in expected_readings.list_growth_daily(history)]
    found.results["list_growth_daily"] = growth
    return found


def _growth(source: Source) -> Found:
    return expected_growth.list_growth_daily(source)


@pytest.mark.slow
@pytest.mark.parametrize("mart", _MARTS)
def test_marts_equal_what_the_readings_showed(
    mart: str, marts: duckdb.DuckDBPyConnection, source: Source
) -> None:
    key, expected = {
        "list_growth_daily": (("account", "list_id", "day_on"), _growth),
        "account_daily": (("account", "day_on"), expected_growth.account_daily),
        "attribution": (
            ("account", "outcome", "outcome_key", "touch_number"),
            expected_attribution.attribution,
        ),
        "period_summary": (
            ("account", "period", "begins_on"),
            lambda source: expected_periods.period_summary(source, performance(source, sent_at(source))),
        ),
    }[mart]
    found = frame(marts, f"from marts.{mart}")
    assert found["account"].nunique() == _HISTORIES
    assert list(differences(found, expected(source), key)) == []


@pytest.mark.slow
def test_sizes_add_up_and_no_survivor_is_negative(marts: duckdb.DuckDBPyConnection) -> None:
    """A day's size is that of the day before and the net change."""
    rows = marts.execute(
        "select account, list_id, size, net_change, survivor_count from marts.list_growth_daily "
        "order by account, list_id, day_on"
    ).fetchall()
    before: dict[tuple[str, int], int] = {}
    for account, list_id, size, net_change, survivor_count in rows:
        if net_change is not None:
            assert size == before.get((account, list_id), 0) + net_change
        if size is not None:
            before[account, list_id] = size
        assert survivor_count is None or survivor_count >= 0
    assert len({account for account, *_ in rows}) == _HISTORIES


@pytest.mark.slow
@pytest.mark.parametrize("mart", ["list_growth_daily", "account_daily"])
def test_a_day_that_is_over_does_not_change_afterwards(
    mart: str, marts: duckdb.DuckDBPyConnection, once: Once
) -> None:
    late = once("random_days", _build) / "late.duckdb"
    columns = "* exclude (list_name)" if mart == "list_growth_daily" else ", ".join(_MEMBERS)
    over = f"select {columns} from {{}} where day_on < date '{FIRST_ROUND:%Y-%m-%d}' + {_DAYS - 2}"
    with duckdb.connect(str(late), read_only=True) as before:
        then = before.execute(over.format(f"marts.{mart}") + " order by all").fetchall()
    assert len(then) > _HISTORIES
    assert marts.execute(over.format(f"marts.{mart}") + " order by all").fetchall() == then
