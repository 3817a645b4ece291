"""One account on the server: its key, its world, its limit, how it misbehaves, and what it was asked.

Not here: answering (`app`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from marketing_api.operation import Call
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.moments import Moments
from marketing_api.sandbox.seeded_account import Origin
from marketing_api.sandbox.switches import Switches
from marketing_api.sandbox.world import World


@dataclass(frozen=True, slots=True)
class Logged:
    """One request as it was received, without key and secrets; `outcome` is ok, an error code, or a fault's name."""

    number: int
    account: str
    operation: str
    verb: str
    params: dict[str, str]
    arrived: float
    status: int
    outcome: str


@dataclass
class Tenant:
    """One account on the server: its key, its world, its limit, and how it misbehaves."""

    name: str
    key: str
    world: World
    window: Window
    switches: Switches
    faults: Faults
    revoke_after: int = 0  # requests until the key stops working; 0: never
    asked: int = 0
    outcomes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # by operation
    pending: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._moments: dict[str, Moments] = {}

    @property
    def moments(self) -> Moments:
        form = self.switches["dates"]
        if form not in self._moments:
            self._moments[form] = Moments(self.world.account.origin.timezone, form)
        return self._moments[form]

    def settle(self, real: float) -> None:
        """Let queued writes take effect that are due."""
        if self.pending:
            due = [action for at, action in self.pending if at <= real]
            self.pending = [one for one in self.pending if one[0] > real]
            for action in due:
                action()

    @property
    def is_revoked(self) -> bool:
        return bool(self.revoke_after) and self.asked > self.revoke_after


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


Line = dict[str, Any]


class Journal:
    """Lines of one file, created for the owner only; a torn last line (from a kill) is cut off on opening."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch(mode=0o600)
        self._repair()
        self._file = path.open("a", encoding="utf-8")
        self.is_replaying = False

    def _repair(self) -> None:
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self._path.write_bytes(whole)

    def lines(self) -> Iterator[Line]:
        with self._path.open(encoding="utf-8") as file:
            for text in file:
                yield json.loads(text)

    def origin(self, account: str) -> Origin | None:
        """What the account was started from when it was first journalled."""
        for line in self.lines():
            if line["account"] == account and "origin" in line:
                return Origin(**line["origin"])
        return None

    def begin(self, account: str, origin: Origin) -> None:
        self._append({"account": account, "origin": asdict(origin)})

    def write(self, account: str, question: Call, fields: dict[str, str], now: int) -> None:
        self._append({"account": account, "at": now, "operation": question.operation.name, "params": question.shown, "fields": fields})

    def advance(self, account: str, days: float) -> None:
        self._append({"account": account, "advance": days})

    def _append(self, line: Line) -> None:
        if not self.is_replaying:
            self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()
