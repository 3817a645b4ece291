"""What the reads of area `socialmedia` answer."""

from typing import Any

from .account import Post
from .answers import World, read
from .shape import Params, ServiceFault, Shape, day_range, number, text, words


@read("socialmedia/channels")
def channels(world: World, params: Params) -> dict[str, Any]:
    s = world.shape
    found: dict[str, Any] = {}
    plural = {"company": "companies"}
    for profile in world.account.profiles:
        network = found.setdefault(profile.network, {"count": 0})
        network["count"] += 1
        shown: dict[str, Any] = {
            "id": s.num(profile.profile_id) if profile.profile_id.isdigit() else profile.profile_id
        }
        shown |= (
            {"screenname": profile.screen_name, "fullname": profile.full_name}
            if profile.kind == "profile"
            else {"name": profile.name}
        )
        network.setdefault(plural.get(profile.kind, profile.kind + "s"), []).append(s.entry(**shown))
    for network in found.values():
        network |= {name: s.rows(rows, nested=True) for name, rows in network.items() if name != "count"}
        network["count"] = s.num(network["count"])
    return {"channels": s.obj(found)}


@read("socialmedia/calendar")
def calendar(world: World, params: Params) -> dict[str, Any]:
    s, made, wanted = world.shape, world.account, words(params, "channels")
    first, last = day_range(params, world.variants)
    posted = text(params, "includeposted", "false").lower() in ("true", "1")
    found = [
        post
        for post in made.posts
        if first <= post.at.astimezone(made.zone).date() <= last
        and (posted or post.at > made.now)
        and (wanted & {"all", post.network})
    ]
    found.sort(key=lambda post: post.at, reverse=text(params, "sort", "asc").lower() == "desc")
    served = s.page(found, params, 10)
    items: dict[str, Any] = {}
    for post in served:
        items.setdefault(post.at.astimezone(made.zone).date().isoformat(), []).append(_post(s, post))
    keyed = {
        on: {str(index): row for index, row in enumerate(rows, 1)} if not s.variants.empty_as_list else rows
        for on, rows in items.items()
    }
    return {"calendar": s.listing(s.obj(keyed), len(served), len(found))}


def _post(s: Shape, post: Post) -> dict[str, Any]:
    at = s.when(post.at, "%m/%d/%Y %I:%M %p")
    channel_id = s.num(post.channel_id) if post.channel_id.isdigit() else post.channel_id
    channel = {
        "network": post.network,
        "type": post.kind,
        "id": channel_id,
        "name": post.channel_name,
        "date": at,
    }
    shown = s.entry(id=s.num(post.post_id), message=post.message, channel=channel)
    return shown | ({"photo": {"thumb": post.photo[0], "original": post.photo[1]}} if post.photo else {})


@read("socialmedia/stats")
def social_stats(world: World, params: Params) -> dict[str, Any]:
    s = world.shape
    items = [
        s.entry(
            id=s.num(link.link_id),
            shortenurl=link.short_url,
            realurl=link.real_url,
            message=link.message,
            date=s.stamp(link.at),
            tracks=s.num(link.tracks),
            clicks=s.obj({name: s.num(count) for name, count in link.clicks.items()}),
        )
        for link in world.account.links
    ]
    return {"stats": {"items": s.rows(items)}}


@read("socialmedia/getpost")
def getpost(world: World, params: Params) -> dict[str, Any]:
    s, post_id, channel = world.shape, number(params, "id"), text(params, "channel").lower()
    for post in world.account.posts:
        if (post.post_id, post.network) == (post_id, channel):
            at = s.when(post.at, "%m/%d/%Y %I:%M %p")
            shown = s.entry(
                id=s.num(post_id),
                title=post.title,
                datetime=at,
                item={"uid": post.uid},
                type=post.network,
                image=post.image,
                profile=post.profile,
            )
            return {"item": shown}
    raise ServiceFault(1004, "The post was not found")
