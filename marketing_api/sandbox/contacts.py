"""The rules of contacts, their tags and activities, and coupons. Not here: timelines (`timelines`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.chance import spread
from marketing_api.sandbox.listing import Listing
from marketing_api.sandbox.lists import email_field, labels
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import NOT_FOUND, NOT_VALID, CheckedCall, Payload, Refusal, Streamed, dumps, missing, rule
from marketing_api.sandbox.subscribers import ACTIVE, BOUNCED, UNCONFIRMED, UNSUBSCRIBED, Contact

if TYPE_CHECKING:
    from marketing_api.sandbox.world import World

_WORDS = ("Unconfirmed", "Active", "Unsubscribed", "Bounced")


def shown(world: World, call: CheckedCall, contact: Contact, names: dict[str, str], *, is_listed: bool = False) -> dict[str, Any]:
    """A contact as the service shows it: the named fields, and its values in the form of the switch (api-observed row 19)."""
    form = call.switches["contact-fields"]
    status = _WORDS[contact.status] if call.switches["contact-status"] == "word" else str(contact.status)
    base: dict[str, Any] = {
        "id": call.an_id(contact.contact_id),
        "email": contact.email,
        "status": status,
        "registration_date": call.when(contact.registered_at),
    }
    values = {key: contact.values.get(key, "") for key in [*names, *(key for key in contact.values if key not in names)]}
    if field := email_field(call, contact.list_id):
        values[field] = contact.email
    if form == "nested":
        base["fields"] = call.map(values)
    elif form != "off":
        base.update(values if form == "id" else {names.get(key, key): value for key, value in values.items()})
    card = world.subscribers.cards.get(contact.contact_id)
    if call.switches["tags"] == "contact" and not is_listed:
        base["tags"] = list(card.tags) if card else []
    return base


@rule("emailmarketing/getcontacts")
def getcontacts(world: World, call: CheckedCall) -> Payload:
    """One response however many there are, unless paging is switched on (api-observed row 14)."""
    list_id = call.id("listid")
    if world.lists.get(list_id, call.now) is None:
        raise missing("The list")
    names = labels(world, call, list_id)
    listing = Listing(world.account, world.subscribers, list_id, call.now)
    offset, limit = call.window(100, is_paged=call.switches["contact-paging"] == "honoured")
    count = listing.count
    shown_count = max(0, min(count - offset, limit)) if limit is not None else count
    if limit is not None and (call.switches["count"] == "page" or not shown_count):  # a page past the end counts 0 (row 14)
        count = shown_count
    numbered = call.switches["items"] == "numbered" and shown_count > 0
    head = f'{{"contacts":{{"count":{count},"items":' + ("{" if numbered else "[")
    batches = listing.items(
        offset, limit, lambda one: dumps(shown(world, call, one, names, is_listed=True)), _template(call, names), call.moments
    )
    return Streamed(head, batches, ("}" if numbered else "]") + "}}", numbered)


def _template(call: CheckedCall, names: dict[str, str]) -> str | None:
    """The %-template that `listing` fills for untouched contacts; None where a style has none."""
    if call.moments.form == "mixed" or call.switches["contact-status"] == "word" or call.switches.is_on("email-field"):
        return None
    form = call.switches["contact-fields"]
    quote = "" if call.switches["ids"] == "number" else '"'
    head = f'{{"id":{quote}%d{quote},"email":"%s.%s%d@%s","status":"%d","registration_date":"%s%s"'
    keys = [dumps(key if form in ("id", "nested") else label).replace("%", "%%") for key, label in names.items()]
    values = ",".join(f'{key}:"%s"' for key in keys)
    if form == "off":
        return head + "}" + "%.0s" * len(keys)
    return head + (f',"fields":{{{values}}}}}' if form == "nested" else f",{values}}}")


def _with_lists(world: World, call: CheckedCall, contacts: list[Contact]) -> list[dict[str, Any]]:
    """As look-ups show them: with their lists, and only those on `listid` where it is given."""
    lists = world.lists.all(call.now)
    return [
        {
            **shown(world, call, one, labels(world, call, one.list_id)),
            "listid": call.an_id(one.list_id),
            "list_name": lists[one.list_id]["name"],
        }
        for one in contacts
        if not call.has("listid") or one.list_id == call.id("listid")
    ]


@rule("emailmarketing/getcontactbyemail")
def getcontactbyemail(world: World, call: CheckedCall) -> Payload:
    """api-observed rows 3 and 4."""
    found = _with_lists(world, call, world.subscribers.by_email(call.get("email"), call.now))
    if not found and call.switches["email-missing"] == "nested":
        return {"contact": {"errorCode": NOT_FOUND, "errorMessage": "The contact doesn't exist"}}
    if not found:
        raise missing("The contact")
    if call.switches["email-found"] == "array":
        return {"contact": found}
    return {"contact": {key: value for key, value in found[0].items() if key not in ("listid", "list_name")}}


@rule("emailmarketing/getcontactsbyphonenumber")
def getcontactsbyphonenumber(world: World, call: CheckedCall) -> Payload:
    return call.listing("contacts", _with_lists(world, call, world.subscribers.by_phone(call.get("phone"), call.now)))


@rule("emailmarketing/getcontact")
def getcontact(world: World, call: CheckedCall) -> Payload:
    contact = existing(world, call)
    return {"contact": shown(world, call, contact, labels(world, call, contact.list_id))}


def existing(world: World, call: CheckedCall, name: str = "id") -> Contact:
    """The contact that the parameter names; a Refusal when there is none."""
    contact = world.subscribers.get(call.id(name), call.now)
    if contact is None:
        raise missing("The contact")
    return contact


@rule("emailmarketing/getcoupon")
def getcoupon(world: World, call: CheckedCall) -> Payload:
    """Whoever opened a campaign with a coupon was given one; four in ten redeem it within three weeks."""
    found = []
    for wanted in [contact.contact_id for contact in world.subscribers.by_email(call.get("email"), call.now)]:
        for campaign, outcome in world.activity.received(wanted, call.now):
            if not campaign.has_coupon or not 0 < outcome.opened_at <= call.now:
                continue
            if call.has("campaignid") and call.id("campaignid") != campaign.campaign_id:
                continue
            draw = spread(world.account.people.salt ^ campaign.campaign_id, wanted)
            redeemed = outcome.opened_at + DAY // 4 + (draw >> 8) % (20 * DAY)
            is_redeemed = draw % 10 < 4 and redeemed <= call.now
            found.append(
                {
                    "id": call.an_id(wanted * 10_000 + campaign.campaign_id % 10_000),
                    "email": call.get("email"),
                    "couponcode": f"{campaign.campaign_id % 1000:03d}-{draw:08X}",
                    "couponredeemed": "1" if is_redeemed else "0",
                    "couponredeemedon": call.moments.day(redeemed) if is_redeemed else "N/A",
                }
            )
    if call.switches["coupon-missing"] == "all" or (not found and call.switches["coupon-missing"] == "error"):
        raise missing("The coupon")
    return {"coupons": call.items(found)}


#: Words and codes of a status as input (api-observed row 18).
_STATUS = {"active": ACTIVE, "disactive": UNSUBSCRIBED, "0": UNCONFIRMED, "1": ACTIVE, "2": UNSUBSCRIBED, "3": BOUNCED}


def _status(call: CheckedCall) -> int | None:
    return _STATUS[call.get("status").lower()] if call.has("status") else None


def _lists(world: World, call: CheckedCall) -> list[int]:
    known, wanted = world.lists.all(call.now), call.ids("listid")
    if not wanted or any(one not in known for one in wanted):
        raise missing("The list")
    return wanted


def _values(world: World, call: CheckedCall, lists: list[int]) -> dict[str, str]:
    """Custom-field values without the field that stands for the address; a Refusal when none of the lists has a field."""
    call.must_exist("The custom field", call.fields, {key for wanted in lists for key in labels(world, call, wanted)})
    addresses = {email_field(call, wanted) for wanted in lists}
    return {key: value for key, value in call.fields.items() if key not in addresses}


def _address(call: CheckedCall, lists: list[int]) -> str:
    """The address; where lists have a field for it, that one does as well and one of them is required (api-observed row 38)."""
    given = (call.fields.get(email_field(call, wanted), "").strip() for wanted in lists)
    email = call.get("email") or next(filter(None, given), "")
    if not email and call.switches.is_on("email-field"):
        raise Refusal(NOT_VALID, "Email Address is required", (f"fields[{email_field(call, lists[0])}]",))
    return email


def _in_list(world: World, call: CheckedCall, email: str, where: int) -> list[Contact]:
    return [contact for contact in world.subscribers.by_email(email, call.now) if contact.list_id == where]


@rule("emailmarketing/addcontact")
def addcontact(world: World, call: CheckedCall) -> Payload:
    """One contact per list; the response names the first."""
    lists = _lists(world, call)
    email, values = _address(call, lists), _values(world, call, lists)
    there = {where: _in_list(world, call, email, where) for where in lists} if email else {}
    mode = call.switches["add-existing"]
    if mode == "refuse" and any(there.values()):
        raise Refusal(NOT_VALID, "The contact already exists", ("email",))
    ids = []
    for where in lists:
        if mode == "update" and there.get(where):
            ids += [_update(world, call, contact, values) for contact in there[where]]
        else:
            ids.append(_add(world, call, where, email, values))
    return {"id": call.an_id(ids[0]), "item": "The contact was added successfully"}


def _add(world: World, call: CheckedCall, where: int, email: str, values: dict[str, str], reserved: int = 0) -> int:
    status = _status(call)
    return world.subscribers.add(where, email, ACTIVE if status is None else status, call.now, values, reserved)


def _update(world: World, call: CheckedCall, contact: Contact, values: dict[str, str]) -> int:
    world.subscribers.edit(contact, call.now, status=_status(call), values=values)
    return contact.contact_id


def _synced_lists(world: World, call: CheckedCall) -> list[int]:
    """Those of several that the service takes (switch `sync-lists`)."""
    lists, kept = _lists(world, call), call.switches["sync-lists"]
    if kept == "refuse" and len(lists) > 1:
        raise Refusal(NOT_VALID, "listid must be a number", ("listid",))
    return lists[:1] if kept == "first" else lists


@rule("emailmarketing/synccontact")
def synccontact(world: World, call: CheckedCall) -> Payload:
    """Queued: the effect shows `sync-delay` seconds later (api-observed row 6)."""
    email, lists = call.get("email"), _synced_lists(world, call)
    values = _values(world, call, lists)
    there = {where: _in_list(world, call, email, where) for where in lists}
    new = {where: world.subscribers.reserve() for where in lists if not there[where]}

    def apply() -> None:
        for where in lists:
            found = _in_list(world, call, email, where)  # as it is by then: a write before this one may have added the contact
            for contact in found:
                _update(world, call, contact, values)
            if not found:
                _add(world, call, where, email, values, new.get(where, 0))

    call.later(call.switches.number("sync-delay"), apply)
    first = there[lists[0]]
    return {"id": call.an_id(first[0].contact_id if first else new[lists[0]]), "item": "The contact was synced successfully"}


@rule("emailmarketing/editcontact")
def editcontact(world: World, call: CheckedCall) -> Payload:
    contact = existing(world, call)
    values = _values(world, call, [contact.list_id])
    email = call.get("email") or call.fields.get(email_field(call, contact.list_id), "")
    world.subscribers.edit(contact, call.now, email, _status(call), values)
    return {"item": "The contact was updated successfully"}


@rule("emailmarketing/movecontact")
def movecontact(world: World, call: CheckedCall) -> Payload:
    """The contact keeps its id (assumed)."""
    contact = existing(world, call)
    target = _lists(world, call)[0]
    if call.has("sourceid") and contact.list_id != call.id("sourceid"):
        raise missing("The contact in the source list")
    world.subscribers.move(contact, target, call.now)
    return {"item": "The contact was moved successfully"}


@rule("emailmarketing/deletecontact")
def deletecontact(world: World, call: CheckedCall) -> Payload:
    contact = existing(world, call)
    if not call.has("listid"):  # only where a switch makes it optional (api-observed row 35)
        for one in world.subscribers.by_email(contact.email, call.now) if contact.email else [contact]:
            world.subscribers.delete(one, call.now)
    elif contact.list_id != call.id("listid"):
        raise missing("The contact in the list")
    else:
        world.subscribers.delete(contact, call.now)
    return {"item": "The contact was deleted successfully"}


@rule("emailmarketing/addactivity")
def addactivity(world: World, call: CheckedCall) -> Payload:
    """The entry shows `activity-delay` seconds later."""
    contact, at = existing(world, call), call.moment("datetime")
    call.later(call.switches.number("activity-delay"), lambda: world.subscribers.note(contact, at, call.get("description")))
    return {"item": "The activity was added successfully"}


def _tagged(world: World, call: CheckedCall) -> list[Contact]:
    """By id or by address, then in every list."""
    if not call.has("id") and not call.has("email"):
        raise Refusal(NOT_VALID, "id or email is required", ("id", "email"))
    if not call.has("id"):
        return world.subscribers.by_email(call.get("email"), call.now)
    contact = world.subscribers.get(call.id(), call.now)
    return [contact] if contact else []


@rule("emailmarketing/addtag")
@rule("emailmarketing/removetag")
def addtag(world: World, call: CheckedCall) -> Payload:
    """api-observed row 5."""
    is_added, contacts = call.operation.name.endswith("addtag"), _tagged(world, call)
    if not contacts and is_added and call.switches["addtag-missing"] == "soft":
        return {"item": "The contact doesn't exist"}
    if not contacts:
        raise missing("The contact")
    for contact in contacts:
        change = world.subscribers.tag if is_added else world.subscribers.untag
        change(contact, call.words("tagname"), call.now)
    return {"item": f"The tag was {'added' if is_added else 'removed'} successfully"}
