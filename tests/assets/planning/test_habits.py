"""What is expected of contacts whose timelines say on which days something happened."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.planning.candidates import DAY_S, NO_DAY, Candidates
from assets.planning.change_chances import log_unchanged
from tests.assets.planning.people import T, active, candidates

DAYS = st.lists(st.frozensets(st.integers(0, 90), max_size=30), min_size=1, max_size=20)
#: People that are there beside those of a test, so that there is something to learn from.
CROWD = 400


def people(days: list[Any], asked: list[float] | None = None, **columns: Any) -> Candidates:
    """Known for a hundred days unless said otherwise, requested yesterday at the same time."""
    history = np.full(len(days), 90.0)
    changes = np.array([len(set(each)) for each in days], np.int64)
    last = np.array([min(each, default=NO_DAY) for each in days])
    known = {"active": active(days), "last_active": last, "changes": changes, "history_days": history}
    return candidates(asked or [1.0] * len(days), **known | columns)


def chance(found: Candidates) -> np.ndarray:
    return -np.expm1(log_unchanged(found, T))


@given(DAYS)
def test_days_as_bits_are_the_days(days: list[frozenset[int]]) -> None:
    found = people(days)
    shown = found.active_on(np.arange(len(days)))
    assert [frozenset(np.flatnonzero(row).tolist()) for row in shown] == days


def test_a_history_tells_who_is_active_before_anybody_is_asked_twice() -> None:
    rng = np.random.default_rng(1)
    found = chance(
        people([[]] * CROWD + [np.flatnonzero(rng.random(91) < 0.4) for _ in range(20)] + [[40, 60]])
    )
    assert found[0] < 0.005
    assert found[CROWD:-1].mean() == pytest.approx(0.4, rel=0.35)
    assert found[0] < found[-1] < 0.1


@given(st.lists(st.frozensets(st.integers(30, 90), max_size=30), min_size=2, max_size=20))
def test_a_busier_history_never_means_less_chance(histories: list[frozenset[int]]) -> None:
    histories.sort(key=len)
    found = people([each | {29} for each in histories])
    assert (np.diff(chance(found)[np.argsort(found.changes, kind="stable")]) >= -1e-12).all()


@given(st.floats(0, 40), st.floats(0, 40), DAYS)
def test_the_longer_ago_the_more_probable(one: float, other: float, days: list[frozenset[int]]) -> None:
    asked = [min(one, other), max(one, other)]
    found = chance(people([{60}, {60}, *days], [*asked, *[1.0] * len(days)]))
    assert 0 <= found[0] <= found[1] <= 1


def test_a_message_so_many_days_after_registration_is_expected_of_the_next_ones() -> None:
    """All got something on the fifth day; those who have it before them will have."""
    days_known = np.concatenate(
        [np.arange(7, 40).repeat(10), [6, 20]]
    )  # yesterday was the fifth day of the last but one
    found = people(
        [{int(known) - 5} for known in days_known[:-2]] + [set(), {15}],
        registered=T - days_known * DAY_S,
        history_days=np.minimum(days_known - 1, 90.0),
    )
    assert chance(found)[-2] > 0.3
    assert chance(found)[-1] < 0.03


def test_a_message_every_thirty_days_is_expected_on_the_thirtieth() -> None:
    rng = np.random.default_rng(1)
    monthly = [{day, day + 30, day + 60} for day in rng.integers(1, 30, CROWD)]
    found = chance(people([*monthly, *[set()] * CROWD, {30 + 1, 60 + 1}, {20, 50, 80}]))
    assert found[-2] > 5 * found[-1]


def test_histories_in_bursts_make_recent_ones_more_probable() -> None:
    rng = np.random.default_rng(1)
    bursts = [set(range(begin, min(begin + 5, 91))) for begin in rng.integers(1, 86, CROWD)]
    found = chance(people([*bursts, {1, 2, 3}, {50, 51, 52}]))
    assert found[-2] > 5 * found[-1]


def test_nobody_known_expects_nothing_impossible() -> None:
    assert not len(log_unchanged(people([]), T))
    found = log_unchanged(people([[]] * 3, [1.0, None, 500.0]), T)  # type: ignore[list-item]
    assert np.isfinite(found).all()
    assert (found <= 0).all()
