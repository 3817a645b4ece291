"""The rules of contacts, their tags and activities, coupons, and timelines: what happened to a contact, from
its outcomes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from marketing_api.sandbox.lists import email_field, labels
from marketing_api.sandbox.mailing import Campaign, Outcome
from marketing_api.sandbox.rules import (
    NOT_FOUND,
    NOT_VALID,
    RULES,
    CheckedCall,
    Payload,
    Refusal,
    Streamed,
    missing,
    rule,
)
from marketing_api.sandbox.seed import DAY, spread
from marketing_api.sandbox.subscribers import (
    ACTIVE,
    BOUNCED,
    UNCONFIRMED,
    UNSUBSCRIBED,
    Contact,
    Listing,
    Mail,
)

_WORDS = ("Unconfirmed", "Active", "Unsubscribed", "Bounced")


def _shown(call: CheckedCall, contact: Contact, listed: dict[str, str] | None = None) -> dict[str, Any]:
    """A contact as the service shows it: the named fields, and its values in the form of the switch
    (api-observed row 19).

    `listed` are the names in a listing, which are the same for all and where no tags are shown.
    """
    names = labels(call, contact.list_id) if listed is None else listed
    form = call.switches["contact-fields"]
    shown: dict[str, Any] = {
        "id": call.an_id(contact.contact_id),
        "email": contact.email,
        "status": _WORDS[contact.status]
        if call.switches["contact-status"] == "word"
        else str(contact.status),
        "registration_date": call.moments.text(contact.registered_at),
    }
    values = dict.fromkeys(names, "") | contact.values
    if field := email_field(call, contact.list_id):
        values[field] = contact.email
    if form == "nested":
        shown["fields"] = call.map(values)
    elif form != "off":
        shown.update(
            values if form == "id" else {names.get(key, key): value for key, value in values.items()}
        )
    if call.switches["tags"] == "contact" and listed is None:
        card = call.world.subscribers.cards.get(contact.contact_id)
        shown["tags"] = list(card.tags) if card else []
    return shown


@rule("emailmarketing/getcontacts")
def getcontacts(call: CheckedCall) -> Payload:
    """One response however many there are, unless paging is switched on (api-observed row 14)."""
    list_id, world = call.id("listid"), call.world
    if list_id not in world.lists.all(call.now):
        raise missing("The list")
    names = labels(call, list_id)
    listing = Listing(world.subscribers, list_id, call.now)
    count = listing.count
    offset, limit = call.window(100) if call.switches["contact-paging"] == "honoured" else (0, count)
    shown_count = max(0, min(count - offset, limit))
    if call.switches["count"] == "page" or not shown_count:  # a page past the end counts 0 (row 14)
        count = shown_count
    numbered = call.switches["items"] == "numbered" and shown_count > 0
    head = f'{{"contacts":{{"count":{count},"items":' + ("{" if numbered else "[")
    batches = (
        [msgspec.json.encode(_shown(call, one, names)).decode() for one in batch]
        for batch in listing.batches(offset, limit)
    )
    return Streamed(head, batches, ("}" if numbered else "]") + "}}", numbered)


def _with_lists(call: CheckedCall, contacts: list[Contact]) -> list[dict[str, Any]]:
    """As look-ups show them: with their lists, and only those on `listid` where it is given."""
    lists = call.world.lists.all(call.now)
    return [
        {**_shown(call, one), "listid": call.an_id(one.list_id), "list_name": lists[one.list_id]["name"]}
        for one in contacts
        if not call.has("listid") or one.list_id == call.id("listid")
    ]


@rule("emailmarketing/getcontactbyemail")
def getcontactbyemail(call: CheckedCall) -> Payload:
    """api-observed rows 3 and 4."""
    found = _with_lists(call, call.world.subscribers.by_email(call.get("email"), call.now))
    if not found and call.switches["email-missing"] == "nested":
        return {"contact": {"errorCode": NOT_FOUND, "errorMessage": "The contact doesn't exist"}}
    if not found:
        raise missing("The contact")
    form = call.switches["email-found"]
    if form == "array" or (form == "by-list" and not call.has("listid")):
        return {"contact": found}
    return {"contact": {key: value for key, value in found[0].items() if key not in ("listid", "list_name")}}


def existing(call: CheckedCall) -> Contact:
    contact = call.world.subscribers.get(call.id(), call.now)
    if contact is None:
        raise missing("The contact")
    return contact


@rule("emailmarketing/getcoupon")
def getcoupon(call: CheckedCall) -> Payload:
    """Whoever opened a campaign with a coupon was given one; four in ten redeem it within three weeks."""
    found = []
    for contact in call.world.subscribers.by_email(call.get("email"), call.now):
        for campaign, outcome in call.world.activity.received(contact.contact_id, call.now):
            is_wanted = call.id("campaignid") == campaign.campaign_id or not call.has("campaignid")
            if is_wanted and campaign.has_coupon and 0 < outcome.opened_at <= call.now:
                draw = spread(call.world.account.people.salt ^ campaign.campaign_id, contact.contact_id)
                redeemed = outcome.opened_at + DAY // 4 + (draw >> 8) % (20 * DAY)
                is_redeemed = draw % 10 < 4 and redeemed <= call.now
                coupon = {
                    "id": call.an_id(contact.contact_id * 10_000 + campaign.campaign_id % 10_000),
                    "email": call.get("email"),
                    "couponcode": f"{campaign.campaign_id % 1000:03d}-{draw:08X}",
                    "couponredeemed": "1" if is_redeemed else "0",
                    "couponredeemedon": call.moments.day(redeemed) if is_redeemed else "N/A",
                }
                found.append(coupon)
    if call.switches["coupon-missing"] == "all" or (not found and call.switches["coupon-missing"] == "error"):
        raise missing("The coupon")
    return {"coupons": call.items(found)}


#: Words and codes of a status as input (api-observed row 18).
_STATUS = {
    "active": ACTIVE,
    "disactive": UNSUBSCRIBED,
    "0": UNCONFIRMED,
    "1": ACTIVE,
    "2": UNSUBSCRIBED,
    "3": BOUNCED,
}


def _status(call: CheckedCall) -> int | None:
    return _STATUS[call.get("status").lower()] if call.has("status") else None


def _lists(call: CheckedCall) -> list[int]:
    known, wanted = call.world.lists.all(call.now), call.ids("listid")
    if not wanted or any(one not in known for one in wanted):
        raise missing("The list")
    return wanted


def _values(call: CheckedCall, lists: list[int]) -> dict[str, str]:
    """Custom-field values without the field that stands for the address; a Refusal when none of the lists has
    a field.

    What has a name in place of an id changes nothing (api-observed row 44).
    """
    fields = {key: value for key, value in call.fields.items() if key.isdecimal()}
    call.must_exist("The custom field", fields, {key for wanted in lists for key in labels(call, wanted)})
    addresses = {email_field(call, wanted) for wanted in lists}
    return {key: value for key, value in fields.items() if key not in addresses}


def _address(call: CheckedCall, lists: list[int]) -> str:
    """The address; where lists have a field for it, that one does as well and one of them is required
    (api-observed row 38)."""
    given = (call.fields.get(email_field(call, wanted), "").strip() for wanted in lists)
    email = call.get("email") or next(filter(None, given), "")
    if not email and call.switches.is_on("email-field"):
        raise Refusal(NOT_VALID, "Email Address is required", (f"fields[{email_field(call, lists[0])}]",))
    return email


def _in_list(call: CheckedCall, email: str, where: int) -> list[Contact]:
    return [
        contact for contact in call.world.subscribers.by_email(email, call.now) if contact.list_id == where
    ]


@rule("emailmarketing/addcontact")
def addcontact(call: CheckedCall) -> Payload:
    """One contact per list; the response names the first."""
    lists, status = _lists(call), _status(call)
    email, values = _address(call, lists), _values(call, lists)
    if email and any(_in_list(call, email, where) for where in lists):
        if (member := call.switches["contact-exists"]) == "refused":
            raise Refusal(NOT_VALID, "The contact already exists", ("email",))
        return {"id": call.an_id(0), member: "The contact already exists"}  # api-observed row 45
    ids = [
        call.world.subscribers.add(where, email, ACTIVE if status is None else status, call.now, values)
        for where in lists
    ]
    return {"id": call.an_id(ids[0]), "item": "The contact was added successfully"}


@rule("emailmarketing/synccontact")
def synccontact(call: CheckedCall) -> Payload:
    """Queued: the effect shows `sync-delay` seconds later (api-observed row 6)."""
    email, lists = call.get("email"), _lists(call)
    if call.switches["sync-lists"] == "refuse" and len(lists) > 1:
        raise Refusal(NOT_VALID, "listid must be a number", ("listid",))
    if call.switches["sync-lists"] == "first":
        lists = lists[:1]
    values, status, subscribers = _values(call, lists), _status(call), call.world.subscribers
    there = {where: _in_list(call, email, where) for where in lists}
    new = {where: next(subscribers.ids) for where in lists if not there[where]}

    def apply() -> None:
        for where in lists:
            found = _in_list(
                call, email, where
            )  # as it is by then: a write before this one may have added the contact
            for contact in found:
                subscribers.edit(contact, call.now, status=status, values=values)
            if not found:
                subscribers.add(
                    where, email, ACTIVE if status is None else status, call.now, values, new.get(where, 0)
                )

    call.later(call.switches.number("sync-delay"), apply)
    first = there[lists[0]]
    return {
        "id": call.an_id(first[0].contact_id if first else new[lists[0]]),
        "item": "The contact was synced successfully",
    }


@rule("emailmarketing/editcontact")
def editcontact(call: CheckedCall) -> Payload:
    contact = existing(call)
    values = _values(call, [contact.list_id])
    email = call.get("email") or call.fields.get(email_field(call, contact.list_id), "")
    call.world.subscribers.edit(contact, call.now, email, _status(call), values)
    return {"item": "The contact was updated successfully"}


@rule("emailmarketing/movecontact")
def movecontact(call: CheckedCall) -> Payload:
    """The contact keeps its id (assumed)."""
    contact = existing(call)
    target = _lists(call)[0]
    if call.has("sourceid") and contact.list_id != call.id("sourceid"):
        raise missing("The contact in the source list")
    call.world.subscribers.move(contact, target, call.now)
    return {"item": "The contact was moved successfully"}


@rule("emailmarketing/deletecontact")
def deletecontact(call: CheckedCall) -> Payload:
    contact, subscribers = existing(call), call.world.subscribers
    if call.has("listid") and contact.list_id != call.id("listid"):
        raise missing("The contact in the list")
    is_everywhere = contact.email and not call.has(
        "listid"
    )  # only where a switch makes it optional (api-observed row 35)
    for one in subscribers.by_email(contact.email, call.now) if is_everywhere else [contact]:
        subscribers.delete(one, call.now)
    return {"item": "The contact was deleted successfully"}


@rule("emailmarketing/addactivity")
def addactivity(call: CheckedCall) -> Payload:
    """The entry shows `activity-delay` seconds later."""
    contact, at = existing(call), call.moment("datetime")
    entry = at, call.get("description")
    call.later(
        call.switches.number("activity-delay"),
        lambda: call.world.subscribers.card(contact).activities.append(entry),
    )
    return {"item": "The activity was added successfully"}


@rule("emailmarketing/addtag")
@rule("emailmarketing/removetag")
def addtag(call: CheckedCall) -> Payload:
    """By id, or by address in every list; api-observed row 5."""
    if not call.has("id") and not call.has("email"):
        raise Refusal(NOT_VALID, "id or email is required", ("id", "email"))
    is_added, subscribers = call.operation.name.endswith("addtag"), call.world.subscribers
    found = (
        [subscribers.get(call.id(), call.now)]
        if call.has("id")
        else subscribers.by_email(call.get("email"), call.now)
    )
    contacts = [contact for contact in found if contact is not None]
    if not contacts and is_added and call.switches["addtag-missing"] == "soft":
        return {"item": "The contact doesn't exist"}
    if not contacts:
        raise missing("The contact")
    for contact in contacts:
        tags = subscribers.card(contact).tags
        for tag in call.words("tagname"):
            if is_added:
                tags.setdefault(tag, call.now)
            else:
                tags.pop(tag, None)
    return {"item": f"The tag was {'added' if is_added else 'removed'} successfully"}


RULES |= {
    "emailmarketing/getcontact": lambda call: {"contact": _shown(call, existing(call))},
    "emailmarketing/getcontactsbyphonenumber": lambda call: call.listing(
        "contacts", _with_lists(call, call.world.subscribers.by_phone(call.get("phone"), call.now))
    ),
}

# timelines: details that no sample shows are assumed

_FORM = "iso-12h"
_NOTHING = {"n/a": "N/A", "dash": "-", "empty": ""}
Entry = dict[str, Any]


@rule("emailmarketing/getcontacttimeline")
@rule("emailmarketing/getcontacttimelinebyemailaddress")
def timeline(call: CheckedCall) -> Payload:
    """By address: of the first contact with it."""
    by_email = call.operation.name.endswith("byemailaddress")
    found = call.world.subscribers.by_email(call.get("email"), call.now) if by_email else [existing(call)]
    if not found:
        raise missing("The contact")
    contact, activity = found[0], call.world.activity
    received = activity.received(contact.contact_id, call.now)
    triggered = activity.received(contact.contact_id, call.now, is_automated=True)
    entries = _entries(call, contact, received, triggered)
    shown = entries[: call.switches.number("timeline-cut") or None]
    payload: dict[str, Any] = {
        "id": contact.contact_id,
        "email": contact.email,
        "timeline": {"data": shown, "count": len(shown), "total": len(entries)},
    }
    include = call.words("include")
    if "utm" in include:
        visits = _visits(call, received + triggered)
        payload["utm"] = {"data": visits, "count": len(visits)}
    if "automated" in include:
        sent = [_automated(call, campaign, outcome) for campaign, outcome in reversed(triggered)]
        payload["automated"] = {"data": sent, "count": len(sent)}
    return payload


def _stamped(call: CheckedCall, at: int, entry: Entry) -> Entry:
    return entry | {
        "timestamp": str(at) if call.switches["timestamps"] == "text" else at,
        "datetime": call.moments.text(at, _FORM),
    }


def _newest_first(call: CheckedCall, dated: list[tuple[int, Entry]]) -> list[Entry]:
    return [_stamped(call, at, entry) for at, entry in sorted(dated, key=lambda one: one[0], reverse=True)]


def _entry(key: str, snippet: str, details: Mapping[str, Any] = MappingProxyType({})) -> Entry:
    labelled = [
        {"key": name, "label": name.replace("-", " ").title(), "value": value}
        for name, value in details.items()
    ]
    return {"key": key, "snippet": snippet, "details": labelled}


def _number(call: CheckedCall, value: int) -> str | int:
    return value if call.switches["detail-values"] == "number" else str(value)


def _date(call: CheckedCall, at: int) -> str:
    return call.moments.text(at, _FORM) if 0 < at <= call.now else _NOTHING[call.switches["nothing"]]


def _entries(call: CheckedCall, contact: Contact, received: list[Mail], triggered: list[Mail]) -> list[Entry]:
    name = call.world.lists.all(call.now)[contact.list_id]["name"]
    dated = [(contact.registered_at, _entry("list-subscription", f"Subscribed to the list {name}"))]
    for campaign, outcome in received:
        times = sum(times for _, times in outcome.clicks) if 0 < outcome.clicked_at <= call.now else 0
        details = {
            "subject": campaign.subject,
            "send-date": _date(call, outcome.sent_at),
            "open-date": _date(call, outcome.opened_at),
            "links-clicked": _number(call, times),
        }
        dated.append((outcome.sent_at, _entry(call.switches["sent-key"], campaign.subject, details)))
    for campaign, outcome in triggered:
        details = {"steps": _number(call, campaign.trigger["steps"]), "actions": campaign.trigger["actions"]}
        dated.append((outcome.sent_at, _entry("automation-triggered", campaign.name, details)))
    if card := call.world.subscribers.cards.get(contact.contact_id):
        dated += [(at, _activity(call, text)) for at, text in card.activities]
        if call.switches["tags"] == "timeline":
            dated += [(at, _entry("tag-added", f"Tag added: {tag}")) for tag, at in card.tags.items()]
    return _newest_first(call, dated)


def _activity(call: CheckedCall, text: str) -> Entry:
    """Several forms: none is specified."""
    if call.switches["activity"] == "detail":
        return _entry("activity", "Activity added", {"description": text})
    return _entry("custom-activity" if call.switches["activity"] == "other-key" else "activity", text)


def _automated(call: CheckedCall, campaign: Campaign, outcome: Outcome) -> Entry:
    """Details of automated entries have no label (api-observed row 22)."""
    kind, dates = campaign.trigger["kind"], {"send-date": outcome.sent_at}
    if kind != "sms":
        dates |= {"open-date": outcome.opened_at, "click-date": outcome.clicked_at}
    details = [{"key": "message" if kind == "sms" else "subject", "value": campaign.subject}]
    details += [{"key": key, "value": _date(call, at)} for key, at in dates.items()]
    return _stamped(call, outcome.sent_at, {"name": campaign.name, "type": kind, "details": details})


def _visits(call: CheckedCall, mailed: list[Mail]) -> list[Entry]:
    """One visit per click, newest first."""
    dated: list[tuple[int, Entry]] = []
    for campaign, outcome in mailed:
        if not 0 < outcome.clicked_at <= call.now:
            continue
        for position, times in outcome.clicks:
            link = campaign.links[position][0]
            words = {
                "campaign": campaign.slug,
                "source": "newsletter",
                "medium": "email",
                "term": "",
                "content": f"link-{position + 1}",
            }
            dated += [
                (outcome.clicked_at - 7 * repeat, {"link": link, "utm": words}) for repeat in range(times)
            ]
    return _newest_first(call, dated)
