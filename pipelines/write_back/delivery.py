"""One item on its way: intent committed, request sent, outcome committed. Runs in worker threads.

Not here: which item is next, who an address is, what is done about unknown ones (`sending`); in which requests a kind is sent (`kinds`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from marketing_api.clock import wall
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
from marketing_api.operations import find
from marketing_api.write_result import says_absent
from pipelines.write_back.item import State
from pipelines.write_back.kinds import ADDING, KINDS
from pipelines.write_back.outbox.entries import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.retry_policy import RetryPolicy

if TYPE_CHECKING:
    from marketing_api.client import Client


class End(Enum):
    """How one sending ended."""

    APPLIED = "applied"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    GONE = "gone"  # cancelled meanwhile
    EARLY = "early"  # refused since a contact that was synced just now does not show yet
    UNAVAILABLE = "unavailable"  # 1002: nothing happened
    NOT_SENT = "not sent"  # and what stands in the way does so for all: stop


@dataclass(frozen=True, slots=True)
class Delivered:
    """`reason`: the error's words, free of key and addresses."""

    end: End
    reason: str = ""


class _NotPlanned(Exception):
    """Somebody cancelled the item before its turn came."""


class Delivery:
    """Sends items of one outbox, until `is_halted` says so. Thread-safe."""

    def __init__(self, outbox: Outbox, client: Client, *, policy: RetryPolicy, is_halted: Callable[[], bool]) -> None:
        self._outbox = outbox
        self._is_halted = is_halted
        self._client = client
        self._forms = {name: kind.forms(client.fetch) for name, kind in KINDS.items()}
        self._policy = policy

    def deliver(self, entry: Entry, contact_ids: tuple[int, ...] = ()) -> Delivered:
        """Send it and settle it. `contact_ids`: what its address was looked up as; of several, each is written to.

        Raises OutboxError, and then nothing more may be sent; the entry stands as it was committed last.
        """
        try:
            response = self._send(entry, contact_ids)
        except _NotPlanned:
            return Delivered(End.GONE)
        except OutcomeUnknown as problem:
            self._outbox.settle(entry.item_id, State.UNKNOWN, message=str(problem))
            return Delivered(End.UNKNOWN, str(problem))
        except Refused as problem:
            return self._refused(entry, problem)
        except NotAvailable as problem:
            self._outbox.unclaim(entry.item_id)
            return Delivered(End.UNAVAILABLE, str(problem))
        except InvalidCall as problem:
            return self._reject(entry, str(problem))
        except MarketingApiError as problem:  # Transient (never sent), AuthenticationFailed, BudgetSpent, Stopped
            self._outbox.unclaim(entry.item_id)
            return Delivered(End.NOT_SENT, "stopped" if isinstance(problem, Stopped) else str(problem))
        contact_id = KINDS[entry.kind].new_contact_id(response)
        self._outbox.settle(entry.item_id, State.APPLIED, request_id=response.request_id, contact_id=contact_id)
        return Delivered(End.APPLIED)

    def _send(self, entry: Entry, contact_ids: tuple[int, ...]) -> Response:
        is_claimed = False

        def claim() -> None:
            nonlocal is_claimed
            if self._is_halted():
                raise Stopped("nothing more is to be sent")
            if not self._outbox.claim(entry.item_id, contact_id=contact_ids[0] if contact_ids else None):
                raise _NotPlanned
            is_claimed = True

        operation = dataclasses.replace(find(entry.operation or ""), timeout=self._policy.timeout_s)
        ids = [{"id": str(contact_id)} for contact_id in contact_ids] or [{}]
        forms = self._forms[entry.kind]
        wants, more = forms.wants(entry), frozenset[Any]()
        while True:
            several = forms.of(entry, wants | more)
            try:
                for call in [Call(operation, {**params, **each}) for params in several for each in ids]:
                    response = self._again(call) if is_claimed else self._client.write(call, before=claim)
            except Refused as refusal:
                new = forms.wanted_by(refusal, entry) - wants - more
                if not new:
                    raise
                more |= new
            else:
                forms.learn(more)
                return response

    def _again(self, call: Call) -> Response:
        """What follows on the first request of an item. From there on, what is not known to be done is unknown."""
        try:
            return self._client.write(call)
        except (Transient, NotAvailable, Stopped, AuthenticationFailed) as problem:
            raise OutcomeUnknown(f"{problem}; it may have been done in part") from problem

    def _refused(self, entry: Entry, problem: Refused) -> Delivered:
        """What takes somebody away, was lost or did not show, and is repeated finds nobody there: that was the first one's doing."""
        is_again = entry.drift or self._outbox.entry(entry.item_id).attempts > 1
        if KINDS[entry.kind].is_done_by_absence and is_again and says_absent(str(problem)):
            self._outbox.settle(entry.item_id, State.APPLIED, message="done by an earlier try")
            return Delivered(End.APPLIED)
        if says_absent(str(problem)) and is_early(self._outbox, entry, self._policy):
            self._outbox.unclaim(entry.item_id)
            return Delivered(End.EARLY)
        return self._reject(entry, str(problem))

    def _reject(self, entry: Entry, reason: str) -> Delivered:
        self._outbox.settle(entry.item_id, State.REJECTED, message=reason)
        return Delivered(End.REJECTED, reason)


def is_early(outbox: Outbox, entry: Entry, policy: RetryPolicy) -> bool:
    """Whether who is not there may only not show yet: the same address was synced just now, and that is queued (row 6)."""
    synced_at = None if entry.email is None else outbox.synced_at(entry.account, ADDING, entry.email)
    return synced_at is not None and abs(wall() - synced_at) < policy.verify_wait_s
