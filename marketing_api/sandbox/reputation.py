"""Reviews, feedback, sentiment and their statistics: the seeded ones, and their rules."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import CheckedCall, Payload, missing, rule
from marketing_api.sandbox.words import BAD, FIRST_NAMES, GOOD, LAST_NAMES, NOTES, REVIEW_CHANNELS

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account, World

_FIRST_REVIEW_ID = 70_000
_PER_DAY = 16  # ids kept for each day
_NETWORKS = ("twitter", "facebook", "yelp", "foursquare", "googleplus", "pinterest")
#: Channels with reviews, the more often the more reviews; two of the eight have none.
_BUSY = ("Yelp", "Yelp", "Google Places", "Google Places", "Google Places", "TripAdvisor", "OpenTable", "Foursquare", "CitySearch")


class DirectReview(NamedTuple):
    review_id: int
    at: int
    email: str
    phone: str
    text: str
    notes: str
    is_good: bool


class OnlineReview(NamedTuple):
    at: int
    channel: str
    username: str
    text: str
    stars: int
    url: str


class Reviews:
    """All reviews and mentions of one business. Ranges are [first, end) in unix seconds."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.deleted: set[int] = set()
        seed = account.origin.seed
        self._direct, self._online, self._mentioned, self._counted = (salt(seed, name) for name in ("direct", "online", "said", "counted"))
        self._rate = min(6.0, 0.25 + account.origin.contacts / 3000)

    def _days(self, first: int, end: int, now: int) -> range:
        start = self._account.start
        return range(max(0, (first - start) // DAY), max(0, (min(end, now + 1) - start + DAY - 1) // DAY))

    def direct(self, first: int, end: int, now: int) -> Iterator[DirectReview]:
        """Private reviews, oldest first within a day's order of ids."""
        for day in self._days(first, end, now):
            for place in range(_times(self._rate, spread(self._direct, day))):
                review = self._one(day, place, now)
                if review is not None and first <= review.at < end and review.review_id not in self.deleted:
                    yield review

    def one(self, review_id: int, now: int) -> DirectReview | None:
        """The private review with that id, if there is one by `now`."""
        day, place = divmod(review_id - _FIRST_REVIEW_ID, _PER_DAY)
        exists = review_id not in self.deleted and day >= 0 and place < _times(self._rate, spread(self._direct, day))
        return self._one(day, place, now) if exists else None

    def _one(self, day: int, place: int, now: int) -> DirectReview | None:
        number = day * _PER_DAY + place
        draw, more = spread(self._direct ^ 0x1234, number), spread(self._direct ^ 0x4321, number)
        at = self._account.start + day * DAY + 36_000 + draw % 43_200
        guests = self._account.rolls[0].registered(at)
        if at > now or not guests:
            return None
        person = self._account.people.of_contact(0, more % guests)
        is_good = draw >> 16 & 31 > 6
        text = GOOD[more % len(GOOD)] if is_good else BAD[more % len(BAD)]
        noted_at = at + DAY + (more >> 8) % (2 * DAY)  # notes are written a day to three later
        notes = NOTES[(more >> 4) % len(NOTES)] if (not is_good or more & 7 == 0) and noted_at <= now else ""
        return DirectReview(_FIRST_REVIEW_ID + number, at, person.email, person.phone, text, notes, is_good)

    def online(self, now: int) -> Iterator[OnlineReview]:
        """Public reviews, oldest first."""
        return self._written(0.16, self._online, 0x77, self._account.start, now + 1, now)

    def _written(self, rate: float, series: int, mask: int, first: int, end: int, now: int) -> Iterator[OnlineReview]:
        for day in self._days(first, end, now):
            for place in range(_times(rate, spread(series, day))):
                draw = spread(series ^ mask, day * 4 + place)
                at = self._account.start + day * DAY + draw % DAY
                if first <= at < end and at <= now:
                    yield self._public(at, draw)

    def _public(self, at: int, draw: int) -> OnlineReview:
        channel = _BUSY[(draw >> 5) % len(_BUSY)]
        stars = (5, 5, 5, 4, 4, 4, 3, 2, 1, 5)[(draw >> 9) % 10]
        texts = GOOD if stars > 2 else BAD
        username = f"{FIRST_NAMES[(draw >> 3) % len(FIRST_NAMES)][0]} {LAST_NAMES[(draw >> 11) % len(LAST_NAMES)][0][0]}."
        url = f"https://reviews.example.org/{REVIEW_CHANNELS[channel]}/{draw:08x}"
        return OnlineReview(at, channel, username, texts[(draw >> 13) % len(texts)], stars, url)

    def mentions(self, first: int, end: int, now: int) -> Iterator[tuple[OnlineReview, str]]:
        """Mentions elsewhere, with their polarity (positive, negative or neutral)."""
        for one in self._written(0.3, self._mentioned, 0x99, first, end, now):
            yield one, "positive" if one.stars > 3 else "neutral" if one.stars == 3 else "negative"

    def counters(self, day: int) -> tuple[dict[str, int], int]:
        """(mentions by network, views of the feedback page) of the `day`-th day of the account."""
        mentions = {name: spread(self._counted ^ place, day) % (9, 14, 3, 2, 1, 4)[place] for place, name in enumerate(_NETWORKS)}
        return mentions, 5 + spread(self._counted ^ 0x55, day) % 60

    def days(self, first: int, end: int, now: int) -> Iterator[tuple[int, int]]:
        """(number, unix second of its noon) of every day of the account whose noon lies in the range, up to a day after now.

        The noon shows the local date: local days that are 23 or 25 hours long move midnight, but never past it.
        """
        for day in self._days(first, end, now + DAY):
            if first <= (noon := self._account.start + day * DAY + DAY // 2) < end:
                yield day, noon


def _times(rate: float, draw: int) -> int:
    """How often something happens on a day, `rate` times on average."""
    spread_out = rate * (0.5 + (draw & 0xFFFF) / 0x10000)
    return min(int(spread_out) + ((draw >> 16) / 0x10000 < spread_out % 1), _PER_DAY)


#: So many of the latest reviews of a channel are shown (assumed).
_SHOWN_PER_CHANNEL = 60


def _shown(call: CheckedCall, review: DirectReview) -> dict[str, Any]:
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
def direct(world: World, call: CheckedCall) -> Payload:
    """`from` and `to` only take effect when the filter is `date`; the weeks and months are the last 7 and 30 days (assumed)."""
    found = [_shown(call, review) for review in world.reviews.direct(*_filtered(call), call.now)]
    return call.listing("reviews", found)


def _filtered(call: CheckedCall) -> tuple[int, int]:
    if call.get("filter") == "date":
        return call.between()
    days = {"today": 0, "lastweek": 7, "lastmonth": 30}.get(call.get("filter"))
    return 0 if days is None else call.moments.midnight(call.moments.date(call.now)) - days * DAY, 1 << 40


@rule("reputation/getfeedback")
def getfeedback(world: World, call: CheckedCall) -> Payload:
    return {"item": [_shown(call, _existing(world, call))]}


def _existing(world: World, call: CheckedCall) -> DirectReview:
    if (review := world.reviews.one(call.id(), call.now)) is None:
        raise missing("The review")
    return review


@rule("reputation/deletefeedback")
def deletefeedback(world: World, call: CheckedCall) -> Payload:
    world.reviews.deleted.add(_existing(world, call).review_id)
    return {"item": "The review was deleted successfully"}


@rule("reputation/online")
def online(world: World, call: CheckedCall) -> Payload:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    wanted = call.words("channels") or ["all"]
    by_channel: dict[str, list[OnlineReview]] = {name: [] for name, word in REVIEW_CHANNELS.items() if word in wanted or "all" in wanted}
    for review in world.reviews.online(call.now):
        if review.channel in by_channel:
            by_channel[review.channel].append(review)
    items = {name: _channel(call, reviews) for name, reviews in by_channel.items()}
    return {"reviews": {"count": sum(len(one.get("data", ())) for one in items.values()), "items": call.map(items)}}


def _channel(call: CheckedCall, reviews: list[OnlineReview]) -> dict[str, Any]:
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


def _rating(call: CheckedCall, stars: int) -> str:
    """A serialized structure without any sample (api-observed row 32): in several forms."""
    forms = {
        "php": f'a:1:{{s:6:"rating";s:1:"{stars}";}}',
        "json": json.dumps({"rating": stars}),
        "number": str(stars),
        "list": f"a:2:{{i:0;i:{stars};i:1;i:5;}}",
    }
    return forms[call.switches["rating"]]


@rule("reputation/sentiment")
def sentiment(world: World, call: CheckedCall) -> Payload:
    wanted = call.words("filter") or ["all"]
    channels = call.words("channels") or ["all"]
    groups: dict[str, list[dict[str, Any]]] = {"positive": [], "negative": []}
    for one, polarity in world.reviews.mentions(*call.between(), call.now):
        if (polarity not in wanted and "all" not in wanted) or polarity not in groups:
            continue
        if "all" in channels or REVIEW_CHANNELS[one.channel] in channels:
            groups[polarity].append({"inquiry": one.text, "social": one.channel, "reviewdate": call.moments.day(one.at)})
    totals = {"positives": len(groups["positive"]), "negatives": len(groups["negative"])}
    return {"sentiment": {"overall": {"stats": totals}, "items": {"Positives": groups["positive"], "Negatives": groups["negative"]}}}


@rule("reputation/stats")
def stats(world: World, call: CheckedCall) -> Payload:
    """A period is a day; days without a review are left out of `Reviews`."""
    wanted = call.get("filter", "all")
    first, end = call.between()
    by_day: dict[str, list[int]] = {}
    for review in world.reviews.direct(first, end, call.now):
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


def _cut(call: CheckedCall, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = call.switches.number("series-cut") or len(entries)
    return entries[:most] if call.switches["series-kept"] == "first" else entries[max(0, len(entries) - most) :]


def _iso(call: CheckedCall, at: int) -> str:
    return dt.date.isoformat(call.moments.date(at))
