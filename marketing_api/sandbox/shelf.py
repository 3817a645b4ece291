"""Things of one kind that an account owns: the seeded ones, overlaid with what was written. Not here:
contacts, of which there may be a million (`subscribers`)."""

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shelf(Generic[T]):
    """`seeded` gives (id, thing) of all that stand at a moment, oldest first; `ids` are those of written
    things, above all seeded ones."""

    def __init__(self, seeded: Callable[[int], Iterable[tuple[int, T]]], first_id: int) -> None:
        self.ids = itertools.count(first_id)
        #: Is asked for often in one moment.
        self._seeded = functools.lru_cache(maxsize=1)(lambda now: dict(seeded(now)))
        self._written: dict[int, T | None] = {}  # None: deleted

    def all(self, now: int) -> dict[int, T]:
        """Every thing that stands, by id; added ones last."""
        found = self._seeded(now) | self._written
        return {wanted: thing for wanted, thing in found.items() if thing is not None}

    def put(self, wanted: int, thing: T | None) -> None:
        self._written[wanted] = thing

    def add(self, thing: T) -> int:
        new = next(self.ids)
        self.put(new, thing)
        return new
