"""The contacts of an address or a list, and the entries of a timeline: responses to look-ups as
values.

Belongs here: every form in which they come (observations 3, 4, 19 and 21). Nothing above this
package parses them. Not here: what a push makes of them (`write_back`), the tables that a sync
fills from the same operations (`records`)."""

from __future__ import annotations

import datetime as dt
import math
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from marketing_api import parsing
from marketing_api.address import normal_form
from marketing_api.errors import Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import contacts, lists
from marketing_api.paging import Listing
from marketing_api.parsing import timeline_extent
from marketing_api.records.contacts import read_contacts as rows_of_contacts
from marketing_api.records.lists import ContactList
from marketing_api.records.shapes import as_objects, first_member, list_entries
from marketing_api.records.values import is_nothing, read_int, read_moment, read_or_none
from marketing_api.write_result import collect_words, says_absent

if TYPE_CHECKING:  # it takes long to import, and who plans a push does without
    from marketing_api.client import Client, Failure

Fetch = Callable[[Call], Response]

#: With at least this many addresses, the first page of a list is worth a request: it says how long
#: the list is.
_LIST_FROM = 5


# ---- who an address is


@dataclass(frozen=True, slots=True)
class Found:
    """One contact of an address. `list_id` is None where it is not shown; `status` is a word, or a
    code that has none."""

    contact_id: int
    list_id: int | None
    email: str | None = field(repr=False)
    status: str | None
    # None: the response shows no custom fields
    fields: Mapping[str, Any] | None = field(repr=False)

    def fields_by_id(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """Custom fields by id, whether they are shown under their ids or their labels (row 19).
        `labels`: field id → label."""
        ids = {_fold_label(label): field_id for field_id, label in labels.items() if label}
        found = {}
        for name, value in (self.fields or {}).items():
            field_id = name if name in labels else ids.get(_fold_label(name))
            if field_id is not None:
                found[field_id] = (
                    value["value"] if isinstance(value, Mapping) and "value" in value else value
                )
        return found


@dataclass(frozen=True, slots=True)
class Unread:
    reason: str


def look_up(fetch: Fetch, email: str, list_id: int | None = None) -> tuple[Found, ...]:
    """All contacts with the address (on that list); empty when there is none. Raises what `fetch`
    raises."""
    try:
        response = fetch(contacts.GETCONTACTBYEMAIL.bind(email=email, listid=list_id))
    except Refused as refusal:
        if is_nobody(refusal):
            return ()
        raise
    return tuple(_read_found_at(response, email))


def is_nobody(refusal: Refused) -> bool:
    return says_absent(str(refusal)) or says_absent(collect_words(refusal.detail))


def read_found(response: Response) -> Iterator[Found]:
    """The contacts of a response to a look-up or of a page of a list; entries without a readable id
    are left out."""
    operation = response.call.operation
    params = response.call.params
    if operation.rows is None:
        pairs = rows_of_contacts(as_objects(response.envelope.decode_payload(operation)), params)
    else:
        pairs = parsing.pair_entries(response)
    for _, raw in pairs:
        if (
            isinstance(raw, dict)
            and (contact_id := read_or_none(read_int, raw.get("id"))) is not None
        ):
            list_id = read_or_none(read_int, raw.get("listid", raw.get("list_id")))
            word = raw.get("status")
            code = raw.get("status_code")
            # a code without a word is not one that is not shown
            status = str(code) if word is None and code is not None else word
            email = raw["email"] if isinstance(raw.get("email"), str) else None
            yield Found(contact_id, list_id, email, status, raw.get("custom_fields"))


def _read_found_at(response: Response, email: str) -> Iterator[Found]:
    """Contacts with that address; entries without an address count, too."""
    form = normal_form(email)
    return (one for one in read_found(response) if _email_of(one) in ("", form))


def _fold_label(label: str) -> str:
    return re.sub(r"[\s_]+", "", label).casefold()


class Directory:
    """Looked-up addresses. Thread-safe. Each method raises what `fetch` raises."""

    def __init__(self, fetch: Fetch) -> None:
        self.fetch = fetch
        self._known: dict[str, tuple[Found, ...]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._list_ids: list[int] = []
        self._list_lock = threading.Lock()

    def find_now(self, email: str) -> tuple[Found, ...]:
        """Everybody with the address on any list, each with its list, as of now. A service that
        shows one contact and not its list is requested list by list."""
        found = look_up(self.fetch, email)
        if all(one.list_id is not None for one in found):
            return found
        return tuple(
            replace(one, list_id=list_id)
            for list_id in self._load_list_ids()
            for one in look_up(self.fetch, email, list_id)
            if one.list_id in (None, list_id)
        )

    def _load_list_ids(self) -> list[int]:
        """The account's lists, requested once."""
        with self._list_lock:
            if not self._list_ids:
                pages = Listing(lists.GETLISTS, {}).pages(self.fetch)
                entries = [
                    raw
                    for page in pages
                    for kind, raw in parsing.pair_entries(page)
                    if kind is ContactList
                ]
                ids = (
                    read_or_none(read_int, raw.get("id"))
                    for raw in entries
                    if isinstance(raw, dict)
                )
                self._list_ids = [list_id for list_id in ids if list_id is not None]
            return self._list_ids

    def find_contacts(self, email: str) -> tuple[Found, ...]:
        """Requested once, however many need it; when that fails, the next caller tries again."""
        key = normal_form(email)
        with self._locks.setdefault(key, threading.Lock()):
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = look_up(self.fetch, email)
            return known

    def forget_address(self, email: str) -> None:
        self._known.pop(normal_form(email), None)


# ---- who is on a list


@dataclass
class Seen:
    """Contacts by list and normal form of the address."""

    found: dict[tuple[int, str], list[Found] | Unread] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)  # lists that were read to their end

    def contacts_of(self, list_id: int, email: str) -> list[Found] | Unread:
        return self.found.get(
            (list_id, normal_form(email)),
            [] if list_id in self.whole else Unread("it was not read"),
        )


def _email_of(one: Found) -> str:
    return normal_form(one.email or "")


def read_contacts(client: Client, addresses: Mapping[int, Collection[str]]) -> Seen:
    """The contacts with these addresses, by list: whole lists where that takes fewer requests.
    Raises Stopped, BudgetSpent, …"""
    seen = Seen()
    single: list[Call] = []
    for list_id, emails in addresses.items():
        whole = read_list(client, list_id, len(emails)) if len(emails) >= _LIST_FROM else None
        if whole is not None:
            seen.whole.add(list_id)
            for email, same in groupby(sorted(whole, key=_email_of), key=_email_of):
                seen.found[list_id, email] = list(same)
        else:
            spellings = {normal_form(email): email for email in sorted(emails)}.values()
            single += [
                contacts.GETCONTACTBYEMAIL.bind(email=email, listid=list_id) for email in spellings
            ]
    for result in client.fetch_many(single):
        params = result.call.params
        email = params["email"]
        list_id = int(params["listid"])
        seen.found[list_id, normal_form(email)] = _read_single(result, email, list_id)
    return seen


def _read_single(result: Response | Failure, email: str, list_id: int) -> list[Found] | Unread:
    if isinstance(result, Response):
        return [one for one in _read_found_at(result, email) if one.list_id in (None, list_id)]
    is_known = isinstance(result.error, Refused) and is_nobody(result.error)
    return [] if is_known else Unread(str(result.error))


def read_list(client: Client, list_id: int, worth: float = math.inf) -> list[Found] | None:
    """All contacts of the list, if that takes no more than `worth` requests; None also where an
    entry cannot be read, or the service states no count of 0 for an empty list."""
    listing = Listing(contacts.GETCONTACTS, {"listid": list_id})
    found: list[Found] = []
    try:
        for response in listing.pages(client.fetch):
            found += read_found(response)
            per_page = listing.rows / listing.pages_read
            if (
                not listing.is_over
                and listing.pages_read + listing.missing / max(per_page, 1) + 1 > worth
            ):
                return None
    except Refused:
        return None
    is_readable = len({one.contact_id for one in found}) == len(listing.keys)
    is_whole = listing.is_complete and is_readable and (bool(found) or listing.service_count == 0)
    return found if is_whole else None


# ---- what a timeline shows


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An entry of a timeline: its texts, its moment (unix seconds), and the local time that it
    shows."""

    texts: tuple[str, ...] = field(repr=False)
    at: int | None
    local: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """`is_cut`: the service has older entries, or more of them, than it served."""

    entries: tuple[TimelineEntry, ...]
    is_cut: bool = False


def fetch_timelines(
    client: Client, contact_ids: Iterable[int]
) -> Iterator[tuple[int, Timeline | Unread]]:
    calls = (contacts.TIMELINE.bind(id=contact_id) for contact_id in contact_ids)
    for result in client.fetch_many(calls):
        contact_id = int(result.call.params["id"])
        if isinstance(result, Response):
            yield contact_id, read_timeline(result)
        else:
            yield contact_id, Unread(str(result.error))


def read_timeline(response: Response) -> Timeline:
    """Entries that cannot be read have no text, and so are nobody's."""
    timeline = first_member(response.envelope.decode_payload(response.call.operation), "timeline")
    data = timeline.get("data") if isinstance(timeline, dict) else timeline
    served, total = timeline_extent(response)
    return Timeline(
        tuple(_read_entry(raw) for raw in list_entries(data) if isinstance(raw, dict)),
        served < total,
    )


def _read_entry(raw: Mapping[str, Any]) -> TimelineEntry:
    """Either member may hold unix seconds (row 21); a text is local."""
    stamp = raw.get("timestamp")
    text = raw.get("datetime")
    if isinstance(text, int | float) or (isinstance(text, str) and text.strip().isdecimal()):
        stamp = text if is_nothing(stamp) else stamp
        text = None
    moment, local = (read_or_none(_read_in_utc, value) for value in (stamp, text))
    at = None if moment is None else int(moment.timestamp())
    return TimelineEntry(
        tuple(_list_texts(raw)), at, None if local is None else local.replace(tzinfo=None)
    )


_read_in_utc = partial(read_moment, zone=dt.UTC)


def _list_texts(raw: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(snippet := raw.get("snippet"), str):
        yield snippet
    for detail in list_entries(raw.get("details")):
        value = detail.get("value") if isinstance(detail, Mapping) else detail
        if isinstance(value, str | int | float):
            yield str(value)
