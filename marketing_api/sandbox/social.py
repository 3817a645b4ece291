"""The rules of social channels, posts and links."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from marketing_api.sandbox.call import NOT_VALID, Call, Payload, Refusal, missing, rule
from marketing_api.sandbox.chance import salt
from marketing_api.sandbox.seeds import PROFILES, Thing, channel
from marketing_api.sandbox.world import World

#: `channelid` as specified, beside the ids of pages and profiles (api-observed row 24).
_CHANNEL_NUMBERS = (1, 2, 3, 4)
_NAMES = {"facebook": "Facebook", "twitter": "Twitter", "linkedin": "Linkedin", "pinterest": "Pinterest", "instagram": "Instagram"}


@rule("socialmedia/channels")
def channels(_world: World, call: Call) -> Payload:
    """Keyed by network; api-observed row 23 adds companies, boards and networks."""
    found: dict[str, dict[str, Any]] = {}
    for network in ("facebook", "twitter", "linkedin"):
        kind, known, name = PROFILES[network]
        if kind == "page":
            entries = [{"id": call.an_id(known), "name": name}, {"id": call.an_id(known + 7), "name": f"{name} (East Pier)"}]
        else:
            entries = [_profile(call, known, name.lower().replace(" ", ""), name)]
        found[_NAMES[network]] = {"count": len(entries), f"{kind}s": entries}
    found["Pinterest"] = {"count": 0, "profiles": []}
    if call.switches["channels"] == "observed":
        found["Linkedin"]["companies"] = [{"id": call.an_id(7_799), "name": "Our kitchen, the company"}]
        found["Pinterest"]["boards"] = [{"id": call.an_id(9_931), "name": "Recipes"}]
        _, known, name = PROFILES["instagram"]
        found["Instagram"] = {"count": 1, "profiles": [_profile(call, known, name, name)]}
        found["Tiktok"] = {"count": 1, "accounts": [{"id": "tk_5512", "name": "ourkitchen"}]}
    return {"channels": call.map(found)}


def _profile(call: Call, known: int, screen_name: str, name: str) -> dict[str, Any]:
    beside = {"name": name} if call.switches["channels"] == "observed" else {}  # api-observed row 36
    return {"id": call.an_id(known), **beside, "screenname": screen_name, "fullname": name}


@rule("socialmedia/calendar")
def calendar(world: World, call: Call) -> Payload:
    """One entry per post and network; a post that is out shows only when asked for."""
    wanted = call.words("channels") or ["all"]
    first, end = call.between()
    found = [
        (post["at"], wanted_id, post, one)
        for wanted_id, post in world.posts.all(call.now).items()
        if first <= post["at"] < end and (post["at"] > call.now or call.is_true("includeposted"))
        for one in post["channels"]
        if "all" in wanted or one["network"] in wanted
    ]
    found.sort(key=lambda entry: entry[:2], reverse=call.get("sort", "asc") == "desc")
    count, page = call.page(found, 10)
    dates: dict[str, dict[str, Any]] = {}
    for at, wanted_id, post, one in page:
        entries = dates.setdefault(call.moments.day(at, "%Y-%m-%d"), {})
        entries[str(len(entries) + 1)] = _listed(call, wanted_id, post, one)
    return {"calendar": {"count": count, "items": call.map(dates)}}


def _listed(call: Call, wanted: int, post: Thing, one: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": call.an_id(wanted), "message": post["message"]}
    if post["photo"]:
        shown["photo"] = {"thumb": f"{post['photo']}-thumb.jpg", "original": f"{post['photo']}.jpg"}
    shown["channel"] = {**one, "id": call.an_id(one["id"]), "date": call.when(post["at"], "12h")}
    return shown


@rule("socialmedia/stats")
def stats(world: World, call: Call) -> Payload:
    wanted = call.words("channels") or ["all"]
    found = []
    for link_id, link in world.links.all(call.now).items():
        clicks = {name: count for name, count in link["clicks"].items() if "all" in wanted or name in wanted}
        if not clicks and "all" not in wanted:
            continue
        found.append(
            {
                "id": call.an_id(link_id),
                "shortenurl": link["short_url"],
                "realurl": link["real_url"],
                "message": link["message"],
                "date": str(link["at"]),
                "tracks": sum(clicks.values()),
                "clicks": call.map(clicks),
            }
        )
    found.sort(key=lambda entry: int(entry["date"]), reverse=call.get("sort", "asc") == "desc")
    return {"stats": {"items": call.items(found)}}


@rule("socialmedia/getpost")
def getpost(world: World, call: Call) -> Payload:
    post, network = _existing(world, call), call.get("channel")
    return {
        "item": {
            "id": call.an_id(call.id()),
            "title": post["title"],
            "datetime": call.when(post["at"], "12h"),
            "item": {"uid": f"{network[:2]}_{call.id() * 7919}" if post["at"] <= call.now else ""},
            "type": network,
            "image": f"{post['photo']}.jpg" if post["photo"] else "",
            "profile": next(one["name"] for one in post["channels"] if one["network"] == network),
        }
    }


def _existing(world: World, call: Call) -> Thing:
    """The post, on the network that is named if one is."""
    post = world.posts.get(call.id(), call.now)
    if (
        post is None
        or not post["channels"]
        or (call.has("channel") and call.get("channel") not in {one["network"] for one in post["channels"]})
    ):
        raise missing("The post")
    return post


@rule("socialmedia/addpost")
def addpost(world: World, call: Call) -> Payload:
    """Published at once, or scheduled; `channelid` may name several pages or profiles."""
    message, at = call.get("message"), _scheduled(call)
    network = call.get("channel")
    wanted = call.ids("channelid")
    known = PROFILES[network][1]
    call.must_exist("The channel", wanted, {known, known + 7, *_CHANNEL_NUMBERS})
    targets = [channel(network, one) for one in wanted] or [channel(network)]
    if call.is_true("trackableLinks"):
        message = _shorten(world, message, at, network)
    photo = call.get("photo").removesuffix(".jpg")
    new = world.posts.add({"title": message[:30], "message": message, "at": at, "channels": targets, "photo": photo, "link_place": None})
    return {"post_id": call.an_id(new), "item": "The post was added successfully"}


def _scheduled(call: Call) -> int:
    if not call.is_true("isscheduled"):
        return call.now
    if not call.has("scheduleddate"):
        raise Refusal(NOT_VALID, "scheduleddate is required", ("scheduleddate",))
    hour, _, minute = call.get("scheduledhours", "12").partition(":")
    if not hour.isdecimal() or (minute and not minute.isdecimal()):
        raise Refusal(NOT_VALID, "scheduledhours is not valid", ("scheduledhours",))
    half = call.get("scheduledampm").lower()
    hours = int(hour) % 12 + (12 if half == "pm" else 0) if half else int(hour) % 24
    day = call.moments.date(call.day("scheduleddate") or 0)
    return call.moments.unix(dt.datetime.combine(day, dt.time(hours, int(minute or 0) % 60)))


def _shorten(world: World, message: str, at: int, network: str) -> str:
    """Links in the message become short ones, which are counted from then on."""

    def short(match: re.Match[str]) -> str:
        url = f"https://go.example.com/w{salt(at, match[0]):08x}"
        world.links.add({"short_url": url, "real_url": match[0], "message": message, "at": at, "clicks": {network: 0}})
        return url

    return re.sub(r"https?://\S+", short, message)


@rule("socialmedia/editpost")
def editpost(world: World, call: Call) -> Payload:
    _existing(world, call)
    changes: Thing = {}
    if call.has("message"):
        changes["message"] = call.get("message")
    if call.has("scheduleddatetime"):
        changes["at"] = call.moment("scheduleddatetime")
    elif call.is_true("isscheduled"):
        changes["at"] = _scheduled(call)
    world.posts.edit(call.id(), changes)
    return {"item": "The post was updated successfully"}


@rule("socialmedia/deletepost")
def deletepost(world: World, call: Call) -> Payload:
    """From one network, or from all when none is named."""
    post = _existing(world, call)
    rest = [one for one in post["channels"] if call.has("channel") and one["network"] != call.get("channel")]
    if rest:
        world.posts.edit(call.id(), {"channels": rest})
    else:
        world.posts.delete(call.id())
    return {"item": "The post was deleted successfully"}
