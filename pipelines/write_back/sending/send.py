"""Sending what an outbox holds for one account, until nothing is open: in order, as fast as the limit allows, each effect once.

    with outbox.sending("main"):
        sent = send(outbox, client, "main", stop=stop, on_progress=show)

One thread decides (the caller's), workers send and look. Belongs here: what is sent, looked for and sent again, and when to stop.
Not here: one request (`delivery`), one look (`looking`), the order (`schedule`), figures (`patience`), reading back (`verify`).
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable

from marketing_api.client import Client
from marketing_api.clock import SteadyClock
from marketing_api.errors import MarketingApiError, Refused, Stopped
from pipelines.write_back.item import Kind, State
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.sending.addressing import Addressing
from pipelines.write_back.sending.delivery import Delivered, Delivery, End, is_early
from pipelines.write_back.sending.finding import Found, chosen_for
from pipelines.write_back.sending.looking import Looked, look, note_found
from pipelines.write_back.sending.lost import Lost, Next
from pipelines.write_back.sending.patience import PATIENCE, Patience
from pipelines.write_back.sending.reconcile import Presence
from pipelines.write_back.sending.schedule import Schedule, keys_of
from pipelines.write_back.sending.sent import Progress, Sent
from pipelines.write_back.sending.twins import Twins
from pipelines.write_back.sending.waiting import note_waiting
from pipelines.write_back.sending.workers import Workers

__all__ = ["Progress", "Sent", "send"]

_LOOK_S = 0.2  # how soon a stop is seen
_OVER = {End.APPLIED: State.APPLIED, End.REJECTED: State.REJECTED, End.GONE: State.SKIPPED}


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


class _Sending:
    """All methods run in the caller's thread."""

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
        self._delivery = Delivery(outbox, client, patience=patience, is_halted=lambda: self._stopped is not None)
        self._addressing = Addressing(outbox, client, account)
        self._workers = Workers(patience.workers)
        self._entries: dict[int, Entry] = {}
        self._schedule, self._twins, self._lost = Schedule(), Twins(), Lost(patience)
        self._early: dict[int, float] = {}  # about people who were synced just now and do not show yet: when to try again
        self._attempts: Counter[int] = Counter()
        self._unavailable: Counter[int] = Counter()
        self._in_row: Counter[End] = Counter()
        self._tally: Counter[State] = Counter()
        self._stopped: str | None = None
        self._now = SteadyClock().seconds

    def run(self) -> Sent:
        began, asked = time.monotonic(), self._client.statistics.requests
        self._outbox.recover(self._account)
        self._take_in(self._outbox.open(self._account))
        try:
            while self._step():
                pass
        except BaseException:
            self._halt("an error")
            raise
        finally:
            self._workers.close()
        still_open = self._outbox.open(self._account)
        note_waiting(self._outbox, self._schedule, still_open)
        left = Counter(entry.state for entry in still_open)
        return Sent(
            self._tally[State.APPLIED],
            self._tally[State.REJECTED],
            left[State.UNKNOWN] + left[State.SENDING],
            left[State.PLANNED],
            self._addressing.asked,
            self._client.statistics.requests - asked,
            time.monotonic() - began,
            self._stopped,
        )

    def _take_in(self, entries: list[Entry]) -> None:
        subjects = self._outbox.subjects(entry.item_id for entry in entries)
        for entry in entries:
            self._entries[entry.item_id] = entry
            self._attempts[entry.item_id] = entry.attempts
            is_unknown = entry.state is State.UNKNOWN
            self._schedule.add(entry.item_id, keys_of(entry, subjects.get(entry.item_id, ())), is_ready=not is_unknown)
            if is_unknown:
                self._twins.hold(entry, entry.contact_id)
                self._lose(entry, self._now())  # how long ago an earlier process lost it, no clock tells for certain

    # ---- giving out

    def _step(self) -> bool:
        """Give out work and take in one result; False when there is nothing more to be done."""
        if self._stop.is_set() or self._client.is_stopped:
            self._halt("stopped")
        if self._stopped is None:
            self._give_out()
        if self._workers.are_idle and (self._stopped is not None or not (self._lost.is_waiting or self._early)):
            return False
        due = min(self._lost.next_due, *self._early.values(), math.inf)
        if self._workers.take_in(min(_LOOK_S, due - self._now())):
            now = Progress(len(self._entries), self._tally[State.APPLIED], self._tally[State.REJECTED], len(self._lost))
            self._on_progress(now)
        return True

    def _give_out(self) -> None:
        for item_id in self._lost.due(self._now()):
            self._take_up(self._entries[item_id])
        for item_id in [item_id for item_id, due in self._early.items() if due <= self._now()]:
            del self._early[item_id]
            self._schedule.again(item_id)
        while not self._workers.are_busy and (ready := self._schedule.next()) is not None:
            self._begin(self._entries[ready])

    def _begin(self, entry: Entry) -> None:
        if self._addressing.is_open(entry):
            self._workers.do(lambda: self._addressing.find(entry), lambda found: self._on_found(entry, found))
            return
        if self._twins.hold(entry, self._addressing.contact_of(entry)):
            contact_ids = self._addressing.looked_up(entry)
            self._workers.do(lambda: self._delivery.deliver(entry, contact_ids), lambda told: self._on_delivered(entry.item_id, told))

    def _halt(self, reason: str) -> None:
        self._stopped = self._stopped or reason

    def _over(self, item_id: int, state: State) -> None:
        self._tally[state] += 1
        self._lost.remove(item_id)
        self._schedule.finish(item_id)
        for twin in self._twins.release(item_id):
            self._schedule.again(twin)

    def _reject(self, item_id: int, reason: str) -> None:
        self._outbox.settle(item_id, State.REJECTED, message=reason)
        self._over(item_id, State.REJECTED)

    # ---- what was delivered

    def _on_delivered(self, item_id: int, delivered: Delivered) -> None:
        end = delivered.end
        self._in_row = Counter({end: self._in_row[end] + 1})
        if end in _OVER:
            self._over(item_id, _OVER[end])
        elif end is End.UNKNOWN:
            self._attempts[item_id] += 1
            self._lose(self._entries[item_id], self._now())
            if self._in_row[end] >= self._patience.unknown_in_row:
                self._halt(f"{self._in_row[end]} requests in a row had no whole answer; the last: {delivered.reason}")
        elif end is End.UNAVAILABLE:
            self._on_unavailable(item_id, delivered.reason)
        elif end is End.EARLY:
            self._try_later(item_id)
        else:
            self._halt(delivered.reason)

    def _on_unavailable(self, item_id: int, reason: str) -> None:
        self._unavailable[item_id] += 1
        if self._in_row[End.UNAVAILABLE] >= self._patience.unavailable_in_row:
            self._halt(f"{reason}, {self._in_row[End.UNAVAILABLE]} times in a row")
        elif self._unavailable[item_id] >= self._patience.attempts:
            self._reject(item_id, reason)
        else:
            self._schedule.again(item_id)

    # ---- who it is for

    def _on_found(self, entry: Entry, found: tuple[Found, ...] | MarketingApiError) -> None:
        if isinstance(found, Refused):
            self._reject(entry.item_id, f"its address was not looked up: {found}")
        elif isinstance(found, MarketingApiError):
            self._halt("stopped" if isinstance(found, Stopped) else str(found))
        elif not (contact_ids := chosen_for(entry.kind, found)) and is_early(self._outbox, entry, self._patience):
            self._addressing.forget(entry)
            self._try_later(entry.item_id)
        elif not contact_ids:
            self._reject(entry.item_id, "no contact has this address")
        elif self._addressing.was_sent_before(entry, contact_ids[0]):
            self._outbox.settle(entry.item_id, State.SKIPPED, message="sent before")
            self._over(entry.item_id, State.SKIPPED)
        else:
            self._addressing.keep(entry, contact_ids)
            self._begin(entry)

    def _try_later(self, item_id: int) -> None:
        for twin in self._twins.release(item_id):
            self._schedule.again(twin)
        self._early[item_id] = self._now() + self._patience.verify_every_s

    # ---- what was lost

    def _lose(self, entry: Entry, since: float) -> None:
        is_looked_for, tries = entry.kind is Kind.ACTIVITIES, max(self._attempts[entry.item_id], 1)
        self._lost.add(entry.item_id, since, self._patience.first_look_s if is_looked_for else self._patience.repeat_s * 3 ** (tries - 1))

    def _take_up(self, entry: Entry) -> None:
        """Its time has come: activities are looked for, all of the contact's at once; others are simply sent again."""
        if entry.kind is not Kind.ACTIVITIES:
            if self._lost.take(entry.item_id):
                self._send_again(entry.item_id)
            return
        contact_id, began = self._addressing.contact_of(entry) or 0, self._now()
        together = self._lost.take(entry.item_id, lambda other: self._is_for(self._entries[other], contact_id))
        if together:
            settled = began - self._patience.last_look_s
            self._workers.do(
                lambda: look(self._outbox, self._client, self._account, contact_id, together, settled_before=settled),
                lambda looked: self._on_looked(together, looked, began),
            )

    def _is_for(self, entry: Entry, contact_id: int) -> bool:
        return entry.kind is Kind.ACTIVITIES and self._addressing.contact_of(entry) == contact_id

    def _on_looked(self, together: list[int], looked: Looked, began: float) -> None:
        if looked.is_stop:
            self._halt("stopped")
            return
        for item_id in together:
            if looked.is_nobody:
                self._reject(item_id, f"the contact is not there any more: {looked.problem}")
            elif looked.problem:
                self._give_up(item_id, f"it could not be looked for: {looked.problem}")
            else:
                self._on_presence(item_id, self._lost.after(item_id, looked.found.get(item_id, Presence.ABSENT), began))

    def _on_presence(self, item_id: int, following: Next) -> None:
        if following is Next.DONE:
            note_found(self._outbox, item_id)
            self._over(item_id, State.APPLIED)
        elif following is Next.SEND:
            self._send_again(item_id)
        elif following is Next.GIVE_UP:
            self._give_up(item_id, "the service does not show the contact's timeline as far back: whether it arrived cannot be told")

    def _send_again(self, item_id: int) -> None:
        if self._attempts[item_id] >= self._patience.attempts:
            self._give_up(item_id, f"sent {self._attempts[item_id]} times, and never was there a whole answer")
            return
        self._lost.remove(item_id)
        self._outbox.settle(item_id, State.PLANNED)
        self._schedule.again(item_id)

    def _give_up(self, item_id: int, why: str) -> None:
        """It stays unknown, and keeps what touches the same thing waiting, until somebody wants it retried."""
        self._outbox.settle(item_id, State.UNKNOWN, message=why)
