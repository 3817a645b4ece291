"""The rules of reviews, feedback, sentiment and their statistics."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

from marketing_api.sandbox.call import Call, Payload, missing, rule
from marketing_api.sandbox.roll import DAY
from marketing_api.sandbox.seeds import DirectReview, OnlineReview
from marketing_api.sandbox.words import REVIEW_CHANNELS
from marketing_api.sandbox.world import World

#: So many of the latest reviews of a channel are shown (assumed).
_SHOWN_PER_CHANNEL = 60


def _direct(world: World, call: Call, first: int, end: int) -> Iterator[DirectReview]:
    for review in world.reviews.direct(first, end, call.now):
        if review.review_id not in world.deleted_reviews:
            yield review


def _shown(call: Call, review: DirectReview) -> dict[str, Any]:
    form = call.moments.shape("12h", review.at)
    return {
        "id": call.an_id(review.review_id),
        "email": review.email,
        "phone": review.phone,
        "date": call.moments.day(review.at, form.day),
        "time": form.minutes[call.moments.local(review.at)[1]],
        "inquiry": review.text,
        "notes": review.notes,
        "rating": "Good" if review.is_good else "Bad",
    }


@rule("reputation/direct")
def direct(world: World, call: Call) -> Payload:
    """`from` and `to` only take effect when the filter is `date`; the weeks and months are the last 7 and 30 days (assumed)."""
    found = [_shown(call, review) for review in _direct(world, call, *_filtered(call))]
    return {"reviews": {"count": len(found), "items": call.items(found)}}


def _filtered(call: Call) -> tuple[int, int]:
    today = call.moments.midnight(call.moments.date(call.now))
    match call.get("filter"):
        case "date":
            return call.between()
        case "today":
            return today, 1 << 40
        case "lastweek":
            return today - 7 * DAY, 1 << 40
        case "lastmonth":
            return today - 30 * DAY, 1 << 40
        case _:
            return 0, 1 << 40


@rule("reputation/getfeedback")
def getfeedback(world: World, call: Call) -> Payload:
    return {"item": [_shown(call, _existing(world, call))]}


def _existing(world: World, call: Call) -> DirectReview:
    review = world.reviews.one(call.id(), call.now)
    if review is None or review.review_id in world.deleted_reviews:
        raise missing("The review")
    return review


@rule("reputation/deletefeedback")
def deletefeedback(world: World, call: Call) -> Payload:
    world.deleted_reviews.add(_existing(world, call).review_id)
    return {"item": "The review was deleted successfully"}


@rule("reputation/online")
def online(world: World, call: Call) -> Payload:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    wanted = call.words("channels") or ["all"]
    by_channel: dict[str, list[OnlineReview]] = {name: [] for name, word in REVIEW_CHANNELS.items() if word in wanted or "all" in wanted}
    for review in world.reviews.online(call.now):
        if review.channel in by_channel:
            by_channel[review.channel].append(review)
    items = {name: _channel(call, reviews) for name, reviews in by_channel.items()}
    return {"reviews": {"count": sum(len(one.get("data", ())) for one in items.values()), "items": call.map(items)}}


def _channel(call: Call, reviews: list[OnlineReview]) -> dict[str, Any]:
    if not reviews:
        return {"AvgRating": None}
    average = sum(review.stars for review in reviews) / len(reviews)
    data = [
        {
            "username": review.username,
            "date": str(review.at),
            "inquiry": review.text,
            "rating": _rating(call, review.stars),
            "sourceUrl": review.url,
        }
        for review in reversed(reviews[-_SHOWN_PER_CHANNEL:])
    ]
    return {"AvgRating": f"{average:.1f}", "data": data}


def _rating(call: Call, stars: int) -> str:
    """A serialized structure without any sample (api-observed row 32): in several forms."""
    match call.switches["rating"]:
        case "json":
            return json.dumps({"rating": stars})
        case "number":
            return str(stars)
        case "list":
            return f"a:2:{{i:0;i:{stars};i:1;i:5;}}"
        case _:
            return f'a:1:{{s:6:"rating";s:1:"{stars}";}}'


@rule("reputation/sentiment")
def sentiment(world: World, call: Call) -> Payload:
    wanted = call.words("filter") or ["all"]
    channels = call.words("channels") or ["all"]
    groups: dict[str, list[dict[str, Any]]] = {"positive": [], "negative": []}
    for said, polarity in world.reviews.mentions(*call.between(), call.now):
        if (polarity not in wanted and "all" not in wanted) or polarity not in groups:
            continue
        if "all" in channels or REVIEW_CHANNELS[said.channel] in channels:
            groups[polarity].append({"inquiry": said.text, "social": said.channel, "reviewdate": call.moments.day(said.at)})
    totals = {"positives": len(groups["positive"]), "negatives": len(groups["negative"])}
    return {"sentiment": {"overall": {"stats": totals}, "items": {"Positives": groups["positive"], "Negatives": groups["negative"]}}}


@rule("reputation/stats")
def stats(world: World, call: Call) -> Payload:
    """A period is a day; days without a review are left out of `Reviews`."""
    wanted = call.get("filter", "all")
    first, end = call.between()
    by_day: dict[str, list[int]] = {}
    for review in _direct(world, call, first, end):
        by_day.setdefault(_iso(call, review.at), [0, 0])[not review.is_good] += 1
    reviews = [{"periode": day, "good": str(good), "bad": str(bad)} for day, (good, bad) in sorted(by_day.items())]
    social: list[dict[str, Any]] = []
    views: list[dict[str, Any]] = []
    for day, noon in world.reviews.days(first, end, call.now):
        if call.moments.date(noon) > call.moments.date(call.now):
            break
        mentions, seen = world.reviews.counters(day)
        social.append({"periode": _iso(call, noon), **mentions})
        views.append({"periode": _iso(call, noon), "views": str(seen)})
    parts = {"reviews": ("Reviews", reviews), "socialmedia": ("SocialMedia", social), "feedbackhub": ("FeedbackHub", views)}
    shown = {name: _cut(call, entries) if wanted in ("all", word) else [] for word, (name, entries) in parts.items()}
    return {"stats": {"items": [], **shown}}


def _cut(call: Call, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = call.switches.number("series-cut") or len(entries)
    return entries[:most] if call.switches["series-kept"] == "first" else entries[max(0, len(entries) - most) :]


def _iso(call: Call, at: int) -> str:
    return dt.date.isoformat(call.moments.date(at))
