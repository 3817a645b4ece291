"""Reading back what was sent, until it is as intended or time is up: the proof that the service's `ok` was true.

Belongs here: whom to read back, in which way it costs least, how long the queue may lag. Not here: what is alike (`comparing`,
`reconcile`). Tags are not read, since no operation shows them; activities only with `all`; moves and deletions where the lists that
they touch are short enough (`places`).
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from marketing_api.client import Client
from marketing_api.clock import SteadyClock
from marketing_api.errors import AuthenticationFailed, BudgetSpent, Stopped
from pipelines.write_back.item import DONE, Kind, State
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.sending.patience import PATIENCE, Patience
from pipelines.write_back.verifying.comparing import Compared, compare, merged
from pipelines.write_back.verifying.places import Places, still_valid
from pipelines.write_back.verifying.readback import Unread, read_contacts, seek_activities

SAMPLE = 0.05
_Form = tuple[frozenset[str], bool]
Labels = Mapping[int, Mapping[str, str]]  # list id → field id → label


@dataclass(frozen=True, slots=True)
class Verified:
    """What reading back told, in requests of the outbox: `unread` could not be had, `hidden` have fields that are not shown."""

    checked: int = 0
    verified: int = 0
    drifted: int = 0
    hidden: int = 0
    unread: int = 0
    requests: int = 0
    stopped: str | None = None


def verify(
    outbox: Outbox,
    client: Client,
    push_ids: Collection[int],
    how: str = "sample",
    *,
    labels: Labels | None = None,
    stop: threading.Event | None = None,
    patience: Patience = PATIENCE,
) -> Verified:
    """Read back `all`, a `sample` (5 %, at least one of each form of request, and everything that was ever unknown; when one drifted, all
    of its form) or `none` (but what is unknown still, or has drifted).

    Outcomes are kept in the outbox: verified, or the drift per field. Reads again while something is not as intended and may still
    be queued. Raises OutboxError.
    """
    return _Verifying(outbox, client, labels or {}, stop or threading.Event(), patience).run(push_ids, how)


class _Verifying:
    def __init__(self, outbox: Outbox, client: Client, labels: Labels, stop: threading.Event, patience: Patience) -> None:
        self._outbox, self._client, self._labels, self._stop, self._patience = outbox, client, labels, stop, patience
        self._drifting: set[_Form] = set()
        self._verified = self._drifted = self._hidden = self._unread = 0

    def run(self, push_ids: Collection[int], how: str) -> Verified:
        asked = self._client.statistics.requests
        stopped = None
        sent = [entry for push_id in sorted(push_ids) for entry in self._outbox.items(push_id, [*DONE, State.UNKNOWN])]
        contacts = self._current([entry for entry in sent if entry.kind is Kind.CONTACTS])
        chosen = _chosen(contacts, how)
        activities = [entry for entry in sent if entry.kind is Kind.ACTIVITIES and entry.state is State.APPLIED]
        activities = [entry for entry in activities if how == "all" or entry.drift]
        try:
            while chosen:
                self._poll(chosen, lambda entries: self._see_contacts(entries, contacts))
                chosen = [entry for entry in contacts if _form(entry) in self._drifting] if how == "sample" else []
            if activities:
                self._poll(activities, self._see_activities)
            self._check_places([entry for entry in sent if entry.kind in (Kind.MOVES, Kind.DELETIONS)], how)
        except (Stopped, BudgetSpent, AuthenticationFailed) as problem:
            stopped = "stopped" if isinstance(problem, Stopped) else str(problem)
        requests = self._client.statistics.requests - asked
        checked = self._verified + self._drifted + self._unread
        return Verified(checked, self._verified, self._drifted, self._hidden, self._unread, requests, stopped)

    def _current(self, entries: list[Entry]) -> list[Entry]:
        """Those that are to be read and that no later item has changed since."""
        if not entries:
            return []
        subjects = self._outbox.subjects(entry.item_id for entry in entries)
        last = self._outbox.last(entries[0].account, Kind.CONTACTS, {one for each in subjects.values() for one in each})
        return [
            entry
            for entry in entries
            if entry.state is not State.VERIFIED
            and all((past := last.get(subject)) is None or past.item_id <= entry.item_id for subject in subjects.get(entry.item_id, ()))
        ]

    def _check_places(self, entries: list[Entry], how: str) -> None:
        left = still_valid(self._outbox, [entry for entry in entries if entry.state is State.APPLIED])
        if left and (how != "none" or any(entry.drift for entry in left)):
            places = Places(self._client, left, 1.0 if how == "all" else SAMPLE)
            self._poll(places.provable, places.see)

    def _poll(self, entries: list[Entry], see: Callable[[list[Entry]], Mapping[int, Compared | Unread]]) -> None:
        """Look until all are as intended or the queue has had its time; what is not so by then has drifted."""
        left = {entry.item_id: entry for entry in entries}
        now = SteadyClock().seconds
        changed = {entry.item_id: min(entry.changed_at, now()) for entry in entries}  # by a clock that may have been set back since
        pause = self._patience.verify_every_s
        while left:
            looked_at = now()
            for item_id, told in see(list(left.values())).items():
                entry = left.pop(item_id, None)
                late = looked_at >= changed.get(item_id, 0.0) + self._patience.verify_wait_s
                if isinstance(told, Compared) and (told.is_as_intended or late):
                    self._keep(item_id, told, entry)
                elif late:
                    self._unread += entry is not None
                elif entry is not None:
                    left[item_id] = entry
            if left:
                wait_until = max(map(changed.__getitem__, left)) + self._patience.verify_wait_s
                self._rest(min(pause, max(0.01, wait_until - now())))
                pause *= 2

    def _rest(self, seconds: float) -> None:
        """Raises Stopped."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._stop.wait(min(left, 0.2)) or self._client.is_stopped:
                raise Stopped("stopped while waiting for the service's queue")

    def _keep(self, item_id: int, told: Compared, entry: Entry | None) -> None:
        """Of what was read beside those that were chosen, only good news is kept: it may still be queued."""
        if told.is_as_intended:
            message = f"not shown: {', '.join(sorted(told.hidden))}" if told.hidden else None
            self._outbox.settle(item_id, State.VERIFIED, message=message, drift={})
            self._verified += 1
            self._hidden += bool(told.hidden)
        elif entry is not None:
            drift = {name: list(pair) for name, pair in told.drift.items()}
            self._outbox.settle(item_id, entry.state, message="read back otherwise than intended", drift=drift)
            self._drifted += 1
            self._drifting.add(_form(entry))

    def _see_contacts(self, entries: list[Entry], others: list[Entry]) -> dict[int, Compared | Unread]:
        """`others` that are read by the way count, too."""
        wanted: defaultdict[int, set[str]] = defaultdict(set)
        for entry in entries:
            for list_id in entry.expected.get("lists", ()):
                wanted[int(list_id)].add((entry.email or "").lower())
        seen = read_contacts(self._client, wanted)
        chosen = {entry.item_id for entry in entries}
        told: dict[int, Compared | Unread] = {}
        for entry in [*entries, *(other for other in others if other.item_id not in chosen)]:
            lists = map(int, entry.expected["lists"])
            parts = {list_id: self._compared(entry, list_id, seen.of(list_id, entry.email or "")) for list_id in lists}
            if entry.item_id in chosen or all(isinstance(part, Compared) and part.is_as_intended for part in parts.values()):
                unread = next((part for part in parts.values() if isinstance(part, Unread)), None)
                told[entry.item_id] = unread or merged({each: part for each, part in parts.items() if isinstance(part, Compared)})
        others[:] = [other for other in others if other.item_id not in told]
        return told

    def _compared(self, entry: Entry, list_id: int, found: object) -> Compared | Unread:
        return found if isinstance(found, Unread) else compare(entry.expected, found, self._labels.get(list_id, {}))  # type: ignore[arg-type]

    def _see_activities(self, entries: list[Entry]) -> dict[int, Compared | Unread]:
        return seek_activities(self._outbox, self._client, entries)


def _form(entry: Entry) -> _Form:
    """Requests of one form are taken alike: which parameters they have, and whether they name several lists."""
    return frozenset(name.partition("[")[0] for name in entry.params), "," in entry.params.get("listid", "")


def _chosen(entries: list[Entry], how: str) -> list[Entry]:
    """The sample is a function of the items, so that a push that is taken up again reads the same ones; it has one of each form."""
    surely = [entry for entry in entries if entry.state is State.UNKNOWN or entry.drift or (how != "none" and entry.attempts > 1)]
    if how == "none":
        return surely
    there = {entry.item_id for entry in surely}
    rest = sorted(
        (entry for entry in entries if entry.item_id not in there), key=lambda entry: hashlib.blake2b(str(entry.item_id).encode()).digest()
    )
    if how == "all":
        return surely + rest
    firsts = {_form(entry): entry for entry in reversed(rest)}
    sample = rest[: math.ceil(SAMPLE * len(rest))]
    return surely + list({entry.item_id: entry for entry in [*sample, *firsts.values()]}.values())
