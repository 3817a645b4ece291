"""Reading contacts and activities back in the way that costs the fewest requests. Not here: what is made of them (`verify`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from marketing_api import parsing
from marketing_api.client import Client, Failure
from marketing_api.errors import MarketingApiError, Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import contacts
from marketing_api.paging import Listing
from marketing_api.records.contacts import Contact
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.sending.finding import Found, is_nobody, read_found, status_of
from pipelines.write_back.sending.reconcile import Presence, look_for, read_timeline, wanted
from pipelines.write_back.verifying.comparing import Compared

#: From so many addresses on, a first page of the list is worth a request, to see how long the list is.
_LIST_FROM = 5


@dataclass(frozen=True, slots=True)
class Unread:
    """It could not be had, and why."""

    reason: str


@dataclass
class Seen:
    """Contacts by list and address (lower case)."""

    _found: dict[tuple[int, str], list[Found] | Unread] = field(default_factory=dict)
    _whole: set[int] = field(default_factory=set)

    def of(self, list_id: int, email: str) -> list[Found] | Unread:
        key = (list_id, email.lower())
        if key in self._found:
            return self._found[key]
        return [] if list_id in self._whole else Unread("it was not read")

    def put(self, list_id: int, email: str, found: list[Found] | Unread) -> None:
        self._found[(list_id, email.lower())] = found

    def put_whole(self, list_id: int, found: Iterable[Found]) -> None:
        by_email: defaultdict[str, list[Found]] = defaultdict(list)
        for one in found:
            by_email[(one.email or "").lower()].append(one)
        self._found.update({(list_id, email): each for email, each in by_email.items()})
        self._whole.add(list_id)


def read_contacts(client: Client, addresses: Mapping[int, Collection[str]]) -> Seen:
    """The contacts with these addresses, by list: whole lists where that takes fewer requests. Raises Stopped, BudgetSpent, …"""
    seen = Seen()
    single: list[Call] = []
    for list_id, emails in addresses.items():
        whole, _ = read_list(client, list_id, len(emails)) if len(emails) >= _LIST_FROM else (None, 0)
        if whole is not None:
            seen.put_whole(list_id, whole)
        else:
            single += [contacts.GETCONTACTBYEMAIL.bind(email=email, listid=list_id) for email in sorted(emails)]
    for told in client.fetch_many(single):
        params = told.call.params
        seen.put(int(params["listid"]), params["email"], _found(told))
    return seen


def _found(told: Response | Failure) -> list[Found] | Unread:
    if isinstance(told, Failure):
        is_empty = isinstance(told.error, Refused) and is_nobody(told.error)
        return [] if is_empty else Unread(str(told.error))
    email, list_id = told.call.params["email"].lower(), int(told.call.params["listid"])
    found = read_found(told)
    return [one for one in found if one.list_id in (None, list_id) and (one.email or email).lower() == email]


def read_list(client: Client, list_id: int, worth: float) -> tuple[list[Found] | None, int]:
    """All contacts of the list, if that takes no more than `worth` requests; and the requests that were sent."""
    listing = Listing(contacts.GETCONTACTS, {"listid": list_id})
    found: list[Found] = []
    try:
        for response in listing.pages(client.fetch):
            found += _members(response)
            per_page = listing.rows / listing.pages_read
            if listing.end is None and listing.pages_read + listing.missing / max(per_page, 1) + 1 > worth:
                return None, listing.pages_read
    except Refused:
        return None, listing.pages_read + 1
    return (found if listing.is_complete else None), listing.pages_read


def _members(response: Response) -> list[Found]:
    """Entries that cannot be read are left out, and so count as not there: their addresses are looked up next time."""
    return [
        Found(
            one.contact_id,
            one.list_id,
            one.email,
            status_of(one.status, one.status_code),
            one.custom_fields if isinstance(one.custom_fields, dict) else None,
        )
        for rows in parsing.parse_rows(response, None, response.requested_at.date())
        for one in rows.records
        if isinstance(one, Contact)
    ]


def seek_activities(outbox: Outbox, client: Client, entries: Collection[Entry]) -> dict[int, Compared | Unread]:
    """Each contact's timeline once. What the service cut off is neither there nor missing."""
    by_contact: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.contact_id is not None:
            by_contact[entry.contact_id].append(entry)
    told: dict[int, Compared | Unread] = {}
    for response in client.fetch_many(contacts.TIMELINE.bind(id=contact_id) for contact_id in by_contact):
        contact_id = int(response.call.params["id"])
        told |= _in_timeline(outbox, response, by_contact[contact_id])
    return told


def _in_timeline(outbox: Outbox, response: Response | Failure, entries: Collection[Entry]) -> dict[int, Compared | Unread]:
    if isinstance(response, Failure):
        return {entry.item_id: Unread(_reason(response.error)) for entry in entries}
    account, contact_id = response.account, int(response.call.params["id"])
    presence = look_for([wanted(entry) for entry in outbox.activities(account, contact_id)], read_timeline(response))
    verdicts: dict[Presence, Compared | Unread] = {
        Presence.THERE: Compared(),
        Presence.ABSENT: Compared({"activity": ("there", "not there")}),
        Presence.HIDDEN: Unread("the service does not show the timeline as far back"),
    }
    return {entry.item_id: verdicts[presence.get(entry.item_id, Presence.ABSENT)] for entry in entries}


def _reason(error: MarketingApiError) -> str:
    return str(error)
