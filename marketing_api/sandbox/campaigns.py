"""The rules of campaigns and their statistics."""

import re
from dataclasses import replace
from typing import Any

from marketing_api.sandbox.lists import AUDIENCE_IDS
from marketing_api.sandbox.mailing import Campaign, Links
from marketing_api.sandbox.rules import CheckedCall, invalid, missing
from marketing_api.sandbox.seed import Thing

GROUPS = ("Sent", "Scheduled", "Draft", "Automation")


def _shown(call: CheckedCall, campaign: Campaign) -> Thing:
    shown = {
        "id": str(campaign.campaign_id),
        "subject": campaign.subject,
        "message": campaign.body,
        "replyto": campaign.reply_to,
        "from_email": campaign.from_email,
        "from_name": campaign.from_name,
        "creation_date": call.moments.text(campaign.created_at),
    }
    if call.observes("campaign-groups"):
        totals = call.world.mailings.totals(campaign, call.now)
        # Of what is not sent to everybody at once, or not yet, there is no date (assumed).
        is_sent = campaign.group(call.now) == "Sent"
        shown["sent_date"] = call.moments.text(campaign.sent_at) if is_sent else ""
        shown |= {
            "delivery_success": str(totals.sent - totals.bounced),
            "delivery_failed": str(totals.bounced),
        }
    return shown


def campaigns(call: CheckedCall) -> Thing:
    """Grouped by status, or all at the top (observation 40); a page is cut from all groups together
    (assumed)."""
    wanted, (first, end) = (call["filter"] or "all"), call.between()
    found = [
        one
        for one in call.world.campaigns.all(call.now).values()
        if wanted in ("all", one.group(call.now).lower()) and first <= one.created_at < end
    ]
    count, page = call.page(sorted(found, key=lambda one: GROUPS.index(one.group(call.now))), 10)
    if call.observes("campaign-groups"):
        return {"count": count, "items": [_shown(call, campaign) for campaign in page]}
    groups: dict[str, Thing] = {}
    for campaign in page:
        groups.setdefault(campaign.group(call.now), {"data": []})["data"].append(_shown(call, campaign))
    return {"count": count, "items": groups}


def _existing(call: CheckedCall) -> Campaign:
    """The campaign that the parameters name; of the other type it doesn't exist."""
    campaign = call.world.campaigns.all(call.now).get(call.id())
    if campaign is None or call["type"] not in ("", "automated" if campaign.is_automated else "standard"):
        raise missing("campaign")
    return campaign


def getcampaign(call: CheckedCall) -> Thing:
    campaign = _existing(call)
    return _shown(call, campaign) | ({"name": campaign.name} if call.observes("campaign-groups") else {})


def stats(call: CheckedCall) -> Thing:
    campaign = _existing(call)
    sent, bounced, opened, unsubscribed = call.world.mailings.totals(campaign, call.now)
    unopened = sent - bounced - opened
    values = {"open": opened, "unopened": unopened, "bounced": bounced, "unsubscribed": unsubscribed}
    counts = {
        name: f"{value} ({round(100 * value / sent, 2) if sent else 0:g}%)" for name, value in values.items()
    }
    return {"stats": counts, "clicks": _clicks(call, campaign)}


def _clicks(call: CheckedCall, campaign: Campaign) -> list[Thing]:
    if campaign.group(call.now) not in ("Automation", "Sent"):
        return []
    by_link: list[list[str]] = [[] for _ in campaign.links]
    for contact_id, clicked in call.world.mailings.clickers(campaign, call.now):
        email = call.subscribers.contacts[contact_id].email
        for position, times in clicked:
            by_link[position].append(f"{email}({times} clicks)")
    return [
        {"url": url, "message": text, **({"clickers": clickers} if clickers else {})}
        for (url, text), clickers in zip(campaign.links, by_link, strict=True)
    ]


def _schedule(call: CheckedCall) -> dict[str, Any]:
    """A draft is never sent, a scheduled one at its time, any other at once.

    Where nothing is sent at once (observation 34), what is not scheduled is a draft.
    """
    is_scheduled = call.is_true("isscheduled")
    may_send = is_scheduled or not call.observes("sending")
    if call.is_true("isdraft") or call["type"] == "automated" or not may_send:
        return {"scheduled_at": 0, "sent_at": 0}
    if is_scheduled and not call["scheduled_datetime"]:
        raise invalid("scheduled_datetime", "is required")
    at = call.moment("scheduled_datetime") if is_scheduled else call.now
    return {"scheduled_at": call.now, "sent_at": max(call.now, at)}


def _texts(call: CheckedCall) -> Thing:
    return call.given("name", "subject", "body", "from_name", "reply_to", fromemail="from_email")


def _links(body: str) -> Links:
    return re.findall(r'href="(https?://[^"]+)"[^<>]{0,200}>([^<]{0,200})<', body)


def _targets(call: CheckedCall) -> tuple[int, ...]:
    """Lists; some clients name them among the audiences (observation 42)."""
    known, lists, audiences = call.things("list"), call.ids("lists"), call.ids("audiences")
    if not known.keys() >= set(lists):
        raise missing("list")
    call.must_exist("audience", audiences, {*AUDIENCE_IDS, *known})
    return tuple(dict.fromkeys([*lists, *(wanted for wanted in audiences if wanted in known)]))


def addcampaign(call: CheckedCall) -> Thing:
    schedule, world = _schedule(call), call.world
    new = next(world.campaigns.ids)
    campaign = Campaign(
        new,
        lists=_targets(call),
        created_at=call.now,
        **schedule,
        links=_links(call["body"]),
        is_automated=call["type"] == "automated",
        **_texts(call),
    )
    world.put_campaign(campaign, call.now)
    return call.done("campaign", "added", new)


def editcampaign(call: CheckedCall) -> Thing:
    """Of a campaign that is out, or of an automation, only the texts change."""
    campaign = _existing(call)
    changed = replace(campaign, **_texts(call))
    if not campaign.is_automated and campaign.group(call.now) != "Sent":
        lists, links = _targets(call) or campaign.lists, _links(changed.body)
        changed = replace(changed, lists=lists, links=links, **_schedule(call))
    call.world.put_campaign(changed, call.now)
    return call.done("campaign", "updated")


def deletecampaign(call: CheckedCall) -> Thing:
    call.world.delete_campaign(_existing(call), call.now)
    return call.done("campaign", "deleted")
