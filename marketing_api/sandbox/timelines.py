"""The rules of timelines: what happened to a contact, from its outcomes. Details that no sample shows are
assumed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marketing_api.sandbox.mailing import Campaign, Outcome
from marketing_api.sandbox.rules import CheckedCall
from marketing_api.sandbox.seed import Thing
from marketing_api.sandbox.subscribers import Contact

_FORM = "iso-12h"
#: A campaign, and what the contact did with it.
Mail = tuple[Campaign, Outcome]
#: Entries with their times.
Dated = list[tuple[int, Thing]]


def timeline(call: CheckedCall) -> Thing:
    """By address: of the first contact with it."""
    contact, include = call.contact(), call.words("include")
    mails = call.world.mailings.received(contact.contact_id, call.now)
    entries = _newest_first(call, _entries(call, contact, mails))
    payload: Thing = {
        "id": contact.contact_id,
        "email": contact.email,
        "timeline": {"data": entries, "count": len(entries), "total": len(entries)},
    }
    if "utm" in include:
        visits = _newest_first(call, [visit for mail in mails for visit in _visits(call, *mail)])
        payload["utm"] = {"data": visits, "count": len(visits)}
    if "automated" in include:
        sent = [_automated(call, *mail) for mail in reversed(mails) if mail[0].is_automated]
        payload["automated"] = {"data": sent, "count": len(sent)}
    return payload


def _entries(call: CheckedCall, contact: Contact, mails: list[Mail]) -> Dated:
    name = call.things("list")[contact.list_id]["name"]
    dated = [(contact.registered_at, _entry("list-subscription", f"Subscribed to the list {name}"))]
    dated += [(outcome.sent_at, _mailed(call, campaign, outcome)) for campaign, outcome in mails]
    return dated + [(at, _entry("activity", text)) for at, text in contact.activities]


def _stamped(call: CheckedCall, at: int, entry: Thing) -> Thing:
    return entry | {"timestamp": at, "datetime": call.moments.text(at, _FORM)}


def _newest_first(call: CheckedCall, dated: Dated) -> list[Thing]:
    return [_stamped(call, at, entry) for at, entry in sorted(dated, key=lambda one: one[0], reverse=True)]


def _entry(key: str, snippet: str, details: Mapping[str, Any] = MappingProxyType({})) -> Thing:
    labelled = [
        {"key": name, "label": name.replace("-", " ").title(), "value": value}
        for name, value in details.items()
    ]
    return {"key": key, "snippet": snippet, "details": labelled}


def _date(call: CheckedCall, at: int) -> str:
    return call.moments.text(at, _FORM) if 0 < at <= call.now else "N/A"


def _mailed(call: CheckedCall, campaign: Campaign, outcome: Outcome) -> Thing:
    if campaign.is_automated:
        details = {"steps": str(campaign.trigger["steps"]), "actions": campaign.trigger["actions"]}
        return _entry("automation-triggered", campaign.name, details)
    times = sum(times for _, times in outcome.clicks) if 0 < outcome.clicked_at <= call.now else 0
    details = {
        "subject": campaign.subject,
        "send-date": _date(call, outcome.sent_at),
        "open-date": _date(call, outcome.opened_at),
        "links-clicked": str(times),
    }
    return _entry("email-campaign-sent", campaign.subject, details)


def _automated(call: CheckedCall, campaign: Campaign, outcome: Outcome) -> Thing:
    """Details of automated entries have no label (observation 22)."""
    kind, dates = campaign.trigger["kind"], {"send-date": outcome.sent_at}
    if kind != "sms":
        dates |= {"open-date": outcome.opened_at, "click-date": outcome.clicked_at}
    details = [{"key": "message" if kind == "sms" else "subject", "value": campaign.subject}]
    details += [{"key": key, "value": _date(call, at)} for key, at in dates.items()]
    return _stamped(call, outcome.sent_at, {"name": campaign.name, "type": kind, "details": details})


def _visits(call: CheckedCall, campaign: Campaign, outcome: Outcome) -> Dated:
    """One visit per click."""
    found: Dated = []
    for position, times in outcome.clicks if outcome.clicked_at <= call.now else ():
        utm = {
            "campaign": f"c{campaign.campaign_id}",
            "source": "newsletter",
            "medium": "email",
            "term": "",
            "content": f"link-{position + 1}",
        }
        visit = {"link": campaign.links[position][0], "utm": utm}
        found += [(outcome.clicked_at - 7 * repeat, visit) for repeat in range(times)]
    return found
