"""Rows that were dated by a clock that was wrong neither win over later answers nor stand in their way."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from marketing_api.exchange import new_request_id
from marketing_api.operations import campaigns, contacts, reputation
from tests.warehouse.answering import START, Home
from tests.warehouse.exchanges import exchange, record
from tests.warehouse.timelines import event, load, timeline
from warehouse import tables
from warehouse.archive.archive import Archive
from warehouse.loads.load import Load

DAY = 24 * 60
AHEAD = 10 * DAY  # minutes

pytestmark = pytest.mark.usefixtures("kept_open")


def people(home: Home, *ids: int, minutes: float = 0, clock_ahead: float = 0) -> dict[str, list[str]]:
    data = {"contacts": {"items": [{"id": id_, "email": f"{id_}@x.com", "status": "1"} for id_ in ids]}}
    answer = home.answer(contacts.GETCONTACTS, data, minutes, clock_ahead=clock_ahead, listid=12)
    report = home.load([answer], tables.CONTACTS)
    return {"stale": report.stale}


def test_a_listing_of_a_night_whose_clock_was_ahead_is_followed_by_the_next(home: Home) -> None:
    people(home, 1, 2, 3, clock_ahead=AHEAD)
    assert people(home, 1, 2, 4, minutes=DAY) == {"stale": []}
    assert home.values(tables.CONTACTS, "contact_id", "_deleted_at is null") == [1, 2, 4]


def test_an_older_answer_stays_older_although_its_clock_was_ahead(home: Home) -> None:
    people(home, 1, 2, minutes=DAY)
    assert people(home, 1, 2, 3, clock_ahead=AHEAD) == {"stale": ["contacts: list_id=12"]}
    assert home.values(tables.CONTACTS, "contact_id", "_deleted_at is null") == [1, 2]


@pytest.mark.parametrize("ahead", [AHEAD, -AHEAD])
def test_the_last_asking_of_a_contact_is_that_of_its_last_request(home: Home, ahead: float) -> None:
    load(home, home.answer(contacts.TIMELINE, {"timeline": {"data": []}}, 0, clock_ahead=ahead, id=1))
    load(home, timeline(home, 1, event(1), minutes=DAY))
    (row,) = home.rows("sync.contact_coverage")
    assert (row["timeline_asked_at"], row["timeline_served"]) == (START + dt.timedelta(days=1), 1)
    assert row["timeline_times_asked"] == 2


def test_a_daily_row_of_a_day_to_come_does_not_stand_for_what_is_current(home: Home) -> None:
    def stats(opened: int, minutes: float, clock_ahead: float = 0) -> None:
        data = {"campaign": {"stats": {"open": f"{opened} (10%)", "unopened": "1 (1%)"}, "clicks": []}}
        home.load(
            [home.answer(campaigns.STATS, data, minutes, clock_ahead=clock_ahead, id=1, type="standard")],
            tables.CAMPAIGN_STATS,
        )

    def days() -> list[tuple[str, int]]:
        rows = home.rows(tables.CAMPAIGN_STATS, "observed_on::varchar as day, opened_count")
        return [(row["day"], row["opened_count"]) for row in rows]

    stats(5, 0)
    stats(6, DAY, clock_ahead=AHEAD)
    assert days() == [("2026-03-02", 5), ("2026-03-13", 6)]
    stats(7, 2 * DAY)
    assert days() == [("2026-03-02", 5), ("2026-03-04", 7)]
    stats(4, DAY / 2)  # an older answer, loaded late, proves nothing about newer ones
    assert days() == [("2026-03-02", 4), ("2026-03-04", 7)]
    before = home.contents()
    with home.warehouse.open_for_writing() as connection:
        connection.execute(
            "delete from sync.loads; delete from source.campaign_stats; delete from sync.coverage"
        )
        loads = map(Load.from_event, home.archive.ledger.list_loads())
        assert len([report for report in home.warehouse.replay_loads(connection, loads) if report]) == 4
    assert home.contents()["source.campaign_stats"] == before["source.campaign_stats"]


def test_days_are_read_at_the_latest_when_something_else_was_read_after_them(home: Home) -> None:
    def reviews(first: str, last: str, minutes: float, clock_ahead: float = 0) -> None:
        answer = home.answer(
            reputation.DIRECT,
            {"reviews": []},
            minutes,
            clock_ahead=clock_ahead,
            filter="date",
            **{"from": first, "to": last},
        )
        home.load([answer], tables.DIRECT_REVIEWS, scope={"from_on": first, "to_on": last})

    reviews("2026-02-01", "2026-03-12", 0, clock_ahead=AHEAD)
    reviews("2026-03-01", "2026-03-03", DAY)
    covered = home.warehouse.covered_days(tables.DIRECT_REVIEWS, "main")
    assert max(last for _, last in covered) == dt.date(2026, 3, 2), (
        "the 3rd is not over, and nothing after it was ever read"
    )


def test_the_ids_of_a_process_are_larger_than_those_of_the_archive_that_it_opens(tmp_path: Path) -> None:
    def recorded(archive: Archive, hours: int) -> int:
        """A request of a process whose clock is so far ahead."""
        request_id = new_request_id() + (hours * 3600 * 10**6 << 10)
        return record(archive, replace(exchange(b"{}"), request_id=request_id))[0]

    with Archive(tmp_path) as archive:
        first = recorded(archive, 1)
        with Archive(tmp_path):  # while it stands in another's journal
            assert new_request_id() > first
        second = recorded(archive, 2)
    with Archive(tmp_path):
        assert new_request_id() > second
