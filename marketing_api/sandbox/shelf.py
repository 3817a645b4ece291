"""A collection of small things with ids: what was seeded by now, overlaid with what was added, changed and deleted.

Not here: what the things are. Contacts are too many for this (`subscribers`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Thing = dict[str, Any]


class Shelf:
    """`seeded` yields (id, thing) of everything that exists at a moment, oldest first; things may be changed by writes only."""

    def __init__(self, seeded: Callable[[int], Iterable[tuple[int, Thing]]], first_written_id: int) -> None:
        self._seeded = seeded
        self._ids = itertools.count(first_written_id)
        self._added: dict[int, Thing] = {}
        self._changes: dict[int, Thing] = {}
        self._deleted: set[int] = set()

    def all(self, now: int) -> dict[int, Thing]:
        """Every thing that stands, by id; added ones last."""
        found = {wanted: self._shown(wanted, thing) for wanted, thing in self._seeded(now) if wanted not in self._deleted}
        found.update((wanted, self._shown(wanted, thing)) for wanted, thing in self._added.items() if wanted not in self._deleted)
        return found

    def _shown(self, wanted: int, thing: Thing) -> Thing:
        changes = self._changes.get(wanted)
        return {**thing, **changes} if changes else thing

    def get(self, wanted: int, now: int) -> Thing | None:
        return self.all(now).get(wanted)

    def add(self, thing: Mapping[str, Any]) -> int:
        """Returns the new id."""
        new = next(self._ids)
        self._added[new] = dict(thing)
        return new

    def edit(self, wanted: int, changes: Mapping[str, Any]) -> None:
        self._changes.setdefault(wanted, {}).update(changes)

    def delete(self, wanted: int) -> None:
        self._deleted.add(wanted)
