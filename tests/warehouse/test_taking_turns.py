"""Who may load next."""

from __future__ import annotations

import threading
import time

import pytest

from warehouse.taking_turns import Turns


def wait_until(turns: Turns, count: int) -> None:
    deadline = time.monotonic() + 5
    while len(turns._waiting) < count and time.monotonic() < deadline:
        time.sleep(0.001)


def test_the_most_urgent_goes_first_then_who_came_first() -> None:
    turns, order = Turns(), []

    def work(name: str, urgency: int) -> None:
        with turns.take(urgency):
            order.append(name)

    threads = []
    with turns.take():
        for place, (name, urgency) in enumerate([("a", 0), ("b", 0), ("c", 3), ("d", 1), ("e", 3)], 1):
            threads.append(threading.Thread(target=work, args=(name, urgency)))
            threads[-1].start()
            wait_until(turns, place)
    for thread in threads:
        thread.join(5)
    assert order == ["c", "e", "d", "a", "b"]


def test_a_turn_that_fails_is_passed_on() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="broken"), turns.take():
        raise ValueError("broken")
    with turns.take():
        pass
