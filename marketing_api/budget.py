"""How many requests a run may send. Not here: how fast (`pace`)."""

from __future__ import annotations

import threading

from marketing_api.errors import BudgetSpent


class Budget:
    """A number of requests shared by all clients of a run. Thread-safe."""

    def __init__(self, max_requests: int) -> None:
        self.max_requests = max_requests
        self._left = max_requests
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        return self._left

    def take(self) -> None:
        """Raises BudgetSpent when nothing is left."""
        with self._lock:
            if self._left <= 0:
                raise BudgetSpent(f"the run's {self.max_requests} requests are used up")
            self._left -= 1

    def give_back(self) -> None:
        """A request that was taken was not sent after all."""
        with self._lock:
            self._left += 1
