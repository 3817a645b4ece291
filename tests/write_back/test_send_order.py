"""Entries go in order, and never two at once that touch the same thing."""

import random

from hypothesis import given
from hypothesis import strategies as st

from write_back.send_order import Schedule

KEYS = st.sets(st.sampled_from("abcde"), max_size=3)


@given(st.lists(KEYS, max_size=12), st.randoms(use_true_random=False), st.data())
def test_whatever_ends_first_entries_that_collide_go_one_after_the_other(
    entries: list[set[str]], rng: random.Random, data: st.DataObject
) -> None:
    schedule = Schedule()
    for number, keys in enumerate(entries):
        schedule.add_item(number, keys)
    under_way: list[int] = []
    over: list[int] = []
    while len(over) < len(entries):
        while (item := schedule.next_item()) is not None:
            assert not any(entries[item] & entries[other] for other in under_way)
            assert all(other in over for other in range(item) if entries[item] & entries[other])
            under_way.append(item)
        assert under_way, "everybody waits for somebody"
        if rng.random() < 0.2:
            schedule.hand_back(under_way.pop(rng.randrange(len(under_way))))
            continue
        done = under_way.pop(rng.randrange(len(under_way)))
        schedule.finish_item(done)
        over.append(done)
    assert len(schedule) == 0


@given(st.lists(KEYS, max_size=12))
def test_what_does_not_collide_with_anything_before_goes_at_once(entries: list[set[str]]) -> None:
    schedule = Schedule()
    for number, keys in enumerate(entries):
        schedule.add_item(number, keys)
    ready = []
    while (item := schedule.next_item()) is not None:
        ready.append(item)
    free = [
        one for one in range(len(entries)) if not any(entries[one] & entries[before] for before in range(one))
    ]
    assert ready == free


def test_what_is_unknown_holds_its_place_and_is_not_handed_out() -> None:
    schedule = Schedule()
    schedule.add_item(1, ["a"], is_ready=False)
    schedule.add_item(2, ["a"])
    schedule.add_item(3, ["b"])
    assert [schedule.next_item(), schedule.next_item()] == [3, None]
    schedule.finish_item(1)
    assert schedule.next_item() == 2


def test_of_two_that_turn_out_to_touch_the_same_the_second_is_handed_out_once_the_first_is_over() -> None:
    schedule = Schedule()
    for item in (1, 2):
        schedule.add_item(item, [f"address {item}"])
    assert [schedule.next_item(), schedule.next_item()] == [1, 2]
    assert [
        schedule.hold_key(2, "contact"),
        schedule.hold_key(1, "contact"),
        schedule.hold_key(2, "contact"),
    ] == [
        True,
        False,
        True,
    ]
    assert schedule.next_item() is None
    schedule.finish_item(2)
    assert schedule.next_item() == 1
    assert schedule.hold_key(1, "contact")
    schedule.finish_item(1)
    assert len(schedule) == 0


def test_one_of_an_earlier_run_that_holds_its_contact_may_go_though_others_stand_before_it() -> None:
    """Its outcome was unknown, and it is sent again; the first waits for it, and it for nobody."""
    schedule = Schedule()
    schedule.add_item(1, ["same person"])
    schedule.add_item(2, ["same person"], is_ready=False)
    assert schedule.hold_key(2, "contact")
    assert schedule.next_item() == 1
    assert not schedule.hold_key(1, "contact")
    schedule.hand_back(2)
    assert schedule.next_item() == 2
    assert schedule.hold_key(2, "contact")
    schedule.finish_item(2)
    assert schedule.next_item() == 1


def test_what_is_sent_again_before_its_turn_is_not_handed_out_twice_when_that_comes() -> None:
    """While it is under way, or when it is over."""
    for is_over in (False, True):
        schedule = Schedule()
        schedule.add_item(1, ["same person"])
        schedule.add_item(2, ["same person"], is_ready=False)
        schedule.hand_back(2)
        assert [schedule.next_item(), schedule.next_item()] == [1, 2]
        schedule.finish_item(1)
        if is_over:
            schedule.finish_item(2)
        assert schedule.next_item() is None
