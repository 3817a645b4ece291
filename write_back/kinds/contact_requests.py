"""The requests of a contact item, decided just before they are sent: the person is looked up on all
lists first, because the statuses may have changed since the plan.

Not here: who may be subscribed (`consent`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import structs

from marketing_api.contact_lookup import Found
from marketing_api.errors import Refused
from marketing_api.operation import Call
from marketing_api.records.contacts import EDITCONTACT, SYNCCONTACT
from write_back.consent import ACTIVE, LEFT, Decision, decide_status
from write_back.input.values import STATUS_WORDS
from write_back.item import BeforePush, RevertedValues
from write_back.kinds.contact_items import SENT_AS
from write_back.kinds.contact_verification import compare_contacts
from write_back.kinds.kind import Outgoing
from write_back.outbox.outbox import Entry
from write_back.planning import UNCHANGED

#: Why a revert leaves a contact unchanged.
CHANGED_SINCE = (
    "it was changed at the service after the push: run `marketing-sync sync`, then revert again: "
    "changed values stay"
)
_VALUES = ("fields[", "ipaddress")


def check_unchanged(entry: Entry, reverted: RevertedValues, here: Sequence[Found]) -> None:
    """Raises Refused unless each value is what the reverted push sent, or was restored already.
    `here`: the contacts with the address on the item's list."""
    expected = entry.expected
    labels = reverted.labels
    changed = compare_contacts(here, labels, reverted.status, reverted.fields).drift
    left = compare_contacts(here, labels, expected.status, expected.fields).drift
    if changed.keys() & left.keys():
        raise Refused(CHANGED_SINCE)


def edit_by_id(entry: Entry) -> Outgoing:
    """The requests of an item that edits known contacts."""
    contact_ids = chain(*entry.expected.contact_ids.values())
    values = _read_values(entry)
    edits = _list_edits(values, contact_ids)
    return Outgoing(list(edits))


def edit_or_sync(entry: Entry, found: Sequence[Found]) -> Outgoing:
    """The requests of an item by address. `found`: the contacts with the address on all lists, just
    looked up."""
    values = _read_values(entry)
    synced: dict[str, list[int]] = {}  # what is sent as a status → lists
    kept_statuses: dict[int, str | None] = {}
    edited: list[int] = []  # contact ids
    left: list[int] = []  # lists
    list_ids = map(int, entry.params["listid"].split(","))
    for list_id in list_ids:
        here = [one for one in found if one.list_id == list_id]
        statuses = _find_statuses(entry, list_id, here)
        decision = _decide_list(entry, list_id, statuses, found)
        if decision.is_left:
            left.append(list_id)
        if decision.status is not None:
            sent_status = SENT_AS[decision.status]
            synced.setdefault(sent_status, []).append(list_id)
        elif here and values:
            kept_statuses[list_id] = _find_kept(statuses)
            edited += [one.contact_id for one in here]
    written_lists = {*chain(*synced.values()), *kept_statuses}
    expected = structs.replace(
        entry.expected,
        lists=sorted(written_lists),
        kept_statuses=kept_statuses,
        left_lists=left,
    )
    if entry.is_first:
        before = _find_before(entry, found)
        expected = structs.replace(expected, before=before)
    syncs = _list_syncs(entry, synced)
    edits = _list_edits(values, edited)
    reason = LEFT if left else UNCHANGED
    return Outgoing([*syncs, *edits], reason, expected)


def _find_statuses(entry: Entry, list_id: int, here: Sequence[Found]) -> set[str | None]:
    """The statuses of the contacts on the list; else the one that was known when it was planned.
    Raises Refused where there is no contact to keep a status."""
    if here:
        return {one.status for one in here}
    if entry.params.get("status") is None:
        raise Refused(
            f"the contact is no longer on list {list_id}: it was removed, or has another address "
            "now"
        )
    known = entry.expected.known_statuses.get(list_id)
    if known is None:
        return set()
    return {known}


def _decide_list(
    entry: Entry, list_id: int, statuses: set[str | None], found: Sequence[Found]
) -> Decision:
    """By the statuses of the contacts that were found. If there are none, by those that were known
    when it was planned."""
    expected = entry.expected
    elsewhere: list[str | None] = list(expected.known_statuses.values())
    if found:
        elsewhere = [one.status for one in found if one.list_id != list_id]
    requested = entry.params.get("status", "").lower()
    return decide_status(
        statuses,
        STATUS_WORDS.get(requested),
        elsewhere=elsewhere,
        may_raise=entry.is_first and expected.may_raise,
    )


def _find_kept(statuses: set[str | None]) -> str | None:
    """The status that verification expects of contacts that keep theirs; None: any."""
    if len(statuses) > 1 or ACTIVE in statuses:
        return None
    return next(iter(statuses))


def _find_before(entry: Entry, found: Sequence[Found]) -> dict[int, BeforePush]:
    """`before` as planned, with the contacts that are on the lists now, and their status."""
    before: dict[int, BeforePush] = {}
    for list_id, planned in entry.expected.before.items():
        statuses = {one.status for one in found if one.list_id == list_id}
        values = dict(planned.values)
        values.pop("status", None)
        status = next(iter(statuses)) if len(statuses) == 1 else None
        if status is not None:
            values["status"] = status
        before[list_id] = BeforePush(bool(statuses), values)
    return before


def _read_values(entry: Entry) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, text in entry.params.items():
        if name.startswith(_VALUES):
            values[name] = text
    return values


def _list_syncs(entry: Entry, synced: Mapping[str, Sequence[int]]) -> Iterator[Call]:
    """One request for each status, with the lists that get it."""
    for status, list_ids in synced.items():
        listid = ",".join(map(str, list_ids))
        params = {**entry.params, "listid": listid, "status": status}
        yield Call(SYNCCONTACT, params)


def _list_edits(values: Mapping[str, str], contact_ids: Iterable[int]) -> Iterator[Call]:
    """One request for each contact."""
    for contact_id in dict.fromkeys(contact_ids):
        params = {"id": str(contact_id), **values}
        yield Call(EDITCONTACT, params)
