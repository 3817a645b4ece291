"""What needs no Redis: its clock as it is estimated, a share of the limit, and a state begun anew."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.pacing import Schedule, Windows
from marketing_api.rate_limit import ALONE, HOLD, ServerClock
from tests.marketing_api.simulated_service import Grid, Run

#: Of one reply: seconds since the one before, on the way there, and on the way back.
REPLIES = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0, 0.4), st.floats(0, 0.4)), min_size=1, max_size=30
)


def replied(
    clock: ServerClock,
    replies: list[tuple[float, float, float]],
    ahead: float,
    drift: float = 0.0,
    now: float = 5000.0,
) -> float:
    """Let the clock learn; returns by how much the server's is ahead at the end."""
    began = now
    for pause, there, back in replies:
        sent = now + pause
        now = sent + there + back
        at = sent + there
        clock.learn(sent, at + ahead + drift * (at - began), now)
    return ahead + drift * (now - began)


@given(REPLIES, st.floats(-1e9, 2e9), st.floats(-5e-4, 5e-4))
def test_the_server_clock_is_known_to_half_the_quickest_reply(
    replies: list[tuple[float, float, float]], ahead: float, drift: float
) -> None:
    clock = ServerClock()
    true = replied(clock, replies, ahead, drift)
    since = [sum(map(sum, replies[place + 1 :])) for place in range(len(replies))]
    error = min(
        (there + back) / 2 + 2 * ServerClock.DRIFT * late
        for (_, there, back), late in zip(replies, since, strict=True)
    )
    assert abs(clock.ahead - true) <= error + 1e-3
    assert clock.times_set == 0


@given(REPLIES, REPLIES, st.sampled_from([-86_400.0, -30.0, 30.0, 86_400.0]))
def test_a_server_clock_that_is_set_is_noticed_with_the_next_reply(
    before: list[tuple[float, float, float]], after: list[tuple[float, float, float]], step: float
) -> None:
    clock = ServerClock()
    replied(clock, [*before, (0, 0.001, 0.001)], 1e9)
    now = 5000 + sum(map(sum, before)) + 0.002
    true = replied(clock, [(0.05, 0.001, 0.001), *after], 1e9 + step, now=now)
    assert clock.times_set == 1
    assert abs(clock.ahead - true) < 0.41


def test_a_client_with_a_share_sends_no_more_than_it() -> None:
    learnt = Run(Grid(), seconds=30).go()
    assert learnt.slots.is_windowed()
    alone = learnt.slots.restart(1030.0, 1.0, ALONE)
    run = Run(Grid(), seconds=30, slots=alone, start=1030.0).go()
    assert run.refused == 0
    assert 0.8 * ALONE < run.share <= ALONE


@pytest.mark.parametrize("offset", [0.0, 0.3, 0.6])
def test_three_machines_that_do_not_see_each_other_stay_below_the_limit(offset: float) -> None:
    """Each sends at its share, evenly; the service counts them together."""
    service, learnt = Grid(offset=offset), Run(Grid(offset=offset), seconds=30).go().slots
    machines = [learnt.restart(1030.0, hold, ALONE) for hold in (1.0, 1.1, 1.25)]
    slots = sorted(
        machine.reserve_slot(at).at for machine in machines for at in itertools.repeat(1030.0, 200)
    )
    told = [service.arrive(at) for at in slots]
    assert not any(each.reached for each in told)
    assert 0.9 * 3 * ALONE * 15 < len(slots) / (slots[-1] - slots[0]) <= 3 * ALONE * 15


def test_a_state_begun_anew_holds_everybody_and_keeps_what_is_learnt_of_windows() -> None:
    learnt = Run(Grid(), seconds=30).go().slots
    anew = learnt.restart(1030.0, HOLD)
    assert anew.is_windowed()
    assert anew.reserve_slot(1030.0).at >= 1030.0 + HOLD
    assert (anew.windows.is_fixed, anew.windows.phase) == (learnt.windows.is_fixed, learnt.windows.phase)
    assert anew.windows is not learnt.windows
    run = Run(Grid(), seconds=30, slots=learnt.restart(1030.0, HOLD), start=1030.0).go()
    assert run.refused == 0
    assert run.accepted > 0.97 * 15 * (30 - HOLD)


def test_nothing_learnt_holds_nobody() -> None:
    assert Schedule().restart(1030.0, HOLD) == Schedule()


def test_what_was_learnt_long_ago_is_not_begun_with() -> None:
    anew = Schedule(15.0, touched_at=1000.0, windows=Windows(is_fixed=1.0)).restart(5000.0, HOLD)
    anew.reserve_slot(5000.0)
    assert not anew.limit


def test_a_share_outlives_what_is_forgotten() -> None:
    alone = Schedule(15.0, touched_at=1000.0, share=ALONE)
    alone.reserve_slot(5000.0)
    assert alone.share == ALONE
    alone.reserve_slot(10.0)
    assert alone.share == ALONE


def test_a_slot_of_another_clock_does_not_hold() -> None:
    schedule = Schedule(15.0, touched_at=1000.0)
    slot = schedule.reserve_slot(1000.0)
    assert schedule.still_holds(slot)
    assert not schedule.restart(900.0, HOLD).still_holds(slot)
    assert not schedule.restart(1100.0, HOLD).still_holds(slot)
