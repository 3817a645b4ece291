"""How likely a response has something new: own rates and signals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.planning.candidates import DAY_S, SIGNAL_PRECISION
from assets.planning.change_chances import PRIOR_RATE, change_chances, estimate_rates
from tests.assets.planning.people import T, candidates


def rates(changes: list[int], days: float = 10.0) -> np.ndarray:
    return estimate_rates(np.array(changes), np.full(len(changes), days))


def test_nobody_known_has_the_prior() -> None:
    assert rates([0, 0], days=0.0) == pytest.approx([PRIOR_RATE] * 2)


def test_who_changed_more_often_changes_faster() -> None:
    assert (np.diff(rates([0, 2, 5, 10])) > 0).all()


def test_a_long_history_outweighs_the_others_and_a_short_one_leans_on_them() -> None:
    changes, days = np.array([100] * 50 + [0, 0]), np.array([100.0] * 50 + [100.0, 1.0])
    *_, long, short = estimate_rates(changes, days)
    assert long < 0.2 < 0.8 < short


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
def test_the_estimate_is_near_the_true_rate(rate: float) -> None:
    found = rates(np.random.default_rng(1).poisson(rate * 40, 2000).tolist(), days=40)
    assert np.mean(found) == pytest.approx(rate, rel=0.1)


@given(st.floats(0, 20), st.floats(0, 20))
def test_the_longer_ago_the_more_probable(one: float, other: float) -> None:
    chance = change_chances(candidates([min(one, other), max(one, other)]), T)
    assert 0 <= chance[0] <= chance[1] <= 1


@pytest.mark.parametrize("signal", SIGNAL_PRECISION)
def test_a_signal_raises_the_chance_until_the_next_request(signal: str) -> None:
    people = candidates([0.1, 0.1, 0.1])
    people.signals[signal] = np.array([T, T - 3 * DAY_S, np.nan])
    chance = change_chances(people, T)
    assert chance[0] == pytest.approx(SIGNAL_PRECISION[signal], abs=0.01)
    assert chance[1] == chance[2] < 0.01


def test_two_signals_are_surer_than_one() -> None:
    people = candidates([1.0, 1.0])
    people.signals["row"] = np.array([T, T])
    people.signals["redeemed"] = np.array([T, np.nan])
    chance = change_chances(people, T)
    assert chance[0] > chance[1] + 0.1
