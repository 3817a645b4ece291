"""Sending what an outbox holds for one account, until nothing is open: in order, as fast as the limit allows,
each effect once.

    with outbox.sending("main"):
        stopped = Sending(outbox, client, "main", stop=stop, on_progress=show).run()

One thread decides (the caller's), workers send and look. Belongs here: what is sent, looked for and sent
again, and when to stop. Not here: the order (`send_order`), in which requests a kind is sent (`kinds`), which
activities a timeline shows (`unknown_outcomes`), figures (`retry_policy`), reading back (`verification`)."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from marketing_api.address import normal_form
from marketing_api.clock import SteadyClock, wall
from marketing_api.contact_lookup import Directory, Found, is_nobody
from marketing_api.errors import (
    AuthenticationFailed,
    InvalidCall,
    MarketingApiError,
    NotAvailable,
    OutcomeUnknown,
    Refused,
    Stopped,
    Transient,
)
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.write_result import says_absent
from write_back.item import DONE, EffectKind, State
from write_back.kinds import KINDS, kinds_that
from write_back.outbox.outbox import Entry, Outbox
from write_back.retry_policy import RETRY_POLICY, RetryPolicy
from write_back.send_order import Schedule, keys_of
from write_back.unknown_outcomes import Presence

if TYPE_CHECKING:
    from marketing_api.client import Client

_LOOK_S = 0.2  # how soon a stop is seen


class Sending:
    """Sends what is open of an account. Only for who holds `outbox.sending(account)`. All but `_deliver` runs
    in the caller's thread.

    Once `stop` is set, or the client stopped, nothing more is sent, and requests under way are waited for.
    `on_progress` is given how many requests of the outbox are done, how many there are, and how many are
    unknown right now."""

    def __init__(
        self,
        outbox: Outbox,
        client: Client,
        account: str,
        *,
        stop: threading.Event | None = None,
        on_progress: Callable[[int, int, int], object] = lambda done, total, unknown: None,
        policy: RetryPolicy = RETRY_POLICY,
    ) -> None:
        self._outbox, self._client, self._account, self._policy = outbox, client, account, policy
        self._stop, self._on_progress = stop or threading.Event(), on_progress
        self._directory = Directory(client.fetch)
        self._found: dict[
            int, tuple[int, ...]
        ] = {}  # item → the contacts of its address, once it was looked up
        self._pool = ThreadPoolExecutor(policy.workers, thread_name_prefix="sending")
        self._under_way: dict[
            Future[Any], Callable[[Any], None]
        ] = {}  # work given out → what takes in its result
        self._entries: dict[int, Entry] = {}
        self._schedule = Schedule()
        self._unknown: dict[int, float] = {}  # since when an outcome is
        self._due: dict[
            int, float
        ] = {}  # when one is looked into; or when what is about people who do not show yet is tried again
        self._completed: set[str] = (
            set()
        )  # kinds whose requests were taken as `Kind.completed` makes them, and not as planned
        self._attempts: Counter[int] = Counter()
        self._unavailable: Counter[int] = Counter()
        self._in_row: Counter[type] = Counter()
        self._done = 0  # sent or rejected
        self._stopped: str | None = None
        self._now = SteadyClock().seconds

    def run(self) -> str | None:
        """Why not everything was sent, in words for people. Raises OutboxError when an outcome could not be
        kept: that item counts as unknown from then on."""
        self._outbox.recover(self._account)
        self._take_in(self._outbox.open(self._account))
        try:
            while self._step():
                pass
        except BaseException:
            self._halt("an error")
            while self._under_way:  # what was sent is settled as far as that goes
                with suppress(Exception):
                    self._take_results(_LOOK_S)
            raise
        finally:
            self._pool.shutdown(wait=True)
        return self._stopped

    def _take_in(self, entries: list[Entry]) -> None:
        subjects = self._outbox.subjects(entry.item_id for entry in entries)
        for entry in entries:
            self._entries[entry.item_id] = entry
            self._attempts[entry.item_id] = entry.attempts
            is_unknown = entry.state is State.UNKNOWN
            self._schedule.add(
                entry.item_id, keys_of(entry, subjects.get(entry.item_id, ())), is_ready=not is_unknown
            )
            if is_unknown:
                self._hold(entry)
                self._lose(
                    entry, self._now()
                )  # how long ago an earlier process lost it, no clock tells for certain

    # ---- giving out

    def _step(self) -> bool:
        """Give out work and take in one result; False when there is nothing more to be done."""
        if self._stop.is_set() or self._client.is_stopped:
            self._halt("stopped")
        if self._stopped is None:
            self._give_out()
        due = min(self._due.values(), default=math.inf)
        if not self._under_way and (self._stopped is not None or due == math.inf):
            return False
        if self._take_results(min(_LOOK_S, due - self._now())):
            self._on_progress(self._done, len(self._entries), len(self._unknown))
        return True

    def _give_out(self) -> None:
        for item_id in [item_id for item_id, due in self._due.items() if due <= self._now()]:
            if item_id in self._unknown:
                self._take_up(self._entries[item_id])
            else:
                del self._due[item_id]
                self._schedule.again(item_id)
        while len(self._under_way) < self._policy.workers and (ready := self._schedule.next()) is not None:
            self._begin(self._entries[ready])

    def _begin(self, entry: Entry) -> None:
        if entry.item_id in self._unknown:  # what stood before it is over; its own time is still to come
            return
        if entry.needs_look_up and entry.item_id not in self._found:
            self._do(lambda: self._directory.find(*_who(entry)), lambda found: self._on_found(entry, found))
        elif self._hold(entry):
            contact_ids = self._found.get(entry.item_id, ())
            again = dataclasses.replace(entry, attempts=self._attempts[entry.item_id])
            self._do(lambda: self._deliver(again, contact_ids), lambda result: self._on_sent(entry, result))

    def _hold(self, entry: Entry) -> bool:
        """Whether nobody could take it for one that is on its way."""
        alike = KINDS[entry.kind].ambiguity(entry, self._contact_of(entry))
        return alike is None or self._schedule.hold(entry.item_id, f"alike {alike}")

    def _do(self, work: Callable[[], object], then: Callable[[Any], None]) -> None:
        """Only `work` runs in a worker's thread; the service's error is a result like another."""
        self._under_way[self._pool.submit(work)] = then

    def _take_results(self, timeout_s: float) -> bool:
        """Wait for results and deal with them; False when none came in time. Raises what the work raised."""
        if not self._under_way:
            time.sleep(max(0.001, timeout_s))
        done, _ = wait(self._under_way, max(0.001, timeout_s), FIRST_COMPLETED)
        for future in done:
            problem = future.exception()
            self._under_way.pop(future)(
                problem if isinstance(problem, MarketingApiError) else future.result()
            )
        return bool(done)

    def _halt(self, reason: str) -> None:
        self._stopped = self._stopped or reason

    def _end(self, item_id: int, state: State, **more: Any) -> None:
        """Commit that it is over, and how; `more` as `Outbox.settle` takes it."""
        self._outbox.settle(item_id, state, **more)
        self._over(item_id, state)

    def _over(self, item_id: int, state: State) -> None:
        self._done += state is not State.SKIPPED
        self._unknown.pop(item_id, None)
        self._due.pop(item_id, None)
        self._schedule.finish(item_id)

    # ---- what came back

    def _on_sent(self, entry: Entry, result: Response | MarketingApiError | str | None) -> None:
        """Commit what became of it, and go on."""
        self._in_row = Counter({type(result): self._in_row[type(result)] + 1})
        if result is None:
            self._over(entry.item_id, State.SKIPPED)
        elif isinstance(result, str):
            self._end(entry.item_id, State.SKIPPED, message=result)
        elif isinstance(result, Response):
            contact_id = KINDS[entry.kind].new_contact_id(result)
            self._end(entry.item_id, State.APPLIED, request_id=result.request_id, contact_id=contact_id)
        elif isinstance(result, OutcomeUnknown):
            self._on_lost(entry, result)
        elif isinstance(result, Refused):
            self._on_refused(entry, result)
        elif isinstance(result, NotAvailable):
            self._on_unavailable(entry.item_id, str(result))
        elif isinstance(result, InvalidCall):
            self._end(entry.item_id, State.REJECTED, message=str(result))
        else:  # Transient (never sent), AuthenticationFailed, BudgetSpent, Stopped: what is in the way of all
            self._outbox.unclaim(entry.item_id)
            self._halt("stopped" if isinstance(result, Stopped) else str(result))

    def _on_lost(self, entry: Entry, problem: OutcomeUnknown) -> None:
        self._outbox.settle(entry.item_id, State.UNKNOWN, message=str(problem))
        self._attempts[entry.item_id] += 1
        self._lose(entry, self._now())
        if (count := self._in_row[OutcomeUnknown]) >= self._policy.unknown_in_row:
            self._halt(f"{count} requests in a row had no whole answer; the last: {problem}")

    def _on_refused(self, entry: Entry, problem: Refused) -> None:
        """What takes somebody away, was lost or did not show, and is repeated finds nobody there: that was
        the first one's doing."""
        is_absent, is_again = says_absent(str(problem)), entry.drift or self._attempts[entry.item_id]
        if is_absent and is_again and KINDS[entry.kind].is_done_by_absence:
            self._end(entry.item_id, State.APPLIED, message="done by an earlier try")
        elif is_absent and self._is_early(entry):
            self._outbox.unclaim(entry.item_id)
            self._try_later(entry)
        else:
            self._end(entry.item_id, State.REJECTED, message=str(problem))

    def _on_unavailable(self, item_id: int, reason: str) -> None:
        """Error 1002: nothing happened."""
        self._outbox.unclaim(item_id)
        self._unavailable[item_id] += 1
        if (count := self._in_row[NotAvailable]) >= self._policy.unavailable_in_row:
            self._halt(f"{reason}, {count} times in a row")
        elif self._unavailable[item_id] >= self._policy.attempts:
            self._end(item_id, State.REJECTED, message=reason)
        else:
            self._schedule.again(item_id)

    def _is_early(self, entry: Entry) -> bool:
        """Whether who is not there may only not show yet: the same address was synced just now, and that is
        queued (row 6)."""
        joining = kinds_that(EffectKind.JOINS)
        synced_at = (
            None if entry.email is None else self._outbox.synced_at(entry.account, joining, entry.email)
        )
        return synced_at is not None and abs(wall() - synced_at) < self._policy.verify_wait_s

    def _try_later(self, entry: Entry) -> None:
        self._due[entry.item_id] = self._now() + self._policy.verify_every_s

    # ---- who it is for

    def _on_found(self, entry: Entry, found: tuple[Found, ...] | MarketingApiError) -> None:
        if isinstance(found, Refused):
            self._end(entry.item_id, State.REJECTED, message=f"its address was not looked up: {found}")
        elif isinstance(found, MarketingApiError):
            self._halt("stopped" if isinstance(found, Stopped) else str(found))
        elif not (contact_ids := KINDS[entry.kind].chosen(found)) and self._is_early(entry):
            self._directory.forget(*_who(entry))
            self._try_later(entry)
        elif not contact_ids:
            self._end(entry.item_id, State.REJECTED, message="no contact has this address")
        elif self._was_sent_before(entry, contact_ids[0]):
            self._end(entry.item_id, State.SKIPPED, message="sent before")
        else:
            self._found[entry.item_id] = contact_ids
            self._begin(entry)

    def _contact_of(self, entry: Entry) -> int | None:
        return next(iter(self._found.get(entry.item_id, ())), entry.contact_id)

    def _was_sent_before(self, entry: Entry, contact_id: int) -> bool:
        """Whether the same went to the contact under its id, of which the plan knew nothing, and must not go
        there twice."""
        if KINDS[entry.kind].is_idempotent:
            return False
        prefix = len(normal_form(entry.email or ""))
        names = [
            f"{contact_id}{subject[prefix:]}"
            for subject in self._outbox.subjects([entry.item_id]).get(entry.item_id, ())
        ]
        return any(
            past.state in DONE for past in self._outbox.last(self._account, names, entry.kind).values()
        )

    # ---- unknown outcomes

    def _lose(self, entry: Entry, since: float) -> None:
        tries = max(self._attempts[entry.item_id], 1)
        wait_s = (
            self._policy.repeat_s * 3 ** (tries - 1)
            if KINDS[entry.kind].is_idempotent
            else self._policy.first_look_s
        )
        self._unknown[entry.item_id], self._due[entry.item_id] = since, since + wait_s

    def _take_up(self, entry: Entry) -> None:
        """Its time has come: what is idempotent is simply sent again; else it is looked for, with all of its
        kind about the contact, since one look serves them all."""
        if entry.item_id not in self._due:
            return
        if (kind := KINDS[entry.kind]).is_idempotent:
            del self._due[entry.item_id]
            self._send_again(entry.item_id)
            return
        contact_id, began = self._contact_of(entry) or 0, self._now()
        others = (self._entries[item_id] for item_id in self._due if item_id in self._unknown)
        together = [
            one.item_id
            for one in others
            if one.kind == entry.kind and (self._contact_of(one) or 0) == contact_id
        ]
        for item_id in together:
            del self._due[item_id]
        settled = began - self._policy.last_look_s
        self._do(
            lambda: kind.look(self._outbox, self._client.fetch, self._account, contact_id, together, settled),
            lambda looked: self._on_looked(together, looked, began),
        )

    def _on_looked(
        self, together: list[int], looked: Mapping[int, Presence] | MarketingApiError, began: float
    ) -> None:
        if isinstance(looked, Stopped):
            self._halt("stopped")
            return
        for item_id in together:
            presence = looked.get(item_id, Presence.ABSENT) if isinstance(looked, Mapping) else None
            if isinstance(looked, Refused) and is_nobody(looked):
                self._end(item_id, State.REJECTED, message=f"the contact is not there any more: {looked}")
            elif presence is None:
                self._give_up(item_id, f"it could not be looked for: {looked}")
            elif presence is Presence.THERE:
                self._end(item_id, State.APPLIED, message=presence.value)
            elif presence is Presence.HIDDEN:
                self._give_up(item_id, presence.value)
            elif began >= (since := self._unknown[item_id]) + self._policy.last_look_s:
                self._send_again(item_id)  # it never arrived
            else:
                is_early = began < since + self._policy.first_look_s  # it was looked for beside another one
                self._due[item_id] = since + (
                    self._policy.first_look_s if is_early else self._policy.last_look_s
                )

    def _send_again(self, item_id: int) -> None:
        if self._attempts[item_id] >= self._policy.attempts:
            self._give_up(
                item_id, f"sent {self._attempts[item_id]} times, and never was there a whole answer"
            )
            return
        del self._unknown[item_id]
        self._outbox.settle(item_id, State.PLANNED)
        self._schedule.again(item_id)

    def _give_up(self, item_id: int, why: str) -> None:
        """It stays unknown, and keeps what touches the same thing waiting, until somebody wants it
        retried."""
        self._outbox.settle(item_id, State.UNKNOWN, message=why)

    # ---- the requests of an item, in worker threads: none leaves before its intent is committed

    def _deliver(self, entry: Entry, contact_ids: tuple[int, ...]) -> Response | str | None:
        """The last response; why nothing is sent; None when it was cancelled meanwhile. `contact_ids`: what
        its address was looked up as; each is written to.

        Raises what a write raises, and OutboxError, after which nothing more may be sent.
        """
        is_claimed = False

        def claim() -> None:
            nonlocal is_claimed
            if self._stopped is not None:
                raise Stopped("nothing more is to be sent")
            contact_id = contact_ids[0] if contact_ids else None
            if not self._outbox.claim(entry.item_id, contact_id=contact_id, expected=outgoing.expected):
                raise _NotPlanned
            is_claimed = True

        kind, is_completed = KINDS[entry.kind], entry.kind in self._completed
        while True:
            outgoing = kind.outgoing(entry, contact_ids, self._client.fetch, is_completed=is_completed)
            if not outgoing.calls:
                return outgoing.left
            try:
                for call in outgoing.calls:
                    timely = Call(
                        dataclasses.replace(call.operation, timeout=self._policy.timeout_s), call.params
                    )
                    response = self._again(timely) if is_claimed else self._client.write(timely, before=claim)
            except _NotPlanned:
                return None
            except Refused as refusal:
                if is_completed or not kind.lacks(refusal, call):
                    raise
                self._outbox.unclaim(entry.item_id)
                is_claimed, is_completed = False, True
            else:
                if is_completed:
                    self._completed.add(entry.kind)
                return response

    def _again(self, call: Call) -> Response:
        """What follows on the first request of an item. From there on, what is not known to be done is
        unknown."""
        try:
            return self._client.write(call)
        except (Transient, NotAvailable, Stopped, AuthenticationFailed) as problem:
            raise OutcomeUnknown(f"{problem}; it may have been done in part") from problem


class _NotPlanned(Exception):
    """Somebody cancelled the item before its turn came."""


def _who(entry: Entry) -> tuple[str, int | None]:
    """What is looked up of it: its address, and in which list."""
    return entry.email or "", KINDS[entry.kind].left_list(entry)
