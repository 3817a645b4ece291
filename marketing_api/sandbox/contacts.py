"""The rules of contacts, their tags and activities, and coupons. Not here: their timelines
(`timelines`)."""

from marketing_api.sandbox.lists import find_email_field, find_fields
from marketing_api.sandbox.rules import (
    NOT_FOUND,
    NOT_VALID,
    CheckedCall,
    Params,
    Refusal,
    invalid,
    missing,
    show_list,
)
from marketing_api.sandbox.seed import Thing
from marketing_api.sandbox.subscribers import (
    ACTIVE,
    BOUNCED,
    UNCONFIRMED,
    UNSUBSCRIBED,
    Contact,
    Mail,
)
from marketing_api.sandbox.timelines import timeline

#: Words and codes of a status as input (observation 18).
_STATUS = {
    "": None,
    "active": ACTIVE,
    "disactive": UNSUBSCRIBED,
    "0": UNCONFIRMED,
    "1": ACTIVE,
    "2": UNSUBSCRIBED,
    "3": BOUNCED,
}


def _show(call: CheckedCall, contact: Contact, fields: Params) -> Thing:
    """A contact as the service shows it: the named fields, and its values by field id (observation
    19)."""
    registered = call.moments.text(contact.registered_at)
    status = str(contact.status_at(call.now))
    members = {
        "id": str(contact.contact_id),
        "email": contact.email,
        "status": status,
        "registration_date": registered,
        **dict.fromkeys(fields, ""),
        **contact.values,
    }
    field = find_email_field(call, contact.list_id)
    if field:
        members[field] = contact.email
    return members


def getcontacts(call: CheckedCall) -> Thing:
    """A single response for all contacts, unless paging is observed (observation 14)."""
    list_id = _read_lists(call)[0]
    fields = find_fields(call, list_id)
    count, found = call.page_as_observed(call.subscribers.on_list(list_id, call.now))
    return {"count": count, "items": [_show(call, one, fields) for one in found]}


def _show_with_lists(call: CheckedCall, contacts: list[Contact]) -> list[Thing]:
    """As look-ups show them: with their lists, and only those on `listid` where it is given."""
    found = []
    for contact in contacts:
        list_id = contact.list_id
        if call["listid"] and list_id != call.id("listid"):
            continue
        members = _show(call, contact, find_fields(call, list_id))
        members["listid"] = str(list_id)
        members["list_name"] = call.things("list")[list_id]["name"]
        found.append(members)
    return found


def getcontactbyemail(call: CheckedCall) -> Thing | list[Thing]:
    """Observations 3 and 4."""
    contacts = call.subscribers.by_email(call["email"], call.now)
    found = _show_with_lists(call, contacts)
    if not found:
        refusal = missing("contact")
        if call.observes("email-missing"):
            return {"errorCode": NOT_FOUND, "errorMessage": refusal.message}
        raise refusal
    if call.observes("email-found"):
        return found
    first = found[0]
    del first["listid"], first["list_name"]
    return first


def getcontactsbyphonenumber(call: CheckedCall) -> Thing:
    contacts = call.subscribers.by_phone(call["phone"], call.now)
    return show_list(_show_with_lists(call, contacts))


def getcontact(call: CheckedCall) -> Thing:
    contact = call.contact()
    return _show(call, contact, find_fields(call, contact.list_id))


def getcoupon(call: CheckedCall) -> list[Thing]:
    """Everybody who opened a campaign with a coupon has one."""
    found = []
    for contact in call.subscribers.by_email(call["email"], call.now):
        for mail in contact.mails_by(call.now):
            campaign = mail.campaign
            is_meant = call["campaignid"] in ("", str(campaign.campaign_id))
            if is_meant and campaign.has_coupon and mail.opened_at <= call.now:
                found.append(_show_coupon(call, mail))
    return found


def _show_coupon(call: CheckedCall, mail: Mail) -> Thing:
    coupon_id = mail.contact.contact_id * 10_000 + mail.campaign.campaign_id % 10_000
    return {
        "id": str(coupon_id),
        "email": call["email"],
        "couponcode": f"{coupon_id:X}",
        "couponredeemed": str(int(mail.redeemed_at <= call.now)),
        "couponredeemedon": call.show_past(mail.redeemed_at, "day"),
    }


def _read_lists(call: CheckedCall) -> list[int]:
    lists = call.ids("listid")
    call.must_exist("list", lists or [0], call.things("list"))
    return lists


def _read_values(call: CheckedCall, lists: list[int]) -> Params:
    """Custom-field values without the field that holds the address; a Refusal if none of the lists
    has a field.

    A field that is given by name instead of its id changes nothing (observation 44).
    """
    fields = {key: value for key, value in call.fields.items() if key.isdecimal()}
    known = {key for one in lists for key in find_fields(call, one)}
    call.must_exist("custom field", fields, known)
    for list_id in lists:
        fields.pop(find_email_field(call, list_id), None)
    return fields


def _read_address(call: CheckedCall, lists: list[int]) -> str:
    """The address. If lists have a field for it, it may be in that field, too (observation 38)."""
    email = call["email"]
    for list_id in lists:
        email = email or call.fields.get(find_email_field(call, list_id), "").strip()
    return email


def _find_on_list(call: CheckedCall, email: str, list_id: int) -> list[Contact]:
    found = call.subscribers.by_email(email, call.now)
    return [contact for contact in found if contact.list_id == list_id]


getcontacttimeline = getcontacttimelinebyemailaddress = timeline


def addcontact(call: CheckedCall) -> Thing:
    """One contact per list; the response names the first."""
    lists = _read_lists(call)
    email = _read_address(call, lists)
    values = _read_values(call, lists)
    if not email and call.observes("email-field"):
        field = find_email_field(call, lists[0])
        raise Refusal(NOT_VALID, "Email Address is required", (f"fields[{field}]",))
    if email and any(_find_on_list(call, email, one) for one in lists):
        raise Refusal(NOT_VALID, "The contact already exists", ("email",))
    ids = [next(call.world.ids) for _ in lists]
    for contact_id, list_id in zip(ids, lists, strict=True):
        _add(call, contact_id, list_id, email, values)
    return call.done("contact", "added", ids[0])


def _add(call: CheckedCall, contact_id: int, list_id: int, email: str, values: Params) -> None:
    status = _STATUS[call["status"].lower()]
    contact = Contact(contact_id, list_id, email, call.now, dict(values))
    if status is not None:
        contact.status = status
    call.subscribers.add(contact)


def synccontact(call: CheckedCall) -> Thing:
    """Queued: the effect shows some seconds later (observation 6)."""
    email = call["email"]
    lists = _read_lists(call)
    subscribers = call.subscribers
    values = _read_values(call, lists)
    status = _STATUS[call["status"].lower()]
    ids = {}
    for list_id in lists:
        there = _find_on_list(call, email, list_id)
        ids[list_id] = there[0].contact_id if there else next(call.world.ids)

    def sync() -> None:
        for list_id, contact_id in ids.items():
            # At that time a write before this one may have added the contact.
            found = _find_on_list(call, email, list_id)
            for contact in found:
                subscribers.edit(contact, call.now, "", status, values)
            if not found:
                _add(call, contact_id, list_id, email, values)

    call.world.queue.append((call.arrived + call.world.sync_delay_s, sync))
    return call.done("contact", "synced", ids[lists[0]])


def editcontact(call: CheckedCall) -> Thing:
    contact = call.contact()
    lists = [contact.list_id]
    status = _STATUS[call["status"].lower()]
    values = _read_values(call, lists)
    call.subscribers.edit(contact, call.now, _read_address(call, lists), status, values)
    return call.done("contact", "updated")


def movecontact(call: CheckedCall) -> Thing:
    """The contact keeps its id (assumed)."""
    contact = call.contact()
    target = _read_lists(call)[0]
    if call["sourceid"] and contact.list_id != call.id("sourceid"):
        raise missing("contact in the source list")
    call.subscribers.move(contact, target, call.now)
    return call.done("contact", "moved")


def deletecontact(call: CheckedCall) -> Thing:
    """Without `listid`, where it is optional, from every list (observation 35)."""
    if not call["listid"] and not call.observes("delete-everywhere"):
        raise invalid("listid", "is required")
    contact = call.contact()
    subscribers = call.subscribers
    if call["listid"] and contact.list_id != call.id("listid"):
        raise missing("contact in the list")
    contacts = [contact]
    if contact.email and not call["listid"]:
        contacts = subscribers.by_email(contact.email, call.now)
    for one in contacts:
        subscribers.delete(one, call.now)
    return call.done("contact", "deleted")


def addactivity(call: CheckedCall) -> Thing:
    entry = call.moment("datetime"), call["description"]
    call.contact().activities.append(entry)
    return call.done("activity", "added")


def addtag(call: CheckedCall) -> Thing:
    """By id, or by address in every list; observation 5."""
    is_added = call.operation.name.endswith("addtag")
    try:
        contacts = call.contacts()
    except Refusal as refusal:
        if is_added and call.observes("addtag-missing"):
            return {"item": refusal.message}
        raise
    for contact in contacts:
        for tag in call.words("tagname"):
            contact.tags.pop(tag, None)
            if is_added:
                contact.tags[tag] = call.now
    return call.done("tag", "added" if is_added else "removed")


removetag = addtag
