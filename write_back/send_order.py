"""Which entry may be sent next: in order of push and row, and never two at once that touch the same
thing or the same person. Pure bookkeeping.

Of two unknown activities of one person a timeline would not tell whose an entry is. An entry holds
its place until it is over (`finish_item`): one whose outcome is unknown keeps later ones about the
same person waiting. Not here: sending, when an unknown one is looked for (`sending`)."""

import heapq
from collections import deque
from collections.abc import Collection, Iterable

from marketing_api.address import normal_form
from write_back.outbox.outbox import Entry


def keys_of(entry: Entry, subjects: Iterable[str]) -> list[str]:
    """What an entry touches. Subjects are of the entry's kind; people are the same for all kinds,
    by address and by contact id."""
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
        """Entries that are not over."""
        return len(self._keys)

    def add_item(self, item_id: int, keys: Collection[str], *, is_ready: bool = True) -> None:
        """`keys` as of `keys_of`; `is_ready` False: it holds its place and is not handed out (its
        outcome is unknown)."""
        self._keys[item_id] = list(keys)
        self._blocked[item_id] = sum(not self._join_queue(item_id, name) for name in keys)
        if not self._blocked[item_id] and is_ready:
            heapq.heappush(self._ready, item_id)

    def _join_queue(self, item_id: int, name: str) -> bool:
        """Whether it stands in front already."""
        queue = self._queues.setdefault(name, deque())
        queue.append(item_id)
        return len(queue) == 1

    def hold_key(self, item_id: int, name: str) -> bool:
        """It touches this, too, as is known only now; False: somebody holds that before it, and it
        is handed out again afterwards."""
        if name not in self._keys[item_id]:
            self._keys[item_id].append(name)
            self._blocked[item_id] += not self._join_queue(item_id, name)
        is_queued = self._queues[name][0] == item_id
        if not is_queued:
            self._out.discard(item_id)
        return is_queued

    def next_item(self) -> int | None:
        """The first that may go now; it is handed out once, until `again`."""
        while self._ready:
            item_id = heapq.heappop(self._ready)
            if (
                item_id in self._keys and item_id not in self._out
            ):  # `again` does not wait until it stands in front, where it is ready, too
                self._out.add(item_id)
                return item_id
        return None

    def hand_back(self, item_id: int) -> None:
        """It was handed out, and is to be handed out once more."""
        self._out.discard(item_id)
        heapq.heappush(self._ready, item_id)

    def finish_item(self, item_id: int) -> None:
        """It is over: whoever waited for it may go."""
        self._out.discard(item_id)
        for name in self._keys.pop(item_id):
            queue = self._queues[name]
            was_first = queue[0] == item_id
            queue.remove(item_id)
            if not queue:
                del self._queues[name]
            elif was_first:
                self._blocked[queue[0]] -= 1
                if not self._blocked[queue[0]]:
                    heapq.heappush(self._ready, queue[0])
        self._blocked.pop(item_id)
