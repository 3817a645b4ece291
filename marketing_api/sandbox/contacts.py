"""The rules of reading contacts and coupons. Not here: timelines (`timelines`) and writes (`contact_writes`)."""

from __future__ import annotations

from typing import Any

from marketing_api.sandbox.call import NOT_FOUND, Call, Payload, Streamed, dumps, missing
from marketing_api.sandbox.chance import spread
from marketing_api.sandbox.listing import Listing
from marketing_api.sandbox.lists import email_field, labels
from marketing_api.sandbox.roll import DAY
from marketing_api.sandbox.rules import rule
from marketing_api.sandbox.subscribers import Contact
from marketing_api.sandbox.world import World

_WORDS = ("Unconfirmed", "Active", "Unsubscribed", "Bounced")


def _labels(world: World, call: Call, list_id: int) -> dict[str, str]:
    thing = world.lists.get(list_id, call.now)
    return labels(call, list_id, thing) if thing else {}


def shown(world: World, call: Call, contact: Contact, names: dict[str, str], *, is_listed: bool = False) -> dict[str, Any]:
    """A contact as the service shows it: the named fields, and its values in the form the switch asks for (api-observed row 19)."""
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
def getcontacts(world: World, call: Call) -> Payload:
    """One answer however many there are, unless paging is switched on (api-observed row 14)."""
    list_id = call.id("listid")
    if world.lists.get(list_id, call.now) is None:
        raise missing("The list")
    names = _labels(world, call, list_id)
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


def _template(call: Call, names: dict[str, str]) -> str | None:
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


def _one_or_all(world: World, call: Call, ids: list[int]) -> list[dict[str, Any]]:
    found = []
    for wanted in ids:
        contact = world.subscribers.get(wanted, call.now)
        if contact is None or (call.has("listid") and contact.list_id != call.id("listid")):
            continue
        thing = world.lists.get(contact.list_id, call.now)
        entry = shown(world, call, contact, _labels(world, call, contact.list_id))
        found.append({**entry, "listid": call.an_id(contact.list_id), "list_name": thing["name"] if thing else ""})
    return found


@rule("emailmarketing/getcontactbyemail")
def getcontactbyemail(world: World, call: Call) -> Payload:
    """api-observed rows 3 and 4."""
    found = _one_or_all(world, call, world.subscribers.ids_by_email(call.get("email"), call.now))
    if not found:
        if call.switches["email-missing"] == "nested":
            return {"contact": {"errorCode": NOT_FOUND, "errorMessage": "The contact doesn't exist"}}
        raise missing("The contact")
    if call.switches["email-found"] == "array":
        return {"contact": found}
    return {"contact": {key: value for key, value in found[0].items() if key not in ("listid", "list_name")}}


@rule("emailmarketing/getcontactsbyphonenumber")
def getcontactsbyphonenumber(world: World, call: Call) -> Payload:
    found = _one_or_all(world, call, world.subscribers.ids_by_phone(call.get("phone"), call.now))
    return {"contacts": {"count": len(found), "items": call.items(found)}}


@rule("emailmarketing/getcontact")
def getcontact(world: World, call: Call) -> Payload:
    contact = existing(world, call)
    return {"contact": shown(world, call, contact, _labels(world, call, contact.list_id))}


def existing(world: World, call: Call, name: str = "id") -> Contact:
    """The contact that the parameter names; a Refusal when there is none."""
    contact = world.subscribers.get(call.id(name), call.now)
    if contact is None:
        raise missing("The contact")
    return contact


@rule("emailmarketing/getcoupon")
def getcoupon(world: World, call: Call) -> Payload:
    """Whoever opened a campaign with a coupon was given one; four in ten redeem it within three weeks."""
    found = []
    for wanted in world.subscribers.ids_by_email(call.get("email"), call.now):
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
