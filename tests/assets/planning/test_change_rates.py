"""What is expected of each contact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.planning.candidates import DAY_S
from assets.planning.change_rates import (
    PRIOR_RATE,
    Exposure,
    chances,
    change_rates,
    received,
    unchanged,
    unreached,
)
from tests.assets.planning.people import T, candidates


def rates(
    times_asked: list[int], times_changed: list[int], days: float = 10.0, segment: list[int] | None = None
) -> np.ndarray:
    """Of contacts that were asked so often over `days` days, the last time just now."""
    count = len(times_asked)
    people = candidates(
        [0.0] * count,
        times_requested=times_asked,
        times_changed=times_changed,
        first_requested=[T - days * DAY_S] * count,
        segment=segment or [0] * count,
    )
    return change_rates(people)


def test_nobody_known_has_the_prior() -> None:
    assert rates([1, 0], [1, 0]) == pytest.approx([PRIOR_RATE] * 2)


def test_who_changed_more_often_changes_faster() -> None:
    found = rates([11] * 4, [1, 3, 6, 11])
    assert (np.diff(found) > 0).all()


def test_a_history_outweighs_the_group_and_a_short_one_leans_on_it() -> None:
    busy = rates([11] * 50 + [2, 2], [11] * 50 + [1, 2])
    idle = rates([11] * 50 + [2, 2], [1] * 50 + [1, 2])
    assert busy[-2] > 5 * idle[-2], "one quiet interval says little against fifty busy fellows"
    assert idle[-1] > idle[0]


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
def test_the_estimate_is_near_the_true_rate(rate: float) -> None:
    rng = np.random.default_rng(1)
    intervals = 40
    changed = rng.binomial(intervals, -np.expm1(-rate), 2000)
    found = rates([intervals + 1] * 2000, (changed + 1).tolist(), days=intervals)
    assert np.mean(found) == pytest.approx(rate, rel=0.1)


def test_segments_have_rates_of_their_own() -> None:
    found = rates(
        [6] * 40 + [1, 1], [6] * 20 + [1] * 20 + [1, 1], days=5, segment=[0] * 20 + [1] * 20 + [0, 1]
    )
    assert found[-2] > 10 * found[-1]


@given(st.floats(0, 20), st.floats(0, 20))
def test_the_longer_ago_the_more_probable(one: float, other: float) -> None:
    people = candidates([min(one, other), max(one, other)])
    chance = chances("timelines", people, unchanged(people, T), yields={})
    assert 0 <= chance[0] <= chance[1] <= 1


def test_what_was_noticed_since_raises_the_chance_and_what_came_before_does_not() -> None:
    people = candidates([2, 2, 2])
    people.signals["clicked"] = np.array([T - DAY_S, T - 3 * DAY_S, np.nan])
    chance = chances("timelines", people, np.full(3, -0.01), yields={})
    assert chance[0] > 0.9
    assert chance[1] == chance[2] < 0.05


def test_a_signal_that_was_wrong_often_counts_less() -> None:
    people = candidates([1.0])
    people.signals["row"] = np.array([T])
    learnt = {("timelines", "row"): (10.0, 1000.0, 10.0)}
    chance = [chances("timelines", people, np.array([-0.01]), yields=each)[0] for each in ({}, learnt)]
    assert chance[0] > 0.25
    assert chance[1] < 0.05


def wave(clicked: list[list[float]], reached: float, share: float = 1.0) -> Exposure:
    counts = np.array(clicked)
    return Exposure(
        np.array([T - DAY_S]),
        np.array([share]),
        np.array([0]),
        np.array([reached]),
        counts.sum(axis=1),
        counts,
    )


def test_clickers_tell_which_segment_a_campaign_reached() -> None:
    found = received(wave([[50.0, 0.0]], reached=1000), np.array([1000.0, 9000.0]))
    assert found[0, 0] > 0.9
    assert found[0, 1] < 0.02


def test_without_clickers_everybody_may_have_been_reached_alike() -> None:
    found = received(wave([[0.0, 0.0]], reached=1000), np.array([1000.0, 9000.0]))
    assert found[0] == pytest.approx([0.1, 0.1])


def test_who_of_a_list_never_got_its_campaigns_probably_did_not_get_the_next_one() -> None:
    people = candidates(
        [2.0] * 100,
        messages=[8] * 50 + [0] * 50,
        history_days=[90.0] * 100,
        registered=[T - 900 * DAY_S] * 100,
    )
    chance = -np.expm1(unreached(people, wave([[10.0]], reached=50)))
    assert chance[0] > 0.9
    assert chance[99] < 0.2


def test_contacts_without_a_dated_history_count_as_written_to_like_all_others() -> None:
    found = unreached(candidates([2.0] * 4, messages=[0] * 4), wave([[1.0]], reached=2))
    assert -np.expm1(found) == pytest.approx([0.5] * 4, abs=0.05)


def test_a_campaign_speaks_for_asking_until_the_contact_was_asked_since() -> None:
    people = candidates([2.0, 0.5, 2.0], segment=[0, 0, 1])
    found = unreached(people, wave([[50.0, 0.0]], reached=2))
    assert found[0] < -1
    assert found[1] == 0
    assert found[2] > found[0]
