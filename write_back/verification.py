"""Reading back what was sent, until it is as intended or time is up. Only this proves that the
service's `ok` was true.

Belongs here: how long the queue may lag, and what the outbox stores of a reading. Not here: which
entries are read, how they are read in the fewest requests, and which values count as equal
(`kinds`, which also has `verify_pushes`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marketing_api.clock import SteadyClock
from marketing_api.contact_lookup import Unread
from marketing_api.errors import Stopped
from write_back.item import RetryPolicy, State
from write_back.outbox.outbox import Entry, Outbox

if TYPE_CHECKING:
    from marketing_api.client import Client

Labels = Mapping[int, Mapping[str, str]]  # list id → field id → label


@dataclass(frozen=True, slots=True)
class Compared:
    """What was read back, compared with what was intended. `drift`: field → the intended and the
    shown value; `hidden`: fields that the response does not show."""

    drift: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, repr=False)
    hidden: frozenset[str] = frozenset()

    @property
    def is_as_intended(self) -> bool:
        return not self.drift


#: Item → what was read back of it.
Readings = Mapping[int, Compared | Unread]


@dataclass
class ReadBack:
    """One verification, passed to `Kind.read_back`. `drifted`: items with a mismatch so far."""

    outbox: Outbox
    client: Client
    labels: Labels
    stop: threading.Event
    policy: RetryPolicy
    drifted: set[int] = field(default_factory=set)

    def drop_outdated(self, entries: list[Entry]) -> list[Entry]:
        """The entries (of one kind) without those that a later item has changed since."""
        if not entries:
            return []
        item_ids = [entry.item_id for entry in entries]
        subjects = self.outbox.find_subjects(item_ids)
        everything: set[str] = set()
        for several in subjects.values():
            everything.update(several)
        first = entries[0]
        last = self.outbox.find_last(first.account, everything, first.kind)

        def is_last(entry: Entry) -> bool:
            for subject in subjects.get(entry.item_id, ()):
                past = last.get(subject)
                if past is not None and past.item_id > entry.item_id:
                    return False
            return True

        return list(filter(is_last, entries))

    def poll_entries(self, entries: list[Entry], see: Callable[[list[Entry]], Readings]) -> None:
        """Read until all entries are as intended, or the queue has had its time. Entries that still
        differ then have drifted."""
        left = {entry.item_id: entry for entry in entries}
        now = SteadyClock().seconds
        # the clock may have been set back since
        changed = {entry.item_id: min(entry.changed_at, now()) for entry in entries}
        pause = self.policy.verify_every_s
        while left:
            looked_at = now()
            waiting = list(left.values())
            readings = see(waiting)
            with self.outbox.open_change():
                for item_id, found in readings.items():
                    deadline = changed[item_id] + self.policy.verify_wait_s
                    is_late = looked_at >= deadline
                    if isinstance(found, Unread):
                        if is_late:  # the entry stays unverified
                            del left[item_id]
                    elif is_late or found.is_as_intended:
                        self._store_result(left.pop(item_id), found)
            if left:
                last_change = max(changed[item_id] for item_id in left)
                last_deadline = last_change + self.policy.verify_wait_s
                wait_s = max(0.01, last_deadline - now())
                self._pause(min(pause, wait_s))
                pause *= 2

    def _pause(self, seconds: float) -> None:
        """Raises Stopped."""
        deadline = time.monotonic() + seconds
        left_s = seconds
        while left_s > 0:
            step_s = min(left_s, 0.2)
            if self.stop.wait(step_s) or self.client.is_stopped:
                raise Stopped("stopped while waiting for the service's queue")
            left_s = deadline - time.monotonic()

    def _store_result(self, entry: Entry, found: Compared) -> None:
        if found.is_as_intended:
            message = None
            if found.hidden:
                names = ", ".join(sorted(found.hidden))
                message = f"not shown: {names}"
            self.outbox.settle_item(entry.item_id, State.VERIFIED, message=message, drift={})
        else:
            message = "mismatch on read-back"
            self.outbox.settle_item(entry.item_id, entry.state, message=message, drift=found.drift)
            self.drifted.add(entry.item_id)
