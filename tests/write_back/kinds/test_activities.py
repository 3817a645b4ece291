"""An activity is written exactly once, at the moment it says, to one contact."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from marketing_api.clock import unix_now
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk
from tests.write_back.planner import (
    LATER,
    Planner,
    check_every_row_has_one_fate,
    fates,
    make_warehouse,
    open_known,
    requests,
)
from tests.write_back.plans import activity
from warehouse.connection import open_database
from write_back.account_state import Known
from write_back.input.values import BadValue, parse_moment
from write_back.item import Expected, Item, State
from write_back.kinds import ACTIVITIES
from write_back.kinds.activities import _CUT, IN_TIMELINE
from write_back.refusals import find_refusal as known_refusal

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def plan(known: Known) -> Planner:
    return Planner(known, ACTIVITIES)


def row(
    email: str | None, description: str | None = "Met", when: Any = "2026-02-03 14:05", contact_id: Any = None
) -> dict[str, Any]:
    return {"email": email, "contact_id": contact_id, "description": description, "datetime": when}


def test_an_activity_goes_to_one_contact_active_ones_first_then_the_oldest(plan: Planner) -> None:
    named = [row(f"{name}@example.com") for name in ("ann", "fay", "nobody")]
    planned = plan(*named, row(None, contact_id=201), row("BO@example.com", "Call\r\nback"))
    check_every_row_has_one_fate(planned)
    met = {"description": "Met", "datetime": "2026-02-03 14:05:00"}
    assert list(requests(planned)) == [
        *({"id": "101", **met}, {"id": "302", **met}, met, {"id": "201", **met}),
        {"id": "102", **met, "description": "Call\r\nback"},
    ]
    assert [item.must_look_up for item in planned.items] == [False, False, True, False, False]
    (warning,) = planned.warnings
    assert warning.startswith("2 rows: the address has several contacts; the activity goes to one of them")
    assert warning.endswith("active ones first, then the oldest")
    at = int(dt.datetime(2026, 2, 3, 14, 5, tzinfo=BERLIN).timestamp())
    assert planned.items[0].expected == Expected(description="Met", at=at, look_up_count=1)
    effects = (f"{who}|2026-02-03 14:05:00|Met" for who in ("101", "ann@example.com"))
    assert planned.items[0].effects == dict.fromkeys(effects, "101")
    assert planned.items[3].effects == {"201|2026-02-03 14:05:00|Met": "201"}


# -- when


@pytest.mark.parametrize(
    ("cell", "wall"),
    [
        ("2026-02-03 14:05", "2026-02-03 14:05:00"),
        ("13/02/2026 14:05", "2026-02-13 14:05:00"),
        ("02/13/2026 14:05", "2026-02-13 14:05:00"),
        ("2022-05-26 05:40PM", "2022-05-26 17:40:00"),
        ("23-03-2022 05:13 PM", "2022-03-23 17:13:00"),
        ("2026-02-03", "2026-02-03 00:00:00"),
        ("2026-02-03T13:05:00Z", "2026-02-03 14:05:00"),
        ("2026-07-03T13:05:00+00:00", "2026-07-03 15:05:00"),
        ("1770123900", "2026-02-03 14:05:00"),
        (dt.datetime(2026, 2, 3, 14, 5, 9, 999), "2026-02-03 14:05:09"),
        (dt.datetime(2026, 2, 3, 8, 5, tzinfo=ZoneInfo("America/New_York")), "2026-02-03 14:05:00"),
    ],
)
def test_every_form_becomes_the_accounts_local_time(cell: Any, wall: str) -> None:
    read = parse_moment(cell, BERLIN)
    assert str(read.wall) == wall
    assert read.at == int(dt.datetime.fromisoformat(wall).replace(tzinfo=BERLIN).timestamp())


def test_addresses_that_have_to_be_looked_up_are_counted_once(plan: Planner) -> None:
    rows = (row("x@example.com"), row("X@example.com", "Called"), row("ann@example.com"))
    assert plan(*rows).unknown_address_count == 1


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("2026-03-29 02:30", "this time doesn't exist in Europe/Berlin: the clocks go forward"),
        (dt.datetime(2026, 3, 29, 2, 30), "this time doesn't exist"),
        ("2026-10-25 02:30", "this time occurs twice in Europe/Berlin"),
        ("2026-10-25T02:30:00+01:00", "this time occurs twice in Europe/Berlin"),
        ("soon", "not a date or time"),
        ("31/13/2026", "does not exist"),
        ("11/12/2026", "the day or the month first"),
        ("2026-02-30", "does not exist"),
        ("0001-01-01 00:00", "year 1"),
        ("2126-01-01", "year 2126"),
        (dt.datetime(1, 1, 1), "year 1"),
        ("-", "missing"),
        (None, "missing"),
        ("120", "not a date or time"),
    ],
)
def test_a_moment_that_cannot_be_is_said(cell: Any, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        parse_moment(cell, BERLIN)


@given(
    st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2090, 1, 1)),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
)
def test_moments_with_an_offset_and_local_ones_agree(wall: dt.datetime, name: str) -> None:
    zone = ZoneInfo(name)
    wall = wall.replace(microsecond=0)
    try:
        read = parse_moment(wall.isoformat(" "), zone)
    except BadValue:
        assert wall.replace(tzinfo=zone).utcoffset() != wall.replace(tzinfo=zone, fold=1).utcoffset()
        return
    assert parse_moment(dt.datetime.fromtimestamp(read.at, dt.UTC).isoformat(), zone) == read
    assert read.wall == wall


# -- once


def test_what_was_sent_is_never_sent_again_not_even_when_all_is_to_be_sent(plan: Planner) -> None:
    rows = (row("ann@example.com"), row("nobody@example.com"), row(None, contact_id=201))
    plan.sent(*rows)
    plan.read_again()
    for options in ({}, {"send_all": True}):
        assert set(fates(plan(*rows, **options)).values()) == {"idle: sent before"}
    assert fates(plan(row("ANN@example.com", when="2026-02-03T14:05:00+01:00"))) == {2: "idle: sent before"}
    assert fates(plan(row("ann@example.com", "Met again"))) == {2: "sent"}
    assert fates(plan(row(None, contact_id=101))) == {2: "idle: sent before"}
    assert fates(plan(row(None, contact_id=301))) == {2: "sent"}  # another contact, named by its id


def test_what_went_to_an_address_that_was_looked_up_is_not_sent_to_its_contact_either(known: Known) -> None:
    plan = Planner(known, ACTIVITIES)
    sent = plan.sent(row("nobody@example.com"))
    assert sent.items[0].effects == {"nobody@example.com|2026-02-03 14:05:00|Met": ""}
    effects = {"ed@example.com|2026-02-03 14:05:00|Met": ""}  # as if it had not been known then
    plan.memory.note(replace(sent, items=(replace(sent.items[0], effects=effects),)))
    assert fates(plan(row(None, contact_id=202))) == {2: "idle: sent before"}


@pytest.mark.parametrize("state", [State.PLANNED, State.SENDING, State.UNKNOWN])
def test_what_is_queued_or_unknown_is_not_sent_again(plan: Planner, state: State) -> None:
    plan.sent(row("ann@example.com"), state=state)
    assert fates(plan(row("ann@example.com"), send_all=True)) == {2: "idle: already queued"}


def test_what_the_service_refused_is_refused(plan: Planner) -> None:
    plan.sent(row("ann@example.com"), state=State.REJECTED)
    planned = plan(row("ann@example.com"), send_all=True)
    assert [(bad.rows[0], bad.by_service) for bad in planned.bad] == [(2, True)]


def test_a_row_that_was_refused_for_a_cut_timeline_is_planned_again(plan: Planner) -> None:
    plan.memory.note(plan(row("ann@example.com")), State.REJECTED, message=_CUT)
    assert fates(plan(row("ann@example.com"))) == {2: "sent"}


def test_what_is_in_the_timeline_is_not_sent(plan: Planner) -> None:
    planned = plan(
        row("ann@example.com", "Called  about the offer", "2026-02-01 10:30"),
        row("bo@example.com", "Met & talked", "2026-02-01 10:30:20"),
        row("ann@example.com", "Called about the offer", "2026-02-01 09:30"),
        row("ed@example.com", "Called about the offer", "2026-02-01 10:30"),
        row("ann@example.com", "Called", "2026-02-01 10:30"),
    )
    there = dict.fromkeys((2, 3), "idle: already in the timeline")
    assert fates(planned) == there | dict.fromkeys((4, 5, 6), "sent")


def test_a_row_that_says_the_same_again_names_the_first(plan: Planner) -> None:
    same = (row("ed@example.com"), row(None, contact_id=202))
    found = fates(plan(*same, row("x@example.com"), row("X@example.com")))
    assert (found[2], found[4]) == ("sent", "sent")
    assert (found[3], found[5]) == tuple(f"bad: it says the same as row {first}" for first in (2, 4))


LONG = "the description is too long: 10,001 characters, at most 10,000"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row("ann@example.com", None), "the description is missing"),
        (row("ann@example.com", "x" * 10_001), LONG),
        (row("ann@example.com", when="soon"), "write it like 2026-01-31 14:05"),
        (row(None), "neither an e-mail address nor a contact id"),
        (row(None, contact_id=5), "there is no contact 5"),
    ],
)
def test_a_bad_row_is_said_and_the_others_go_on(plan: Planner, bad: dict[str, Any], said: str) -> None:
    planned = plan(bad, row("ann@example.com"))
    assert said in fates(planned)[2]
    assert fates(planned)[3] == "sent"


_MOMENTS = ["2026-02-01 10:30", "2026-02-01T09:30:00Z", "2026-10-25 02:30", "2026-03-29 02:30", 1769938200]
_ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["ann@example.com", "ED@example.com", "nobody@example.com", None]),
        st.sampled_from(["Met", "Called about the offer", ""]),
        st.sampled_from(_MOMENTS),
        st.sampled_from([None, None, 101, 201, 202, 5]),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=40)
@given(_ROWS, st.sampled_from([State.APPLIED, State.UNKNOWN, State.PLANNED]))
def test_every_row_has_one_fate_and_nothing_is_ever_sent_twice(
    known: Known, rows: list[dict[str, Any]], state: State
) -> None:
    plan = Planner(known, ACTIVITIES)
    check_every_row_has_one_fate(plan.sent(*rows, state=state, at=LATER))
    plan.read_again()
    again = plan(*rows, send_all=True)
    check_every_row_has_one_fate(again)
    assert not again.items


# -- timelines that were not read lately


def unread(row: int, contact_id: int, description: str) -> Item:
    item = activity(row, contact_id, description)
    return replace(item, expected=structs.replace(item.expected, look_up_count=1))


def test_what_another_home_has_written_is_not_written_again(desk: Desk) -> None:
    """This one has never read a timeline."""
    contact_id = int(desk.people()[0]["id"])
    first = activity(2, contact_id, "Called back")
    told = {name: first.params[name] for name in ("description", "datetime")}
    desk.control_write("addactivity", id=contact_id, **told)
    push_id, sent = desk.push(unread(2, contact_id, "Called back"), unread(3, contact_id, "Called"))
    assert sent.applied == 1
    states = [(entry.state, entry.message) for entry in desk.outbox.list_entries(push_id)]
    assert states == [(State.SKIPPED, IN_TIMELINE), (State.APPLIED, None)]
    assert sorted(desk.activities().elements()) == [(contact_id, "Called"), (contact_id, "Called back")]


def test_a_timeline_that_is_cut_before_the_moment_refuses_the_row(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"timeline-cut": "1"})
    contact_id = int(desk.people()[0]["id"])
    push_id, sent = desk.push(unread(2, contact_id, "Met"))
    assert sent.rejected == 1
    (entry,) = desk.outbox.list_entries(push_id)
    assert "does not show the timeline that far back" in str(entry.message)
    assert "sync --only timelines" in getattr(known_refusal(str(entry.message)), "remedy", "")


@pytest.mark.parametrize(("hours_ago", "look_ups"), [(1, 0), (30, 1)])
def test_a_timeline_that_was_read_in_this_night_is_not_looked_at(
    tmp_path: Path, hours_ago: int, look_ups: int
) -> None:
    path = make_warehouse(tmp_path / "warehouse.duckdb")
    read_at = dt.datetime.fromtimestamp(unix_now(), dt.UTC) - dt.timedelta(hours=hours_ago)
    with open_database(path) as connection:
        columns = "'main' as account, 101 as contact_id, ? as timeline_asked_at"
        connection.execute(f"insert into sync.contact_coverage by name select {columns}", [read_at])
    plan = Planner(open_known(path), ACTIVITIES)
    assert plan(row("ann@example.com")).look_up_count == look_ups
    assert plan(row("nobody@example.com")).look_up_count == 2, "who it is, and the timeline"
