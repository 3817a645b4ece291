"""The rules of timelines: what happened to a contact, from its mails. Details that no sample shows
are assumed."""

from typing import Any

from marketing_api.sandbox.rules import CheckedCall
from marketing_api.sandbox.seed import WORDS, Thing
from marketing_api.sandbox.subscribers import Mail


def timeline(call: CheckedCall) -> Thing:
    """By address: of the first contact with it."""
    contact = call.contact()
    include = call.words("include")
    mails = contact.mails_by(call.now)
    list_name = call.things("list")[contact.list_id]["name"]
    subscribed = _make_entry("list-subscription", f"Subscribed to the list {list_name}")
    entries = [_stamp(call, contact.registered_at, subscribed)]
    entries += [_stamp(call, mail.sent_at, _show_mail(call, mail)) for mail in mails]
    entries += [_stamp(call, at, _make_entry("activity", text)) for at, text in contact.activities]
    entries.sort(key=lambda entry: -int(entry["timestamp"]))
    payload: Thing = {
        "id": contact.contact_id,
        "email": contact.email,
        "timeline": {"data": entries, "count": len(entries), "total": len(entries)},
    }
    latest = mails[::-1]
    automated = [_show_automated(call, mail) for mail in latest if mail.campaign.is_automated]
    visits = [visit for mail in latest for visit in _show_visits(call, mail)]
    for part, entries in (("utm", visits), ("automated", automated)):
        if part in include:
            payload[part] = {"data": entries, "count": len(entries)}
    return payload


def _stamp(call: CheckedCall, at: int, entry: Thing) -> Thing:
    return entry | {"timestamp": at, "datetime": call.moments.text(at, "iso-12h")}


def _make_entry(key: str, snippet: str, **details: Any) -> Thing:
    labelled = [
        {"key": name.replace("_", "-"), "label": name.replace("_", " ").title(), "value": value}
        for name, value in details.items()
    ]
    return {"key": key, "snippet": snippet, "details": labelled}


def _show_mail(call: CheckedCall, mail: Mail) -> Thing:
    campaign = mail.campaign
    if campaign.is_automated:
        steps = str(campaign.trigger["steps"])
        actions = campaign.trigger["actions"]
        return _make_entry("automation-triggered", campaign.name, steps=steps, actions=actions)
    clicks = 0
    if mail.clicked_at <= call.now:
        clicks = sum(times for _, times in mail.clicks)
    return _make_entry(
        "email-campaign-sent",
        campaign.subject,
        subject=campaign.subject,
        send_date=call.show_past(mail.sent_at),
        open_date=call.show_past(mail.opened_at),
        links_clicked=str(clicks),
    )


def _show_automated(call: CheckedCall, mail: Mail) -> Thing:
    """Details of automated entries have no label (observation 22)."""
    kind = mail.campaign.trigger["kind"]
    subject_key = "message" if kind == "sms" else "subject"
    values = {
        subject_key: mail.campaign.subject,
        "send-date": call.show_past(mail.sent_at),
    }
    if kind != "sms":
        values["open-date"] = call.show_past(mail.opened_at)
        values["click-date"] = call.show_past(mail.clicked_at)
    entry = {
        "name": mail.campaign.name,
        "type": kind,
        "details": [{"key": key, "value": value} for key, value in values.items()],
    }
    return _stamp(call, mail.sent_at, entry)


def _show_visits(call: CheckedCall, mail: Mail) -> list[Thing]:
    """One visit per click. People who click several times continue to the pages of a goal."""
    found: list[Thing] = []
    if mail.clicked_at > call.now:
        return found
    for position, times in mail.clicks:
        utm = {
            "campaign": f"c{mail.campaign.campaign_id}",
            "source": "newsletter",
            "medium": "email",
            "term": "",
            "content": f"link-{position + 1}",
        }
        pages = [mail.campaign.links[position][0]] * times
        if times > 1:
            pages[:0] = WORDS["booking_pages"][position % 3]
        visits = enumerate({"link": page, "utm": utm} for page in pages)
        found += [_stamp(call, mail.clicked_at - 7 * place, visit) for place, visit in visits]
    return found
