"""Which contact an entry goes to: known from the plan, or looked up by its address while sending. Not here: the look-up (`finding`)."""

from __future__ import annotations

from marketing_api.client import Client
from marketing_api.errors import MarketingApiError
from pipelines.write_back.item import DONE, Kind
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.sending.finding import Directory, Found


class Addressing:
    """`find` may be called by several threads at once, everything else by one."""

    def __init__(self, outbox: Outbox, client: Client, account: str) -> None:
        self._outbox, self._account = outbox, account
        self._directory = Directory(client.fetch)
        self._found: dict[int, tuple[int, ...]] = {}

    @property
    def asked(self) -> int:
        """Addresses that were looked up."""
        return self._directory.asked

    def is_open(self, entry: Entry) -> bool:
        """Whether its address has still to be looked up."""
        return entry.needs_look_up and entry.item_id not in self._found

    def find(self, entry: Entry) -> tuple[Found, ...] | MarketingApiError:
        """Moves and deletions are about the contact in one list."""
        try:
            return self._directory.find(entry.email or "", _list_of(entry))
        except MarketingApiError as problem:
            return problem

    def forget(self, entry: Entry) -> None:
        """Its address is to be looked up again."""
        self._directory.forget(entry.email or "", _list_of(entry))

    def keep(self, entry: Entry, contact_ids: tuple[int, ...]) -> None:
        self._found[entry.item_id] = contact_ids

    def looked_up(self, entry: Entry) -> tuple[int, ...]:
        """Empty for what the plan knew."""
        return self._found.get(entry.item_id, ())

    def contact_of(self, entry: Entry) -> int | None:
        return next(iter(self.looked_up(entry)), entry.contact_id)

    def was_sent_before(self, entry: Entry, contact_id: int) -> bool:
        """Whether the same activity went to the contact under its id, of which the plan knew nothing."""
        if entry.kind is not Kind.ACTIVITIES:
            return False
        prefix = len(entry.email or "")
        names = [f"{contact_id}{subject[prefix:]}" for subject in self._outbox.subjects([entry.item_id]).get(entry.item_id, ())]
        return any(past.state in DONE for past in self._outbox.last(self._account, entry.kind, names).values())


def _list_of(entry: Entry) -> int | None:
    list_id = {Kind.MOVES: entry.params.get("sourceid"), Kind.DELETIONS: entry.params.get("listid")}.get(entry.kind)
    return None if list_id is None else int(list_id)
