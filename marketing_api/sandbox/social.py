"""The rules of social channels, posts and links."""

import datetime as dt
import re

from marketing_api.sandbox.rules import CheckedCall, Resource, invalid, missing, show_thing
from marketing_api.sandbox.seed import DAY, WORDS, Thing
from marketing_api.sandbox.world import find_channel, list_channels

#: `channelid` as specified, beside the ids of pages and profiles (observation 24).
_CHANNEL_NUMBERS = set("1234")
#: Networks as specified, and the list that each of them shows.
_SPECIFIED = {
    "Facebook": "pages",
    "Twitter": "profiles",
    "Linkedin": "profiles",
    "Pinterest": "profiles",
}
#: A short link gets its last click so long after its post.
_CLICKED_S = 30 * DAY


def channels(call: CheckedCall) -> Thing:
    """Keyed by network; observations 23 and 36 add companies, boards, networks and names."""
    observed: Thing = WORDS["channels"]
    if call.observes("channels"):
        return observed
    found = {}
    for network, kind in _SPECIFIED.items():
        entries = [dict(entry) for entry in observed[network][kind]]
        if kind == "profiles":
            for profile in entries:
                del profile["name"]
        found[network] = {"count": len(entries), kind: entries}
    return found


def calendar(call: CheckedCall) -> Thing:
    """One entry per post and network; a post that is out shows only with `includeposted`."""
    first, end = call.between()
    if not call.is_true("includeposted"):
        first = max(first, call.now + 1)
    found = []
    for post_id, post in call.things("post").items():
        if not first <= post["at"] < end:
            continue
        for channel in post["channels"]:
            if call.wants("channels", channel["network"]):
                found.append((post["at"], post_id, post, channel))
    found.sort(key=lambda entry: entry[:2], reverse=call["sort"] == "desc")
    count, page = call.page(found, 10)
    dates: dict[str, Thing] = {}
    for at, post_id, post, channel in page:
        entry = {"id": str(post_id), "message": post["message"]}
        photo = post["photo"]
        if photo:
            entry["photo"] = {"thumb": f"{photo}-thumb.jpg", "original": f"{photo}.jpg"}
        entry["channel"] = channel | {"date": call.moments.text(at, "12h")}
        entries = dates.setdefault(str(call.moments.date(at)), {})
        entries[str(len(entries) + 1)] = entry
    return {"count": count, "items": dates}


def stats(call: CheckedCall) -> Thing:
    found = []
    links = list(call.things("link").items())
    links.sort(key=lambda pair: pair[1]["at"], reverse=call["sort"] == "desc")
    for link_id, link in links:
        part = min(1, (call.now - link["at"]) / _CLICKED_S)
        clicks = {}
        for network, most in link["clicks"].items():
            if call.wants("channels", network):
                clicks[network] = int(most * part)
        if clicks:
            counted = {
                "date": str(link["at"]),
                "tracks": sum(clicks.values()),
                "clicks": clicks,
            }
            found.append(show_thing("link", link_id, link, **counted))
    return {"items": found}


def getpost(call: CheckedCall) -> Thing:
    post = _find_post(call)
    network = call["channel"]
    return {
        "id": str(call.id()),
        "title": post["title"],
        "datetime": call.moments.text(post["at"], "12h"),
        "item": {"uid": f"{network}_{call.id()}" if post["at"] <= call.now else ""},
        "type": network,
        "image": f"{post['photo']}.jpg" if post["photo"] else "",
        "profile": next(one["name"] for one in post["channels"] if one["network"] == network),
    }


def _find_post(call: CheckedCall) -> Thing:
    """The post, on the network that is named if one is."""
    post = call.existing("post")
    if call["channel"] and all(one["network"] != call["channel"] for one in post["channels"]):
        raise missing("post")
    return post


def _make_post(call: CheckedCall) -> Thing:
    """Published immediately, or scheduled; `channelid` may name several pages or profiles.
    Trackable links become short ones."""
    text = call["message"]
    at = _read_schedule(call)
    network = call["channel"]
    channel_ids = call.words("channelid")
    call.must_exist("channel", channel_ids, list_channels(network).keys() | _CHANNEL_NUMBERS)
    urls = []
    if call.is_true("trackableLinks"):
        urls = re.findall(r"https?://\S+", text)
    for url in urls:
        short_url = f"https://go.example.com/{len(call.world.things['link'])}"
        link = {
            "realurl": url,
            "shortenurl": short_url,
            "message": call["message"],
            "at": at,
            "clicks": {network: 0},
        }
        call.add("link", link)
        text = text.replace(url, short_url, 1)
    return {
        "title": text[:30],
        "message": text,
        "at": at,
        "channels": [find_channel(network, one) for one in channel_ids or [""]],
        "photo": call["photo"].removesuffix(".jpg"),
    }


def _read_schedule(call: CheckedCall) -> int:
    if not call.is_true("isscheduled"):
        return call.now
    if not call["scheduleddate"]:
        raise invalid("scheduleddate", "is required")
    hours = call["scheduledhours"] or "12:00"
    half = call["scheduledampm"].lower()
    text = f"{hours if ':' in hours else f'{hours}:00'} {half}"
    try:
        time = dt.datetime.strptime(text, "%I:%M %p" if half else "%H:%M ").time()
    except ValueError:
        raise invalid("scheduledhours") from None
    day = call.moments.date(call.moment("scheduleddate"))
    return call.moments.unix(dt.datetime.combine(day, time))


def _read_changes(call: CheckedCall) -> Thing:
    _find_post(call)
    changes = call.pick("message")
    if call["scheduleddatetime"]:
        changes["at"] = call.moment("scheduleddatetime")
    elif call.is_true("isscheduled"):
        changes["at"] = _read_schedule(call)
    return changes


addpost = Resource("post", lambda _: {}, _make_post)
editpost = Resource("post", _read_changes)


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
