"""Social channels, posts and links: the seeded ones, and their rules."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Payload, Refusal, Thing, missing, rule
from marketing_api.sandbox.seeded_contacts import HISTORY_DAYS
from marketing_api.sandbox.words import POSTS, SITE

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account, World

_FIRST_POST_ID = 12_000
_FIRST_LINK_ID = 88_000
#: The business began to post so long before the account's base, and posts every so many days.
_BEGAN = (HISTORY_DAYS - 150) * DAY
_EVERY = int(3.4 * DAY)
#: network → (what it is posted to, id, name)
PROFILES = {
    "facebook": ("page", 104_233_551, "Our page"),
    "twitter": ("profile", 5_501, "@ourkitchen"),
    "linkedin": ("profile", 7_702, "Our kitchen"),
    "pinterest": ("profile", 9_903, "Recipes"),
    "instagram": ("profile", 8_804, "ourkitchen"),
}


def channel(network: str, channel_id: int = 0) -> dict[str, Any]:
    """To what a post on that network goes."""
    kind, known, name = PROFILES[network]
    return {"network": network, "type": kind, "id": channel_id or known, "name": name}


class Feed:
    """The seeded posts of one account by any moment."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._salt = salt(account.origin.seed, "feed")

    def posts(self, now: int) -> Iterator[tuple[int, Thing]]:
        """Every post planned by `now`: those of the next four to five weeks, and all of the past."""
        began = self._account.start + _BEGAN
        for place in range(max(0, (now + 36 * DAY - began) // _EVERY + 1)):
            draw = spread(self._salt, place)
            at = began + place * _EVERY + draw % (8 * 3600)
            at -= at % 900
            if at - 28 * DAY - draw % (7 * DAY) <= now:
                yield _FIRST_POST_ID + place * 3, self._post(place, draw, at)

    def _post(self, place: int, draw: int, at: int) -> Thing:
        title, text = POSTS[draw % len(POSTS)]
        networks = ["facebook", *(["twitter"] if draw >> 8 & 3 == 0 else []), *(["linkedin"] if draw >> 10 & 7 == 0 else [])]
        return {
            "title": title,
            "message": text.format(link=self.short_url(place)),
            "at": at,
            "channels": [channel(network) for network in networks],
            "photo": f"https://images.example.com/{place:04d}" if draw >> 14 & 1 else "",
            "link_place": place if "{link}" in text else None,
        }

    def short_url(self, place: int) -> str:
        return f"https://go.example.com/{spread(self._salt ^ 0x31, place):06x}"

    def links(self, now: int) -> Iterator[tuple[int, Thing]]:
        """Short links of published posts; clicks only ever grow."""
        for post_id, post in self.posts(now):
            place = post["link_place"]
            if place is None or post["at"] > now:
                continue
            draw = spread(self._salt ^ 0x62, place)
            part = 1 - math.exp(-(now - post["at"]) / (6 * DAY))
            clicks = {one["network"]: int((20 + (draw >> at * 4) % 140) * part) for at, one in enumerate(post["channels"])}
            yield (
                _FIRST_LINK_ID + place,
                {
                    "short_url": self.short_url(place),
                    "real_url": f"{SITE}/blog/{post_id}?from=social",
                    "message": post["message"],
                    "at": post["at"],
                    "clicks": clicks,
                },
            )


#: `channelid` as specified, beside the ids of pages and profiles (api-observed row 24).
_CHANNEL_NUMBERS = (1, 2, 3, 4)
_NAMES = {"facebook": "Facebook", "twitter": "Twitter", "linkedin": "Linkedin", "pinterest": "Pinterest", "instagram": "Instagram"}


@rule("socialmedia/channels")
def channels(_world: World, call: CheckedCall) -> Payload:
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


def _profile(call: CheckedCall, known: int, screen_name: str, name: str) -> dict[str, Any]:
    beside = {"name": name} if call.switches["channels"] == "observed" else {}  # api-observed row 36
    return {"id": call.an_id(known), **beside, "screenname": screen_name, "fullname": name}


@rule("socialmedia/calendar")
def calendar(world: World, call: CheckedCall) -> Payload:
    """One entry per post and network; a post that is out shows only with `includeposted`."""
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


def _listed(call: CheckedCall, wanted: int, post: Thing, one: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": call.an_id(wanted), "message": post["message"]}
    if post["photo"]:
        shown["photo"] = {"thumb": f"{post['photo']}-thumb.jpg", "original": f"{post['photo']}.jpg"}
    shown["channel"] = {**one, "id": call.an_id(one["id"]), "date": call.when(post["at"], "12h")}
    return shown


@rule("socialmedia/stats")
def stats(world: World, call: CheckedCall) -> Payload:
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
def getpost(world: World, call: CheckedCall) -> Payload:
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


def _existing(world: World, call: CheckedCall) -> Thing:
    """The post, on the network that is named if one is."""
    post = world.posts.get(call.id(), call.now)
    networks = {one["network"] for one in post["channels"]} if post else set()
    if post is None or not networks or (call.has("channel") and call.get("channel") not in networks):
        raise missing("The post")
    return post


@rule("socialmedia/addpost")
def addpost(world: World, call: CheckedCall) -> Payload:
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
    return {"post_id": call.an_id(new), **world.posts.done("added")}


def _scheduled(call: CheckedCall) -> int:
    if not call.is_true("isscheduled"):
        return call.now
    if not call.has("scheduleddate"):
        raise Refusal(NOT_VALID, "scheduleddate is required", ("scheduleddate",))
    hour, _, minute = call.get("scheduledhours", "12").partition(":")
    if not hour.isdecimal() or (minute and not minute.isdecimal()):
        raise Refusal(NOT_VALID, "scheduledhours is not valid", ("scheduledhours",))
    half = call.get("scheduledampm").lower()
    hours = int(hour) % 12 + (12 if half == "pm" else 0) if half else int(hour) % 24
    day = call.moments.date(call.day("scheduleddate"))
    return call.moments.unix(dt.datetime.combine(day, dt.time(hours, int(minute or 0) % 60)))


def _shorten(world: World, message: str, at: int, network: str) -> str:
    """Links in the message become short ones, which are counted from then on."""

    def short(match: re.Match[str]) -> str:
        url = f"https://go.example.com/w{salt(at, match[0]):08x}"
        world.links.add({"short_url": url, "real_url": match[0], "message": message, "at": at, "clicks": {network: 0}})
        return url

    return re.sub(r"https?://\S+", short, message)


@rule("socialmedia/editpost")
def editpost(world: World, call: CheckedCall) -> Payload:
    _existing(world, call)
    changes: Thing = {"message": call.get("message")} if call.has("message") else {}
    if call.has("scheduleddatetime"):
        changes["at"] = call.moment("scheduleddatetime")
    elif call.is_true("isscheduled"):
        changes["at"] = _scheduled(call)
    return world.posts.edited(call, changes)


@rule("socialmedia/deletepost")
def deletepost(world: World, call: CheckedCall) -> Payload:
    """From one network, or from all when none is named."""
    post = _existing(world, call)
    rest = [one for one in post["channels"] if call.has("channel") and one["network"] != call.get("channel")]
    if not rest:
        return world.posts.deleted(call)
    world.posts.edit(call.id(), {"channels": rest})
    return world.posts.done("deleted")
