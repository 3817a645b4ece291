"""One account on the server: its world, its limit, how it misbehaves, its journal, and what was
requested of it."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.seed import DAY, Moments
from marketing_api.sandbox.switches import Switches
from marketing_api.sandbox.world import World

#: Reported when there is no limit.
UNLIMITED = 1_000_000


#: The six values that every response reports; times are of the real clock.
RateReport = dict[str, int]


class Window:
    """The current second of one key. Over the limit, everything is refused until the next second begins."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._second = self._requests = 0

    def count(self, at: float, after: int = 0) -> RateReport:
        """Count a request that arrived `at` (unix seconds); an error says to wait `after` seconds, 0: until
        the reset."""
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
            "after": (after or 1) if is_over else 0,
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
        """Either `origin`, or a write with the time `at` which it took place, or who then `leaves`, or the
        days by which the clock was to `advance`."""
        line = json.dumps({"account": account, **members}, ensure_ascii=False, separators=(",", ":"))
        self._file.write(line + "\n")
        self._file.flush()


@dataclass
class Tenant:
    name: str
    world: World
    window: Window
    switches: Switches
    faults: Faults
    revoke_after: int = 0  # requests until the key stops working; 0: never
    requests: int = 0
    #: How often each outcome came about, by operation.
    outcomes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    #: Operation and address → the status that somebody has behind it.
    leaving: dict[tuple[str, str], int] = field(default_factory=dict)
    pending: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    journal: Journal | None = None

    @property
    def moments(self) -> Moments:
        return Moments(self.world.origin.timezone, self.switches["dates"])

    def settle(self, real: float) -> None:
        """Queued writes take effect that are due by then."""
        due = [action for at, action in self.pending if at <= real]
        self.pending = [one for one in self.pending if one[0] > real]
        for action in due:
            action()

    def admits(self, arrived: float) -> bool:
        """Count a request, before which queued writes take effect; False once the key is revoked."""
        self.requests += 1
        self.settle(arrived)
        return not self.revoke_after or self.requests <= self.revoke_after

    def note(self, **members: Any) -> None:
        if self.journal is not None:
            self.journal.append(self.name, **members)

    def advance(self, days: float, real: float) -> None:
        self.settle(real + days * DAY)
        self.world.advance(days)
        self.note(advance=days)

    def leave(self, email: str, status: int, at: int) -> None:
        """Somebody unsubscribes, or bounces."""
        self.world.subscribers.leave(email, status, at)
        self.note(at=at, leaves=email, status=status)
