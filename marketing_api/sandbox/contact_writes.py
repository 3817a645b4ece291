"""The rules of writing contacts, tags and activities."""

from __future__ import annotations

from marketing_api.sandbox.call import NOT_VALID, Call, Payload, Refusal, missing
from marketing_api.sandbox.contacts import existing
from marketing_api.sandbox.lists import email_field, labels
from marketing_api.sandbox.rules import rule
from marketing_api.sandbox.subscribers import ACTIVE, BOUNCED, UNCONFIRMED, UNSUBSCRIBED, Contact
from marketing_api.sandbox.world import World

#: Words and codes of a status as input (api-observed row 18).
_STATUS = {"active": ACTIVE, "disactive": UNSUBSCRIBED, "0": UNCONFIRMED, "1": ACTIVE, "2": UNSUBSCRIBED, "3": BOUNCED}


def _status(call: Call) -> int | None:
    return _STATUS[call.get("status").lower()] if call.has("status") else None


def _lists(world: World, call: Call, name: str = "listid") -> list[int]:
    known = world.lists.all(call.now)
    wanted = call.ids(name)
    if not wanted or any(one not in known for one in wanted):
        raise missing("The list")
    return wanted


def _values(world: World, call: Call, lists: list[int]) -> dict[str, str]:
    """Custom-field values without the field that stands for the address; a Refusal when none of the lists has a field."""
    things = {wanted: thing for wanted in lists if (thing := world.lists.get(wanted, call.now)) is not None}
    known = {key for wanted, thing in things.items() for key in labels(call, wanted, thing)}
    call.must_exist("The custom field", call.fields, known)
    addresses = {email_field(call, wanted) for wanted in lists}
    return {key: value for key, value in call.fields.items() if key not in addresses}


def _address(call: Call, lists: list[int]) -> str:
    """The address; where lists have a field for it, that one does as well and one of them is required (api-observed row 38)."""
    given = (call.fields.get(email_field(call, wanted), "").strip() for wanted in lists)
    email = call.get("email") or next(filter(None, given), "")
    if not email and call.switches.is_on("email-field"):
        raise Refusal(NOT_VALID, "Email Address is required", (f"fields[{email_field(call, lists[0])}]",))
    return email


def _in_list(world: World, call: Call, email: str, where: int) -> list[Contact]:
    contacts = (world.subscribers.get(one, call.now) for one in world.subscribers.ids_by_email(email, call.now))
    return [contact for contact in contacts if contact is not None and contact.list_id == where]


@rule("emailmarketing/addcontact")
def addcontact(world: World, call: Call) -> Payload:
    """One contact per list; the answer names the first."""
    status, lists = _status(call), _lists(world, call)
    email, values = _address(call, lists), _values(world, call, lists)
    there = {where: _in_list(world, call, email, where) for where in lists} if email else {}
    mode = call.switches["add-existing"]
    if mode == "refuse" and any(there.values()):
        raise Refusal(NOT_VALID, "The contact already exists", ("email",))
    ids = []
    for where in lists:
        if mode == "update" and there.get(where):
            ids += [_update(world, call, contact, status, values) for contact in there[where]]
        else:
            known = ACTIVE if status is None else status
            ids.append(world.subscribers.add(where, email, known, call.now, values, call.get("ipaddress")))
    return {"id": call.an_id(ids[0]), "item": "The contact was added successfully"}


def _update(world: World, call: Call, contact: Contact, status: int | None, values: dict[str, str]) -> int:
    world.subscribers.edit(contact, call.now, status=status, values=values)
    return contact.contact_id


def _synced_lists(world: World, call: Call) -> list[int]:
    """Those of several that the service takes (switch `sync-lists`)."""
    lists, kept = _lists(world, call), call.switches["sync-lists"]
    if kept == "refuse" and len(lists) > 1:
        raise Refusal(NOT_VALID, "listid must be a number", ("listid",))
    return lists[:1] if kept == "first" else lists


@rule("emailmarketing/synccontact")
def synccontact(world: World, call: Call) -> Payload:
    """Queued: the effect shows `sync-delay` seconds later (api-observed row 6)."""
    email, status = call.get("email"), _status(call)
    lists = _synced_lists(world, call)
    values = _values(world, call, lists)
    there = {where: _in_list(world, call, email, where) for where in lists}
    new = {where: world.subscribers.reserve() for where in lists if not there[where]}

    def apply() -> None:
        for where in lists:
            found = _in_list(world, call, email, where)  # as it is by then: a write before this one may have added the contact
            for contact in found:
                _update(world, call, contact, status, values)
            if not found:
                known = ACTIVE if status is None else status
                reserved = new.get(where) or world.subscribers.reserve()
                world.subscribers.add(where, email, known, call.now, values, call.get("ipaddress"), reserved)

    call.later(call.switches.number("sync-delay"), apply)
    first = there[lists[0]]
    return {"id": call.an_id(first[0].contact_id if first else new[lists[0]]), "item": "The contact was synced successfully"}


@rule("emailmarketing/editcontact")
def editcontact(world: World, call: Call) -> Payload:
    contact = existing(world, call)
    values = _values(world, call, [contact.list_id])
    email = call.get("email") or call.fields.get(email_field(call, contact.list_id), "")
    world.subscribers.edit(contact, call.now, email, _status(call), values)
    return {"item": "The contact was updated successfully"}


@rule("emailmarketing/movecontact")
def movecontact(world: World, call: Call) -> Payload:
    """The contact keeps its id (assumed)."""
    contact = existing(world, call)
    target = _lists(world, call)[0]
    if call.has("sourceid") and contact.list_id != call.id("sourceid"):
        raise missing("The contact in the source list")
    world.subscribers.move(contact, target, call.now)
    return {"item": "The contact was moved successfully"}


@rule("emailmarketing/deletecontact")
def deletecontact(world: World, call: Call) -> Payload:
    contact = existing(world, call)
    if not call.has("listid"):  # only where a switch makes it optional (api-observed row 35)
        ids = world.subscribers.ids_by_email(contact.email, call.now) if contact.email else [contact.contact_id]
        for one in [world.subscribers.get(wanted, call.now) for wanted in ids]:
            if one is not None:
                world.subscribers.delete(one, call.now)
    elif contact.list_id != call.id("listid"):
        raise missing("The contact in the list")
    else:
        world.subscribers.delete(contact, call.now)
    return {"item": "The contact was deleted successfully"}


@rule("emailmarketing/addactivity")
def addactivity(world: World, call: Call) -> Payload:
    """The entry shows `activity-delay` seconds later."""
    contact, at = existing(world, call), call.moment("datetime")
    call.later(call.switches.number("activity-delay"), lambda: world.subscribers.note(contact, at, call.get("description"), call.now))
    return {"item": "The activity was added successfully"}


def _tagged(world: World, call: Call) -> list[Contact]:
    """By id or by address, then in every list."""
    if not call.has("id") and not call.has("email"):
        raise Refusal(NOT_VALID, "id or email is required", ("id", "email"))
    ids = [call.id()] if call.has("id") else world.subscribers.ids_by_email(call.get("email"), call.now)
    return [contact for one in ids if (contact := world.subscribers.get(one, call.now)) is not None]


@rule("emailmarketing/addtag")
def addtag(world: World, call: Call) -> Payload:
    """api-observed row 5."""
    contacts = _tagged(world, call)
    if not contacts and call.switches["addtag-missing"] == "soft":
        return {"item": "The contact doesn't exist"}
    if not contacts:
        raise missing("The contact")
    for contact in contacts:
        world.subscribers.tag(contact, call.words("tagname"), call.now)
    return {"item": "The tag was added successfully"}


@rule("emailmarketing/removetag")
def removetag(world: World, call: Call) -> Payload:
    contacts = _tagged(world, call)
    if not contacts:
        raise missing("The contact")
    for contact in contacts:
        world.subscribers.untag(contact, call.words("tagname"), call.now)
    return {"item": "The tag was removed successfully"}
