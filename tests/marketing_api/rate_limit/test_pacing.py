"""The rules of pacing against services that count in different ways, in virtual time."""

import math
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from marketing_api.pacing import START_RATE, Schedule
from tests.marketing_api.simulated_service import START, Bucket, FromFirst, Grid, Run, Sliding, Told

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_fixed_windows_are_filled_to_the_brim(seed: int) -> None:
    run = Run(Grid(offset=seed * 0.21), seconds=60, seed=seed).go()
    assert run.share > 0.98  # the first ten seconds are spent learning
    assert run.refused_share < 0.003
    longer = Run(Grid(offset=seed * 0.21), seconds=600, seed=seed).go()
    assert longer.share > 0.995
    assert longer.refused_share < 0.001


@pytest.mark.parametrize(
    ("service", "least_share"),
    [
        pytest.param(lambda: Grid(counts_refused=True), 0.995, id="refused requests count"),
        pytest.param(lambda: Grid(drift=2e-4), 0.99, id="the service's clock drifts"),
        pytest.param(lambda: Grid(limit=10), 0.99, id="another limit"),
        pytest.param(lambda: Grid(limit=60), 0.99, id="a high limit"),
        pytest.param(
            lambda: Grid(limit=400), 0.95, id="a limit too high for windows", marks=pytest.mark.slow
        ),
        pytest.param(FromFirst, 0.94, id="windows begin with a request"),
        pytest.param(Sliding, 0.90, id="sliding window"),
        pytest.param(Bucket, 0.96, id="token bucket"),
    ],
)
def test_every_way_of_counting_is_used_well_and_seldom_refuses(
    service: Callable[[], Grid], least_share: float
) -> None:
    run = Run(service(), seconds=300, askers=(100,)).go()
    assert run.share > least_share
    assert run.refused_share < 0.003


@pytest.mark.parametrize(
    ("shown", "least_share"),
    [
        pytest.param(lambda told: Told(told.limit, told.requests), 0.99, id="neither reset nor after"),
        pytest.param(
            lambda told: Told(told.limit, None, told.remaining), 0.99, id="only limit and remaining"
        ),
        pytest.param(lambda told: Told(told.limit), 0.94, id="only the limit"),
        pytest.param(
            lambda told: Told(told.limit, told.requests, reset=1.0, after=told.after),
            0.99,
            id="a relative reset",
        ),
        pytest.param(
            lambda told: Told(
                told.limit,
                told.requests,
                told.remaining,
                told.reached,
                math.ceil(told.reset + 3600),
                told.after,
            ),
            0.99,
            id="a clock that is an hour off",
        ),
    ],
)
def test_a_poor_report_does_not_hurt(shown: Callable[[Told], Told], least_share: float) -> None:
    run = Run(Grid(), seconds=300, shown=shown).go()
    assert run.share > least_share
    assert run.refused_share < 0.003


def test_without_any_report_the_cautious_start_rate_is_kept() -> None:
    run = Run(Grid(), seconds=60, shown=lambda told: Told()).go()
    assert run.accepted / 60 == pytest.approx(START_RATE, rel=0.02)
    assert run.refused == 0


@pytest.mark.parametrize(
    "absurd",
    [Told(0, 0, 0), Told(-5, -1, -1, after=-1.0), Told(None, 10**9, 0, reset=-1e18, after=-1e18)],
    ids=repr,
)
def test_an_absurd_report_is_as_good_as_none(absurd: Told) -> None:
    run = Run(Grid(), seconds=60, shown=lambda told: replace(absurd, reached=told.reached)).go()
    assert run.accepted / 60 == pytest.approx(START_RATE, rel=0.02)
    assert run.refused == 0


def test_a_limit_that_is_told_too_high_by_far_is_found() -> None:
    """900 a minute, say: the number alone would be sixty times too many."""
    run = Run(
        Grid(),
        seconds=300,
        shown=lambda told: Told(900, told.requests, told.remaining, told.reached, told.reset, told.after),
    ).go()
    assert run.share > 0.7
    assert run.refused_share < 0.25


def test_a_limit_that_is_lowered_meanwhile_is_kept_at_once() -> None:
    before = Run(Grid(), seconds=30).go()
    after = Run(Grid(limit=5), seconds=60, slots=before.slots, start=START + 30).go()
    assert after.share > 0.95
    assert after.refused < 15


def test_a_lower_limit_than_the_start_rate_is_found_without_any_report() -> None:
    run = Run(Grid(limit=5), seconds=300, shown=lambda told: Told()).go()
    assert run.share > 0.6
    assert run.refused_share < 0.05


def test_the_cap_is_never_exceeded() -> None:
    run = Run(Grid(), seconds=60, cap=8).go()
    assert run.accepted / 60 == pytest.approx(8, rel=0.02)
    assert run.refused == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_processes_share_equally_whatever_their_threads(seed: int) -> None:
    run = Run(Grid(), askers=(4, 32), seed=seed).go()
    assert min(run.served) / sum(run.served) > 0.45
    assert run.share > 0.97


@pytest.mark.parametrize("seed", SEEDS)
def test_what_another_client_uses_is_left_to_it(seed: int) -> None:
    run = Run(Grid(), seconds=300, others=5, seed=seed).go()
    assert run.refused_share < 0.01
    assert run.share > 0.55  # of the 2/3 that are left
    assert run.others_refused / (run.others_refused + run.others_accepted) < 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_that_is_always_quicker_leaves_us_the_rest(seed: int) -> None:
    run = Run(Grid(ahead=5), seconds=300, seed=seed).go()
    assert run.share > 0.55
    assert run.refused_share < 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_a_greedy_client_does_not_starve_us(seed: int) -> None:
    run = Run(Grid(), seconds=300, others=14, seed=seed).go()
    assert run.share > 0.15


def test_few_threads_are_not_slowed_down_by_windows() -> None:
    windowed, even = (
        Run(Grid(), seconds=200, askers=(1,)).go(),
        Run(Grid(), seconds=200, askers=(1,), shown=lambda told: Told(told.limit)).go(),
    )
    assert windowed.slots.windows.is_fixed
    assert windowed.accepted > 0.9 * even.accepted


def test_windows_are_told_apart() -> None:
    assert Run(Grid(), seconds=30).go().slots.windows.is_fixed
    assert not Run(FromFirst(), seconds=30).go().slots.windows.is_fixed
    assert not Run(Sliding(), seconds=30).go().slots.windows.is_fixed


def test_windows_that_are_no_longer_fixed_are_disbelieved() -> None:
    run = Run(Grid(), seconds=30).go()
    assert run.slots.windows.is_fixed
    later = Run(Sliding(), seconds=300, slots=run.slots, start=START + 30).go()
    assert not later.slots.windows.is_fixed
    assert later.share > 0.8


def test_after_a_refusal_everybody_waits_for_the_window_to_reset() -> None:
    slots = Schedule()
    first, second = slots.reserve_slot(START), slots.reserve_slot(START)
    slots.learn(
        first, Told(15, 15, 0, True, START + 0.7, 1.0), refused=True, now=START + 0.1, wall=START + 0.1
    )
    assert not slots.still_holds(second)
    assert slots.reserve_slot(START + 0.1).at == pytest.approx(START + 0.7, abs=0.05)


def test_a_second_refusal_in_a_row_distrusts_the_reset() -> None:
    slots = Schedule()
    for _ in range(2):
        slot = slots.reserve_slot(START)
        slots.learn(
            slot, Told(15, 15, 0, True, START + 0.3, 2.0), refused=True, now=START + 0.2, wall=START + 0.2
        )
    assert slots.reserve_slot(START + 0.2).at == pytest.approx(START + 2.2)


def test_refusals_of_requests_that_were_under_way_are_one_lesson() -> None:
    slots = Schedule()
    under_way = [slots.reserve_slot(START) for _ in range(5)]
    for slot in under_way:
        slots.learn(slot, Told(15, 15, 0, True), refused=True, now=START + 1, wall=START + 1)
    once = Schedule()
    once.learn(once.reserve_slot(START), Told(15, 15, 0, True), refused=True, now=START + 1, wall=START + 1)
    assert slots.margin == once.margin


def test_a_refusal_on_a_whim_does_not_slow_down_for_good() -> None:
    slots = Schedule()
    before = slots.margin
    slots.learn(
        slots.reserve_slot(START), Told(15, 3, 12, False), refused=True, now=START + 1, wall=START + 1
    )
    assert slots.margin == before
    assert slots.hold_until > START + 1


def test_times_from_before_a_reboot_are_dropped() -> None:
    slots = Schedule()
    slots.learn(
        slots.reserve_slot(90_000.0), Told(15, 15, 0, True, after=30.0), refused=True, now=90_000.0, wall=0.0
    )
    assert slots.reserve_slot(12.0).at == pytest.approx(12.0, abs=0.1)
    assert slots.limit == 0


def test_what_was_learnt_long_ago_is_learnt_anew() -> None:
    run = Run(Grid(), seconds=30).go()
    run.slots.reserve_slot(START + 30 + 3600)
    assert (run.slots.limit, run.slots.windows.is_fixed) == (0, 0)


def test_a_limit_without_meaning_is_no_brake() -> None:
    slots = Schedule()
    slots.learn(slots.reserve_slot(START), Told(1_000_000, 1, 999_999), refused=False, now=START, wall=START)
    for _ in range(2000):
        last = slots.reserve_slot(START + 1)
    assert last.at < START + 1.01


def test_the_state_survives_as_numbers() -> None:
    run = Run(Grid(), seconds=30).go()
    assert msgspec.json.decode(msgspec.json.encode(run.slots), type=Schedule) == run.slots
