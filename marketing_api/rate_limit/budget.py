"""How many requests a run may send, and until when. Not here: how fast (`pace`)."""

from __future__ import annotations

import datetime as dt
import threading

from marketing_api.clock import Clock, utc_now
from marketing_api.errors import BudgetSpent


class RequestBudget:
    """A number of requests (None: any) and a moment (None: no end) shared by all clients of a run. Thread-safe."""

    def __init__(self, max_requests: int | None = None, *, until: dt.datetime | None = None, now: Clock = utc_now) -> None:
        self.max_requests = max_requests
        self.until = until
        self._now = now
        self._left = max_requests
        self._lock = threading.Lock()

    @property
    def left(self) -> int | None:
        """Requests that may still be sent, as far as their number is limited."""
        return self._left

    def take(self) -> None:
        """Raises BudgetSpent when nothing is left, or the moment has come."""
        if self.until is not None and self._now() >= self.until:
            raise BudgetSpent(f"it is {self.until:%H:%M} UTC, when the run was to stop asking")
        with self._lock:
            if self._left is None:
                return
            if self._left <= 0:
                raise BudgetSpent(f"the run's {self.max_requests} requests are used up")
            self._left -= 1

    def give_back(self) -> None:
        """A request that was taken was not sent after all."""
        with self._lock:
            if self._left is not None:
                self._left += 1
