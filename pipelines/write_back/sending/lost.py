"""Items whose outcome is unknown: since when, when something is to be done about each, and what. Pure bookkeeping.

Not here: looking (`looking`), sending again (`send`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

from pipelines.write_back.sending.patience import Patience
from pipelines.write_back.sending.reconcile import Presence


class Next(Enum):
    """What is to be done after a look."""

    DONE = "it arrived"
    SEND = "it never arrived: send it again"
    WAIT = "it may still come"
    GIVE_UP = "it cannot be told"


class Lost:
    """Times are unix seconds. An item is due until it is taken."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._since: dict[int, float] = {}
        self._due: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def add(self, item_id: int, since: float, wait_s: float) -> None:
        self._since[item_id] = since
        self._due[item_id] = since + wait_s

    def remove(self, item_id: int) -> None:
        self._since.pop(item_id, None)
        self._due.pop(item_id, None)

    @property
    def is_waiting(self) -> bool:
        """Whether something will become due."""
        return bool(self._due)

    @property
    def next_due(self) -> float:
        return min(self._due.values(), default=math.inf)

    def due(self, now: float) -> list[int]:
        return [item_id for item_id, at in self._due.items() if at <= now]

    def take(self, item_id: int, is_alike: Callable[[int], bool] | None = None) -> list[int]:
        """It, if it is still due, and those that wait and are alike, due or not: one look serves them all."""
        if item_id not in self._due:
            return []
        taken = [item_id, *(other for other in self._due if other != item_id and is_alike is not None and is_alike(other))]
        for each in taken:
            del self._due[each]
        return taken

    def after(self, item_id: int, presence: Presence, looked_at: float) -> Next:
        """What a look at that moment means; `WAIT` makes it due once more."""
        if presence is Presence.THERE:
            return Next.DONE
        if presence is Presence.HIDDEN:
            return Next.GIVE_UP
        since = self._since[item_id]
        if looked_at >= since + self._patience.last_look_s:
            return Next.SEND
        is_early = looked_at < since + self._patience.first_look_s  # it was looked for beside another one
        self._due[item_id] = since + (self._patience.first_look_s if is_early else self._patience.last_look_s)
        return Next.WAIT
