"""Which entry may be sent next: in order of push and row, and never two at the same time about the
same thing or person. It only keeps books.

If two activities of one person had unknown outcomes, a timeline would not show which one arrived.
So an entry keeps its place until it is settled (`finish_item`), and later entries about the same
person wait. Not here: sending, looking for unknown outcomes (`sending`)."""

import heapq
from collections import deque
from collections.abc import Collection, Iterable

from marketing_api.address import normal_form
from write_back.outbox.outbox import Entry


def keys_of(entry: Entry, subjects: Iterable[str]) -> list[str]:
    """What an entry touches: its subjects, which belong to its kind, and its person, by address and
    by contact id, across all kinds."""
    keys = [f"{entry.kind} {subject}" for subject in subjects]
    if entry.email:
        keys.append(f"email {normal_form(entry.email)}")
    if entry.contact_id is not None:
        keys.append(f"contact {entry.contact_id}")
    return keys


class Schedule:
    """Entries in order of their numbers (`Entry.item_id`). Not thread-safe."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[int]] = {}
        self._keys: dict[int, list[str]] = {}
        self._blocked: dict[int, int] = {}  # entry → keys that others hold before it
        self._ready: list[int] = []
        self._out: set[int] = set()  # handed out

    def __len__(self) -> int:
        """How many entries are not settled."""
        return len(self._keys)

    def add_item(self, item_id: int, keys: Collection[str], *, is_ready: bool = True) -> None:
        """`keys`: the result of `keys_of`; `is_ready` False: its outcome is unknown, so it keeps
        its place and is not handed out."""
        self._keys[item_id] = list(keys)
        blocked = [name for name in keys if not self._join_queue(item_id, name)]
        self._blocked[item_id] = len(blocked)
        if is_ready and not blocked:
            heapq.heappush(self._ready, item_id)

    def _join_queue(self, item_id: int, name: str) -> bool:
        """Whether the entry is first in the queue."""
        queue = self._queues.setdefault(name, deque())
        queue.append(item_id)
        return len(queue) == 1

    def hold_key(self, item_id: int, name: str) -> bool:
        """Add a key that became known only now. False: an earlier entry has the key, and this one
        is handed out again afterwards."""
        if name not in self._keys[item_id]:
            self._keys[item_id].append(name)
            self._blocked[item_id] += not self._join_queue(item_id, name)
        is_queued = self._queues[name][0] == item_id
        if not is_queued:
            self._out.discard(item_id)
        return is_queued

    def next_item(self) -> int | None:
        """The first entry that may be sent now. It is handed out once, until `hand_back`."""
        while self._ready:
            item_id = heapq.heappop(self._ready)
            # an entry that was handed back and then became first is in the heap twice
            if item_id in self._keys and item_id not in self._out:
                self._out.add(item_id)
                return item_id
        return None

    def hand_back(self, item_id: int) -> None:
        """Hand out the entry once more."""
        self._out.discard(item_id)
        heapq.heappush(self._ready, item_id)

    def finish_item(self, item_id: int) -> None:
        """The entry is settled: entries that waited for it may be sent."""
        self._out.discard(item_id)
        for name in self._keys.pop(item_id):
            queue = self._queues[name]
            was_first = queue[0] == item_id
            queue.remove(item_id)
            if not queue:
                del self._queues[name]
                continue
            following = queue[0]
            if was_first:
                self._blocked[following] -= 1
                if not self._blocked[following]:
                    heapq.heappush(self._ready, following)
        self._blocked.pop(item_id)
