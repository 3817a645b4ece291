"""Waiting for a slot, in order and interruptibly; and how many requests a run may send.

A process holds at most one slot that is not yet due, so that processes share about equally however many
threads they have. Not here: which moments are slots (`pacing`), sharing (`shared_state`)."""

import bisect
import datetime as dt
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from marketing_api.clock import Clock, utc_now, wall
from marketing_api.errors import BudgetSpent, Stopped
from marketing_api.exchange import Connection
from marketing_api.rate_limit.pacing import Schedule, Slot
from marketing_api.rate_limit.redis_state import RedisState
from marketing_api.rate_limit.report import RateReport
from marketing_api.rate_limit.shared_state import StateFile, shared_path


class RateLimiter:
    """The limit of one account as this process sees it. Thread-safe.

    `cap`: requests per second that are never exceeded, whatever the service allows. Times of slots are of the
    state's clock, which all who share it have."""

    def __init__(self, state: StateFile | RedisState | Path, *, cap: float | None = None) -> None:
        self._state = StateFile(state) if isinstance(state, Path) else state
        self._cap = cap
        self._changed = threading.Condition()
        #: Of those who wait: refused requests first, then in order of arrival.
        self._queue: list[tuple[bool, int]] = []
        self._arrivals = itertools.count()
        self._slot: Slot | None = None  # reserved for this process, not yet due

    @classmethod
    def shared(cls, connection: Connection) -> Self:
        """The limiter that all processes share for the account: those of this machine, or of all that name
        the same Redis.

        Raises LimitNotShared when that Redis cannot be used.
        """
        path = shared_path(connection.url, connection.key)
        url = connection.budget_url
        return cls(RedisState(url.reveal(), path) if url else path, cap=connection.max_rate)

    def wait(self, *, first: bool = False, is_given_up: Callable[[], bool] = lambda: False) -> Slot:
        """Block until a request may leave, and return its slot for `learn`. `first`: it was refused and goes
        before all others.

        Raises Stopped as soon as `is_given_up` says so (call `wake` when its answer changes).
        """
        with self._changed:
            place = not first, next(self._arrivals)
            bisect.insort(self._queue, place)
            try:
                return self._wait(place, is_given_up)
            finally:
                self._queue.remove(place)
                self._changed.notify_all()

    def _wait(self, place: tuple[bool, int], is_given_up: Callable[[], bool]) -> Slot:
        while True:
            if is_given_up():
                raise Stopped("stopped while waiting for the rate limit")
            if self._queue[0] != place:
                self._changed.wait()
                continue
            slot = self._slot = self._state.apply(self._held_or_next)
            left = slot.at - self._state.now()
            if left <= 0:
                self._slot = None
                return slot
            self._changed.wait(left)

    def _held_or_next(self, schedule: Schedule) -> Slot:
        if self._slot is not None and schedule.still_holds(self._slot):
            return self._slot
        return schedule.reserve(self._state.now(), self._cap)

    def learn(self, slot: Slot, report: RateReport, *, refused: bool) -> None:
        """Take in what the response to the request of `slot` said about the limit. After a refusal everybody
        waits."""
        with self._changed:
            self._state.apply(
                lambda schedule: schedule.learn(
                    slot, report, refused=refused, now=self._state.now(), wall=wall()
                )
            )

    def wake(self) -> None:
        """Let every waiting thread look again whether it has been given up."""
        with self._changed:
            self._changed.notify_all()

    @property
    def limit(self) -> float:
        """Requests per second that the account reports, or the cautious start until it has."""
        with self._changed:
            return self._state.apply(lambda schedule: schedule.reported)

    @property
    def rate(self) -> float:
        """Requests per second at which slots are given now."""
        with self._changed:
            return self._state.apply(lambda schedule: schedule.rate(self._cap))


class RequestBudget:
    """A number of requests (None: any) and a moment (None: no end) shared by all clients of a run.
    Thread-safe."""

    def __init__(
        self, max_requests: int | None = None, *, until: dt.datetime | None = None, now: Clock = utc_now
    ) -> None:
        self.max_requests = max_requests
        self.until = until
        self._now = now
        self.left = max_requests  # that may still be sent, as far as their number is limited
        self._lock = threading.Lock()

    def take(self) -> None:
        """Raises BudgetSpent when nothing is left, or the moment has come."""
        if self.until is not None and self._now() >= self.until:
            raise BudgetSpent(f"it is {self.until:%H:%M} UTC, when the run was to end")
        with self._lock:
            if self.left is None:
                return
            if self.left <= 0:
                raise BudgetSpent(f"the run's {self.max_requests} requests are used up")
            self.left -= 1

    def give_back(self) -> None:
        with self._lock:
            if self.left is not None:
                self.left += 1
