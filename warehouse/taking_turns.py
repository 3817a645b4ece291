"""The most urgent first: how the loads of one process queue for the file.

Not here: that only one has the file, and other processes (`connection`).
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Lets in `places` threads at a time, then the most urgent of those who wait, equal ones in order of arrival. Not reentrant."""

    def __init__(self, places: int = 1) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, int, threading.Event]] = []
        self._arrivals = itertools.count()
        self._free = places

    @contextmanager
    def take(self, urgency: int = 0) -> Iterator[None]:
        """Wait for one's turn, and have it for as long as the context lasts."""
        with self._lock:
            mine = threading.Event()
            if self._free:
                self._free -= 1
                mine.set()
            else:
                heapq.heappush(self._waiting, (-urgency, next(self._arrivals), mine))
        mine.wait()
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                heapq.heappop(self._waiting)[2].set()
            else:
                self._free += 1
