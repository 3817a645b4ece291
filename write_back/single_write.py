"""Whether a single write would subscribe a person again, found out before it is sent. Pushes and
`call` follow one rule (`consent`).

Not here: pushes, which decide list by list in their own requests (`kinds.contact_requests`)."""

from collections.abc import Callable, Sequence

from marketing_api.contact_lookup import Directory, Found, read_found
from marketing_api.operation import Call
from marketing_api.records.contacts import (
    ADDCONTACT,
    EDITCONTACT,
    GETCONTACT,
    MOVECONTACT,
    STATUSES,
    SYNCCONTACT,
)
from write_back.consent import decide_status, is_raised

_WORDS = {"active": "active", "disactive": "unsubscribed"}


def find_raised(call: Call, directory: Directory) -> set[str]:
    """The statuses, other than active, of the person whom the call would make active (or
    unconfirmed); empty when it subscribes nobody. Raises what a look-up raises."""
    find = _LOOK_UPS.get(call.operation.name)
    if find is None:
        return set()
    return find(call, directory)


def _of_added(call: Call, directory: Directory) -> set[str]:
    """Without a status, `synccontact` leaves a contact that is on the list unchanged."""
    email = call.params.get("email")
    if not email:
        return set()
    status = _read_status(call)
    found = directory.find_now(email)
    raised: set[str] = set()
    for list_id in call.params["listid"].split(","):
        raised |= _find_raised(found, int(list_id), status)
    return raised


def _of_edited(call: Call, directory: Directory) -> set[str]:
    """A new address may belong to a person who has unsubscribed."""
    found = _find_contacts(call, directory)
    new_email = call.params.get("email")
    new_status = _read_status(call)
    if new_status is None and new_email is None:
        return set()
    status = new_status
    if status is None and found:
        status = found[0].status
    everywhere = list(found)
    emails = {one.email for one in found}
    emails.add(new_email)
    for email in emails:
        if email:
            everywhere += directory.find_now(email)
    return _describe_raised(everywhere, status)


def _of_moved(call: Call, directory: Directory) -> set[str]:
    """A moved contact keeps its own status."""
    moved = _find_contacts(call, directory)
    if not moved:
        return set()
    contact = moved[0]
    if not contact.email or contact.status is None:
        return set()
    contact_id = int(call.params["id"])
    list_id = int(call.params["listid"])
    same_address = directory.find_now(contact.email)
    found = [one for one in same_address if one.contact_id != contact_id]
    return _find_raised(found, list_id, contact.status)


_LOOK_UPS: dict[str, Callable[[Call, Directory], set[str]]] = {
    ADDCONTACT.name: _of_added,
    SYNCCONTACT.name: _of_added,
    EDITCONTACT.name: _of_edited,
    MOVECONTACT.name: _of_moved,
}


def _find_contacts(call: Call, directory: Directory) -> list[Found]:
    look_up = GETCONTACT.bind(id=call.params["id"])
    response = directory.fetch(look_up)
    return list(read_found(response))


def _find_raised(found: Sequence[Found], list_id: int, status: str | None) -> set[str]:
    here = [one.status for one in found if one.list_id == list_id]
    elsewhere = [one.status for one in found if one.list_id != list_id]
    decision = decide_status(here, status, elsewhere=elsewhere)
    if not decision.is_left:
        return set()
    return _describe_raised(found, status or "active")


def _describe_raised(found: Sequence[Found], status: str | None) -> set[str]:
    raised = [one.status for one in found if is_raised(one.status, status)]
    return {known or "of an unknown status" for known in raised}


def _read_status(call: Call) -> str | None:
    """The status that the call sets, by word or code."""
    requested = call.params.get("status", "").lower()
    if requested.isdecimal():
        return STATUSES.get(int(requested))
    return _WORDS.get(requested)
