"""The rules of social channels, posts and links."""

import datetime as dt
import re
from typing import Any

from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Payload, Refusal, done, missing, rule
from marketing_api.sandbox.seed import WORDS, Thing, salt
from marketing_api.sandbox.world import channel

#: `channelid` as specified, beside the ids of pages and profiles (api-observed row 24).
_CHANNEL_NUMBERS = ("1", "2", "3", "4")
#: Networks as specified, with the kind of their profiles.
_SPECIFIED = {"facebook": "page", "twitter": "profile", "linkedin": "profile", "pinterest": "profile"}
_PLURALS = {"company": "companies"}


@rule("socialmedia/channels")
def channels(call: CheckedCall) -> Payload:
    """Keyed by network; api-observed row 23 adds companies, boards and networks."""
    is_observed, found = call.switches["channels"] != "specified", {}
    for network, targets in WORDS["profiles"].items():
        main = _SPECIFIED.get(network, targets[0][0])
        lists: dict[str, list[Any]] = {main: []}
        for kind, known, name in targets:
            if is_observed or kind == main:
                lists.setdefault(kind, []).append(_target(call, kind, known, name))
        if is_observed or network in _SPECIFIED:
            named = {_PLURALS.get(kind, f"{kind}s"): entries for kind, entries in lists.items()}
            found[network.title()] = {"count": len(lists[main]), **named}
    return {"channels": call.map(found)}


def _target(call: CheckedCall, kind: str, known: int, name: str) -> dict[str, Any]:
    form = call.switches["channels"]
    if kind == "company" and form == "company-id":  # api-observed row 46
        return {"companyId": call.an_id(known), "companyName": name}
    if kind != "profile":
        return {"id": call.an_id(known), "name": name}
    beside = {} if form == "specified" else {"name": name}  # api-observed row 36
    return {"id": call.an_id(known), **beside, "screenname": name.lower().replace(" ", ""), "fullname": name}


@rule("socialmedia/calendar")
def calendar(call: CheckedCall) -> Payload:
    """One entry per post and network; a post that is out shows only with `includeposted`."""
    wanted = call.words("channels") or ["all"]
    first, end = call.between()
    found = [
        (post["at"], wanted_id, post, one)
        for wanted_id, post in call.world.posts.all(call.now).items()
        if first <= post["at"] < end and (post["at"] > call.now or call.is_true("includeposted"))
        for one in post["channels"]
        if "all" in wanted or one["network"] in wanted
    ]
    found.sort(key=lambda entry: entry[:2], reverse=call.get("sort", "asc") == "desc")
    count, page = call.page(found, 10)
    dates: dict[str, dict[str, Any]] = {}
    for at, wanted_id, post, one in page:
        shown: dict[str, Any] = {"id": call.an_id(wanted_id), "message": post["message"]}
        if post["photo"]:
            shown["photo"] = {"thumb": f"{post['photo']}-thumb.jpg", "original": f"{post['photo']}.jpg"}
        shown["channel"] = {**one, "id": call.an_id(one["id"]), "date": call.moments.text(at, "12h")}
        entries = dates.setdefault(call.moments.day(at, "%Y-%m-%d"), {})
        entries[str(len(entries) + 1)] = shown
    return {"calendar": {"count": count, "items": call.map(dates)}}


@rule("socialmedia/stats")
def stats(call: CheckedCall) -> Payload:
    wanted = call.words("channels") or ["all"]
    found = []
    for link_id, link in call.world.links.all(call.now).items():
        clicks = {name: count for name, count in link["clicks"].items() if "all" in wanted or name in wanted}
        if clicks or "all" in wanted:
            shown = {
                "id": call.an_id(link_id),
                "shortenurl": link["short_url"],
                "realurl": link["real_url"],
                "message": link["message"],
                "date": str(link["at"]),
                "tracks": sum(clicks.values()),
                "clicks": call.map(clicks),
            }
            found.append(shown)
    found.sort(key=lambda entry: int(entry["date"]), reverse=call.get("sort", "asc") == "desc")
    return {"stats": {"items": call.items(found)}}


@rule("socialmedia/getpost")
def getpost(call: CheckedCall) -> Payload:
    post, network = _existing(call), _network(call)
    return {
        "item": {
            "id": call.an_id(call.id()),
            "title": post["title"],
            "datetime": call.moments.text(post["at"], "12h"),
            "item": {"uid": f"{network[:2]}_{call.id() * 7919}" if post["at"] <= call.now else ""},
            "type": network,
            "image": f"{post['photo']}.jpg" if post["photo"] else "",
            "profile": next(one["name"] for one in post["channels"] if one["network"] == network),
        }
    }


def _network(call: CheckedCall) -> str:
    """A company's page at LinkedIn has a word of its own (api-observed row 46)."""
    return call.get("channel").removesuffix("_company")


def _existing(call: CheckedCall) -> Thing:
    """The post, on the network that is named if one is."""
    post = call.existing(call.world.posts)
    if call.has("channel") and all(one["network"] != _network(call) for one in post["channels"]):
        raise missing("The post")
    return post


@rule("socialmedia/addpost")
def addpost(call: CheckedCall) -> Payload:
    """Published at once, or scheduled; `channelid` may name several pages or profiles. Trackable links become
    short ones."""
    message, at, network, wanted = (
        call.get("message"),
        _scheduled(call),
        _network(call),
        call.words("channelid"),
    )
    posts, links = call.world.posts, call.world.links
    shown = {str(known) for _, known, _ in WORDS["profiles"][network]}
    call.must_exist("The channel", wanted, shown.union(_CHANNEL_NUMBERS))

    def short(match: re.Match[str]) -> str:
        url = f"https://go.example.com/w{salt(at, match[0]):08x}"
        links.add(
            {"short_url": url, "real_url": match[0], "message": message, "at": at, "clicks": {network: 0}}
        )
        return url

    text = re.sub(r"https?://\S+", short, message) if call.is_true("trackableLinks") else message
    targets = [channel(network, one) for one in wanted] or [channel(network)]
    photo = call.get("photo").removesuffix(".jpg")
    new = posts.add({"title": text[:30], "message": text, "at": at, "channels": targets, "photo": photo})
    return {"post_id": call.an_id(new), **done(posts, "added")}


def _scheduled(call: CheckedCall) -> int:
    if not call.is_true("isscheduled"):
        return call.now
    if not call.has("scheduleddate"):
        raise Refusal(NOT_VALID, "scheduleddate is required", ("scheduleddate",))
    if call.get("scheduleddate").isdecimal():  # unix seconds (api-observed row 46)
        return int(call.get("scheduleddate"))
    hour, _, minute = call.get("scheduledhours", "12").partition(":")
    if not hour.isdecimal() or (minute and not minute.isdecimal()):
        raise Refusal(NOT_VALID, "scheduledhours is not valid", ("scheduledhours",))
    half = call.get("scheduledampm").lower()
    hours = int(hour) % 12 + (12 if half == "pm" else 0) if half else int(hour) % 24
    day = call.moments.date(call.day("scheduleddate"))
    return call.moments.unix(dt.datetime.combine(day, dt.time(hours, int(minute or 0) % 60)))


@rule("socialmedia/editpost")
def editpost(call: CheckedCall) -> Payload:
    _existing(call)
    changes: Thing = {"message": call.get("message")} if call.has("message") else {}
    if call.has("scheduleddatetime"):
        changes["at"] = call.moment("scheduleddatetime")
    elif call.is_true("isscheduled"):
        changes["at"] = _scheduled(call)
    return call.edited(call.world.posts, changes)


@rule("socialmedia/deletepost")
def deletepost(call: CheckedCall) -> Payload:
    """From one network, or from all when none is named."""
    posts, channels = call.world.posts, _existing(call)["channels"]
    rest = [one for one in channels if call.has("channel") and one["network"] != _network(call)]
    if not rest:
        return call.deleted(posts)
    posts.edit(call.id(), {"channels": rest})
    return done(posts, "deleted")
