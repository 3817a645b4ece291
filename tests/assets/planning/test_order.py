"""Who is asked, in which order: guarantee first, budget kept, deterministic."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assets.planning.order import (
    GRACE_S,
    MAX_AGE_SHARE,
    REASONS,
    STARVING_ROUNDS,
    WORTH,
    Order,
    Reason,
    find_reasons,
    order_requests,
    smoothed_size,
)
from tests.assets.planning.people import T, candidates

ages = st.lists(st.none() | st.floats(0, 12), min_size=1, max_size=60)


def plan(asked_days_ago: list[float | None], chance: list[float], limit: int | None = None) -> Order:
    people = candidates(asked_days_ago)
    likely = np.where(people.is_new, 1.0, np.array(chance))
    return order_requests(people, likely, find_reasons(people), T, limit=limit)


def why(found: Order) -> list[Reason]:
    return [REASONS[code] for code in found.reasons]


@given(ages, st.data())
def test_what_is_due_new_or_probable_is_asked_when_nothing_limits_it(
    asked: list[float | None], data: st.DataObject
) -> None:
    chance = data.draw(st.lists(st.floats(0, 1), min_size=len(asked), max_size=len(asked)))
    found = plan(asked, chance)
    people = candidates(asked)
    must = people.is_new | (people.deadline < T + GRACE_S) | (np.array(chance) >= WORTH)
    assert set(np.flatnonzero(must)) <= set(found.positions)
    assert not found.is_late.any()
    assert not found.is_waiting.any()


@given(ages, st.integers(0, 70), st.data())
def test_a_budget_is_never_exceeded_and_nobody_is_asked_twice(
    asked: list[float | None], limit: int, data: st.DataObject
) -> None:
    chance = data.draw(st.lists(st.floats(0, 1), min_size=len(asked), max_size=len(asked)))
    found = plan(asked, chance, limit)
    assert len(found.positions) <= limit
    assert len(set(found.positions)) == len(found.positions) == len(found.reasons)
    left = set(range(len(asked))) - set(found.positions.tolist())
    assert set(np.flatnonzero(found.is_late | found.is_waiting)) <= left


@given(ages, st.integers(1, 70))
def test_the_same_tables_give_the_same_order(asked: list[float | None], limit: int) -> None:
    chance = [0.1] * len(asked)
    one, other = plan(asked, chance, limit), plan(asked, chance, limit)
    assert one.positions.tolist() == other.positions.tolist()


def test_the_guarantee_comes_first_then_chances_then_turns() -> None:
    found = plan([6.9, 6.9, 2, None, 1, *[5.9] * 4], [0.0, 0.0, 0.5, 0.0, 0.9, *[0.0] * 4])
    assert why(found) == [Reason.DUE, Reason.DUE, Reason.NEW, Reason.PROBABLE, Reason.PROBABLE, Reason.TURN]
    assert found.positions.tolist()[2:5] == [3, 4, 2]


def test_new_contacts_are_asked_as_they_stand_newest_first() -> None:
    assert plan([None] * 5, [0] * 5, 3).positions.tolist() == [0, 1, 2]


def test_a_budget_that_can_keep_the_guarantee_keeps_it_before_anything_else() -> None:
    asked: list[float | None] = [*[6.9] * 10, *[1.0] * 50]
    found = plan(asked, [0.0] * 10 + [0.9] * 50, limit=20)
    assert set(range(10)) <= set(found.positions.tolist())
    assert len(found.positions) == 20


def test_a_budget_that_cannot_keep_the_guarantee_is_not_eaten_by_it_and_says_so() -> None:
    a_round = 100 / 20
    found = plan([STARVING_ROUNDS * a_round + 1] * 100, [0.0] * 50 + [0.9] * 50, limit=20)
    counts = {reason: why(found).count(reason) for reason in set(why(found))}
    assert counts[Reason.DUE] == MAX_AGE_SHARE * 20
    assert counts[Reason.PROBABLE] == 18
    assert found.is_late.sum() == 80
    assert found.needed == 100


def test_a_night_with_more_changes_than_budget_goes_to_them_while_nobody_has_waited_for_long() -> None:
    found = plan([8.0] * 100, [0.0] * 50 + [0.9] * 50, limit=20)
    assert set(why(found)) == {Reason.PROBABLE}


def test_what_changes_leave_of_a_budget_goes_to_the_longest_wait() -> None:
    found = plan([*range(8, 108)], [0.9] * 5 + [0.0] * 95, limit=20)
    assert set(found.positions.tolist()) == {*range(5), *range(85, 100)}


@given(st.lists(st.integers(0, 9), max_size=80))
def test_turns_keep_every_deadline_and_no_night_has_more_than_the_least_constant_rate(
    nights: list[int],
) -> None:
    """Earliest deadline first, `smoothed_size` of what is left each night, and nothing new comes."""
    waiting, sizes = sorted(nights), []
    least = max((sum(night <= last for night in waiting) / (last + 1) for last in range(10)), default=0)
    for tonight in range(11):
        left = np.array([night - tonight for night in waiting], np.int64)
        assert (left >= 0).all(), "somebody is late"
        sizes.append(smoothed_size(left))
        waiting = waiting[sizes[-1] :]
    assert not waiting
    assert max(sizes) <= least + 10, "all that was rounded down may have to be made up for in the last night"


def test_after_a_first_night_a_seventh_is_asked_every_night() -> None:
    """The guarantee alone: nothing is ever noticed, nobody gets older than seven nights, and every night
    costs about the same."""
    last = np.zeros(700)
    sizes, oldest = [], []
    for night in range(1, 30):
        found = plan([float(night - asked) for asked in last], [0.0] * 700)
        last[found.positions] = night
        sizes.append(len(found.positions))
        oldest.append(night + 1 - last.min())
    assert set(sizes) == {100}
    assert max(oldest) <= 7


def test_what_an_earlier_run_of_the_night_has_asked_counts() -> None:
    asked: list[float | None] = [day for day in range(1, 8) for _ in range(10)]
    first = plan(asked, [0.0] * 70)
    assert len(first.positions) == 10
    for position in first.positions:
        asked[position] = 0.01
    assert len(plan(asked, [0.0] * 70).positions) == 0
