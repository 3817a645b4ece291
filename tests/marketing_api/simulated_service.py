"""A service with delays, windows and several askers in virtual time: a minute of traffic takes milliseconds."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from marketing_api.pacing.slots import Slots
from marketing_api.pacing.windows import Slot


@dataclass
class Told:
    limit: int | None = None
    requests: int | None = None
    remaining: int | None = None
    reached: bool = False
    reset: float | None = None
    after: float | None = None


class Grid:
    """Fixed windows that begin at whole seconds of the service's clock."""

    def __init__(self, limit: int = 15, offset: float = 0.37, counts_refused: bool = False, drift: float = 0.0, ahead: int = 0) -> None:
        self.limit, self.offset, self.counts_refused, self.drift = limit, offset, counts_refused, drift
        self.window, self.count, self.ahead = -1, 0, ahead

    def arrive(self, at: float) -> Told:
        clock = (at - self.offset) * (1 + self.drift)
        window = math.floor(clock)
        if window != self.window:
            self.window, self.count = window, self.ahead
        return self._count(at, window + 1 + self.offset - at)

    def _count(self, at: float, left: float) -> Told:
        refused = self.count >= self.limit
        if not refused or self.counts_refused:
            self.count += 1
        return Told(self.limit, self.count, max(0, self.limit - self.count), refused, at + left, 1.0 if refused else 0.0)


class FromFirst(Grid):
    """Windows that begin with the first request after the one before has ended."""

    begun = -9.0

    def arrive(self, at: float) -> Told:
        if at >= self.begun + 1:
            self.begun, self.count = at, 0
        return self._count(at, self.begun + 1 - at)


class Sliding(Grid):
    """At most `limit` in any second."""

    def arrive(self, at: float) -> Told:
        self.log = [t for t in getattr(self, "log", []) if t > at - 1]
        refused = len(self.log) >= self.limit
        if not refused:
            self.log.append(at)
        n = len(self.log)
        return Told(self.limit, n, self.limit - n, refused, self.log[0] + 1, 1.0 if refused else 0.0)


class Bucket(Grid):
    """A token bucket as large as the limit."""

    level, seen = 15.0, 0.0

    def arrive(self, at: float) -> Told:
        self.level = min(self.limit, self.level + max(0.0, at - self.seen) * self.limit)
        self.seen = max(at, self.seen)
        refused = self.level < 1
        if not refused:
            self.level -= 1
        n = self.limit - int(self.level)
        return Told(self.limit, n, self.limit - n, refused, at + (1 - self.level % 1) / self.limit, 1.0 if refused else 0.0)


def lognormal(rng: random.Random, median: float, p99: float) -> float:
    return median * math.exp(rng.gauss(0, math.log(p99 / median) / 2.326))


@dataclass
class Run:
    service: Grid
    slots: Slots = field(default_factory=Slots)
    seconds: float = 60.0
    askers: tuple[int, ...] = (32,)  # threads of each process
    others: float = 0.0  # requests per second of another client
    greedy: bool = False
    shown: Callable[[Told], Told | None] = lambda told: told
    seed: int = 1
    cap: float | None = None
    counts: dict[str, int] = field(default_factory=dict)
    served: list[int] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    refused_times: list[float] = field(default_factory=list)

    def go(self) -> Run:
        rng = random.Random(self.seed)
        tie = itertools.count()
        events: list[tuple[float, int, Callable[[float], None]]] = []

        def at(time: float, what: Callable[[float], None]) -> None:
            heapq.heappush(events, (time, next(tie), what))

        idle = list(self.askers)
        refused_waiting = [0] * len(idle)
        busy = [False] * len(idle)
        self.counts = {"ok": 0, "refused": 0, "other ok": 0, "other refused": 0}
        self.served = [0] * len(idle)

        def ask(process: int, now: float) -> None:
            if busy[process] or not idle[process]:
                return
            busy[process] = True
            slot = self.slots.reserve(now, self.cap)
            at(max(slot.at, now) + 0.0002, lambda t: wake(process, slot, t))

        def wake(process: int, slot: Slot, now: float) -> None:
            busy[process] = False
            if not self.slots.still_holds(slot):
                ask(process, now)
                return
            idle[process] -= 1
            delay = lognormal(rng, 0.020, 0.060)
            latency = max(delay + 0.005, lognormal(rng, 0.120, 0.600))
            at(now + delay, lambda t: arrive(process, slot, t, now + latency))
            ask(process, now)

        def arrive(process: int, slot: Slot, now: float, answered: float) -> None:
            told = self.service.arrive(now)
            at(answered, lambda t: answer(process, slot, told, t))

        def answer(process: int, slot: Slot, told: Told, now: float) -> None:
            refused = told.reached
            self.counts["refused" if refused else "ok"] += 1
            if refused:
                self.refused_times.append(now)
            self.served[process] += not refused
            self.slots.learn(slot, self.shown(told), refused=refused, now=now, wall=now)
            idle[process] += 1
            ask(process, now)

        def other(now: float) -> None:
            told = self.service.arrive(now)
            self.counts["other refused" if told.reached else "other ok"] += 1
            at(now + rng.uniform(0.5, 1.5) / self.others, other)

        if self.others:
            at(100.0, other)
        for process in range(len(idle)):
            at(100.0 + process * 0.001, lambda t, p=process: ask(p, t))  # type: ignore[misc]
        end = 100.0 + self.seconds
        while events and events[0][0] < end:
            time, _, what = heapq.heappop(events)
            what(time)
        return self

    @property
    def share(self) -> float:
        return self.counts["ok"] / self.seconds / self.service.limit

    @property
    def refused_share(self) -> float:
        return self.counts["refused"] / max(1, self.counts["ok"] + self.counts["refused"])
