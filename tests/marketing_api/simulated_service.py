"""A service and several processes that ask it in virtual time: a minute takes milliseconds."""

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from marketing_api.pacing import RateReport, Schedule, Slot

START = 1000.0  # when the simulation begins, on the steady clock; the service's clock shows the same


Told = RateReport  # what an answer says about the limit


class Grid:
    """Fixed windows from `offset` after whole seconds; another client makes `ahead` requests in each."""

    def __init__(
        self,
        limit: int = 15,
        offset: float = 0.37,
        *,
        counts_refused: bool = False,
        drift: float = 0.0,
        ahead: int = 0,
    ) -> None:
        self.limit = limit
        self.count = 0
        self._offset = offset
        self._counts_refused = counts_refused
        self._drift = drift
        self._ahead = ahead
        self._window = -1

    def arrive(self, at: float) -> Told:
        window = math.floor((at - self._offset) * (1 + self._drift))
        if window != self._window:
            self._window, self.count = window, self._ahead
        return self._counted(window + 1 + self._offset)

    def _counted(self, reset: float) -> Told:
        refused = self.count >= self.limit
        self.count += not refused or self._counts_refused
        return Told(
            self.limit, self.count, max(0, self.limit - self.count), refused, reset, 1.0 if refused else 0.0
        )


class FromFirst(Grid):
    """Windows that begin with the first request after the one before has ended."""

    _begun = -9.0

    def arrive(self, at: float) -> Told:
        if at >= self._begun + 1:
            self._begun, self.count = at, 0
        return self._counted(self._begun + 1)


class Sliding(Grid):
    """At most `limit` requests in any second."""

    def __init__(self, limit: int = 15, offset: float = 0.0) -> None:
        super().__init__(limit, offset)
        self._log: list[float] = []

    def arrive(self, at: float) -> Told:
        self._log = [each for each in self._log if each > at - 1]
        self.count = len(self._log)
        told = self._counted((self._log or [at])[0] + 1)
        if not told.reached:
            self._log.append(at)
        return told


class Bucket(Grid):
    """A token bucket as large as the limit."""

    _level, _seen = 1.0, 0.0

    def arrive(self, at: float) -> Told:
        self._level = min(self.limit, self._level + max(0.0, at - self._seen) * self.limit)
        self._seen = max(at, self._seen)
        self.count = self.limit - int(self._level)
        told = self._counted(at + 1 / self.limit)
        self._level -= not told.reached
        return told


def lognormal(chance: random.Random, median: float, p99: float) -> float:
    return median * math.exp(chance.gauss(0, math.log(p99 / median) / 2.326))


@dataclass
class Run:
    """`askers`: threads of each process that ask without pause; `others`: another client's rate."""

    service: Grid
    seconds: float = 60.0
    askers: tuple[int, ...] = (32,)
    others: float = 0.0
    seed: int = 1
    cap: float | None = None
    shown: Callable[[Told], Told] = lambda told: told
    slots: Schedule = field(default_factory=Schedule)
    start: float = START
    accepted: int = 0
    refused: int = 0
    others_accepted: int = 0
    others_refused: int = 0
    served: list[int] = field(default_factory=list)  # of each process

    def go(self) -> "Run":
        self._chance = random.Random(self.seed)
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._idle = list(self.askers)
        self._holds_slot = [False] * len(self.askers)
        self.served = [0] * len(self.askers)
        for process in range(len(self.askers)):
            self._at(self.start, lambda now, process=process: self._ask(process, now))  # type: ignore[misc]
        if self.others:
            self._at(self.start, self._other)
        while self._events and self._events[0][0] < self.start + self.seconds:
            now, _, happen = heapq.heappop(self._events)
            happen(now)
        return self

    @property
    def share(self) -> float:
        """Of the limit, that was used."""
        return self.accepted / self.seconds / self.service.limit

    @property
    def refused_share(self) -> float:
        return self.refused / (self.accepted + self.refused)

    def _at(self, time: float, happen: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), happen))

    def _ask(self, process: int, now: float) -> None:
        if self._idle[process] and not self._holds_slot[process]:
            self._holds_slot[process] = True
            slot = self.slots.reserve_slot(now, self.cap)
            self._at(max(slot.at, now) + 0.0002, lambda then: self._send(process, slot, then))

    def _send(self, process: int, slot: Slot, now: float) -> None:
        self._holds_slot[process] = False
        if self.slots.still_holds(slot):
            self._idle[process] -= 1
            delay = lognormal(self._chance, 0.020, 0.060)
            answered = now + max(delay + 0.005, lognormal(self._chance, 0.120, 0.600))
            self._at(now + delay, lambda then: self._arrive(process, slot, then, answered))
        self._ask(process, now)

    def _arrive(self, process: int, slot: Slot, now: float, answered: float) -> None:
        told = self.service.arrive(now)
        self._at(answered, lambda then: self._answer(process, slot, told, then))

    def _answer(self, process: int, slot: Slot, told: Told, now: float) -> None:
        self.accepted += not told.reached
        self.refused += told.reached
        self.served[process] += not told.reached
        self.slots.learn(slot, self.shown(told), refused=told.reached, now=now, wall=now)
        self._idle[process] += 1
        self._ask(process, now)

    def _other(self, now: float) -> None:
        told = self.service.arrive(now)
        self.others_accepted += not told.reached
        self.others_refused += told.reached
        self._at(now + self._chance.uniform(0.5, 1.5) / self.others, self._other)
