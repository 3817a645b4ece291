"""Whom one write by hand would subscribe, found out before it is sent: pushes and `call` follow one
rule (`consent`).

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
    return find(call, directory) if find is not None else set()


def _of_added(call: Call, directory: Directory) -> set[str]:
    """`synccontact` leaves whoever is on the list as they are where it says no status."""
    email = call.params.get("email")
    status = _read_status(call)
    if not email:
        return set()
    found = directory.find_now(email)
    lists = map(int, call.params["listid"].split(","))
    return {word for list_id in lists for word in _find_raised(found, list_id, status)}


def _of_edited(call: Call, directory: Directory) -> set[str]:
    """A new address brings its own history with it."""
    found = _find_contacts(call, directory)
    status = _read_status(call) or next((one.status for one in found), None)
    emails = {call.params.get("email"), *(one.email for one in found)} - {None, ""}
    if _read_status(call) is None and "email" not in call.params:
        return set()
    everywhere = [*found, *(one for email in emails for one in directory.find_now(email or ""))]
    return {_describe_contact(one) for one in everywhere if is_raised(one.status, status)}


def _of_moved(call: Call, directory: Directory) -> set[str]:
    """A move takes the contact's own status along."""
    moved = _find_contacts(call, directory)
    email, status = next(((one.email, one.status) for one in moved), (None, None))
    if not email or status is None:
        return set()
    found = [one for one in directory.find_now(email) if one.contact_id != int(call.params["id"])]
    return _find_raised(found, int(call.params["listid"]), status)


_LOOK_UPS: dict[str, Callable[[Call, Directory], set[str]]] = {
    ADDCONTACT.name: _of_added,
    SYNCCONTACT.name: _of_added,
    EDITCONTACT.name: _of_edited,
    MOVECONTACT.name: _of_moved,
}


def _find_contacts(call: Call, directory: Directory) -> list[Found]:
    return list(read_found(directory.fetch(GETCONTACT.bind(id=call.params["id"]))))


def _find_raised(found: Sequence[Found], list_id: int, status: str | None) -> set[str]:
    here = [one.status for one in found if one.list_id == list_id]
    elsewhere = [one.status for one in found if one.list_id != list_id]
    if not decide_status(here, status, elsewhere=elsewhere).is_left:
        return set()
    return {_describe_contact(one) for one in found if is_raised(one.status, status or "active")}


def _describe_contact(one: Found) -> str:
    return one.status or "of an unknown status"


def _read_status(call: Call) -> str | None:
    """The status that the call says, a word or a code."""
    said = call.params.get("status", "").lower()
    return STATUSES.get(int(said)) if said.isdecimal() else _WORDS.get(said)
