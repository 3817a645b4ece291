"""The rate limit: fixed one-second windows per key, and how it is reported. Not here: how a 429 is sent."""

from __future__ import annotations

import json
from dataclasses import dataclass

#: Reported when there is no limit.
UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True)
class RateReport:
    """The six values that every answer reports; times are of the real clock."""

    limit: int
    requests: int
    remaining: int
    reached: int
    reset: int
    after: int

    def members(self, *, as_text: bool) -> str:
        """The `rate-limit` object as JSON text (api-observed row 27: its values are text)."""
        if not as_text:
            return json.dumps(dict(self.pairs()), separators=(",", ":"))
        return (
            f'{{"limit":"{self.limit}","requests":"{self.requests}","remaining":"{self.remaining}",'
            f'"reached":"{self.reached}","reset":"{self.reset}","after":"{self.after}"}}'
        )

    def headers(self) -> list[tuple[str, str]]:
        return [(f"x-rate-limit-{name}", str(value)) for name, value in self.pairs()]

    def pairs(self) -> list[tuple[str, int]]:
        return [(name, getattr(self, name)) for name in ("limit", "requests", "remaining", "reached", "reset", "after")]


class Window:
    """The current second of one key. Over the limit, everything is refused until the next second begins."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._second = -1
        self._requests = 0

    def count(self, at: float, after: int = 0) -> RateReport:
        """Count a request that arrived `at` (unix seconds); `after` is what a refusal tells to wait, 0: until the reset."""
        second = int(at)
        if second != self._second:
            self._second, self._requests = second, 0
        self._requests += 1
        limit = self.limit or UNLIMITED
        is_over = self._requests > limit
        return RateReport(limit, self._requests, max(0, limit - self._requests), int(is_over), second + 1, (after or 1) if is_over else 0)
