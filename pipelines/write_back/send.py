"""Sending what an outbox holds for one account, until nothing is open: in order, as fast as the limit allows, each effect once.

    with outbox.sending("main"):
        sent = send(outbox, client, "main", stop=stop, on_progress=show)

One thread decides (the caller's), workers send and look. Belongs here: what is sent, looked for and sent again, and when to stop.
Not here: one request (`delivery`), one look (`looking`), the order (`schedule`), figures (`patience`), reading back (`verify`).
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from marketing_api.client import Client
from marketing_api.errors import MarketingApiError, Refused, Stopped
from pipelines.write_back.delivery import Delivered, Delivery, End
from pipelines.write_back.entry import Entry
from pipelines.write_back.finding import Directory, Found, preferred
from pipelines.write_back.item import DONE, Kind, State
from pipelines.write_back.looking import Looked, look, note_found
from pipelines.write_back.outbox import Outbox
from pipelines.write_back.patience import PATIENCE, Patience
from pipelines.write_back.reconcile import Presence
from pipelines.write_back.schedule import Schedule, keys_of


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the sending is, in requests of the outbox (look-ups and looks aside)."""

    total: int
    applied: int
    rejected: int
    unknown: int  # right now

    @property
    def done(self) -> int:
        return self.applied + self.rejected


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of what was open. `stopped` says why not everything was sent, in words for people; None: it was."""

    applied: int
    rejected: int
    unknown: int  # stayed so: looked for or repeated as often as makes sense
    planned: int  # not sent
    looked_up: int  # addresses
    requests: int  # everything that was asked and sent, repeats and looks included
    seconds: float
    stopped: str | None = None


def send(
    outbox: Outbox,
    client: Client,
    account: str,
    *,
    stop: threading.Event | None = None,
    on_progress: Callable[[Progress], object] = lambda _: None,
    patience: Patience = PATIENCE,
) -> Sent:
    """Send what is open. Only for who holds `outbox.sending(account)`.

    Once `stop` is set, or the client stopped, nothing more is sent, and requests under way are waited for. Raises OutboxError when
    an outcome could not be kept: that item counts as unknown from then on.
    """
    return _Sending(outbox, client, account, stop or threading.Event(), on_progress, patience).run()


#: What a worker hands back: whose it is, and what came of it.
_Result = tuple[str, int, object]


class _Sending:
    def __init__(
        self,
        outbox: Outbox,
        client: Client,
        account: str,
        stop: threading.Event,
        on_progress: Callable[[Progress], object],
        patience: Patience,
    ) -> None:
        self._outbox, self._client, self._account, self._patience = outbox, client, account, patience
        self._stop, self._on_progress = stop, on_progress
        self._delivery = Delivery(outbox, client, timeout_s=patience.timeout_s, is_halted=lambda: self._stopped is not None)
        self._directory = Directory(client.ask)
        self._results: queue.Queue[_Result] = queue.Queue()
        self._pool = ThreadPoolExecutor(patience.workers, thread_name_prefix="sending")
        self._under_way = 0
        self._entries: dict[int, Entry] = {}
        self._schedule = Schedule()
        self._contact_ids: dict[int, tuple[int, ...]] = {}  # looked up
        self._lost_at: dict[int, float] = {}  # unknown items: since when (unix seconds)
        self._due: dict[int, float] = {}  # unknown items: when to look, or to send again
        self._attempts: Counter[int] = Counter()
        self._twins: dict[tuple[int, str, str], int] = {}  # activities that would look alike: one at a time
        self._parked: defaultdict[int, list[int]] = defaultdict(list)  # twins of an item, which wait for it
        self._tally: Counter[State] = Counter()
        self._unavailable: Counter[int] = Counter()
        self._in_row: Counter[End] = Counter()
        self._stopped: str | None = None

    def run(self) -> Sent:
        began, asked = time.monotonic(), self._client.statistics.requests
        self._outbox.recover(self._account)
        self._take_in(self._outbox.open(self._account))
        try:
            while self._step():
                pass
        finally:
            self._pool.shutdown(wait=True)
        left = Counter(entry.state for entry in self._outbox.open(self._account))
        return Sent(
            self._tally[State.APPLIED],
            self._tally[State.REJECTED],
            left[State.UNKNOWN] + left[State.SENDING],
            left[State.PLANNED],
            self._directory.asked,
            self._client.statistics.requests - asked,
            time.monotonic() - began,
            self._stopped,
        )

    # ---- deciding (the caller's thread only)

    def _take_in(self, entries: list[Entry]) -> None:
        subjects = self._outbox.subjects(entry.item_id for entry in entries)
        for entry in entries:
            self._entries[entry.item_id] = entry
            self._attempts[entry.item_id] = entry.attempts
            is_unknown = entry.state is State.UNKNOWN
            self._schedule.add(entry.item_id, keys_of(entry, subjects.get(entry.item_id, ())), is_ready=not is_unknown)
            if is_unknown:
                self._hold_twins(entry)
                self._wait_for(entry.item_id, min(entry.changed_at, time.time()))

    def _step(self) -> bool:
        """Give out work and take in one result; False when there is nothing more to be done."""
        if self._stop.is_set() or self._client.is_stopped:
            self._halt("stopped")
        if self._stopped is None:
            self._give_out()
        if not self._under_way and (self._stopped is not None or not self._due):
            return False
        try:
            kind, item_id, result = self._results.get(timeout=self._until_due())
        except queue.Empty:
            return True
        self._under_way -= 1
        if isinstance(result, BaseException):
            self._halt("an error of this program or of the outbox")
            raise result
        {"delivered": self._on_delivered, "found": self._on_found, "looked": self._on_looked}[kind](item_id, result)  # type: ignore[operator]
        self._on_progress(Progress(len(self._entries), self._tally[State.APPLIED], self._tally[State.REJECTED], len(self._lost_at)))
        return True

    def _until_due(self) -> float:
        """Seconds, short enough to see a stop."""
        return max(0.001, min(0.2, min(self._due.values(), default=math.inf) - time.time()))

    def _give_out(self) -> None:
        now = time.time()
        for item_id in [one for one, due in self._due.items() if due <= now]:
            if item_id in self._due:  # a look at the same contact may just have taken it
                self._take_up(item_id)
        while self._under_way < self._patience.workers and (ready := self._schedule.next()) is not None:
            self._begin(self._entries[ready])

    def _begin(self, entry: Entry) -> None:
        if entry.needs_look_up and entry.item_id not in self._contact_ids:
            list_id = {Kind.MOVES: entry.params.get("sourceid"), Kind.DELETIONS: entry.params.get("listid")}.get(entry.kind)
            email = entry.email or ""
            self._submit("found", entry.item_id, lambda: self._find(email, None if list_id is None else int(list_id)))
            return
        if (twin := self._hold_twins(entry)) is not None:
            self._parked[twin].append(entry.item_id)
            return
        contact_ids = self._contact_ids.get(entry.item_id, ())
        self._submit("delivered", entry.item_id, lambda: self._delivery.deliver(entry, contact_ids))

    def _submit(self, kind: str, item_id: int, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                self._results.put((kind, item_id, work()))
            except BaseException as problem:
                self._results.put((kind, item_id, problem))

        self._under_way += 1
        self._pool.submit(run)

    def _halt(self, reason: str) -> None:
        self._stopped = self._stopped or reason

    def _over(self, item_id: int, state: State) -> None:
        self._tally[state] += 1
        self._lost_at.pop(item_id, None)
        self._due.pop(item_id, None)
        self._schedule.finish(item_id)
        for key in [key for key, holder in self._twins.items() if holder == item_id]:
            del self._twins[key]
        for parked in self._parked.pop(item_id, ()):
            self._schedule.again(parked)

    def _wait_for(self, item_id: int, lost_at: float) -> None:
        self._lost_at[item_id] = lost_at
        self._due[item_id] = lost_at + self._patience.first_look_s

    def _hold_twins(self, entry: Entry) -> int | None:
        """The item that has to be over first: an activity of the same contact, time and text. None: it is held now."""
        if entry.kind is not Kind.ACTIVITIES:
            return None
        ids = self._contact_ids.get(entry.item_id) or ((entry.contact_id,) if entry.contact_id is not None else ())
        key = (ids[0] if ids else 0, entry.params["datetime"], " ".join(entry.params["description"].split()))
        holder = self._twins.setdefault(key, entry.item_id)
        return None if holder == entry.item_id else holder

    # ---- what came back

    def _on_delivered(self, item_id: int, delivered: Delivered) -> None:
        end = delivered.end
        self._in_row = Counter({end: self._in_row[end] + 1})
        if end in (End.APPLIED, End.REJECTED, End.GONE):
            self._over(item_id, {End.APPLIED: State.APPLIED, End.REJECTED: State.REJECTED, End.GONE: State.SKIPPED}[end])
        elif end is End.UNKNOWN:
            self._attempts[item_id] += 1
            self._wait_for(item_id, time.time())
            if self._in_row[end] >= self._patience.unknown_in_row:
                self._halt(f"{self._in_row[end]} requests in a row had no whole answer; the last: {delivered.reason}")
        elif end is End.UNAVAILABLE:
            self._unavailable[item_id] += 1
            if self._in_row[end] >= self._patience.unavailable_in_row:
                self._halt(f"{delivered.reason}, {self._in_row[end]} times in a row")
            elif self._unavailable[item_id] >= self._patience.attempts:
                self._outbox.settle(item_id, State.REJECTED, message=delivered.reason)
                self._over(item_id, State.REJECTED)
            else:
                self._schedule.again(item_id)
        elif not delivered.is_stop or self._stopped is None:
            self._halt(delivered.reason)

    def _on_found(self, item_id: int, found: tuple[Found, ...] | MarketingApiError) -> None:
        entry = self._entries[item_id]
        if isinstance(found, Refused):
            return self._reject(item_id, f"its address was not looked up: {found}")
        if isinstance(found, MarketingApiError):
            return None if isinstance(found, Stopped) else self._halt(str(found))
        chosen = _chosen(entry, found)
        if not chosen:
            return self._reject(item_id, "no contact has this address")
        if self._was_sent_before(entry, chosen[0]):
            self._outbox.settle(item_id, State.SKIPPED, message="sent before")
            return self._over(item_id, State.SKIPPED)
        self._contact_ids[item_id] = chosen
        return self._begin(entry)

    def _reject(self, item_id: int, reason: str) -> None:
        self._outbox.settle(item_id, State.REJECTED, message=reason)
        self._over(item_id, State.REJECTED)

    def _was_sent_before(self, entry: Entry, contact_id: int) -> bool:
        """Whether the same activity went to the contact under its id, of which the plan knew nothing."""
        if entry.kind is not Kind.ACTIVITIES:
            return False
        prefix = len(entry.email or "")
        names = [f"{contact_id}{subject[prefix:]}" for subject in self._outbox.subjects([entry.item_id]).get(entry.item_id, ())]
        return any(past.state in DONE for past in self._outbox.last(self._account, entry.kind, names).values())

    def _find(self, email: str, list_id: int | None) -> tuple[Found, ...] | MarketingApiError:
        try:
            return self._directory.find(email, list_id)
        except MarketingApiError as problem:
            return problem

    # ---- unknown ones

    def _take_up(self, item_id: int) -> None:
        """Its time has come: activities are looked for, all of the contact's at once; others are simply sent again."""
        entry = self._entries[item_id]
        if entry.kind is Kind.ACTIVITIES:
            contact_id, began = self._contact_of(item_id), time.time()
            together = [other for other in self._due if self._contact_of(other) == contact_id]
            for other in together:
                del self._due[other]
            self._submit(
                "looked", item_id, lambda: (began, together, look(self._outbox, self._client, self._account, contact_id, together))
            )
            return
        del self._due[item_id]
        self._send_again(item_id)

    def _contact_of(self, item_id: int) -> int:
        """0 for what goes by address alone."""
        entry = self._entries[item_id]
        return (self._contact_ids.get(item_id) or (entry.contact_id or 0,))[0] if entry.kind is Kind.ACTIVITIES else 0

    def _send_again(self, item_id: int) -> None:
        if self._attempts[item_id] >= self._patience.attempts:
            self._give_up(item_id, f"sent {self._attempts[item_id]} times, and never was there a whole answer")
            return
        self._lost_at.pop(item_id, None)
        self._outbox.settle(item_id, State.PLANNED)
        self._schedule.again(item_id)

    def _give_up(self, item_id: int, why: str) -> None:
        self._due.pop(item_id, None)
        self._outbox.settle(item_id, State.UNKNOWN, message=why)

    def _on_looked(self, _: int, result: tuple[float, list[int], Looked]) -> None:
        began, together, looked = result
        if looked.is_stop:
            self._halt("stopped")
            return
        for item_id in together:
            if looked.is_nobody:
                self._reject(item_id, f"the contact is not there any more: {looked.problem}")
            elif looked.problem:
                self._give_up(item_id, f"it could not be looked for: {looked.problem}")
            else:
                self._on_presence(item_id, looked.found.get(item_id, Presence.ABSENT), began)

    def _on_presence(self, item_id: int, presence: Presence, looked_at: float) -> None:
        first, last = (self._lost_at[item_id] + wait for wait in (self._patience.first_look_s, self._patience.last_look_s))
        if presence is Presence.THERE:
            note_found(self._outbox, item_id)
            self._over(item_id, State.APPLIED)
        elif presence is Presence.HIDDEN:
            self._give_up(item_id, "the service does not show the contact's timeline as far back: whether it arrived cannot be told")
        elif looked_at >= last:
            self._send_again(item_id)
        else:
            self._due[item_id] = last if looked_at >= first else first


def _chosen(entry: Entry, found: tuple[Found, ...]) -> tuple[int, ...]:
    """The contacts that the item is for: tags of an address are taken off all its contacts, anything else goes to one."""
    if entry.kind is Kind.TAGS:
        return tuple(sorted({one.contact_id for one in found}))
    one = preferred(found)
    return () if one is None else (one.contact_id,)
