"""Waiting for what happens: a test goes on when it has, however much else the machine has to do."""

import time
from collections.abc import Callable

#: Seconds after which a wait has to be called endless. No test may expect that something takes less.
HANGS_S = 300.0


def wait_until(is_so: Callable[[], object], what: str = "it did not happen") -> None:
    """Raises AssertionError with `what` when it hangs."""
    until = time.monotonic() + HANGS_S
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.01)
