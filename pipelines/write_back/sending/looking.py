"""Looking for activities whose outcome is unknown: one timeline serves all of a contact's. Runs in worker threads.

Not here: what is likeness (`reconcile`), when to look (`send`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from marketing_api.client import Client
from marketing_api.errors import MarketingApiError, Refused, Stopped
from marketing_api.operations import contacts
from pipelines.write_back.item import State
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.sending.finding import is_nobody
from pipelines.write_back.sending.reconcile import Presence, look_for, read_timeline, wanted


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look told about each item; `problem` when there was nothing to be seen."""

    found: dict[int, Presence]
    is_nobody: bool = False  # the contact is not there any more, and neither is its timeline
    problem: str = ""
    is_stop: bool = False


def look(outbox: Outbox, client: Client, account: str, contact_id: int, item_ids: Collection[int], *, settled_before: float) -> Looked:
    """Raises OutboxError. Everything that was ever sent to the contact takes part, so that no entry is counted twice.

    `settled_before`: what was done by then (unix seconds) shows.
    """
    try:
        response = client.fetch(contacts.TIMELINE.bind(id=contact_id))
    except Refused as refusal:
        return Looked({}, is_nobody=is_nobody(refusal), problem=str(refusal))
    except MarketingApiError as problem:
        return Looked({}, problem=str(problem), is_stop=isinstance(problem, Stopped))
    ours = [wanted(entry, settled_before) for entry in outbox.activities(account, contact_id)]
    told = look_for(ours, read_timeline(response))
    return Looked({item_id: told[item_id] for item_id in item_ids if item_id in told})


def note_found(outbox: Outbox, item_id: int) -> None:
    outbox.settle(item_id, State.APPLIED, message="found in the timeline after its answer was lost")
