"""Giving entries to items, each to one: a cheapest assignment that grows item by item. Pure, and not about timelines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


class Assignment:
    """`costs`: item → entry → cost. An item that was placed stays placed, though its entry may change (augmenting paths)."""

    def __init__(self, costs: Mapping[int, Mapping[int, int]]) -> None:
        self._costs = costs
        self._holders: dict[int, int] = {}  # entry → item

    @property
    def found(self) -> dict[int, int]:
        """Item → entry."""
        return {item: entry for entry, item in self._holders.items()}

    def place(self, items: Sequence[int]) -> int | None:
        """Place the one of `items` that raises the sum of costs least, and return it; None when there is room for none."""
        costs: dict[int, float] = dict.fromkeys(items, 0.0)  # of reaching an item that needs an entry
        reached: dict[int, tuple[float, int]] = {}  # entry → cost of reaching it, and from which item
        waiting = list(items)
        while waiting:  # Bellman and Ford: the cost of taking an entry from its holder may be negative
            item = waiting.pop(0)
            for entry, cost in self._costs[item].items():
                if self._holders.get(entry) == item:
                    continue
                total = costs[item] + cost
                if total < reached.get(entry, (math.inf, 0))[0]:
                    reached[entry] = (total, item)
                    if (holder := self._holders.get(entry)) is not None:
                        costs[holder] = total - self._costs[holder][entry]
                        waiting.append(holder)
        free = [(cost, entry) for entry, (cost, _) in reached.items() if entry not in self._holders]
        return self._shift(min(free)[1], set(items), reached) if free else None

    def _shift(self, entry: int, items: set[int], reached: Mapping[int, tuple[float, int]]) -> int:
        """Let everybody along the path move on to the entry that it reached; who began it."""
        held = self.found
        while True:
            item = reached[entry][1]
            self._holders[entry] = item
            if item in items:
                return item
            entry = held[item]
