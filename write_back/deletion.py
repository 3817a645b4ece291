"""Deletes people at the service, and looks at its lists until they show none of them.

What the lists show decides what is deleted: a request that the service took is not repeated, and one whose
response was lost is repeated only while the contact is still listed. So a deletion that was interrupted can
be run again. Not here: who is asked first (`commands.forget`)."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from home.door import open_warehouse
from home.settings import Settings
from marketing_api.address import normal_form
from marketing_api.client import Client
from marketing_api.contact_lookup import Directory, Found, read_list
from marketing_api.errors import OutcomeUnknown, Refused
from marketing_api.records.contacts import DELETECONTACT
from warehouse.sql import fetch_rows

#: Seconds between two looks at the lists, since the service's queue may take as long to show a deletion.
_PAUSES_S = (1, 2, 4, 8, 15)

#: A contact on a list: both ids.
OnList = tuple[int, int]


@dataclass
class Deletion:
    """The deletion of people from one account. `list_ids`: the lists that they are known on, to which those
    are added on which the service shows one of their addresses."""

    client: Client
    contact_ids: Collection[int]
    addresses: Collection[str]
    list_ids: set[int]
    sleep: Callable[[float], object] = time.sleep
    reasons: dict[OnList, str] = field(default_factory=dict)

    def find_listed(self) -> set[OnList]:
        """Where the service lists them now. Raises Refused when a list cannot be read to its end, and
        whatever else a request raises."""
        directory = Directory(self.client.fetch)
        found = {(one.contact_id, one.list_id) for each in self.addresses for one in directory.find_now(each)}
        listed = {(contact_id, list_id) for contact_id, list_id in found if list_id is not None}
        self.list_ids |= {list_id for _, list_id in listed}
        for list_id in sorted(self.list_ids):
            contacts = read_list(self.client, list_id)
            if contacts is None:
                raise Refused(f"list {list_id} could not be read to its end")
            listed |= {(one.contact_id, list_id) for one in contacts if self._is_theirs(one)}
        return listed

    def _is_theirs(self, one: Found) -> bool:
        return one.contact_id in self.contact_ids or normal_form(one.email or "") in self.addresses

    def delete_contacts(self, listed: Collection[OnList]) -> str:
        """Delete `listed` and what the lists show after that. Why they are not known to be gone, or nothing.
        Raises whatever else a request raises."""
        taken: set[OnList] = set()
        for pause_s in _PAUSES_S:
            taken |= {each for each in sorted(set(listed) - taken) if self._is_taken(each)}
            self.sleep(pause_s)
            try:
                listed, why = self.find_listed(), f"still listed after {sum(_PAUSES_S)} seconds"
            except Refused as refusal:
                listed, why = set(), str(refusal)
                continue
            if not listed:
                return ""
        return next((reason for each, reason in self.reasons.items() if each in listed), why)

    def _is_taken(self, each: OnList) -> bool:
        contact_id, list_id = each
        try:
            self.client.write(DELETECONTACT.bind(id=contact_id, listid=list_id))
        except OutcomeUnknown as problem:
            self.reasons[each] = str(problem)
            return False
        except Refused as refusal:
            self.reasons[each] = str(refusal)
        return True


def read_list_ids(settings: Settings, account: str, contact_ids: Collection[int]) -> set[int]:
    """The lists that the warehouse knows the contacts on."""
    sql = (
        "select distinct list_id from source.contacts "
        "where account = ? and list_contains(?, contact_id) and _deleted_at is null"
    )
    with open_warehouse(settings, read_only=True) as connection:
        return {list_id for (list_id,) in fetch_rows(connection, sql, [account, [*contact_ids]])}
