"""The rules of social channels, posts and links."""

import datetime as dt
import math
import re
from typing import Any

from marketing_api.sandbox.rules import CheckedCall, Resource, invalid, missing
from marketing_api.sandbox.seed import DAY, WORDS, Thing, salt
from marketing_api.sandbox.world import channel

#: `channelid` as specified, beside the ids of pages and profiles (observation 24).
_CHANNEL_NUMBERS = ("1", "2", "3", "4")
#: Networks as specified, with the kind of their profiles.
_SPECIFIED = {"facebook": "page", "twitter": "profile", "linkedin": "profile", "pinterest": "profile"}
_PLURALS = {"company": "companies"}
_URL = re.compile(r"https?://\S+")


def channels(call: CheckedCall) -> Any:
    """Keyed by network; observation 23 adds companies, boards and networks."""
    is_observed, found = call.observes("channels"), {}
    for network, targets in WORDS["profiles"].items():
        main = _SPECIFIED.get(network, targets[0][0])
        lists: dict[str, list[Thing]] = {main: []}
        for kind, known, name in targets:
            if is_observed or kind == main:
                lists.setdefault(kind, []).append(_target(call, kind, known, name))
        if is_observed or network in _SPECIFIED:
            named = {_PLURALS.get(kind, f"{kind}s"): entries for kind, entries in lists.items()}
            found[network.title()] = {"count": len(lists[main]), **named}
    return found


def _target(call: CheckedCall, kind: str, known: int, name: str) -> Thing:
    shown = call.shown(known)
    if kind != "profile" or call.observes("channels"):  # observation 36
        shown["name"] = name
    if kind == "profile":
        shown |= {"screenname": name.lower().replace(" ", ""), "fullname": name}
    return shown


def calendar(call: CheckedCall) -> Thing:
    """One entry per post and network; a post that is out shows only with `includeposted`."""
    first, end = call.between()
    if not call.is_true("includeposted"):
        first = max(first, call.now + 1)
    found = [
        (post["at"], post_id, post, one)
        for post_id, post in call.things("post").items()
        for one in post["channels"]
        if first <= post["at"] < end and call.wants("channels", one["network"])
    ]
    found.sort(key=lambda entry: entry[:2], reverse=call["sort"] == "desc")
    count, page = call.page(found, 10)
    dates: dict[str, Thing] = {}
    for at, post_id, post, one in page:
        shown = call.shown(post_id, post, "message")
        if photo := post["photo"]:
            shown["photo"] = {"thumb": f"{photo}-thumb.jpg", "original": f"{photo}.jpg"}
        shown["channel"] = one | call.shown(one["id"], date=call.moments.text(at, "12h"))
        entries = dates.setdefault(call.moments.day(at, "%Y-%m-%d"), {})
        entries[str(len(entries) + 1)] = shown
    return {"count": count, "items": dates}


def stats(call: CheckedCall) -> Thing:
    found, links = [], call.things("link").items()
    for wanted, link in sorted(links, key=lambda one: one[1]["at"], reverse=call["sort"] == "desc"):
        # Clicks only ever grow.
        part = 1 - math.exp((link["at"] - call.now) / (6 * DAY))
        clicks = {
            name: int(most * part) for name, most in link["clicks"].items() if call.wants("channels", name)
        }
        if clicks or call.wants("channels", "all"):
            counted = {"tracks": sum(clicks.values()), "clicks": clicks}
            members = ("shortenurl", "realurl", "message")
            found.append(call.shown(wanted, link, *members, date=str(link["at"]), **counted))
    return {"items": found}


def getpost(call: CheckedCall) -> Thing:
    post, network, wanted = _existing(call), call["channel"], call.id()
    return call.shown(
        wanted,
        post,
        "title",
        datetime=call.moments.text(post["at"], "12h"),
        item={"uid": f"{network[:2]}_{wanted * 7919}" if post["at"] <= call.now else ""},
        type=network,
        image=f"{post['photo']}.jpg" if post["photo"] else "",
        profile=next(one["name"] for one in post["channels"] if one["network"] == network),
    )


def _existing(call: CheckedCall) -> Thing:
    """The post, on the network that is named if one is."""
    post = call.existing("post")
    if call["channel"] and all(one["network"] != call["channel"] for one in post["channels"]):
        raise missing("post")
    return post


def _new(call: CheckedCall) -> Thing:
    """Published at once, or scheduled; `channelid` may name several pages or profiles. Trackable links become
    short ones."""
    text, at, network, wanted = call["message"], _scheduled(call), call["channel"], call.words("channelid")
    known = {str(target[1]) for target in WORDS["profiles"][network]}
    call.must_exist("channel", wanted, known.union(_CHANNEL_NUMBERS))
    for url in _URL.findall(text) if call.is_true("trackableLinks") else ():
        short = f"https://go.example.com/w{salt(at, url):08x}"
        link = {"shortenurl": short, "realurl": url, "message": call["message"], "at": at}
        call.shelf("link").add(link | {"clicks": {network: 0}})
        text = text.replace(url, short, 1)
    targets = [channel(network, one) for one in wanted or [""]]
    photo = call["photo"].removesuffix(".jpg")
    return {"title": text[:30], "message": text, "at": at, "channels": targets, "photo": photo}


def _scheduled(call: CheckedCall) -> int:
    given = call["scheduleddate"]
    if not call.is_true("isscheduled"):
        return call.now
    if not given:
        raise invalid("scheduleddate", "is required")
    hour, _, minute = (call["scheduledhours"] or "12").partition(":")
    if not (hour + minute).isdecimal() or not hour:
        raise invalid("scheduledhours")
    hours, half = int(hour) % 24, call["scheduledampm"].lower()
    if half:
        hours = int(hour) % 12 + 12 * (half == "pm")
    day = call.moments.date(call.moment("scheduleddate"))
    return call.moments.unix(dt.datetime.combine(day, dt.time(hours, int(minute or 0) % 60)))


def _changes(call: CheckedCall) -> Thing:
    _existing(call)
    changes = call.given("message")
    if call["scheduleddatetime"]:
        changes["at"] = call.moment("scheduleddatetime")
    elif call.is_true("isscheduled"):
        changes["at"] = _scheduled(call)
    return changes


addpost, editpost = Resource("post", new=_new), Resource("post", given=_changes)


def deletepost(call: CheckedCall) -> Thing:
    """From one network, or from all when none is named."""
    post = _existing(call)
    rest = [one for one in post["channels"] if call["channel"] and one["network"] != call["channel"]]
    call.shelf("post").put(call.id(), post | {"channels": rest} if rest else None)
    return call.done("post", "deleted")
