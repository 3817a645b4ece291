"""Verifying a contact push: which items are read back, and how the contacts that the service shows
are compared with what was sent.

Not here: how long the service's queue may take (`verification`)."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marketing_api.contact_lookup import Found, Seen, Unread, is_nobody, read_contacts, read_found
from marketing_api.errors import Refused
from marketing_api.exchange import Response
from marketing_api.records.contacts import GETCONTACT
from write_back.account_state import is_shown_as
from write_back.item import State
from write_back.outbox.outbox import Entry
from write_back.verification import Compared, ReadBack, Readings

#: `--verify` → the share of the items that is read back.
_SHARES = {"all": 1.0, "sample": 0.05, "none": 0.0}


def read_contacts_back(reading: ReadBack, entries: list[Entry], how: str) -> None:
    """Read back a part of the items (`sample_entries`). If one of a `sample` has drifted, all are
    read."""
    unverified = [entry for entry in entries if entry.state is not State.VERIFIED]
    left = reading.drop_outdated(unverified)
    chosen = sample_entries(left, how)
    reading.poll_entries(chosen, lambda waiting: _read_entries(reading, waiting))
    chosen_ids = {entry.item_id for entry in chosen}
    has_drifted = not reading.drifted.isdisjoint(chosen_ids)
    if how == "sample" and has_drifted:
        rest = [entry for entry in left if entry.item_id not in chosen_ids]
        reading.poll_entries(rest, lambda waiting: _read_entries(reading, waiting))


def sample_entries(entries: list[Entry], how: str) -> list[Entry]:
    """The items to read back. `all`, a `sample` and `none` include those with an unknown outcome or
    a mismatch, and those that were sent before without effect. All but `none` also include items
    that took several attempts. The sample depends on the items alone, so that a push that resumes
    reads the same ones."""
    chosen: list[Entry] = []
    rest: list[Entry] = []
    for entry in entries:
        is_unknown = entry.state is State.UNKNOWN
        is_doubtful = is_unknown or entry.drift or entry.expected.is_repeated
        is_retried = how != "none" and entry.attempts > 1
        if is_doubtful or is_retried:
            chosen.append(entry)
        else:
            rest.append(entry)
    rest.sort(key=lambda entry: hashlib.blake2b(str(entry.item_id).encode()).digest())
    count = math.ceil(_SHARES[how] * len(rest))
    return [*chosen, *rest[:count]]


def _read_entries(reading: ReadBack, entries: list[Entry]) -> Readings:
    addresses: defaultdict[int, set[str]] = defaultdict(set)
    for entry in entries:
        address = entry.email or ""
        for list_id in entry.expected.lists:
            addresses[list_id].add(address)
    seen = read_contacts(reading.client, addresses)
    return {entry.item_id: _compare_entry(reading, entry, seen) for entry in entries}


def _compare_entry(reading: ReadBack, entry: Entry, seen: Seen) -> Compared | Unread:
    expected = entry.expected
    address = entry.email or ""
    drift: dict[str, tuple[Any, Any]] = {}
    hidden: set[str] = set()
    for list_id in expected.lists:
        found = seen.contacts_of(list_id, address)
        contact_ids = expected.contact_ids.get(list_id)
        if not found and contact_ids is not None:
            found = _read_by_id(reading, contact_ids)
        if isinstance(found, Unread):
            return found
        labels = reading.labels.get(list_id, {})
        status = expected.kept_statuses.get(list_id, expected.status)
        compared = compare_contacts(found, labels, status, expected.fields)
        drift |= compared.drift
        hidden |= compared.hidden
    return Compared(drift, frozenset(hidden))


def _read_by_id(reading: ReadBack, contact_ids: Iterable[int]) -> list[Found] | Unread:
    """The contacts, which may have another address by now."""
    found: list[Found] = []
    calls = (GETCONTACT.bind(id=contact_id) for contact_id in contact_ids)
    for response in reading.client.fetch_many(calls):
        if isinstance(response, Response):
            found += read_found(response)
            continue
        error = response.error
        is_gone = isinstance(error, Refused) and is_nobody(error)
        if not is_gone:
            return Unread(str(error))
    return found


def compare_contacts(
    found: Sequence[Found],
    labels: Mapping[str, str],
    status: str | None,
    expected_fields: Mapping[str, str],
) -> Compared:
    """The contacts with an address on one list, compared with the status and the fields (by id)
    that are expected; `labels`: field id → label, of that list.

    A sync changes every contact with the address in the list, so all of them must be as intended.
    """
    if not found:
        return Compared({"contact": ("there", "not there")})
    drift: dict[str, tuple[Any, Any]] = {}
    hidden: set[str] = set()
    known_labels = {**dict.fromkeys(expected_fields, ""), **labels}
    for one in found:
        if status is not None and one.status is None:
            hidden.add("status")
        elif status not in (None, one.status):
            drift["status"] = (status, one.status)
        fields = one.fields_by_id(known_labels)
        # an empty field may be left out, but only where the response shows other fields of the list
        if not fields:
            hidden |= expected_fields.keys()
            continue
        for name, value in expected_fields.items():
            shown = fields.get(name)
            if not is_shown_as(shown, value):
                drift[name] = (value, shown)
    return Compared(drift, frozenset(hidden))
