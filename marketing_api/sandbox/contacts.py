"""The rules of contacts, their tags and activities, and coupons. Not here: their timelines (`timelines`)."""

from marketing_api.sandbox.lists import email_field, labels
from marketing_api.sandbox.mailing import Campaign
from marketing_api.sandbox.rules import (
    NOT_FOUND,
    NOT_VALID,
    CheckedCall,
    Refusal,
    missing,
)
from marketing_api.sandbox.seed import DAY, Thing, salt
from marketing_api.sandbox.subscribers import (
    ACTIVE,
    BOUNCED,
    UNCONFIRMED,
    UNSUBSCRIBED,
    Contact,
)
from marketing_api.sandbox.timelines import timeline


def _shown(call: CheckedCall, contact: Contact, listed: dict[str, str] | None = None) -> Thing:
    """A contact as the service shows it: the named fields, and its values by field id (observation 19).

    `listed` are the names in a listing, which are the same for all.
    """
    names = labels(call, contact.list_id) if listed is None else listed
    registered, status = call.moments.text(contact.registered_at), str(contact.status_at(call.now))
    shown = call.shown(contact.contact_id, email=contact.email, status=status, registration_date=registered)
    values = dict.fromkeys(names, "") | contact.values_at(call.now)
    if field := email_field(call, contact.list_id):
        values[field] = contact.email
    return shown | values


def getcontacts(call: CheckedCall) -> Thing:
    """One response however many there are, unless paging is observed (observation 14)."""
    list_id = call.id("listid")
    if list_id not in call.things("list"):
        raise missing("list")
    names, listed = labels(call, list_id), call.subscribers.on_list(list_id, call.now)
    count = len(listed)
    if call.observes("contact-paging"):
        count, listed = call.page(listed, 100)
    return call.listing([_shown(call, one, names) for one in listed], count)


def _with_lists(call: CheckedCall, contacts: list[Contact]) -> list[Thing]:
    """As look-ups show them: with their lists, and only those on `listid` where it is given."""
    lists = call.things("list")
    return [
        {**_shown(call, one), "listid": str(one.list_id), "list_name": lists[one.list_id]["name"]}
        for one in contacts
        if not call["listid"] or one.list_id == call.id("listid")
    ]


def getcontactbyemail(call: CheckedCall) -> Thing | list[Thing]:
    """observations 3 and 4."""
    found = _with_lists(call, call.subscribers.by_email(call["email"], call.now))
    if not found and call.observes("email-missing"):
        return {"errorCode": NOT_FOUND, "errorMessage": missing("contact").message}
    if not found:
        raise missing("contact")
    if call.observes("email-found"):
        return found
    return {key: value for key, value in found[0].items() if key not in ("listid", "list_name")}


def getcontactsbyphonenumber(call: CheckedCall) -> Thing:
    found = call.subscribers.by_phone(call["phone"], call.now)
    return call.listing(_with_lists(call, found))


def getcontact(call: CheckedCall) -> Thing:
    return _shown(call, call.contact())


def getcoupon(call: CheckedCall) -> list[Thing]:
    """Whoever opened a campaign with a coupon was given one."""
    found = []
    for contact in call.subscribers.by_email(call["email"], call.now):
        for campaign, outcome in call.world.mailings.received(contact.contact_id, call.now):
            is_wanted = not call["campaignid"] or call.id("campaignid") == campaign.campaign_id
            if is_wanted and campaign.has_coupon and 0 < outcome.opened_at <= call.now:
                found.append(_coupon(call, contact, campaign, outcome.opened_at))
    return found


def _coupon(call: CheckedCall, contact: Contact, campaign: Campaign, opened: int) -> Thing:
    """Four in ten redeem it within three weeks."""
    draw = salt(call.world.origin.seed, campaign.campaign_id, contact.contact_id)
    redeemed = opened + DAY // 4 + (draw >> 8) % (20 * DAY)
    is_redeemed = draw % 10 < 4 and redeemed <= call.now
    return call.shown(
        contact.contact_id * 10_000 + campaign.campaign_id % 10_000,
        email=call["email"],
        couponcode=f"{campaign.campaign_id % 1000:03d}-{draw:08X}",
        couponredeemed="1" if is_redeemed else "0",
        couponredeemedon=call.moments.day(redeemed) if is_redeemed else "N/A",
    )


#: Words and codes of a status as input (observation 18).
_STATUS = {
    "active": ACTIVE,
    "disactive": UNSUBSCRIBED,
    "0": UNCONFIRMED,
    "1": ACTIVE,
    "2": UNSUBSCRIBED,
    "3": BOUNCED,
}


def _status(call: CheckedCall) -> int | None:
    return _STATUS.get(call["status"].lower())


def _lists(call: CheckedCall) -> list[int]:
    wanted = call.ids("listid")
    if not wanted or not call.things("list").keys() >= set(wanted):
        raise missing("list")
    return wanted


def _values(call: CheckedCall, lists: list[int]) -> dict[str, str]:
    """Custom-field values without the field that stands for the address; a Refusal when none of the lists has
    a field.

    What has a name in place of an id changes nothing (observation 44).
    """
    fields = {key: value for key, value in call.fields.items() if key.isdecimal()}
    call.must_exist("custom field", fields, {key for wanted in lists for key in labels(call, wanted)})
    addresses = {email_field(call, wanted) for wanted in lists}
    return {key: value for key, value in fields.items() if key not in addresses}


def _address(call: CheckedCall, lists: list[int]) -> str:
    """The address; where lists have a field for it, that one does as well (observation 38)."""
    given = (call.fields.get(email_field(call, wanted), "").strip() for wanted in lists)
    return call["email"] or next(filter(None, given), "")


def _in_list(call: CheckedCall, email: str, where: int) -> list[Contact]:
    found = call.subscribers.by_email(email, call.now)
    return [contact for contact in found if contact.list_id == where]


getcontacttimeline = getcontacttimelinebyemailaddress = timeline


def addcontact(call: CheckedCall) -> Thing:
    """One contact per list; the response names the first."""
    lists, status = _lists(call), _status(call)
    email, values = _address(call, lists), _values(call, lists)
    if not email and call.observes("email-field"):
        raise Refusal(NOT_VALID, "Email Address is required", (f"fields[{email_field(call, lists[0])}]",))
    if email and any(_in_list(call, email, where) for where in lists):
        raise Refusal(NOT_VALID, "The contact already exists", ("email",))
    status = ACTIVE if status is None else status
    ids = [call.subscribers.add(where, email, status, call.now, values) for where in lists]
    return call.done("contact", "added", ids[0])


def synccontact(call: CheckedCall) -> Thing:
    """Queued: the effect shows some seconds later (observation 6)."""
    email, lists = call["email"], _lists(call)
    values, status, subscribers = _values(call, lists), _status(call), call.subscribers
    added = ACTIVE if status is None else status
    ids = {
        where: there[0].contact_id if (there := _in_list(call, email, where)) else next(subscribers.ids)
        for where in lists
    }

    def apply() -> None:
        for where, wanted in ids.items():
            # As it is by then: a write before this one may have added the contact.
            found = _in_list(call, email, where)
            for contact in found:
                subscribers.edit(contact, call.now, status=status, values=values)
            if not found:
                subscribers.add(where, email, added, call.now, values, wanted)

    call.tenant.run_later(apply, call.arrived + call.tenant.sync_delay_s)
    return call.done("contact", "synced", ids[lists[0]])


def editcontact(call: CheckedCall) -> Thing:
    contact = call.contact()
    lists = [contact.list_id]
    values = _values(call, lists)
    call.subscribers.edit(contact, call.now, _address(call, lists), _status(call), values)
    return call.done("contact", "updated")


def movecontact(call: CheckedCall) -> Thing:
    """The contact keeps its id (assumed)."""
    contact, target = call.contact(), _lists(call)[0]
    if call["sourceid"] and contact.list_id != call.id("sourceid"):
        raise missing("contact in the source list")
    call.subscribers.move(contact, target, call.now)
    return call.done("contact", "moved")


def deletecontact(call: CheckedCall) -> Thing:
    """Without `listid`, where it is optional, from every list (observation 35)."""
    contact, subscribers = call.contact(), call.subscribers
    if call["listid"] and contact.list_id != call.id("listid"):
        raise missing("contact in the list")
    is_everywhere = contact.email and not call["listid"]
    for one in subscribers.by_email(contact.email, call.now) if is_everywhere else [contact]:
        subscribers.delete(one, call.now)
    return call.done("contact", "deleted")


def addactivity(call: CheckedCall) -> Thing:
    contact, entry = call.contact(), (call.moment("datetime"), call["description"])
    contact.activities.append(entry)
    contact.is_written = True
    return call.done("activity", "added")


def addtag(call: CheckedCall) -> Thing:
    """By id, or by address in every list; observation 5."""
    if not call["id"] and not call["email"]:
        raise Refusal(NOT_VALID, "id or email is required", ("id", "email"))
    is_added = call.operation.name.endswith("addtag")
    try:
        contacts = call.contacts()
    except Refusal as refusal:
        if is_added and call.observes("addtag-missing"):
            return {"item": refusal.message}
        raise
    for contact in contacts:
        contact.is_written = True
        for tag in call.words("tagname"):
            if is_added:
                contact.tags.setdefault(tag, call.now)
            else:
                contact.tags.pop(tag, None)
    return call.done("tag", "added" if is_added else "removed")


removetag = addtag
