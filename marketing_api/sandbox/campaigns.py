"""The rules of campaigns and their statistics."""

import re
from typing import Any

from marketing_api.sandbox.rules import CheckedCall, invalid, missing
from marketing_api.sandbox.seed import NEVER, Thing
from marketing_api.sandbox.subscribers import Campaign

GROUPS = ("Sent", "Scheduled", "Draft", "Automation")


def _show(call: CheckedCall, campaign: Campaign) -> Thing:
    members = {
        "id": str(campaign.campaign_id),
        "subject": campaign.subject,
        "message": campaign.body,
        "replyto": campaign.reply_to,
        "from_email": campaign.fromemail,
        "from_name": campaign.from_name,
        "creation_date": call.moments.text(campaign.created_at),
    }
    if call.observes("campaign-groups"):
        counts = campaign.count_mails(call.now)
        # Automations, and what is not sent yet, have no date (assumed).
        is_sent = campaign.group(call.now) == "Sent"
        members["sent_date"] = call.moments.text(campaign.sent_at) if is_sent else ""
        members["delivery_success"] = str(counts["sent"] - counts["bounced"])
        members["delivery_failed"] = str(counts["bounced"])
    return members


def campaigns(call: CheckedCall) -> Thing:
    """Grouped by status, or all at the top (observation 40); a page is cut from all groups together
    (assumed)."""
    group = call["filter"] or "all"
    (first, end) = call.between()
    found = [
        campaign
        for campaign in call.world.find_campaigns(call.now).values()
        if group in ("all", campaign.group(call.now).lower()) and first <= campaign.created_at < end
    ]
    found.sort(key=lambda campaign: GROUPS.index(campaign.group(call.now)))
    count, page = call.page(found, 10)
    if call.observes("campaign-groups"):
        return {"count": count, "items": [_show(call, campaign) for campaign in page]}
    groups: dict[str, Thing] = {}
    for campaign in page:
        entries = groups.setdefault(campaign.group(call.now), {"data": []})["data"]
        entries.append(_show(call, campaign))
    return {"count": count, "items": groups}


def _find_campaign(call: CheckedCall) -> Campaign:
    """The campaign that the parameters name; of the other type it doesn't exist."""
    campaign = call.world.find_campaigns(call.now).get(call.id())
    if campaign is None:
        raise missing("campaign")
    kind = "automated" if campaign.is_automated else "standard"
    if call["type"] not in ("", kind):
        raise missing("campaign")
    return campaign


def getcampaign(call: CheckedCall) -> Thing:
    campaign = _find_campaign(call)
    members = _show(call, campaign)
    if call.observes("campaign-groups"):
        members["name"] = campaign.name
    return members


def stats(call: CheckedCall) -> Thing:
    campaign = _find_campaign(call)
    counts = campaign.count_mails(call.now)
    sent = counts.pop("sent")
    opened = counts.pop("opened")
    figures = {
        "open": opened,
        "unopened": sent - opened - counts["bounced"],
        **counts,
    }
    stats = {}
    for name, count in figures.items():
        percent = round(100 * count / (sent or 1), 2)
        stats[name] = f"{count} ({percent:g}%)"
    return {"stats": stats, "clicks": _show_clicks(call, campaign)}


def _show_clicks(call: CheckedCall, campaign: Campaign) -> list[Thing]:
    if campaign.group(call.now) not in ("Automation", "Sent"):
        return []
    links: list[Thing] = [{"url": url, "message": text} for url, text in campaign.links]
    for mail in campaign.mails:
        if mail.clicked_at > call.now:
            continue
        for position, times in mail.clicks:
            clickers = links[position].setdefault("clickers", [])
            clickers.append(f"{mail.contact.email}({times} clicks)")
    return links


def _read_schedule(call: CheckedCall) -> dict[str, int]:
    """A draft is never sent, a scheduled campaign at its time, any other immediately.

    Where nothing is sent immediately (observation 34), what is not scheduled is a draft.
    """
    is_scheduled = call.is_true("isscheduled")
    may_send = is_scheduled or not call.observes("sending")
    if call.is_true("isdraft") or call["type"] == "automated" or not may_send:
        return {"scheduled_at": NEVER, "sent_at": NEVER}
    if is_scheduled and not call["scheduled_datetime"]:
        raise invalid("scheduled_datetime", "is required")
    at = call.now
    if is_scheduled:
        at = call.moment("scheduled_datetime")
    return {"scheduled_at": call.now, "sent_at": max(call.now, at)}


def _read_texts(call: CheckedCall) -> Thing:
    return call.pick("name", "subject", "body", "fromemail", "from_name", "reply_to")


def _find_links(body: str) -> list[list[str]]:
    found = re.findall(r'href="(https?://[^"]+)"[^<>]{0,200}>([^<]{0,200})<', body)
    return list(map(list, found))


def _read_lists(call: CheckedCall) -> list[int]:
    """Some clients name them among the audiences (observation 42)."""
    known = call.things("list")
    lists = call.ids("lists")
    audiences = call.ids("audiences")
    call.must_exist("list", lists, known)
    call.must_exist("audience", audiences, {*call.things("audience"), *known})
    return [*lists, *(one for one in audiences if one in known)]


def addcampaign(call: CheckedCall) -> Thing:
    members: dict[str, Any] = _read_texts(call) | _read_schedule(call)
    campaign = Campaign(
        next(call.world.ids),
        lists=_read_lists(call),
        created_at=call.now,
        links=_find_links(call["body"]),
        is_automated=call["type"] == "automated",
        **members,
    )
    call.world.schedule(campaign, call.now)
    return call.done("campaign", "added", campaign.campaign_id)


def editcampaign(call: CheckedCall) -> Thing:
    """Of a campaign that is out, or of an automation, only the texts change."""
    campaign = _find_campaign(call)
    changes: Thing = _read_texts(call)
    if not campaign.is_automated and campaign.group(call.now) != "Sent":
        lists = _read_lists(call) or campaign.lists
        links = _find_links(call["body"] or campaign.body)
        changes |= {"lists": lists, "links": links, **_read_schedule(call)}
    for name, value in changes.items():
        setattr(campaign, name, value)
    call.world.schedule(campaign, call.now)
    return call.done("campaign", "updated")


def deletecampaign(call: CheckedCall) -> Thing:
    campaign = _find_campaign(call)
    campaign.cancel(call.now)
    del call.world.campaigns[campaign.campaign_id]
    return call.done("campaign", "deleted")
