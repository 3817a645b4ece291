"""The rules of campaigns and their statistics."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.campaign_book import Campaign
from marketing_api.sandbox.lists import AUDIENCE_IDS
from marketing_api.sandbox.mailing import Totals
from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Payload, Refusal, missing, rule

if TYPE_CHECKING:
    from marketing_api.sandbox.world import World

GROUPS = ("Sent", "Scheduled", "Draft", "Automation")


def _shown(call: CheckedCall, campaign: Campaign) -> dict[str, Any]:
    return {
        "id": call.an_id(campaign.campaign_id),
        "subject": campaign.subject,
        "message": campaign.body,
        "replyto": campaign.reply_to,
        "from_email": campaign.from_email,
        "from_name": campaign.from_name,
        "creation_date": call.when(campaign.created_at),
    }


@rule("emailmarketing/campaigns")
def campaigns(world: World, call: CheckedCall) -> Payload:
    """Grouped by status; a page is cut from all groups together (assumed)."""
    wanted = call.get("filter", "all").lower()
    first, end = call.between()
    found = [
        (group, campaign)
        for group in GROUPS
        for campaign in world.campaigns(call.now)
        if campaign.group(call.now) == group and wanted in ("all", group.lower()) and first <= campaign.created_at < end
    ]
    count, page = call.page(found, 10)
    groups: dict[str, dict[str, Any]] = {}
    for group, campaign in page:
        groups.setdefault(group, {"data": []})["data"].append(_shown(call, campaign))
    return {"campaigns": {"count": count, "items": _grouped(call, groups)}}


def _grouped(call: CheckedCall, groups: dict[str, dict[str, Any]]) -> Any:
    """By status group as specified, or all at the top (api-observed row 39)."""
    form = call.switches["campaign-groups"]
    if form == "groups":
        return call.map({group: {"data": call.items(one["data"])} for group, one in groups.items()})
    entries = [entry for one in groups.values() for entry in one["data"]]
    return {str(place): entry for place, entry in enumerate(entries, 1)} if form == "numbered" and entries else entries


@rule("emailmarketing/getcampaign")
def getcampaign(world: World, call: CheckedCall) -> Payload:
    return {"item": _shown(call, existing(world, call))}


def existing(world: World, call: CheckedCall) -> Campaign:
    """The campaign that the parameters name; of the other type it doesn't exist."""
    campaign = world.campaign(call.id(), call.now)
    if campaign is None or (call.has("type") and campaign.is_automated != (call.get("type") == "automated")):
        raise missing("The campaign")
    return campaign


@rule("emailmarketing/stats")
def stats(world: World, call: CheckedCall) -> Payload:
    campaign = existing(world, call)
    totals = world.activity.totals(campaign, call.now)
    return {"campaign": {"stats": _counts(call, totals), "clicks": call.items(_clicks(world, call, campaign))}}


def _counts(call: CheckedCall, totals: Totals) -> dict[str, str]:
    sent, bounced, opened, unsubscribed = totals
    whole = max(1, sent // 10) if call.switches.is_on("over-100-percent") else sent
    values = {"open": opened, "unopened": sent - bounced - opened, "bounced": bounced, "unsubscribed": unsubscribed}
    return {name: f"{value} ({round(100 * value / whole, 2) if whole else 0:g}%)" for name, value in values.items()}


def _clicks(world: World, call: CheckedCall, campaign: Campaign) -> list[dict[str, Any]]:
    form = call.switches["clickers"]
    by_link: list[list[str]] = [[] for _ in campaign.links]
    for wanted, clicked in world.activity.clickers(campaign, call.now) if form != "never" else ():
        email = world.subscribers.email(wanted)
        for position, times in clicked:
            by_link[position].append(f"{email}({times} clicks)")
    entries = []
    for (url, text), clickers in zip(campaign.links, by_link, strict=True):
        entry: dict[str, Any] = {"url": url, "message": text}
        if clickers or form == "always":
            entry["clickers"] = clickers
        entries.append(entry)
    return entries if campaign.is_automated or campaign.group(call.now) == "Sent" else []


def _flags(call: CheckedCall) -> tuple[int, int]:
    """(scheduled_at, sent_at): a draft is never sent, a scheduled one at its time, any other at once.

    Where only editing sends (api-observed row 34), what is added is a draft, and what is edited is sent when it is scheduled.
    """
    if call.is_true("isdraft") or call.get("type") == "automated":
        return 0, 0
    is_edit = call.operation.name == "emailmarketing/editcampaign"
    if call.switches["sending"] == "edited" and not (is_edit and call.is_true("isscheduled")):
        return 0, 0
    if not call.is_true("isscheduled"):
        return call.now, call.now
    if not call.has("scheduled_datetime"):
        raise Refusal(NOT_VALID, "scheduled_datetime is required", ("scheduled_datetime",))
    return call.now, max(call.now, call.moment("scheduled_datetime"))


def _texts(call: CheckedCall) -> dict[str, Any]:
    members = {"fromemail": "from_email", **{name: name for name in ("name", "subject", "body", "from_name", "reply_to")}}
    return {member: call.get(name) for name, member in members.items() if call.has(name)}


def _links(body: str) -> tuple[tuple[str, str], ...]:
    return tuple((url, text) for url, text in re.findall(r'href="(https?://[^"]+)"[^<>]{0,200}>([^<]{0,200})<', body))


def _targets(world: World, call: CheckedCall) -> tuple[int, ...]:
    known = world.lists.all(call.now)
    if any(wanted not in known for wanted in call.ids("lists")):
        raise missing("The list")
    call.must_exist("The audience", call.ids("audiences"), AUDIENCE_IDS)
    return tuple(call.ids("lists"))


@rule("emailmarketing/addcampaign")
def addcampaign(world: World, call: CheckedCall) -> Payload:
    scheduled, sent = _flags(call)
    new = world.new_campaign_id()
    campaign = Campaign(
        new,
        lists=_targets(world, call),
        created_at=call.now,
        scheduled_at=scheduled,
        sent_at=sent,
        links=_links(call.get("body")),
        audiences=tuple(call.ids("audiences")),
        is_automated=call.get("type") == "automated",
        **_texts(call),
    )
    world.put_campaign(campaign, call.now)
    return {"id": call.an_id(new), "item": "The campaign was added successfully"}


@rule("emailmarketing/editcampaign")
def editcampaign(world: World, call: CheckedCall) -> Payload:
    """Of a campaign that is out, or of an automation, only the texts change."""
    campaign = existing(world, call)
    changed = replace(campaign, **_texts(call))
    if not campaign.is_automated and campaign.group(call.now) != "Sent":
        scheduled, sent = _flags(call)
        lists = _targets(world, call) or campaign.lists
        changed = replace(changed, scheduled_at=scheduled, sent_at=sent, lists=lists, links=_links(changed.body))
    world.put_campaign(changed, call.now)
    return {"item": "The campaign was updated successfully"}


@rule("emailmarketing/deletecampaign")
def deletecampaign(world: World, call: CheckedCall) -> Payload:
    world.delete_campaign(existing(world, call), call.now)
    return {"item": "The campaign was deleted successfully"}
