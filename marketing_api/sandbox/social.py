"""The rules of social channels, posts and links."""

import datetime as dt
import re
from typing import Any

from marketing_api.sandbox.rules import CheckedCall, Resource, invalid, missing, show_thing
from marketing_api.sandbox.seed import DAY, WORDS, Thing
from marketing_api.sandbox.world import find_channel

#: `channelid` as specified, beside the ids of pages and profiles (observation 24).
_CHANNEL_NUMBERS = ("1", "2", "3", "4")
#: Networks as specified, with the kind of their profiles.
_SPECIFIED = {
    "facebook": "page",
    "twitter": "profile",
    "linkedin": "profile",
    "pinterest": "profile",
}
_PLURALS = {"company": "companies"}
#: A short link gets its last click so long after its post.
_CLICKED_S = 30 * DAY


def channels(call: CheckedCall) -> Any:
    """Keyed by network; observation 23 adds companies, boards and networks."""
    is_observed, found = call.observes("channels"), {}
    for network, targets in WORDS["profiles"].items():
        main = _SPECIFIED.get(network, targets[0][0])
        lists: dict[str, list[Thing]] = {main: []}
        for kind, known, name in targets:
            if is_observed or kind == main:
                lists.setdefault(kind, []).append(_show_target(call, kind, known, name))
        if is_observed or network in _SPECIFIED:
            named = {_PLURALS.get(kind, f"{kind}s"): entries for kind, entries in lists.items()}
            found[network.title()] = {"count": len(lists[main]), **named}
    return found


def _show_target(call: CheckedCall, kind: str, known: int, name: str) -> Thing:
    shown = show_thing(known, {})
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
        shown = show_thing(post_id, post, "message")
        if photo := post["photo"]:
            shown["photo"] = {"thumb": f"{photo}-thumb.jpg", "original": f"{photo}.jpg"}
        shown["channel"] = one | {"date": call.moments.text(at, "12h")}
        entries = dates.setdefault(str(call.moments.date(at)), {})
        entries[str(len(entries) + 1)] = shown
    return {"count": count, "items": dates}


def stats(call: CheckedCall) -> Thing:
    found, links = [], call.things("link").items()
    for link_id, link in sorted(
        links, key=lambda one: one[1]["at"], reverse=call["sort"] == "desc"
    ):
        part = min(1, (call.now - link["at"]) / _CLICKED_S)
        clicks = {
            name: int(most * part)
            for name, most in link["clicks"].items()
            if call.wants("channels", name)
        }
        if clicks:
            counted = {"date": str(link["at"]), "tracks": sum(clicks.values()), "clicks": clicks}
            found.append(show_thing(link_id, link, "shortenurl", "realurl", "message", **counted))
    return {"items": found}


def getpost(call: CheckedCall) -> Thing:
    post, network = _find_post(call), call["channel"]
    return show_thing(
        call.id(),
        post,
        "title",
        datetime=call.moments.text(post["at"], "12h"),
        item={"uid": f"{network}_{call.id()}" if post["at"] <= call.now else ""},
        type=network,
        image=f"{post['photo']}.jpg" if post["photo"] else "",
        profile=next(one["name"] for one in post["channels"] if one["network"] == network),
    )


def _find_post(call: CheckedCall) -> Thing:
    """The post, on the network that is named if one is."""
    post = call.existing("post")
    if call["channel"] and all(one["network"] != call["channel"] for one in post["channels"]):
        raise missing("post")
    return post


def _make_post(call: CheckedCall) -> Thing:
    """Published at once, or scheduled; `channelid` may name several pages or profiles. Trackable
    links become short ones."""
    text, at, network, wanted = (
        call["message"],
        _read_schedule(call),
        call["channel"],
        call.words("channelid"),
    )
    known = {str(target[1]) for target in WORDS["profiles"][network]}
    call.must_exist("channel", wanted, known.union(_CHANNEL_NUMBERS))
    for url in re.findall(r"https?://\S+", text) if call.is_true("trackableLinks") else ():
        link = {"realurl": url, "message": call["message"], "at": at, "clicks": {network: 0}}
        link["shortenurl"] = f"https://go.example.com/{len(call.world.things['link'])}"
        call.add("link", link)
        text = text.replace(url, link["shortenurl"], 1)
    targets = [find_channel(network, one) for one in wanted or [""]]
    photo = call["photo"].removesuffix(".jpg")
    return {"title": text[:30], "message": text, "at": at, "channels": targets, "photo": photo}


def _read_schedule(call: CheckedCall) -> int:
    if not call.is_true("isscheduled"):
        return call.now
    if not call["scheduleddate"]:
        raise invalid("scheduleddate", "is required")
    hours, half = call["scheduledhours"] or "12:00", call["scheduledampm"].lower()
    text = f"{hours if ':' in hours else f'{hours}:00'} {half}"
    try:
        time = dt.datetime.strptime(text, "%I:%M %p" if half else "%H:%M ").time()
    except ValueError:
        raise invalid("scheduledhours") from None
    day = call.moments.date(call.moment("scheduleddate"))
    return call.moments.unix(dt.datetime.combine(day, time))


def _read_changes(call: CheckedCall) -> Thing:
    _find_post(call)
    changes = call.given("message")
    if call["scheduleddatetime"]:
        changes["at"] = call.moment("scheduleddatetime")
    elif call.is_true("isscheduled"):
        changes["at"] = _read_schedule(call)
    return changes


addpost, editpost = Resource("post", new=_make_post), Resource("post", given=_read_changes)


def deletepost(call: CheckedCall) -> Thing:
    """From one network, or from all when none is named."""
    post = _find_post(call)
    rest = [
        one for one in post["channels"] if call["channel"] and one["network"] != call["channel"]
    ]
    if rest:
        post["channels"] = rest
    else:
        del call.world.things["post"][call.id()]
    return call.done("post", "deleted")
