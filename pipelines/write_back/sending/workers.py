"""Threads that do work and hand its results back to the one thread that decides. Not here: what the work is (`send`)."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Workers:
    """Everything but the work itself runs in the thread that owns this."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="sending")
        self._results: queue.SimpleQueue[tuple[Callable[[Any], None], object]] = queue.SimpleQueue()
        self._under_way = 0

    @property
    def are_idle(self) -> bool:
        return not self._under_way

    @property
    def are_busy(self) -> bool:
        return self._under_way >= self._size

    def do(self, work: Callable[[], object], then: Callable[[Any], None]) -> None:
        """`then` is called with the result by `take_in`, in the owner's thread."""

        def run() -> None:
            try:
                self._results.put((then, work()))
            except BaseException as problem:
                self._results.put((then, problem))

        self._under_way += 1
        self._pool.submit(run)

    def take_in(self, timeout_s: float) -> bool:
        """Wait for one result and deal with it; False when none came in time. Raises what the work raised."""
        try:
            then, result = self._results.get(timeout=max(0.001, timeout_s))
        except queue.Empty:
            return False
        self._under_way -= 1
        if isinstance(result, BaseException):
            raise result
        then(result)
        return True

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown(wait=True)
