"""What is requested, in which order: everything that fits, the maximum age, limits; deterministic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.planning.order import (
    HALF_DAY_S,
    OLDEST_SHARE,
    WORTH,
    Order,
    Reason,
    Rules,
    in_words,
    order_requests,
)
from tests.assets.planning.people import T, candidates

ages = st.lists(st.none() | st.floats(0.5, 12), min_size=1, max_size=60)


def plan(asked_days_ago: list[float | None], chance: list[float], room: float = 0, **rules: int) -> Order:
    people = candidates(asked_days_ago)
    likely = np.where(people.is_new, 1.0, np.array(chance))
    why = np.full(len(people), Reason.PROBABLE, np.int8)
    return order_requests(people.requested, people.deadline, likely, why, T, Rules(room=room, **rules))


def why(found: Order) -> list[Reason]:
    return list(map(Reason, found.reasons))


@given(ages, st.data())
def test_all_of_it_is_requested_when_it_fits(asked: list[float | None], data: st.DataObject) -> None:
    chance = data.draw(st.lists(st.floats(0, 1), min_size=len(asked), max_size=len(asked)))
    found = plan(asked, chance, room=len(asked))
    assert sorted(found.positions) == list(range(len(asked)))
    assert Reason.DUE not in why(found)


@given(ages, st.integers(0, 70), st.data())
def test_new_probable_and_due_ones_are_requested_however_little_fits(
    asked: list[float | None], room: int, data: st.DataObject
) -> None:
    chance = data.draw(st.lists(st.floats(0, 1), min_size=len(asked), max_size=len(asked)))
    found = plan(asked, chance, room)
    people = candidates(asked)
    must = people.is_new | (people.deadline < T + HALF_DAY_S) | (np.array(chance) >= WORTH)
    assert set(np.flatnonzero(must)) <= set(found.positions)
    assert len(found.positions) >= min(room, len(asked))
    assert not found.is_late.any()
    assert not found.is_waiting.any()


@given(ages, st.integers(0, 70), st.integers(0, 70), st.data())
def test_a_limit_is_never_exceeded_and_nothing_is_requested_twice(
    asked: list[float | None], limit: int, room: int, data: st.DataObject
) -> None:
    chance = data.draw(st.lists(st.floats(0, 1), min_size=len(asked), max_size=len(asked)))
    found = plan(asked, chance, room, limit=limit)
    assert len(found.positions) <= limit
    assert len(set(found.positions)) == len(found.positions) == len(found.reasons)
    left = set(range(len(asked))) - set(found.positions.tolist())
    assert set(np.flatnonzero(found.is_late | found.is_waiting)) <= left


@given(ages, st.integers(1, 70))
def test_the_same_tables_give_the_same_order(asked: list[float | None], limit: int) -> None:
    chance = [0.1] * len(asked)
    one, other = plan(asked, chance, limit=limit), plan(asked, chance, limit=limit)
    assert one.positions.tolist() == other.positions.tolist()


def test_the_maximum_age_comes_first_then_the_most_probable() -> None:
    found = plan([6.9, 6.9, 2, None, 1, 5.9], [0.0, 0.0, 0.5, 0.0, 0.9, 0.0])
    assert why(found) == [Reason.DUE, Reason.DUE, Reason.NEW, Reason.PROBABLE, Reason.PROBABLE]
    assert found.positions.tolist() == [0, 1, 3, 4, 2]


def test_room_that_is_left_goes_to_the_most_probable() -> None:
    found = plan([1] * 7, [0.1, 0.9, 0.0, 0.2, 0.0, 0.0, 0.0], room=4)
    assert why(found) == [Reason.DUE, Reason.PROBABLE, Reason.ROOM, Reason.ROOM]
    assert found.positions.tolist() == [0, 1, 3, 2]


def test_new_contacts_are_requested_as_they_are_listed_newest_first() -> None:
    assert plan([None] * 5, [0] * 5, limit=3).positions.tolist() == [0, 1, 2]


def test_a_limit_that_can_keep_the_maximum_age_keeps_it_before_anything_else() -> None:
    asked: list[float | None] = [*[6.9] * 10, *[1.0] * 50]
    found = plan(asked, [0.0] * 10 + [0.9] * 50, limit=20)
    assert set(range(10)) <= set(found.positions.tolist())
    assert len(found.positions) == 20


def test_a_limit_that_cannot_keep_the_maximum_age_is_not_eaten_by_it_and_says_so() -> None:
    found = plan([8.0] * 100, [0.0] * 50 + [0.9] * 50, limit=20)
    assert why(found).count(Reason.DUE) == OLDEST_SHARE * 20
    assert why(found).count(Reason.PROBABLE) == 19
    assert found.is_late.sum() == 80
    assert found.needed == 100


def test_what_changes_leave_of_a_limit_goes_to_the_longest_wait() -> None:
    found = plan([*range(8, 108)], [0.9] * 5 + [0.0] * 95, limit=20)
    assert set(found.positions.tolist()) == {*range(5), *range(85, 100)}


@pytest.mark.parametrize("count", [700, 7, 5, 1])
def test_after_a_first_night_a_seventh_is_requested_every_night(count: int) -> None:
    """The maximum age alone: no signal, nobody gets older than seven nights, every night costs the same."""
    last = np.zeros(count)
    sizes, oldest = set(), []
    for night in range(1, 30):
        found = plan([float(night - asked) for asked in last], [0.0] * count)
        last[found.positions] = night
        sizes.add(len(found.positions))
        oldest.append(night + 1 - last.min())
    assert sizes == {-(-count // 7)}
    assert max(oldest) <= 7


@pytest.mark.parametrize("room", [0, 15, 70])
def test_what_an_earlier_run_of_the_night_has_requested_counts(room: int) -> None:
    asked: list[float | None] = [day for day in range(1, 8) for _ in range(10)]
    first = plan(asked, [0.0] * 70, room)
    assert len(first.positions) == max(10, room)
    for position in first.positions:
        asked[position] = 0.01
    assert len(plan(asked, [0.0] * 70, room).positions) == 0


def test_a_person_may_ask_for_everything_again() -> None:
    assert len(plan([0.01, 1.0, None], [0.0] * 3, requests_all=True).positions) == 3


def test_every_reason_is_counted_in_words() -> None:
    assert (
        in_words({Reason.NEW: 1_200, Reason.ROOM: 14})
        == "1,200 never requested, 14 because the night has time"
    )
    for reason in Reason:
        assert in_words({reason: 1}).startswith("1 ")
    assert in_words({}) == "nothing is due"
