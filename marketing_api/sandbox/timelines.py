"""The rules of timelines: what happened to a contact, from its outcomes. Details that no sample shows are assumed."""

from __future__ import annotations

from typing import Any

from marketing_api.sandbox.campaign_book import Campaign
from marketing_api.sandbox.contacts import existing
from marketing_api.sandbox.mailing import Outcome
from marketing_api.sandbox.rules import CheckedCall, Payload, missing, rule
from marketing_api.sandbox.subscribers import Contact, Mail

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
    received, triggered = activity.received(contact.contact_id, call.now), activity.triggered(contact.contact_id, call.now)
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
    return entry | {"timestamp": str(at) if call.switches["timestamps"] == "text" else at, "datetime": call.moments.text(at, _FORM)}


def _newest_first(call: CheckedCall, dated: list[tuple[int, Entry]]) -> list[Entry]:
    return [_stamped(call, at, entry) for at, entry in sorted(dated, key=lambda one: one[0], reverse=True)]


def _detail(key: str, label: str, value: Any) -> Entry:
    return {"key": key, "label": label, "value": value}


def _number(call: CheckedCall, value: int) -> str | int:
    return value if call.switches["detail-values"] == "number" else str(value)


def _date(call: CheckedCall, at: int) -> str:
    return call.moments.text(at, _FORM) if 0 < at <= call.now else _NOTHING[call.switches["nothing"]]


def _entries(call: CheckedCall, contact: Contact, received: list[Mail], triggered: list[Mail]) -> list[Entry]:
    name = call.world.lists.all(call.now)[contact.list_id]["name"]
    subscription = {"key": "list-subscription", "snippet": f"Subscribed to the list {name}", "details": []}
    dated: list[tuple[int, Entry]] = [(contact.registered_at, subscription)]
    dated += [(outcome.sent_at, _sent(call, campaign, outcome)) for campaign, outcome in received]
    dated += [(outcome.sent_at, _trigger(call, campaign)) for campaign, outcome in triggered]
    if card := call.world.subscribers.cards.get(contact.contact_id):
        dated += [(at, _activity(call, text)) for at, text in card.activities]
        if call.switches["tags"] == "timeline":
            dated += [(at, {"key": "tag-added", "snippet": f"Tag added: {tag}", "details": []}) for tag, at in card.tags.items()]
    return _newest_first(call, dated)


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


def _visits(call: CheckedCall, mailed: list[Mail]) -> list[Entry]:
    """One visit per click, newest first."""
    dated: list[tuple[int, Entry]] = []
    for campaign, outcome in mailed:
        if not 0 < outcome.clicked_at <= call.now:
            continue
        for position, times in outcome.clicks:
            link = campaign.links[position][0]
            words = {"campaign": campaign.slug, "source": "newsletter", "medium": "email", "term": "", "content": f"link-{position + 1}"}
            dated += [(outcome.clicked_at - 7 * repeat, {"link": link, "utm": words}) for repeat in range(times)]
    return _newest_first(call, dated)
