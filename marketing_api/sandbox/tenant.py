"""One account on the server: its key, its world, its limit, how it misbehaves, and what it was asked.

Not here: answering (`app`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.limits import Window
from marketing_api.sandbox.moments import Moments
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
