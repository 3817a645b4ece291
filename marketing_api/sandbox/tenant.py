"""One account on the server: its world, its limit, how it misbehaves, its journal, and what was
requested of it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.seed import DAY, Moments
from marketing_api.sandbox.world import World

#: Reported when there is no limit.
UNLIMITED = 1_000_000


#: The six values that every response reports; times are of the real clock.
RateReport = dict[str, int]


class Window:
    """The current second of one key. Over the limit, everything is refused until the next second begins; an
    error says to wait `after_s` seconds."""

    def __init__(self, limit: int, after_s: int = 1) -> None:
        self.limit, self.after_s = limit, after_s
        self._second = self._requests = 0

    def count(self, at: float) -> RateReport:
        """Count a request that arrived `at` (unix seconds)."""
        second, limit = int(at), self.limit or UNLIMITED
        self._requests = self._requests + 1 if second == self._second else 1
        self._second = second
        is_over = self._requests > limit
        return {
            "limit": limit,
            "requests": self._requests,
            "remaining": max(0, limit - self._requests),
            "reached": int(is_over),
            "reset": second + 1,
            "after": self.after_s if is_over else 0,
        }


class Journal:
    """Lines of one file, created for the owner only; a torn last line (from a kill) is cut off on opening."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch(mode=0o600)
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            path.write_bytes(whole)
        self._file = path.open("a", encoding="utf-8")
        self.close = self._file.close

    def lines(self, account: str) -> Iterator[dict[str, Any]]:
        """The account's lines; the first one is its `origin`."""
        with self._path.open(encoding="utf-8") as file:
            yield from (line for line in map(json.loads, file) if line["account"] == account)

    def append(self, account: str, **members: Any) -> None:
        """Either `origin`, or a write with the time `at` which it took place, or the days by which the clock
        was to `advance`."""
        line = json.dumps({"account": account, **members}, ensure_ascii=False, separators=(",", ":"))
        self._file.write(line + "\n")
        self._file.flush()


@dataclass
class Tenant:
    """`observed` are the behaviours in which it answers as clients of the live service have met it."""

    name: str
    world: World
    window: Window
    faults: Faults
    observed: frozenset[str] = frozenset()
    requests: int = 0
    pending: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    journal: Journal | None = None

    def __post_init__(self) -> None:
        self.observes = self.observed.__contains__
        self.moments = Moments(self.world.origin.timezone)
        #: Until the effect of a queued write shows (observation 6).
        self.sync_delay_s = 3.0 if self.observes("sync-delay") else 0.0

    def run_later(self, action: Callable[[], None], at: float) -> None:
        """Carry out at that moment of the real clock."""
        self.pending.append((at, action))

    def settle(self, real: float) -> None:
        """Queued writes take effect that are due by then."""
        due = [action for at, action in self.pending if at <= real]
        self.pending = [one for one in self.pending if one[0] > real]
        for action in due:
            action()

    def note(self, **members: Any) -> None:
        if self.journal is not None:
            self.journal.append(self.name, **members)

    def advance(self, days: float, real: float) -> None:
        self.settle(real + days * DAY)
        self.world.advance(days)
        self.note(advance=days)
