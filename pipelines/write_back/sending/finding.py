"""Who an address is: contact ids by getcontactbyemail, each address asked once however many items name it.

Belongs here: reading the look-up's answer in all its forms (api-observed rows 3 and 4), and choosing among several contacts. Not
here: when it is asked (`send`, `verify`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marketing_api.envelope import read_envelope
from marketing_api.errors import Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import contacts
from marketing_api.records.contacts import found as read_contacts
from marketing_api.records.values import read_int
from marketing_api.write_result import says_absent
from pipelines.write_back.item import Kind

Fetch = Callable[[Call], Response]


@dataclass(frozen=True, slots=True)
class Found:
    """One contact of an address. `list_id` is None where it is not told; `status` is a word, or a code that has none."""

    contact_id: int
    list_id: int | None
    email: str | None = field(repr=False)
    status: str | None
    fields: Mapping[str, Any] | None = field(repr=False)  # None: the answer shows no custom fields


def look_up(ask: Fetch, email: str, list_id: int | None = None) -> tuple[Found, ...]:
    """Everybody with the address (in that list); empty when there is nobody. Raises what `ask` raises."""
    try:
        response = ask(contacts.GETCONTACTBYEMAIL.bind(email=email, listid=list_id))
    except Refused as refusal:
        if is_nobody(refusal):
            return ()
        raise
    return tuple(one for one in read_found(response) if one.email is None or one.email.lower() == email.lower())


def is_nobody(refusal: Refused) -> bool:
    return says_absent(str(refusal)) or any(says_absent(str(value)) for value in _texts(refusal.detail))


def _texts(detail: Any) -> list[str]:
    if isinstance(detail, Mapping):
        return [text for value in detail.values() for text in _texts(value)]
    return [detail] if isinstance(detail, str) else []


def read_found(response: Response) -> list[Found]:
    """The contacts of a look-up's answer, be it an object, an array or an object by number; entries without an id are left out."""
    payload = read_envelope(response.body).decoded(response.call.operation)
    told = []
    for _, raw in read_contacts(payload, response.call.params):
        if isinstance(raw, dict) and (contact_id := _int(raw.get("id"))) is not None:
            list_id = _int(raw.get("listid", raw.get("list_id")))
            told.append(
                Found(contact_id, list_id, raw.get("email"), status_of(raw.get("status"), raw.get("status_code")), raw.get("custom_fields"))
            )
    return told


def status_of(word: str | None, code: Any) -> str | None:
    """What is shown of a status; a code without a word is not taken for one that is not shown."""
    return word if word is not None or code is None else str(code)


def _int(value: Any) -> int | None:
    try:
        return read_int(value)
    except ValueError:
        return None


def preferred(found: Sequence[Found]) -> Found | None:
    """Active ones first, then the oldest (smallest) id: the one that an activity by address goes to."""
    return min(found, key=lambda one: (one.status != "active", one.contact_id), default=None)


def chosen_for(kind: Kind, found: Sequence[Found]) -> tuple[int, ...]:
    """The contact ids that an item by address is for: tags are taken off all of its contacts, anything else goes to one."""
    if kind is Kind.TAGS:
        return tuple(sorted({one.contact_id for one in found}))
    one = preferred(found)
    return () if one is None else (one.contact_id,)


class Directory:
    """Looked-up addresses, for as long as one sending lasts. Thread-safe; two threads never ask for the same one."""

    def __init__(self, ask: Fetch) -> None:
        self._ask = ask
        self._known: dict[tuple[str, int | None], tuple[Found, ...]] = {}
        self._locks: dict[tuple[str, int | None], threading.Lock] = {}
        self._lock = threading.Lock()

    def find(self, email: str, list_id: int | None = None) -> tuple[Found, ...]:
        """Raises what asking raises; then the next caller asks again."""
        key = (email.lower(), list_id)
        with self._lock:
            turn = self._locks.setdefault(key, threading.Lock())
        with turn:
            if (known := self._known.get(key)) is None:
                known = self._known[key] = look_up(self._ask, email, list_id)
            return known

    def forget(self, email: str, list_id: int | None = None) -> None:
        with self._lock:
            self._known.pop((email.lower(), list_id), None)

    @property
    def asked(self) -> int:
        return len(self._known)
