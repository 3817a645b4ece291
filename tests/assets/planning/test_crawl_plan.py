"""The plan of a night for timelines and coupons together."""

import datetime as dt
from functools import partial

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from assets.planning.candidates import ACTIVE
from assets.planning.crawl_plan import (
    COUPONS,
    TIMELINES,
    ContactPlan,
    find_allowance,
    plan_contacts,
    share_night,
)
from assets.planning.order import Reason, Rules
from tests.assets.planning.people import NOW, rows


def coupon_rows(asked_days_ago: list[float | None]) -> pa.Table:
    table = rows(asked_days_ago)
    emails = pa.array([f"p{number}@x.com" for number in range(len(asked_days_ago))])
    known = table.append_column("email", emails).drop_columns(["contact_id", *ACTIVE, "days_since_active"])
    known = known.append_column("first_asked_at", known["asked_at"])
    return known.append_column("times_changed", pa.array([1] * len(emails)))


def plan(
    timelines: list[float | None], coupons: list[float | None], rules: Rules | None = None
) -> ContactPlan:
    candidates = {TIMELINES: partial(rows, timelines), COUPONS: partial(coupon_rows, coupons)}
    return plan_contacts(candidates, rules or Rules(room=0), NOW)


def test_both_questions_share_a_budget_and_timelines_promise_more() -> None:
    found = plan([None] * 6, [None] * 6, Rules(limit=8))
    assert found.entries[TIMELINES].keys.to_pylist() == [1, 2, 3, 4, 5, 6]
    assert found.entries[COUPONS].keys.to_pylist() == ["p0@x.com", "p1@x.com"]
    assert found.requests == 8


def test_what_a_budget_leaves_out_is_told_by_question() -> None:
    found = plan([None] * 6 + [8.0] * 4, [1.0] * 5, Rules(limit=5))
    timelines, coupons = found.entries[TIMELINES], found.entries[COUPONS]
    assert not timelines.is_whole
    assert timelines.waiting + timelines.late + len(timelines.keys) == 10
    assert coupons.is_whole
    assert found.needed >= 10


def test_what_is_not_due_is_not_missing() -> None:
    found = plan([1.0] * 14, [1.0] * 14)
    line = found.entries[TIMELINES]
    assert line.is_whole
    assert found.requests == 4, "a seventh of both"
    assert line.due_at == NOW + dt.timedelta(days=6)
    assert {reason for entry in found.entries.values() for reason in entry.counts} == {Reason.DUE}


def test_a_person_may_ask_for_everybody() -> None:
    found = plan([1.0] * 3, [None], Rules(requests_all=True))
    assert found.entries[TIMELINES].counts == {Reason.ROOM: 3}
    assert found.entries[COUPONS].counts == {Reason.NEW: 1}


def test_an_account_without_contacts_has_an_empty_plan() -> None:
    assert plan([], []).requests == 0


def test_a_shorter_guarantee_asks_more() -> None:
    week, three = (plan([1.0] * 42, [], Rules(days, room=0)).requests for days in (7, 3))
    assert (week, three) == (6, 14)


def test_a_click_is_a_reason() -> None:
    table = rows([2.0] * 3, clicked_at=[NOW, None, None])
    found = plan_contacts({TIMELINES: lambda: table}, Rules(room=0), NOW)
    assert found.entries[TIMELINES].counts[Reason.CLICKED] == 1


def test_the_time_that_is_left_limits_the_requests() -> None:
    at_six = NOW + dt.timedelta(hours=4)
    assert find_allowance(None, None, NOW, 15.0, 1) is None
    assert find_allowance(None, at_six, NOW, 15.0, 1) == int(4 * 3600 * 15 * 0.97)
    assert find_allowance(1000, at_six, NOW, 15.0, 1) == 980
    assert find_allowance(1000, None, NOW, 15.0, accounts=4) == 245
    assert find_allowance(0, None, NOW, 15.0, 1) == 0
    assert find_allowance(None, NOW - dt.timedelta(hours=1), NOW, 15.0, 1) == 0


def test_what_is_dated_in_the_future_is_due_now_and_not_when_that_day_has_come() -> None:
    """A clock was ahead when it was asked; when it was, nobody knows."""
    found = plan([-10.0, -0.01, 1.0], [])
    line = found.entries[TIMELINES]
    assert line.keys.to_pylist() == [1]
    assert line.counts == {Reason.NEW: 1}
    assert line.is_whole


def test_who_was_first_seen_in_the_future_and_is_left_out_is_due_like_the_others() -> None:
    later = [NOW + dt.timedelta(days=10)] * 3
    candidates = {TIMELINES: partial(rows, [-10.0, None, 1.0], first_seen_at=later)}
    entry = plan_contacts(candidates, Rules(limit=1), NOW).entries[TIMELINES]
    assert (len(entry.keys), entry.waiting) == (1, 1)
    assert entry.due_at == NOW + dt.timedelta(days=6)


def test_what_was_noticed_by_a_clock_that_was_ahead_is_no_news_every_night() -> None:
    later = [NOW + dt.timedelta(days=9), NOW - dt.timedelta(hours=1)]
    candidates = {TIMELINES: partial(rows, [1.0, 1.0], row_at=later)}
    found = plan_contacts(candidates, Rules(room=0), NOW).entries[TIMELINES]
    assert found.counts[Reason.ROW] == 1


NIGHT_S = 1800


def test_a_night_has_room_at_the_rate_of_the_account() -> None:
    assert share_night({"a": 99}, {"a": 15.0}, NIGHT_S, None) == {"a": 27_000}
    assert share_night({}, {"a": 15.0, "b": 5.0}, NIGHT_S, 20.0) == {"a": 18_000, "b": 9_000}


def test_accounts_that_fit_are_read_whole_at_the_rate_of_the_machine() -> None:
    wanted = {"large": 50_000, "small": 1_000, "middle": 9_000}
    room = share_night(wanted, dict.fromkeys(wanted, 15.0), NIGHT_S, 20.0)
    assert room == {"small": 12_000, "middle": 17_500, "large": 26_000}
    assert sum(min(room[name], wanted[name]) for name in wanted) == 20 * NIGHT_S


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**6), min_size=1),
    st.floats(0.1, 100.0),
    st.none() | st.floats(0.1, 500.0),
)
def test_no_account_and_no_machine_gets_more_than_it_can_send(
    wanted: dict[str, int], rate: float, measured: float | None
) -> None:
    room = share_night(wanted, dict.fromkeys(wanted, rate), NIGHT_S, measured)
    assert all(0 <= count <= rate * NIGHT_S for count in room.values())
    sent = sum(min(room[name], wanted[name]) for name in wanted)
    assert measured is None or sent <= measured * NIGHT_S * 1.001
