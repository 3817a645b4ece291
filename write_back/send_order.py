"""Which entry may be sent next: in order of push and row, and never two at once that touch the same thing.
Pure bookkeeping.

Two entries collide when they touch the same subject, or the same person, unless the order of both says
nothing (neither is `Kind.is_idempotent`), or are alike (`Kind.ambiguity_key`): with two such unknown at
once, an activity in a timeline would not tell whose it is, nor whether the other one is still on its way. An
entry holds its place until it is over (`finish`): one whose outcome is unknown keeps later ones about the
same thing waiting. Not here: sending (`send`), when an unknown one is looked for."""

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from marketing_api.address import normal_form
from write_back.kinds import KINDS
from write_back.outbox.outbox import Entry


def keys_of(entry: Entry, subjects: Iterable[str]) -> dict[str, bool]:
    """What an entry touches → whether others that touch it may go at the same time. Subjects are of the
    entry's kind; people are the same for all kinds, by address and by contact id."""
    people = [f"email {normal_form(entry.email)}"] if entry.email else []
    people += [f"contact {entry.contact_id}"] if entry.contact_id is not None else []
    return {f"{entry.kind} {subject}": False for subject in subjects} | dict.fromkeys(
        people, not KINDS[entry.kind].is_idempotent
    )


@dataclass(slots=True)
class _Batch:
    """Entries that may hold a key together."""

    is_shared: bool
    ids: set[int] = field(default_factory=set)


class Schedule:
    """Entries in order of their numbers (`Entry.item_id`). Not thread-safe."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[_Batch]] = {}
        self._keys: dict[int, list[str]] = {}
        self._blocked: dict[int, int] = {}  # entry → keys that others hold before it
        self._ready: list[int] = []
        self._out: set[int] = set()  # handed out

    def __len__(self) -> int:
        """Entries that are not over."""
        return len(self._keys)

    def add_item(self, item_id: int, keys: Mapping[str, bool], *, is_ready: bool = True) -> None:
        """`keys` as of `keys_of`; `is_ready` False: it holds its place and is not handed out (its outcome is
        unknown)."""
        self._keys[item_id] = list(keys)
        self._blocked[item_id] = sum(
            not self._join_queue(item_id, name, is_shared) for name, is_shared in keys.items()
        )
        if not self._blocked[item_id] and is_ready:
            heapq.heappush(self._ready, item_id)

    def _join_queue(self, item_id: int, name: str, is_shared: bool = False) -> bool:
        """Whether it stands in front already."""
        queue = self._queues.setdefault(name, deque())
        if not queue or not (is_shared and queue[-1].is_shared):
            queue.append(_Batch(is_shared))
        queue[-1].ids.add(item_id)
        return len(queue) == 1

    def hold_key(self, item_id: int, name: str) -> bool:
        """It touches this, too, as is known only now; False: somebody holds that before it, and it is handed
        out again afterwards."""
        if name not in self._keys[item_id]:
            self._keys[item_id].append(name)
            self._blocked[item_id] += not self._join_queue(item_id, name)
        is_held = item_id in self._queues[name][0].ids
        if not is_held:
            self._out.discard(item_id)
        return is_held

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
            batch = next(each for each in queue if item_id in each.ids)  # the first, since it was handed out
            batch.ids.discard(item_id)
            while queue and not queue[0].ids:
                queue.popleft()
                for waiting in queue[0].ids if queue else ():
                    self._blocked[waiting] -= 1
                    if not self._blocked[waiting]:
                        heapq.heappush(self._ready, waiting)
            if not queue:
                del self._queues[name]
        self._blocked.pop(item_id)
