"""The fixed one-second window, the faults, and the log of requests that later assertions read."""

import json
import math
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from .variants import Variants

#: So often in a row one question can fail by chance: a client that tries a handful of times must get through.
MAX_FAULTS_IN_A_ROW = 2


@dataclass(frozen=True)
class Asked:
    """One request as the server saw it. `fault` is "" when the answer was honest."""

    operation: str
    params: tuple[tuple[str, str], ...]  # sorted, without the key
    at: float  # time.time() of arrival
    window: int
    status: int
    fault: str
    was_counted: bool  # within the limit

    @property
    def question(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        return self.operation, self.params

    @property
    def was_answered(self) -> bool:
        """A whole answer left the server, whether a payload or an honest refusal."""
        return not self.fault and self.status not in (429, 500)

    def param(self, name: str) -> str:
        return dict(self.params).get(name, "")


@dataclass
class Log:
    entries: list[Asked] = field(default_factory=list)

    def of(self, operation: str) -> list[Asked]:
        return [entry for entry in self.entries if entry.operation == operation]

    def per_window(self) -> Counter[int]:
        return Counter(entry.window for entry in self.entries if entry.was_counted)

    def share(self, status: int) -> float:
        return sum(entry.status == status and not entry.fault for entry in self.entries) / max(
            1, len(self.entries)
        )

    def repeats(self) -> list[Asked]:
        """Requests for what had already been answered in full."""
        seen, again = set(), []
        for entry in self.entries:
            if entry.question in seen:
                again.append(entry)
            if entry.was_answered:
                seen.add(entry.question)
        return again


@dataclass
class Window:
    """One-second windows of random phase; the limit holds for all requests that arrive within one."""

    limit: int
    variants: Variants
    phase: float
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _index: int = -1
    _used: int = 0

    def enter(self, *, pretend_full: bool = False) -> tuple[int, bool, dict[str, int]]:
        """(window, was within the limit, the six values of the rate-limit object)."""
        with self._lock:
            now = time.time()
            index = math.floor(now - self.phase)
            if index != self._index:
                self._index, self._used = index, self.variants.other_client
            is_within = self._used < self.limit and not pretend_full
            self._used += self._used < self.limit
            left = index + 1 + self.phase - now
            report = {
                "limit": self.variants.reported_limit or self.limit,
                "requests": self._used,
                "remaining": max(0, (self.variants.reported_limit or self.limit) - self._used),
                "reached": int(not is_within),
                "reset": math.ceil(now + left) + self.variants.clock_skew,
                "after": 0 if is_within else max(1, math.ceil(left)),
            }
            return index, is_within, report


@dataclass
class Chance:
    """Draws a fault for a request; deterministic for a seed and an order of arrival."""

    rates: dict[str, float]
    rng: random.Random
    _in_a_row: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def draw(self, operation: str, params: dict[str, str]) -> str:
        question = operation + json.dumps(params, sort_keys=True)
        with self._lock:
            roll = self.rng.random()
            for name, rate in self.rates.items():
                roll -= rate
                if roll < 0 and self._in_a_row[question] < MAX_FAULTS_IN_A_ROW:
                    self._in_a_row[question] += 1
                    return name
            self._in_a_row[question] = 0
            return ""
