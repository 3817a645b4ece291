"""Records of social profiles, posts and short links, and the operations that return them."""

import datetime as dt
from itertools import repeat
from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import (
    ApiWord,
    AsWorded,
    MaybeInt,
    MaybeMoment,
    MaybeText,
    Network,
    Record,
    Rows,
    field,
    key,
    mark_missing,
)
from marketing_api.records.shapes import (
    Entry,
    Params,
    as_objects,
    is_whole,
    items_of,
    lift_members,
    list_entries,
    shape_entries,
)
from marketing_api.records.values import is_no_moment, to_singular


class SocialProfile(Record):
    """One connected page, profile, company or board."""

    network: Network = key("Network in lower case, e.g. facebook.")
    kind: ApiWord = key("page, profile, company, board or another word.")
    profile_id: str = key("Id on the network.", "id", "companyId")
    name: MaybeText = field(
        "Name of a page, company or board; of a profile on some networks.",
        "name",
        "companyName",
        personal=True,
    )
    screen_name: MaybeText = field("Screen name of a profile.", "screenname", personal=True)
    full_name: MaybeText = field("Full name of a profile.", "fullname", personal=True)


class SocialPost(Record):
    """One post on one network: scheduled or published."""

    post_id: int = key("The service's id of the post.", "id")
    network: Network = key("Network in lower case, e.g. facebook.")
    channel_type: AsWorded = field(
        "page, profile, company, board or another word: what it is posted to."
    )
    channel_id: MaybeText = field("Page or profile, as in social_profiles.profile_id.")
    channel_name: MaybeText = field("Name of the page or profile.", personal=True)
    scheduled_at: MaybeMoment = field("When it was or will be published, UTC.")
    message: MaybeText = field("Text of the post.", link=True)
    photo_thumb_url: MaybeText = field("Small version of the picture.", link=True)
    photo_url: MaybeText = field("The picture.", link=True)


class SocialPostDetail(Record):
    """Details of one post on one network."""

    post_id: int = key("The service's id of the post.", "id")
    network: Network = key("Network in lower case, e.g. facebook.")
    title: MaybeText = field("Title of the post.")
    posted_at: MaybeMoment = field("When it was published, UTC.", "datetime")
    uid: MaybeText = field("The network's id of the post.")
    type: AsWorded = field("Channel of the post, as the service returns it.")
    image_url: MaybeText = field("Picture of the post.", "image", link=True)
    profile: MaybeText = field("Profile that posted it.", personal=True)


class SocialLink(Record):
    """One short link used in posts."""

    link_id: int = key("The service's id of the link.", "id")
    short_url: MaybeText = field("The short link.", "shortenurl", link=True)
    real_url: MaybeText = field("Target of the link.", "realurl", link=True)
    message: MaybeText = field("Text of the post that contains it.", link=True)
    created_at: MaybeMoment = field("When it was created, UTC.", "date")
    track_count: MaybeInt = field("Tracked visits, as of the last response.", "tracks")


class SocialLinkClicks(Record):
    """Clicks on one short link from one network, as of one day."""

    link_id: int = key("The service's id of the link.", "id")
    network: Network = key("Network in lower case, e.g. facebook.")
    observed_on: dt.date = key("The account's local date of the request.")
    click_count: MaybeInt = field("Clicks so far.")


def read_profiles(payload: Any, params: Params) -> Rows:
    """`channels`: {network: {count, pages: […] | profiles: […] | any other sub-list}} (observation
    23)."""
    if not isinstance(payload, dict):
        yield from shape_entries(SocialProfile, payload)
        return
    for network, value in payload.items():
        if isinstance(value, dict):
            yield from _shape_network(network, value)
            continue
        if not is_whole(None, value):
            yield mark_missing(SocialProfile, network)
        yield from shape_entries(SocialProfile, value)


def _shape_network(network: str, value: Entry) -> Rows:
    lists = {name: items for name, items in value.items() if name.lower() != "count"}
    served = [entry for items in lists.values() for entry in list_entries(items)]
    are_whole = all(is_whole(None, items) for items in lists.values())
    if not are_whole or not is_whole(value, served):
        yield mark_missing(SocialProfile, network)
    for name, items in lists.items():
        if isinstance(items, (dict, list)):
            yield from shape_entries(
                SocialProfile, items, known={"network": network, "kind": to_singular(name)}
            )


def read_posts(payload: Any, params: Params) -> Rows:
    """`calendar`: {count, items: {date: {number: post}}}."""
    items = items_of(payload)
    is_dated = isinstance(items, dict)
    dates = items.items() if is_dated else zip(repeat("0"), list_entries(items), strict=False)
    for name, value in dates:
        if is_dated and value in (None, ""):
            yield mark_missing(SocialPost, name)
        is_post = isinstance(value, dict) and not {"id", "channel"}.isdisjoint(value)
        # a post without a date above it; a null among posts is rejected
        is_single = is_post or (value is None and name.isdecimal())
        date = None if is_single or name.isdecimal() else name
        for entry in [value] if is_single else list_entries(value):
            yield from _on_channels(entry, date)


def _on_channels(entry: Any, date: str | None) -> Rows:
    """A post once for each of its channels. The record refuses a post without a channel."""
    if not isinstance(entry, dict):
        yield SocialPost, entry
        return
    channels = entry.get("channel")
    if not isinstance(channels, list) or not channels:
        channels = [channels]
    for channel in channels:
        post = dict(entry)
        if channel:
            post["channel"] = channel
        yield SocialPost, _shape_post(post, date)


_CHANNEL = {
    "network": "network",
    "type": "channel_type",
    "id": "channel_id",
    "name": "channel_name",
    "date": "scheduled_at",
}


def _shape_post(raw: Entry, date: str | None) -> Entry:
    lift_members(raw, "channel", _CHANNEL)
    lift_members(raw, "photo", {"thumb": "photo_thumb_url", "original": "photo_url"})
    if isinstance(raw.get("network"), str):
        raw["network"] = raw["network"].strip().lower()
    if isinstance(raw.get("channel_type"), str):
        raw["channel_type"] = to_singular(raw["channel_type"])
    if is_no_moment(raw.get("scheduled_at")) and date is not None:
        raw["scheduled_at"] = date
    return raw


def post_details(payload: Any, params: Params) -> Rows:
    """`item`: {id, title, datetime, item: {uid}, type, image, profile}; the network is the one
    requested."""

    def shape_detail(entry: Entry) -> Entry:
        raw = lift_members(dict(entry), "item", {"uid": "uid"})
        return {**raw, "network": params.get("channel") or raw.get("type")}

    yield from shape_entries(SocialPostDetail, as_objects(payload), shape_detail)


def read_links(payload: Any, params: Params) -> Rows:
    """`stats`: {items: [{id, …, clicks: {network: count}}]}."""
    for record, raw in shape_entries(SocialLink, items_of(payload)):
        clicks = None
        if isinstance(raw, dict):
            clicks = raw.pop("clicks", None)
        yield record, raw
        if isinstance(clicks, dict):
            for network, count in clicks.items():
                counted = {"id": raw.get("id"), "network": network, "click_count": count}
                yield SocialLinkClicks, counted
        else:
            yield from shape_entries(SocialLinkClicks, clicks)


AREA = Area("social")
CHANNELS = AREA.declare_rows("socialmedia/channels", read_profiles, SocialProfile)
CALENDAR = AREA.declare_rows("socialmedia/calendar", read_posts, SocialPost)
STATS = AREA.declare_rows("socialmedia/stats", read_links, SocialLink, SocialLinkClicks)
GETPOST = AREA.declare_rows("socialmedia/getpost", post_details, SocialPostDetail)

#: Networks whose posts can be requested one by one.
POST_CHANNELS = GETPOST.find_parameter("channel").choices
