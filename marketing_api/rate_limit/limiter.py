"""One budget of requests per account, shared by every thread and process of the machine.

Belongs here: waiting for a slot, in order, interruptibly; and where the shared file lies. Not here: which moments are slots
(`pacing.slots`), how the file is locked (`pacing.slot_file`).

A process holds at most one slot that is not yet due, so that processes share about equally however many threads they have.
Where a hundred a second or more are allowed it holds those of one hundredth of a second: the file is the same for all threads,
and each visit to it costs more than such a slot is worth.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from marketing_api.clock import wall
from marketing_api.errors import Stopped
from marketing_api.private_folder import private_folder
from marketing_api.rate_limit.slot_file import SlotFile
from marketing_api.rate_limit.slots import Report, Slots
from marketing_api.rate_limit.windows import Slot
from marketing_api.redaction import Secret

_BLOCK_S = 0.01  # seconds whose slots are taken together
_BLOCK_SLOTS = 64
_LEARN_S = 0.02  # seconds between answers that are learnt from, where slots are taken together

Clock = Callable[[], float]


class _Waiter:
    """A thread in the queue: refused requests first, then in order of arrival."""

    __slots__ = ("order", "woken")
    _counter = itertools.count()

    def __init__(self, lock: threading.Lock, *, first: bool) -> None:
        self.order = (not first, next(self._counter))
        self.woken = threading.Condition(lock)

    def __lt__(self, other: _Waiter) -> bool:
        return self.order < other.order


class RateLimiter:
    """The account's budget as this process sees it. Thread-safe.

    `cap`: requests per second that are never exceeded, whatever the service allows. `clock` must be the same steady clock in
    all processes of the machine.
    """

    def __init__(self, path: Path, *, cap: float | None = None, clock: Clock = time.monotonic, wall: Clock = wall) -> None:
        self._file = SlotFile(path)
        self._cap = cap
        self._clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._queue: list[_Waiter] = []
        self._slots: deque[Slot] = deque()  # reserved for this process, not yet due
        self._reserved_at = self._learnt_at = -math.inf
        self._limit_learnt: float | None = None
        self._is_quick = False

    @classmethod
    def shared(cls, url: str, key: Secret | str, *, cap: float | None = None) -> RateLimiter:
        """The limiter that all processes of this machine share for the account of that address and key."""
        return cls(shared_path(url, key), cap=cap)

    def wait(self, *, first: bool = False, is_given_up: Callable[[], bool] | None = None) -> Slot:
        """Block until a request may leave, and return its slot for `learn`. `first`: it was refused and goes before all others.

        Raises Stopped as soon as `is_given_up` says so (call `wake` when its answer changes).
        """
        with self._lock:
            waiter = _Waiter(self._lock, first=first)
            bisect.insort(self._queue, waiter)
            try:
                return self._wait(waiter, is_given_up)
            finally:
                self._queue.remove(waiter)
                if self._queue:
                    self._queue[0].woken.notify()

    def _wait(self, waiter: _Waiter, is_given_up: Callable[[], bool] | None) -> Slot:
        while True:
            if is_given_up is not None and is_given_up():
                raise Stopped("stopped while waiting for the rate limit")
            if self._queue[0] is not waiter:
                waiter.woken.wait()
                continue
            if not self._slots or not self._hold(self._slots[0]):
                self._reserve()
            left = self._slots[0].at - self._clock()
            if left <= 0:
                return self._slots.popleft()
            waiter.woken.wait(left)

    def learn(self, slot: Slot, report: Report | None, *, refused: bool) -> None:
        """Take in what the answer to the request of `slot` said about the limit. After a refusal everybody waits."""
        now = self._clock()
        limit = report.limit if report else None
        if self._is_quick and not refused and limit == self._limit_learnt and now - self._learnt_at < _LEARN_S:
            return
        with self._lock, self._file as slots:
            if limit != self._limit_learnt:
                self._slots.clear()
            self._limit_learnt, self._learnt_at = limit, now
            slots.learn(slot, report, refused=refused, now=self._clock(), wall=self._wall())

    def wake(self) -> None:
        """Let every waiting thread look again whether it has been given up."""
        with self._lock:
            for waiter in self._queue:
                waiter.woken.notify()

    @property
    def limit(self) -> float:
        """Requests per second that the account reports, or the cautious start until it has."""
        return self._look(lambda slots: slots.reported)

    @property
    def rate(self) -> float:
        """Requests per second at which slots are given now."""
        return self._look(lambda slots: slots.rate(self._cap))

    def _look(self, at: Callable[[Slots], float]) -> float:
        with self._lock, self._file as slots:
            return at(slots)

    def _reserve(self) -> None:
        """Take the next slot; where hundreds a second are allowed, those of the next moment together."""
        self._slots.clear()
        with self._file as slots:
            now = self._reserved_at = self._clock()
            first = slots.reserve(now, self._cap)
            together = int(slots.rate(self._cap) * _BLOCK_S) if first.window < 0 else 1
            self._is_quick = together > 1
            self._slots.append(first)
            self._slots.extend(slots.reserve(now, self._cap) for _ in range(min(together, _BLOCK_SLOTS) - 1))

    def _hold(self, slot: Slot) -> bool:
        """Whether nothing was learnt since that forbids the slot: not asked about one that was reserved just now, and not
        hoped for where slots are taken together, which are cheap.
        """
        if self._clock() - self._reserved_at < _BLOCK_S:
            return True
        if self._is_quick:
            return False
        with self._file as slots:
            return slots.still_holds(slot, self._clock())


def shared_path(url: str, key: Secret | str) -> Path:
    """The file of an account's budget, in a folder of the temp directory that only its owner can open.

    Processes share a budget when they run as the same user with the same temp directory. The name is a hash of both values.
    """
    secret = key.reveal() if isinstance(key, Secret) else key
    name = hashlib.blake2b(f"{url.rstrip('/').lower()}\0{secret}".encode(), digest_size=16).hexdigest()
    return private_folder() / name
