"""The contacts of an address or a list, and the entries of a timeline: responses to look-ups as
values.

Belongs here: every form in which they come (observations 3, 4, 19 and 21). No other package parses
them. Not here: what a push does with them (`write_back`), the tables that a sync fills from the
same operations (`records`)."""

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

if TYPE_CHECKING:  # it takes long to import, and planning a push does not need it
    from marketing_api.client import Client, Failure

Fetch = Callable[[Call], Response]

#: From this many addresses on, the first page of a list is worth a request: it says how long the
#: list is.
_LIST_FROM = 5


# ---- the contacts of an address


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
        """Custom fields by id, whether they are shown under their ids or their labels (observation
        19). `labels`: field id → label."""
        ids: dict[str, str] = {}
        for labeled_id, label in labels.items():
            if label:
                ids[_fold_label(label)] = labeled_id
        found = {}
        for name, value in (self.fields or {}).items():
            folded_name = _fold_label(name)
            field_id = name if name in labels else ids.get(folded_name)
            if field_id is None:
                continue
            is_wrapped = isinstance(value, Mapping) and "value" in value
            found[field_id] = value["value"] if is_wrapped else value
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
    if says_absent(str(refusal)):
        return True
    detail = collect_words(refusal.detail)
    return says_absent(detail)


def read_found(response: Response) -> Iterator[Found]:
    """The contacts of a response to a look-up or of a page of a list; entries without a readable id
    are left out."""
    operation = response.call.operation
    params = response.call.params
    if operation.rows is None:
        payload = response.envelope.decode_payload(operation)
        pairs = rows_of_contacts(as_objects(payload), params)
    else:
        pairs = parsing.pair_entries(response)
    for _, raw in pairs:
        if not isinstance(raw, dict):
            continue
        contact_id = read_or_none(read_int, raw.get("id"))
        if contact_id is None:
            continue
        raw_list_id = raw.get("listid", raw.get("list_id"))
        list_id = read_or_none(read_int, raw_list_id)
        status = raw.get("status")
        code = raw.get("status_code")
        if status is None and code is not None:  # the response has only the code
            status = str(code)
        email = raw.get("email")
        shown_email = email if isinstance(email, str) else None
        yield Found(contact_id, list_id, shown_email, status, raw.get("custom_fields"))


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
        """Every contact with the address on any list, each with its list, as of now. If the service
        shows one contact without its list, each list is requested."""
        found = look_up(self.fetch, email)
        if all(one.list_id is not None for one in found):
            return found
        on_lists: list[Found] = []
        for list_id in self._load_list_ids():
            on_lists += self.find_on_list(email, list_id)
        return tuple(on_lists)

    def find_on_list(self, email: str, list_id: int) -> list[Found]:
        """The contacts with the address on this list, as of now."""
        found = look_up(self.fetch, email, list_id)
        return [replace(one, list_id=list_id) for one in found if one.list_id in (None, list_id)]

    def _load_list_ids(self) -> list[int]:
        """The account's lists, requested once."""
        with self._list_lock:
            if not self._list_ids:
                found: list[int] = []
                for page in Listing(lists.GETLISTS, {}).pages(self.fetch):
                    found += _read_list_ids(page)
                self._list_ids = found
            return self._list_ids

    def find_contacts(self, email: str) -> tuple[Found, ...]:
        """The contacts of an address, requested once; if that fails, the next caller tries
        again."""
        key = normal_form(email)
        with self._locks.setdefault(key, threading.Lock()):
            known = self._known.get(key)
            if known is None:
                known = look_up(self.fetch, email)
                self._known[key] = known
            return known

    def forget_address(self, email: str) -> None:
        self._known.pop(normal_form(email), None)


def _read_list_ids(page: Response) -> Iterator[int]:
    for kind, raw in parsing.pair_entries(page):
        if kind is ContactList and isinstance(raw, dict):
            list_id = read_or_none(read_int, raw.get("id"))
            if list_id is not None:
                yield list_id


# ---- the contacts of a list


@dataclass
class Seen:
    """Contacts by list and normal form of the address."""

    found: dict[tuple[int, str], list[Found] | Unread] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)  # lists that were read to their end

    def contacts_of(self, list_id: int, email: str) -> list[Found] | Unread:
        found = self.found.get((list_id, normal_form(email)))
        if found is not None:
            return found
        if list_id in self.whole:
            return []
        return Unread("it was not read")


def _email_of(one: Found) -> str:
    return normal_form(one.email or "")


def read_contacts(client: Client, addresses: Mapping[int, Collection[str]]) -> Seen:
    """The contacts with these addresses, by list. A list is read as a whole where that takes fewer
    requests. Raises what `Client.fetch_many` raises."""
    seen = Seen()
    single: list[Call] = []
    for list_id, emails in addresses.items():
        whole = None
        if len(emails) >= _LIST_FROM:
            whole = read_list(client, list_id, len(emails))
        if whole is not None:
            seen.whole.add(list_id)
            by_email = sorted(whole, key=_email_of)
            for email, same in groupby(by_email, key=_email_of):
                seen.found[list_id, email] = list(same)
            continue
        spellings = {normal_form(email): email for email in sorted(emails)}
        for email in spellings.values():
            single.append(contacts.GETCONTACTBYEMAIL.bind(email=email, listid=list_id))
    for result in client.fetch_many(single):
        params = result.call.params
        email = params["email"]
        list_id = int(params["listid"])
        form = normal_form(email)
        seen.found[list_id, form] = _read_single(result, email, list_id)
    return seen


def _read_single(result: Response | Failure, email: str, list_id: int) -> list[Found] | Unread:
    if isinstance(result, Response):
        found = _read_found_at(result, email)
        return [one for one in found if one.list_id in (None, list_id)]
    if isinstance(result.error, Refused) and is_nobody(result.error):
        return []
    return Unread(str(result.error))


def read_list(client: Client, list_id: int, worth: float = math.inf) -> list[Found] | None:
    """All contacts of the list, if that takes no more than `worth` requests. None also if an entry
    cannot be read, or if an empty list comes without a count of 0."""
    listing = Listing(contacts.GETCONTACTS, {"listid": list_id})
    found: list[Found] = []
    try:
        for response in listing.pages(client.fetch):
            found += read_found(response)
            per_page = max(listing.rows / listing.pages_read, 1)
            pages_left = listing.missing / per_page
            requests = listing.pages_read + pages_left + 1
            if not listing.is_over and requests > worth:
                return None
    except Refused:
        return None
    contact_ids = {one.contact_id for one in found}
    is_readable = len(contact_ids) == len(listing.keys)
    is_surely_empty = listing.service_count == 0
    if listing.is_complete and is_readable and (found or is_surely_empty):
        return found
    return None


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
    """The entries of a timeline. One that cannot be read has no text, so no activity matches it."""
    payload = response.envelope.decode_payload(response.call.operation)
    timeline = first_member(payload, "timeline")
    data = timeline
    if isinstance(timeline, dict):
        data = timeline.get("data")
    entries = [_read_entry(raw) for raw in list_entries(data) if isinstance(raw, dict)]
    served, total = timeline_extent(response)
    return Timeline(tuple(entries), is_cut=served < total)


def _read_entry(raw: Mapping[str, Any]) -> TimelineEntry:
    """Either member may hold unix seconds (observation 21); a text is local."""
    stamp = raw.get("timestamp")
    text = raw.get("datetime")
    is_numeric = isinstance(text, str) and text.strip().isdecimal()
    if is_numeric or isinstance(text, int | float):
        stamp = text if is_nothing(stamp) else stamp
        text = None
    moment = read_or_none(_read_in_utc, stamp)
    at = None
    if moment is not None:
        at = int(moment.timestamp())
    local = read_or_none(_read_in_utc, text)
    if local is not None:
        local = local.replace(tzinfo=None)
    texts = tuple(_list_texts(raw))
    return TimelineEntry(texts, at, local)


_read_in_utc = partial(read_moment, zone=dt.UTC)


def _list_texts(raw: Mapping[str, Any]) -> Iterator[str]:
    snippet = raw.get("snippet")
    if isinstance(snippet, str):
        yield snippet
    for detail in list_entries(raw.get("details")):
        value = detail
        if isinstance(detail, Mapping):
            value = detail.get("value")
        if isinstance(value, str | int | float):
            yield str(value)
