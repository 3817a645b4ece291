"""What the reads of area `emailmarketing` answer: campaigns, lists, contacts, timelines, coupons."""

from typing import Any

from .account import Automation, Campaign, ContactList, Event, Member
from .answers import World, read
from .shape import Params, ServiceFault, Shape, day_range, number, text, words


@read("emailmarketing/campaigns")
def campaigns(world: World, params: Params) -> dict[str, Any]:
    s, made, wanted = world.shape, world.account, text(params, "filter").lower()
    first, last = day_range(params, world.variants)
    found = [
        campaign
        for campaign in made.campaigns
        if wanted in ("all", campaign.group.lower())
        and first <= campaign.at.astimezone(made.zone).date() <= last
    ]
    served = _campaign_page(s, found, params)
    items: dict[str, Any] = {}
    for campaign in served:
        items.setdefault(campaign.group, []).append(_campaign(s, campaign, thin=world.variants.thin_listings))
    grouped = {group: {"data": s.rows(rows, nested=True)} for group, rows in items.items()}
    return {"campaigns": s.listing(s.obj(grouped), len(served), len(found))}


def _campaign_page(s: Shape, found: list[Campaign], params: Params) -> list[Campaign]:
    if not s.variants.limit_per_group:
        return s.page(found, params, 10)
    groups = {campaign.group: [each for each in found if each.group == campaign.group] for campaign in found}
    return [campaign for group in groups.values() for campaign in s.page(group, params, 10)]


def _campaign(s: Shape, campaign: Campaign, *, thin: bool) -> dict[str, Any]:
    shown = s.entry(
        id=s.num(campaign.campaign_id), subject=campaign.subject, creation_date=s.when(campaign.at)
    )
    if thin:
        return shown
    return shown | {
        "message": campaign.message,
        "replyto": campaign.reply_to,
        "from_email": campaign.from_email,
        "from_name": campaign.from_name,
    }


def _find_campaign(world: World, params: Params) -> Campaign:
    wanted, kind = number(params, "id"), text(params, "type", "standard").lower()
    for campaign in world.account.campaigns:
        if (campaign.campaign_id, campaign.type) == (wanted, kind):
            return campaign
    raise ServiceFault(1004, f"No {kind} campaign has this id")


@read("emailmarketing/getcampaign")
def getcampaign(world: World, params: Params) -> dict[str, Any]:
    return {"item": _campaign(world.shape, _find_campaign(world, params), thin=False)}


@read("emailmarketing/stats")
def campaign_stats(world: World, params: Params) -> dict[str, Any]:
    s, campaign = world.shape, _find_campaign(world, params)
    stats = {name: f"{count} ({percent:f}%)" for name, (count, percent) in campaign.stats.items()}
    clicks = []
    for entry in campaign.clicks:
        shown = s.entry(url=entry.url, message=entry.message)
        if entry.clickers:  # the key is absent when there are none (row 25)
            shown["clickers"] = s.rows(
                [f"{who}({count} click{'s' if count > 1 else ''})" for who, count in entry.clickers],
                nested=True,
            )
        clicks.append(shown)
    return {"campaign": {"stats": stats, "clicks": s.rows(clicks, nested=True)}}


@read("emailmarketing/getlists")
def getlists(world: World, params: Params) -> dict[str, Any]:
    s, found = world.shape, world.account.lists
    served = s.page(found, params, 100)
    items = [
        _list(world, each, thin=world.variants.thin_listings, labels=world.variants.fields_in_getlists)
        for each in served
    ]
    return {"lists": s.listing(s.rows(items), len(items), len(found))}


@read("emailmarketing/getlist")
def getlist(world: World, params: Params) -> dict[str, Any]:
    wanted = number(params, "id")
    for each in world.account.lists:
        if each.list_id == wanted:
            return {"list": _list(world, each, thin=False, labels=True)}
    raise ServiceFault(1004, "The list was not found")


def _list(world: World, each: ContactList, *, thin: bool, labels: bool) -> dict[str, Any]:
    s = world.shape
    shown = s.entry(id=s.num(each.list_id), name=each.texts["name"])
    if not thin:
        right = "confirmation" if world.variants.confirmation_spelled_right else "confimation"
        shown |= {name.replace("confirmation", right): value for name, value in each.texts.items()}
        shown |= {"doubleOptin": s.flag(each.double_opt_in), "creation_date": s.when(each.at)}
    return shown | ({"fields": s.obj(dict(each.labels))} if labels else {})


@read("emailmarketing/getaudiences")
def getaudiences(world: World, params: Params) -> dict[str, Any]:
    s = world.shape
    items = [s.entry(id=s.num(number), name=name) for number, name in world.account.audiences.items()]
    return {"audiences": s.listing(s.rows(items), len(items))}


def _contact(world: World, member: Member) -> dict[str, Any]:
    s = world.shape
    shown = s.entry(
        id=s.num(member.contact_id),
        email=member.email,
        status=s.num(member.status),
        registration_date=s.when(member.at),
    )
    if world.variants.custom_fields == "beside":
        return shown | member.fields
    return shown | (
        {"fields": s.obj(dict(member.fields))} if world.variants.custom_fields == "fields" else {}
    )


@read("emailmarketing/getcontacts")
def getcontacts(world: World, params: Params) -> dict[str, Any]:
    s, wanted = world.shape, number(params, "listid")
    if not any(each.list_id == wanted for each in world.account.lists):
        raise ServiceFault(1004, "The list was not found")
    found = [member for member in world.account.members if member.list_id == wanted]
    served = s.page(found, params, 100)
    return {
        "contacts": s.listing(s.rows([_contact(world, member) for member in served]), len(served), len(found))
    }


@read("emailmarketing/getcontacttimeline")
def timeline(world: World, params: Params) -> dict[str, Any]:
    wanted = number(params, "id")
    member = next((each for each in world.account.members if each.contact_id == wanted), None)
    if member is None:
        raise ServiceFault(1004, "The contact was not found")
    s, made, include = world.shape, world.account.timelines[wanted], words(params, "include", "none")
    served = made.events[: world.variants.timeline_cut]
    events = [_event(s, event) for event in served]
    counts = {"count": s.num(len(served)), "total": s.num(len(made.events))}
    found: dict[str, Any] = {
        "id": s.num(wanted),
        "email": member.email,
        "timeline": {"data": s.rows(events, nested=True), **counts},
    }
    if "utm" in include:
        visits = [
            s.entry(link=v.link, utm=s.obj(dict(v.utm)), timestamp=s.stamp(v.at), datetime=s.when(v.at))
            for v in made.visits
        ]
        found["utm"] = {"data": s.rows(visits, nested=True), "count": s.num(len(visits))}
    if "automated" in include:
        runs = [_automation(s, run) for run in made.automations]
        found["automated"] = {"data": s.rows(runs, nested=True), "count": s.num(len(runs))}
    return found


def _event(s: Shape, event: Event) -> dict[str, Any]:
    details = [{"key": key, "label": label, "value": value} for key, label, value in event.details]
    shown = s.entry(
        key=event.key, snippet=event.snippet, datetime=s.when(event.at), details=s.rows(details, nested=True)
    )
    return shown | ({"timestamp": s.stamp(event.at)} if event.is_stamped else {})


def _automation(s: Shape, run: Automation) -> dict[str, Any]:
    details = s.rows([{"key": key, "value": value} for key, value in run.details], nested=True)
    return s.entry(
        name=run.name, type=run.type, timestamp=s.stamp(run.at), datetime=s.when(run.at), details=details
    )


@read("emailmarketing/getcoupon")
def getcoupon(world: World, params: Params) -> dict[str, Any]:
    s, wanted, campaign = world.shape, text(params, "email"), number(params, "campaignid", 0)
    found = [
        s.entry(
            id=s.num(coupon.coupon_id),
            email=coupon.email,
            couponcode=coupon.code,
            couponredeemed=s.flag(coupon.redeemed),
            couponredeemedon=s.when(coupon.redeemed_at, "%m/%d/%Y"),
        )
        for coupon in world.account.coupons
        if coupon.email.lower() == wanted.lower() and campaign in (0, coupon.campaign_id)
    ]
    return {"coupons": s.rows(found)}
