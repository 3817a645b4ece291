"""The rules of campaigns and their statistics."""

from __future__ import annotations

from typing import Any

from marketing_api.sandbox.call import Call, Payload, missing
from marketing_api.sandbox.campaign_book import Campaign
from marketing_api.sandbox.mailing import Totals
from marketing_api.sandbox.rules import rule
from marketing_api.sandbox.world import World

GROUPS = ("Sent", "Scheduled", "Draft", "Automation")


def _shown(call: Call, campaign: Campaign) -> dict[str, Any]:
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
def campaigns(world: World, call: Call) -> Payload:
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
    return {"campaigns": {"count": count, "items": call.map({group: {"data": call.items(one["data"])} for group, one in groups.items()})}}


@rule("emailmarketing/getcampaign")
def getcampaign(world: World, call: Call) -> Payload:
    return {"item": _shown(call, existing(world, call))}


def existing(world: World, call: Call) -> Campaign:
    """The campaign that the parameters name; of the other type it doesn't exist."""
    campaign = world.campaign(call.id(), call.now)
    if campaign is None or (call.has("type") and campaign.is_automated != (call.get("type") == "automated")):
        raise missing("The campaign")
    return campaign


@rule("emailmarketing/stats")
def stats(world: World, call: Call) -> Payload:
    campaign = existing(world, call)
    totals = world.activity.totals(campaign, call.now)
    return {"campaign": {"stats": _counts(call, totals), "clicks": call.items(_clicks(world, call, campaign))}}


def _counts(call: Call, totals: Totals) -> dict[str, str]:
    unopened = totals.sent - totals.bounced - totals.opened
    whole = unopened if call.switches.is_on("over-100-percent") else totals.sent
    values = {"open": totals.opened, "unopened": unopened, "bounced": totals.bounced, "unsubscribed": totals.unsubscribed}
    return {name: f"{value} ({round(100 * value / whole, 2) if whole else 0:g}%)" for name, value in values.items()}


def _clicks(world: World, call: Call, campaign: Campaign) -> list[dict[str, Any]]:
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
