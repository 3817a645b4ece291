"""Activities that nobody could tell apart in a timeline (same contact, minute and text) go one at a time. Pure bookkeeping.

With two of them unknown at once, one entry would not say whose it is, nor whether the other one is still on its way.
"""

from __future__ import annotations

from collections import defaultdict

from pipelines.write_back.item import Kind
from pipelines.write_back.outbox.entry import Entry


class Twins:
    """Who of those alike is at work, and who waits for it."""

    def __init__(self) -> None:
        self._holders: dict[tuple[int, str, str], int] = {}
        self._keys: dict[int, tuple[int, str, str]] = {}
        self._waiting: defaultdict[int, list[int]] = defaultdict(list)

    def hold(self, entry: Entry, contact_id: int | None) -> bool:
        """Whether it may go; if not, it is told by `release` of the one before it."""
        if entry.kind is not Kind.ACTIVITIES:
            return True
        key = (contact_id or 0, entry.params["datetime"][:16], " ".join(entry.params["description"].split()))
        holder = self._holders.setdefault(key, entry.item_id)
        if holder != entry.item_id:
            self._waiting[holder].append(entry.item_id)
            return False
        self._keys[entry.item_id] = key
        return True

    def release(self, item_id: int) -> list[int]:
        """It is over: who may try now."""
        key = self._keys.pop(item_id, None)
        if key is not None:
            del self._holders[key]
        return self._waiting.pop(item_id, [])
