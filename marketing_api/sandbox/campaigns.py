"""The rules of campaigns and their statistics."""

import re
from dataclasses import replace
from typing import Any

from marketing_api.sandbox.lists import AUDIENCE_IDS
from marketing_api.sandbox.mailing import Campaign, Links
from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Payload, Refusal, missing, rule
from marketing_api.sandbox.seed import WORDS

GROUPS = ("Sent", "Scheduled", "Draft", "Automation")


def _shown(call: CheckedCall, campaign: Campaign) -> dict[str, Any]:
    return {
        "id": call.an_id(campaign.campaign_id),
        "subject": campaign.subject,
        "message": campaign.body,
        "replyto": campaign.reply_to,
        "from_email": campaign.from_email,
        "from_name": campaign.from_name,
        "creation_date": call.moments.text(campaign.created_at),
        **(_delivery(call, campaign) if call.switches["campaign-groups"] == "observed" else {}),
    }


def _delivery(call: CheckedCall, campaign: Campaign) -> dict[str, Any]:
    """Of what is not sent to everybody at once, or not yet, there is no date (assumed)."""
    sent, bounced, _, _ = call.world.activity.totals(campaign, call.now)
    is_sent = campaign.group(call.now) == "Sent"
    return {
        "sent_date": call.moments.text(campaign.sent_at) if is_sent else "",
        "delivery_success": str(sent - bounced),
        "delivery_failed": str(bounced),
    }


@rule("emailmarketing/campaigns")
def campaigns(call: CheckedCall) -> Payload:
    """Grouped by status, or all at the top (api-observed rows 39, 40); a page is cut from all groups together
    (assumed)."""
    wanted = call.get("filter", "all").lower()
    first, end = call.between()
    found = [
        (group, campaign)
        for group in GROUPS
        for campaign in call.world.account.campaigns(call.now)
        if campaign.group(call.now) == group
        and wanted in ("all", group.lower())
        and first <= campaign.created_at < end
    ]
    count, page = call.page(found, 10)
    form, items = call.switches["campaign-groups"], [_shown(call, campaign) for _, campaign in page]
    if form != "groups":
        numbered = {str(place): item for place, item in enumerate(items, 1)} if form == "numbered" else {}
        return {"campaigns": {"count": count, "items": numbered or items}}
    groups: dict[str, list[Any]] = {}
    for (group, _), item in zip(page, items, strict=True):
        groups.setdefault(group, []).append(item)
    return {
        "campaigns": {
            "count": count,
            "items": call.map({group: {"data": call.items(data)} for group, data in groups.items()}),
        }
    }


def existing(call: CheckedCall) -> Campaign:
    """The campaign that the parameters name; of the other type it doesn't exist."""
    for campaign in call.world.account.campaigns(call.now):
        if campaign.campaign_id == call.id() and call.get("type") in (
            "",
            "automated" if campaign.is_automated else "standard",
        ):
            return campaign
    raise missing("The campaign")


@rule("emailmarketing/stats")
def stats(call: CheckedCall) -> Payload:
    campaign = existing(call)
    sent, bounced, opened, unsubscribed = call.world.activity.totals(campaign, call.now)
    whole = max(1, sent // 10) if call.switches.is_on("over-100-percent") else sent
    values = {
        "open": opened,
        "unopened": sent - bounced - opened,
        "bounced": bounced,
        "unsubscribed": unsubscribed,
    }
    counts = {
        name: f"{value} ({round(100 * value / whole, 2) if whole else 0:g}%)"
        for name, value in values.items()
    }
    return {"campaign": {"stats": counts, "clicks": call.items(_clicks(call, campaign))}}


def _clicks(call: CheckedCall, campaign: Campaign) -> list[dict[str, Any]]:
    if campaign.group(call.now) not in ("Automation", "Sent"):
        return []
    form = call.switches["clickers"]
    by_link: list[list[str]] = [[] for _ in campaign.links]
    for wanted, clicked in call.world.activity.clickers(campaign, call.now) if form != "never" else ():
        email = call.world.subscribers.email(wanted)
        for position, times in clicked:
            by_link[position].append(f"{email}({times} clicks)")
    return [
        {"url": url, "message": text, **({"clickers": clickers} if clickers or form == "always" else {})}
        for (url, text), clickers in zip(campaign.links, by_link, strict=True)
    ]


def _schedule(call: CheckedCall) -> dict[str, Any]:
    """A draft is never sent, a scheduled one at its time, any other at once.

    Where nothing is sent at once (api-observed row 34), what is not scheduled is a draft.
    """
    is_scheduled = call.is_true("isscheduled")
    may_send = is_scheduled or call.switches["sending"] == "added"
    if call.is_true("isdraft") or call.get("type") == "automated" or not may_send:
        return {"scheduled_at": 0, "sent_at": 0}
    if is_scheduled and not call.has("scheduled_datetime"):
        raise Refusal(NOT_VALID, "scheduled_datetime is required", ("scheduled_datetime",))
    return {
        "scheduled_at": call.now,
        "sent_at": max(call.now, call.moment("scheduled_datetime")) if is_scheduled else call.now,
    }


def _texts(call: CheckedCall) -> dict[str, Any]:
    domain = call.get("fromemail").rpartition("@")[2].lower()
    if call.switches["sender-domain"] == "verified" and domain and domain not in WORDS["sender_domains"]:
        raise Refusal(NOT_VALID, "The sender domain is not verified", ("fromemail",))
    members = {
        "fromemail": "from_email",
        **{name: name for name in ("name", "subject", "body", "from_name", "reply_to")},
    }
    return {member: call.get(name) for name, member in members.items() if call.has(name)}


def _links(body: str) -> Links:
    return re.findall(r'href="(https?://[^"]+)"[^<>]{0,200}>([^<]{0,200})<', body)


def _targets(call: CheckedCall) -> tuple[int, ...]:
    """Lists; some clients name them among the audiences (api-observed row 42)."""
    known, lists, audiences = call.world.lists.all(call.now), call.ids("lists"), call.ids("audiences")
    if any(wanted not in known for wanted in lists):
        raise missing("The list")
    call.must_exist("The audience", audiences, {*AUDIENCE_IDS, *known})
    return tuple(dict.fromkeys([*lists, *(wanted for wanted in audiences if wanted in known)]))


@rule("emailmarketing/addcampaign")
def addcampaign(call: CheckedCall) -> Payload:
    schedule, account = _schedule(call), call.world.account
    new = next(account.campaign_ids)
    campaign = Campaign(
        new,
        lists=_targets(call),
        created_at=call.now,
        **schedule,
        links=_links(call.get("body")),
        is_automated=call.get("type") == "automated",
        **_texts(call),
    )
    account.put_campaign(campaign, call.now)
    return {"id": call.an_id(new), "item": "The campaign was added successfully"}


@rule("emailmarketing/editcampaign")
def editcampaign(call: CheckedCall) -> Payload:
    """Of a campaign that is out, or of an automation, only the texts change."""
    campaign = existing(call)
    changed = replace(campaign, **_texts(call))
    if not campaign.is_automated and campaign.group(call.now) != "Sent":
        schedule = _schedule(call)
        changed = replace(
            changed, lists=_targets(call) or campaign.lists, links=_links(changed.body), **schedule
        )
    call.world.account.put_campaign(changed, call.now)
    return {"item": "The campaign was updated successfully"}


@rule("emailmarketing/deletecampaign")
def deletecampaign(call: CheckedCall) -> Payload:
    call.world.account.delete_campaign(existing(call), call.now)
    return {"item": "The campaign was deleted successfully"}


@rule("emailmarketing/getcampaign")
def getcampaign(call: CheckedCall) -> Payload:
    campaign = existing(call)
    name = {"name": campaign.name} if call.switches["campaign-groups"] == "observed" else {}
    return {"item": _shown(call, campaign) | name}
