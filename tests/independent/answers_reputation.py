"""What the reads of area `reputation` answer."""

import datetime as dt
from typing import Any

from .account import OnlineReview
from .answers import World, read
from .shape import Params, Shape, day_range, text, words


@read("reputation/direct")
def direct(world: World, params: Params) -> dict[str, Any]:
    s, made = world.shape, world.account
    first, last = _direct_range(world, params)
    found = [
        review for review in made.direct_reviews if first <= review.at.astimezone(made.zone).date() <= last
    ]
    items = [
        s.entry(
            id=s.num(review.review_id),
            email=review.email,
            phone=review.phone,
            date=s.day(review.at.astimezone(made.zone).date()),
            time=s.time(review.at),
            inquiry=review.inquiry,
            notes=review.notes,
            rating=review.rating,
        )
        for review in found
    ]
    return {"reviews": s.listing(s.rows(items), len(items))}


def _direct_range(world: World, params: Params) -> tuple[dt.date, dt.date]:
    """from and to only take effect when filter is `date`."""
    today, back = world.account.today, {"today": 0, "lastweek": 7, "lastmonth": 31}
    chosen = text(params, "filter", "none").lower()
    if chosen == "date":
        return day_range(params, world.variants)
    return (today - dt.timedelta(days=back[chosen]), today) if chosen in back else (dt.date.min, dt.date.max)


@read("reputation/online")
def online(world: World, params: Params) -> dict[str, Any]:
    s, wanted, items = world.shape, words(params, "channels"), {}
    for channel in world.account.channels:
        if "all" not in wanted and channel.name.lower().replace(" ", "") not in wanted:
            continue
        value = s.entry(AvgRating=None if channel.average is None else s.num(channel.average))
        if channel.reviews is not None:
            value["data"] = s.rows([_online_review(s, review) for review in channel.reviews], nested=True)
        items[channel.name] = value
    return {"reviews": s.listing(s.obj(items), len(items))}


def _online_review(s: Shape, review: OnlineReview) -> dict[str, Any]:
    return s.entry(
        username=review.username,
        date=s.stamp(review.at),
        inquiry=review.inquiry,
        rating=review.rating_raw,
        sourceUrl=review.url,
    )


@read("reputation/sentiment")
def sentiment(world: World, params: Params) -> dict[str, Any]:
    s, wanted = world.shape, words(params, "filter")
    first, last = day_range(params, world.variants)
    groups: dict[str, list[Any]] = {"positive": [], "negative": []}
    for mention in world.account.mentions:
        if first <= mention.on <= last and (wanted & {"all", mention.polarity}):
            shown = s.entry(inquiry=mention.inquiry, social=mention.channel, reviewdate=s.day(mention.on))
            groups.setdefault(mention.polarity, []).append(shown)
    stats = {"positives": s.num(len(groups["positive"])), "negatives": s.num(len(groups["negative"]))}
    items = {f"{name.capitalize()}s": s.rows(group, nested=True) for name, group in groups.items()}
    return {"sentiment": {"overall": {"stats": stats}, "items": items}}


@read("reputation/stats")
def reputation_stats(world: World, params: Params) -> dict[str, Any]:
    s, wanted = world.shape, words(params, "filter")
    first, last = day_range(params, world.variants, required=True)
    parts: dict[str, list[Any]] = {"Reviews": [], "SocialMedia": [], "FeedbackHub": []}
    for day in world.account.days:
        if not first <= day.on <= last:
            continue
        on = day.on.isoformat()
        if day.good_bad:
            parts["Reviews"].append(
                s.entry(periode=on, good=s.num(day.good_bad[0]), bad=s.num(day.good_bad[1]))
            )
        if day.mentions is not None:  # no surprise here: an unknown member of this entry is a network
            parts["SocialMedia"].append(
                {"periode": on} | {name: s.num(count) for name, count in day.mentions.items()}
            )
        if day.views is not None:
            parts["FeedbackHub"].append(s.entry(periode=on, views=s.num(day.views)))
    shown = {
        name: s.rows(rows, nested=True) if wanted & {"all", name.lower()} else []
        for name, rows in parts.items()
    }
    return {"stats": {"items": [], **shown}}
