"""The rules of timelines: what happened to a contact, from its outcomes. Details that no sample shows are assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.campaign_book import Campaign
from marketing_api.sandbox.contacts import existing
from marketing_api.sandbox.mailing import Outcome
from marketing_api.sandbox.rules import CheckedCall, Payload, missing, rule
from marketing_api.sandbox.subscribers import Contact

if TYPE_CHECKING:
    from marketing_api.sandbox.world import World

_FORM = "iso-12h"
_NOTHING = {"n/a": "N/A", "dash": "-", "empty": ""}
Entry = dict[str, Any]


@rule("emailmarketing/getcontacttimeline")
def timeline(world: World, call: CheckedCall) -> Payload:
    return _payload(world, call, existing(world, call))


@rule("emailmarketing/getcontacttimelinebyemailaddress")
def timeline_by_email(world: World, call: CheckedCall) -> Payload:
    """Of the first contact with the address."""
    found = world.subscribers.by_email(call.get("email"), call.now)
    if not found:
        raise missing("The contact")
    return _payload(world, call, found[0])


def _payload(world: World, call: CheckedCall, contact: Contact) -> Payload:
    received = world.activity.received(contact.contact_id, call.now)
    triggered = world.activity.triggered(contact.contact_id, call.now)
    entries = _entries(world, call, contact, received, triggered)
    cut = call.switches.number("timeline-cut")
    shown = entries[:cut] if cut else entries
    timeline = {"data": shown, "count": len(shown), "total": len(entries)}
    payload: dict[str, Any] = {"id": contact.contact_id, "email": contact.email, "timeline": timeline}
    include = call.words("include")
    if "utm" in include:
        visits = _visits(call, received + triggered)
        payload["utm"] = {"data": visits, "count": len(visits)}
    if "automated" in include:
        sent = [_automated(call, campaign, outcome) for campaign, outcome in reversed(triggered)]
        payload["automated"] = {"data": sent, "count": len(sent)}
    return payload


def _stamped(call: CheckedCall, at: int, entry: Entry) -> Entry:
    entry["timestamp"] = str(at) if call.switches["timestamps"] == "text" else at
    entry["datetime"] = call.when(at, _FORM)
    return entry


def _detail(key: str, label: str, value: Any) -> Entry:
    return {"key": key, "label": label, "value": value}


def _number(call: CheckedCall, value: int) -> str | int:
    return value if call.switches["detail-values"] == "number" else str(value)


def _date(call: CheckedCall, at: int) -> str:
    return call.when(at, _FORM) if 0 < at <= call.now else _NOTHING[call.switches["nothing"]]


def _entries(
    world: World, call: CheckedCall, contact: Contact, received: list[tuple[Campaign, Outcome]], triggered: list[tuple[Campaign, Outcome]]
) -> list[Entry]:
    """Newest first."""
    name = world.lists.all(call.now)[contact.list_id]["name"]
    subscription = {"key": "list-subscription", "snippet": f"Subscribed to the list {name}", "details": []}
    dated: list[tuple[int, Entry]] = [(contact.registered_at, subscription)]
    dated += [(outcome.sent_at, _sent(call, campaign, outcome)) for campaign, outcome in received]
    dated += [(outcome.sent_at, _trigger(call, campaign)) for campaign, outcome in triggered]
    card = world.subscribers.cards.get(contact.contact_id)
    if card is not None:
        dated += [(at, _activity(call, text)) for at, text in card.activities]
        if call.switches["tags"] == "timeline":
            dated += [(at, {"key": "tag-added", "snippet": f"Tag added: {tag}", "details": []}) for tag, at in card.tags.items()]
    dated.sort(key=lambda one: one[0], reverse=True)
    return [_stamped(call, at, entry) for at, entry in dated]


def _sent(call: CheckedCall, campaign: Campaign, outcome: Outcome) -> Entry:
    times = sum(times for _, times in outcome.clicks) if 0 < outcome.clicked_at <= call.now else 0
    details = [
        _detail("subject", "Subject", campaign.subject),
        _detail("send-date", "Send Date", _date(call, outcome.sent_at)),
        _detail("open-date", "Open Date", _date(call, outcome.opened_at)),
        _detail("links-clicked", "Links Clicked", _number(call, times)),
    ]
    return {"key": call.switches["sent-key"], "snippet": campaign.subject, "details": details}


def _trigger(call: CheckedCall, campaign: Campaign) -> Entry:
    assert campaign.trigger is not None
    steps = _detail("steps", "Steps", _number(call, campaign.trigger.steps))
    details = [steps, _detail("actions", "Actions", campaign.trigger.actions)]
    return {"key": "automation-triggered", "snippet": campaign.name, "details": details}


def _activity(call: CheckedCall, text: str) -> Entry:
    """Several forms: none is specified."""
    form = call.switches["activity"]
    if form == "detail":
        return {"key": "activity", "snippet": "Activity added", "details": [_detail("description", "Description", text)]}
    return {"key": "custom-activity" if form == "other-key" else "activity", "snippet": text, "details": []}


def _automated(call: CheckedCall, campaign: Campaign, outcome: Outcome) -> Entry:
    """Details of automated entries have no label (api-observed row 22)."""
    assert campaign.trigger is not None
    dates = {"send-date": outcome.sent_at}
    if campaign.trigger.kind != "sms":
        dates |= {"open-date": outcome.opened_at, "click-date": outcome.clicked_at}
    details = [{"key": "message" if campaign.trigger.kind == "sms" else "subject", "value": campaign.subject}]
    details += [{"key": key, "value": _date(call, at)} for key, at in dates.items()]
    return _stamped(call, outcome.sent_at, {"name": campaign.name, "type": campaign.trigger.kind, "details": details})


def _visits(call: CheckedCall, mailed: list[tuple[Campaign, Outcome]]) -> list[Entry]:
    """One visit per click, newest first."""
    dated = []
    for campaign, outcome in mailed:
        if not 0 < outcome.clicked_at <= call.now:
            continue
        for position, times in outcome.clicks:
            link = campaign.links[position][0]
            words = {"campaign": campaign.slug, "source": "newsletter", "medium": "email", "term": "", "content": f"link-{position + 1}"}
            dated += [(outcome.clicked_at - 7 * repeat, {"link": link, "utm": words}) for repeat in range(times)]
    dated.sort(key=lambda one: one[0], reverse=True)
    return [_stamped(call, at, entry) for at, entry in dated]
