"""Sending the open items of one account: in order, as fast as the rate limit allows, each effect
once.

    with outbox.hold_sender("main"):
        stopped = Sending(outbox, client, "main", stop=stop, on_progress=show).send_all()

States of an item (`item.State`), and the methods for them:

    planned   _begin_task: look up who it is for (_on_found), claim it, send it (_deliver_task)
    sending   _on_sent: applied, rejected, skipped; planned again if it certainly was not sent
    unknown   after _on_lost: an idempotent item is sent again (_resend), any other is looked
              for (_look_for, _judge_presence), then applied, sent again or given up (_give_up)
    applied, rejected, skipped   it is settled (_settle_task), and items that wait for it may go

One thread decides (the caller's), workers send and look. Belongs here: what is sent, looked for and
sent again, and when to stop. Not here: the order (`send_order`), the requests of a kind (`kinds`),
which activities a timeline shows (`unknown_outcomes`), waiting times (`item.RetryPolicy`), reading
back (`verification`)."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from marketing_api.address import normal_form
from marketing_api.clock import SteadyClock, unix_now
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
from write_back.item import DONE, RETRY_POLICY, RetryPolicy, State
from write_back.kinds import CONTACTS, KINDS, Kind
from write_back.outbox.outbox import Entry, Outbox
from write_back.planning import UNCHANGED
from write_back.send_order import Schedule, keys_of
from write_back.unknown_outcomes import Presence

if TYPE_CHECKING:
    from marketing_api.client import Client

_LOOK_S = 0.2  # how soon a stop is seen
_DONE_EARLIER = "done by an earlier try"


@dataclass(eq=False)
class _Task:
    """An entry until it is settled. `entry.attempts` includes this run; `contact_ids`: the contacts
    of its address, once it was looked up; `unavailable_count`: how often the service was
    unavailable (error 1002)."""

    entry: Entry
    kind: Kind
    contact_ids: tuple[int, ...] = ()
    unavailable_count: int = 0

    @property
    def item_id(self) -> int:
        return self.entry.item_id

    @property
    def contact_id(self) -> int | None:
        return self.contact_ids[0] if self.contact_ids else self.entry.contact_id


class Sending:
    """Sends the open items of an account. Only for the holder of `outbox.hold_sender(account)`. All
    but `_deliver_task` runs in the caller's thread.

    Once `stop` is set or the client has stopped, nothing more is sent, and requests under way are
    waited for. `on_progress` gets the number of done requests, of all requests, and of those with
    an unknown outcome."""

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
        self._outbox = outbox
        self._client = client
        self._account = account
        self._policy = policy
        self._stop = stop or threading.Event()
        self._on_progress = on_progress
        self._directory = Directory(client.fetch)
        self._pool = ThreadPoolExecutor(policy.workers, thread_name_prefix="sending")
        #: Work in a worker → the method that gets its result.
        self._under_way: dict[Future[Any], Callable[[Any], None]] = {}
        self._tasks: dict[int, _Task] = {}  # by item, until they are settled
        self._total = 0  # requests to be done
        self._batches: Iterator[list[Entry]] = iter(())
        self._schedule = Schedule()
        self._unknown: dict[_Task, float] = {}  # since when the outcome is unknown
        #: When an unknown outcome is looked up, or a task is tried again whose contact does not
        #: show yet.
        self._due: dict[_Task, float] = {}
        self._in_row: Counter[type] = Counter()
        self._done = 0  # sent or rejected
        self._stopped: str | None = None
        self._now = SteadyClock().seconds

    def send_all(self) -> str | None:
        """Send until nothing is open; returns why not everything was sent, if so. Raises
        OutboxError when an outcome could not be stored; that item counts as unknown from then
        on."""
        self._outbox.recover_sent(self._account)
        self._total, self._batches = self._outbox.open_batches(self._account)
        self._take_in(next(self._batches))
        try:
            while self._take_step():
                pass
        except BaseException:
            self._stop_sending("an error")
            while self._under_way:  # settle what was sent, as far as possible
                with suppress(Exception):
                    self._take_results(_LOOK_S)
            raise
        finally:
            self._pool.shutdown(wait=True)
        return self._stopped

    def _take_in(self, entries: list[Entry]) -> None:
        subjects = self._outbox.find_subjects(entry.item_id for entry in entries)
        for entry in entries:
            task = self._tasks[entry.item_id] = _Task(entry, KINDS[entry.kind])
            is_unknown = entry.state is State.UNKNOWN
            keys = keys_of(entry, subjects.get(entry.item_id, ()))
            self._schedule.add_item(entry.item_id, keys, is_ready=not is_unknown)
            if is_unknown:
                self._hold_task(task)
                # as of now, because an earlier process lost it at an unknown time
                self._schedule_look(task, self._now())

    # ---- starting work

    def _take_step(self) -> bool:
        """Start work and take one result; False when there is nothing more to do."""
        if self._stop.is_set() or self._client.is_stopped:
            self._stop_sending("stopped")
        if self._stopped is None:
            self._start_work()
        due = min(self._due.values(), default=math.inf)
        if not self._under_way and (self._stopped is not None or due == math.inf):
            return False
        if self._take_results(min(_LOOK_S, due - self._now())):
            self._on_progress(self._done, self._total, len(self._unknown))
        return True

    def _start_work(self) -> None:
        now = self._now()
        for task in [task for task, due in self._due.items() if due <= now]:
            del self._due[task]
            if task not in self._unknown:
                self._schedule.hand_back(task.item_id)
            elif task.kind.is_idempotent:
                self._resend(task)
            else:
                self._look_for(task)
        while len(self._under_way) < self._policy.workers:
            item_id = self._next_item()
            if item_id is None:
                return
            self._begin_task(self._tasks[item_id])

    def _next_item(self) -> int | None:
        """The first item that may go now. Another batch is loaded only when there is none, so that
        memory has only items under way and those that wait for them."""
        item_id = self._schedule.next_item()
        while item_id is None:
            batch = next(self._batches, None)
            if batch is None:
                return None
            self._take_in(batch)
            item_id = self._schedule.next_item()
        return item_id

    def _begin_task(self, task: _Task) -> None:
        if task in self._unknown:  # `_due` has the time of its next look
            return
        if task.entry.needs_look_up and not task.contact_ids:
            self._run_in_worker(
                lambda: self._directory.find_contacts(task.entry.email or ""),
                lambda found: self._on_found(task, found),
            )
        elif self._hold_task(task):
            self._run_in_worker(
                lambda: self._deliver_task(task), lambda result: self._on_sent(task, result)
            )

    def _hold_task(self, task: _Task) -> bool:
        """Whether no other item that is not idempotent is on its way to the contact. The contact id
        may be known only since the look-up."""
        if task.kind.is_idempotent:
            return True
        return self._schedule.hold_key(task.item_id, f"to contact {task.contact_id}")

    def _run_in_worker(self, work: Callable[[], object], then: Callable[[Any], None]) -> None:
        """Only `work` runs in a worker's thread. An error of the service is passed to `then` like
        any result."""
        self._under_way[self._pool.submit(work)] = then

    def _take_results(self, timeout_s: float) -> bool:
        """Wait for results and handle them; False when none came in time. Raises what the work
        raised."""
        timeout_s = max(0.001, timeout_s)
        if not self._under_way:
            time.sleep(timeout_s)
        done, _ = wait(self._under_way, timeout_s, FIRST_COMPLETED)
        for future in done:
            error = future.exception()
            then = self._under_way.pop(future)
            then(error if isinstance(error, MarketingApiError) else future.result())
        return bool(done)

    def _stop_sending(self, reason: str) -> None:
        self._stopped = self._stopped or reason

    def _settle_task(self, task: _Task, state: State, **more: Any) -> None:
        """Commit the outcome; `more`: arguments of `Outbox.settle_item`."""
        self._outbox.settle_item(task.item_id, state, **more)
        self._done += state is not State.SKIPPED
        self._let_go(task)

    def _let_go(self, task: _Task) -> None:
        self._unknown.pop(task, None)
        self._due.pop(task, None)
        del self._tasks[task.item_id]
        self._schedule.finish_item(task.item_id)

    # ---- results

    def _on_sent(self, task: _Task, result: Response | MarketingApiError | str | None) -> None:
        """Commit the outcome of a request."""
        kind_of_result = type(result)
        self._in_row = Counter({kind_of_result: self._in_row[kind_of_result] + 1})
        match result:
            case None:
                self._let_go(task)
            case str():
                self._on_nothing_sent(task, result)
            case Response():
                contact_id = task.kind.new_contact_id(result)
                self._settle_task(
                    task, State.APPLIED, request_id=result.request_id, contact_id=contact_id
                )
            case OutcomeUnknown():
                self._on_lost(task, result)
            case Refused():
                self._on_refused(task, result)
            case NotAvailable():
                self._on_unavailable(task, str(result))
            case InvalidCall():
                self._settle_task(task, State.REJECTED, message=str(result))
            # Transient (never sent), AuthenticationFailed, BudgetSpent, Stopped: sending stops
            case _:
                self._outbox.unclaim_item(task.item_id)
                self._stop_sending(_describe_stop(result))

    def _on_nothing_sent(self, task: _Task, reason: str) -> None:
        """If an earlier attempt of this item is the reason, the item is applied."""
        is_own = reason == UNCHANGED and bool(task.entry.attempts)
        if is_own and self._outbox.claim_item(task.item_id):
            self._settle_task(task, State.APPLIED, message=_DONE_EARLIER)
        else:
            self._settle_task(task, State.SKIPPED, message=reason)

    def _on_lost(self, task: _Task, error: OutcomeUnknown) -> None:
        self._outbox.settle_item(task.item_id, State.UNKNOWN, message=str(error))
        task.entry = replace(task.entry, attempts=task.entry.attempts + 1)
        self._schedule_look(task, self._now())
        count = self._in_row[OutcomeUnknown]
        if count >= self._policy.unknown_in_row:
            self._stop_sending(
                f"{count} requests in a row had no complete response; the last: {error}"
            )

    def _on_refused(self, task: _Task, error: Refused) -> None:
        if says_absent(str(error)) and self._is_early(task.entry):
            self._outbox.unclaim_item(task.item_id)
            self._try_later(task)
        else:
            self._settle_task(task, State.REJECTED, message=str(error))

    def _on_unavailable(self, task: _Task, reason: str) -> None:
        """Error 1002: nothing happened."""
        self._outbox.unclaim_item(task.item_id)
        task.unavailable_count += 1
        count = self._in_row[NotAvailable]
        if count >= self._policy.unavailable_in_row:
            self._stop_sending(f"{reason}, {count} times in a row")
        elif task.unavailable_count >= self._policy.attempts:
            self._settle_task(task, State.REJECTED, message=reason)
        else:
            self._schedule.hand_back(task.item_id)

    def _is_early(self, entry: Entry) -> bool:
        """Whether a missing contact may not show yet: the address was synced just now, and the
        service queues that (observation 6)."""
        if entry.email is None:
            return False
        synced_at = self._outbox.synced_at(entry.account, CONTACTS, entry.email)
        if synced_at is None:
            return False
        return abs(unix_now() - synced_at) < self._policy.verify_wait_s

    def _try_later(self, task: _Task) -> None:
        self._due[task] = self._now() + self._policy.verify_every_s

    # ---- looking up contacts

    def _on_found(self, task: _Task, found: tuple[Found, ...] | MarketingApiError) -> None:
        if isinstance(found, Refused):
            self._settle_task(
                task, State.REJECTED, message=f"its address could not be looked up: {found}"
            )
        elif isinstance(found, MarketingApiError):
            self._stop_sending(_describe_stop(found))
        elif contact_ids := task.kind.choose_contacts(found):
            if self._was_sent_before(task, contact_ids[0]):
                self._settle_task(task, State.SKIPPED, message="sent before")
            else:
                task.contact_ids = contact_ids
                self._begin_task(task)
        elif self._is_early(task.entry):
            self._directory.forget_address(task.entry.email or "")
            self._try_later(task)
        else:
            self._settle_task(task, State.REJECTED, message="no contact has this address")

    def _was_sent_before(self, task: _Task, contact_id: int) -> bool:
        """Whether the same was sent to the contact by its id, which the plan did not know, and must
        not be sent twice."""
        if task.kind.is_idempotent:
            return False
        item_id = task.item_id
        prefix = len(normal_form(task.entry.email or ""))
        subjects = self._outbox.find_subjects([item_id]).get(item_id, ())
        names = [f"{contact_id}{subject[prefix:]}" for subject in subjects]
        pasts = self._outbox.find_last(self._account, names, task.kind)
        return any(past.state in DONE for past in pasts.values())

    # ---- unknown outcomes

    def _schedule_look(self, task: _Task, since: float) -> None:
        wait_s = self._policy.first_look_s
        if task.kind.is_idempotent:
            wait_s = self._policy.repeat_s * 3 ** max(task.entry.attempts - 1, 0)
        self._unknown[task] = since
        self._due[task] = since + wait_s

    def _look_for(self, task: _Task) -> None:
        entry = task.entry
        contact_id = task.contact_id or 0
        began = self._now()
        settled_before = began - self._policy.last_look_s
        self._run_in_worker(
            lambda: task.kind.look_for_item(
                self._outbox, self._client.fetch, entry, contact_id, settled_before
            ),
            lambda looked: self._on_looked(task, looked, began),
        )

    def _on_looked(self, task: _Task, looked: Presence | MarketingApiError, began: float) -> None:
        if isinstance(looked, Presence):
            self._judge_presence(task, looked, began)
        elif isinstance(looked, Stopped):
            self._stop_sending(_describe_stop(looked))
        elif isinstance(looked, Refused) and is_nobody(looked):
            message = f"the contact is not there any more: {looked}"
            self._settle_task(task, State.REJECTED, message=message)
        else:
            self._give_up(task, f"its outcome could not be looked up: {looked}")

    def _judge_presence(self, task: _Task, presence: Presence, began: float) -> None:
        """Act on the result of a look that began at `began`."""
        last = self._unknown[task] + self._policy.last_look_s
        if presence is Presence.THERE:
            self._settle_task(task, State.APPLIED, message=presence.value)
        elif presence is Presence.HIDDEN:
            self._give_up(task, presence.value)
        elif began >= last:
            self._resend(task)  # the request never arrived
        else:
            self._due[task] = last

    def _resend(self, task: _Task) -> None:
        attempts = task.entry.attempts
        if attempts >= self._policy.attempts:
            self._give_up(task, f"sent {attempts} times without a complete response")
            return
        del self._unknown[task]
        self._outbox.settle_item(task.item_id, State.PLANNED)
        self._schedule.hand_back(task.item_id)

    def _give_up(self, task: _Task, why: str) -> None:
        """The outcome stays unknown, and items about the same thing wait, until a person retries
        or cancels the item."""
        self._outbox.settle_item(task.item_id, State.UNKNOWN, message=why)

    # ---- requests, in worker threads: none is sent before the intent is committed

    def _deliver_task(self, task: _Task) -> Response | str | None:
        """Send the requests of an item, one for each contact of its address. Returns the last
        response, or why nothing is sent, or None when the item was cancelled meanwhile.

        Raises what a write raises, and OutboxError, after which nothing more may be sent."""
        entry = task.entry
        kind = task.kind

        def claim_item() -> None:
            if self._stopped is not None:
                raise Stopped("nothing more is to be sent")
            contact_id = task.contact_ids[0] if task.contact_ids else None
            if not self._outbox.claim_item(
                entry.item_id, contact_id=contact_id, expected=outgoing.expected
            ):
                raise _NotPlanned
            if outgoing.expected is not None:
                task.entry = replace(entry, expected=outgoing.expected)

        outgoing = kind.prepare_requests(entry, task.contact_ids, self._directory)
        if not outgoing.calls:
            return outgoing.left
        first, *rest = (
            Call(replace(call.operation, timeout=self._policy.timeout_s), call.params)
            for call in outgoing.calls
        )
        try:
            response = self._client.write(first, before=claim_item)
        except _NotPlanned:
            return None
        for call in rest:
            response = self._send_following(call)
        return response

    def _send_following(self, call: Call) -> Response:
        """A request after the first one of an item. If it fails, the outcome is unknown, because
        the item may have been done in part."""
        try:
            return self._client.write(call)
        except (Transient, NotAvailable, Stopped, AuthenticationFailed) as error:
            raise OutcomeUnknown(f"{error}; it may have been done in part") from error


class _NotPlanned(Exception):
    """The item was cancelled before it was sent."""


def _describe_stop(error: MarketingApiError) -> str:
    """Why nothing more is sent."""
    return "stopped" if isinstance(error, Stopped) else str(error)
