"""Reviews, feedback, sentiment and their statistics: the seeded ones, and the rules that show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import CheckedCall, Payload, missing, rule
from marketing_api.sandbox.words import BAD, FIRST_NAMES, GOOD, LAST_NAMES, NOTES, REVIEW_CHANNELS

_FIRST_REVIEW_ID = 70_000
_PER_DAY = 16  # ids kept for each day
#: Networks with so many mentions a day at most, less one.
_NETWORKS = {"twitter": 9, "facebook": 14, "yelp": 3, "foursquare": 2, "googleplus": 1, "pinterest": 4}
#: So many of the latest reviews of a channel are shown (assumed).
_SHOWN_PER_CHANNEL = 60
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
    """All reviews and mentions of one business by the moment of a call. Ranges are [first, end) in unix seconds."""

    def __init__(self, call: CheckedCall) -> None:
        self._account, self._deleted, self._now = call.world.account, call.world.deleted_reviews, call.now
        origin = self._account.origin
        self._direct, self._online, self._mentioned, self._counted = (
            salt(origin.seed, name) for name in ("direct", "online", "said", "counted")
        )
        self._rate = min(6.0, 0.25 + origin.contacts / 3000)

    def _days(self, first: int, end: int) -> range:
        start = self._account.start
        return range(max(0, (first - start) // DAY), max(0, (end - start + DAY - 1) // DAY))

    def direct(self, first: int, end: int) -> Iterator[DirectReview]:
        """Private reviews, oldest first within a day's order of ids."""
        for day in self._days(first, min(end, self._now + 1)):
            for place in range(_times(self._rate, spread(self._direct, day))):
                review = self.one(_FIRST_REVIEW_ID + day * _PER_DAY + place)
                if review is not None and first <= review.at < end:
                    yield review

    def one(self, review_id: int) -> DirectReview | None:
        """The private review with that id, if there is one."""
        number = review_id - _FIRST_REVIEW_ID
        day, place = divmod(number, _PER_DAY)
        if review_id in self._deleted or day < 0 or place >= _times(self._rate, spread(self._direct, day)):
            return None
        draw, more = spread(self._direct ^ 0x1234, number), spread(self._direct ^ 0x4321, number)
        at = self._account.start + day * DAY + 36_000 + draw % 43_200
        guests = self._account.rolls[0].registered(at)
        if at > self._now or not guests:
            return None
        person = self._account.people.of_contact(0, more % guests)
        is_good = draw >> 16 & 31 > 6
        text = GOOD[more % len(GOOD)] if is_good else BAD[more % len(BAD)]
        noted_at = at + DAY + (more >> 8) % (2 * DAY)  # notes are written a day to three later
        notes = NOTES[(more >> 4) % len(NOTES)] if (not is_good or more & 7 == 0) and noted_at <= self._now else ""
        return DirectReview(review_id, at, person.email, person.phone, text, notes, is_good)

    def online(self) -> Iterator[OnlineReview]:
        """Public reviews, oldest first."""
        return self._written(0.16, self._online, 0x77, self._account.start, self._now + 1)

    def mentions(self, first: int, end: int) -> Iterator[OnlineReview]:
        """What is said elsewhere."""
        return self._written(0.3, self._mentioned, 0x99, first, end)

    def _written(self, rate: float, series: int, mask: int, first: int, end: int) -> Iterator[OnlineReview]:
        for day in self._days(first, min(end, self._now + 1)):
            for place in range(_times(rate, spread(series, day))):
                draw = spread(series ^ mask, day * 4 + place)
                at = self._account.start + day * DAY + draw % DAY
                if first <= at < end and at <= self._now:
                    channel = _BUSY[(draw >> 5) % len(_BUSY)]
                    stars = (5, 5, 5, 4, 4, 4, 3, 2, 1, 5)[(draw >> 9) % 10]
                    texts = GOOD if stars > 2 else BAD
                    username = f"{FIRST_NAMES[(draw >> 3) % len(FIRST_NAMES)][0]} {LAST_NAMES[(draw >> 11) % len(LAST_NAMES)][0][0]}."
                    url = f"https://reviews.example.org/{REVIEW_CHANNELS[channel]}/{draw:08x}"
                    yield OnlineReview(at, channel, username, texts[(draw >> 13) % len(texts)], stars, url)

    def counters(self, first: int, end: int) -> Iterator[tuple[int, dict[str, int], int]]:
        """(noon, mentions by network, views of the feedback page) of every day whose noon lies in the range, up to a day after now.

        The noon shows the local date: local days that are 23 or 25 hours long move midnight, but never past it.
        """
        for day in self._days(first, min(end, self._now + DAY + 1)):
            if first <= (noon := self._account.start + day * DAY + DAY // 2) < end:
                mentions = {name: spread(self._counted ^ place, day) % most for place, (name, most) in enumerate(_NETWORKS.items())}
                yield noon, mentions, 5 + spread(self._counted ^ 0x55, day) % 60


def _times(rate: float, draw: int) -> int:
    """How often something happens on a day, `rate` times on average."""
    spread_out = rate * (0.5 + (draw & 0xFFFF) / 0x10000)
    return min(int(spread_out) + ((draw >> 16) / 0x10000 < spread_out % 1), _PER_DAY)


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
def direct(call: CheckedCall) -> Payload:
    """`from` and `to` only take effect when the filter is `date`; the weeks and months are the last 7 and 30 days (assumed)."""
    first, end = call.between() if call.get("filter") == "date" else (0, 1 << 40)
    days = {"today": 0, "lastweek": 7, "lastmonth": 30}.get(call.get("filter"))
    if days is not None:
        first = call.moments.midnight(call.moments.date(call.now)) - days * DAY
    return call.listing("reviews", [_shown(call, review) for review in Reviews(call).direct(first, end)])


def _existing(call: CheckedCall) -> DirectReview:
    if (review := Reviews(call).one(call.id())) is None:
        raise missing("The review")
    return review


@rule("reputation/getfeedback")
def getfeedback(call: CheckedCall) -> Payload:
    return {"item": [_shown(call, _existing(call))]}


@rule("reputation/deletefeedback")
def deletefeedback(call: CheckedCall) -> Payload:
    call.world.deleted_reviews.add(_existing(call).review_id)
    return {"item": "The review was deleted successfully"}


@rule("reputation/online")
def online(call: CheckedCall) -> Payload:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    wanted = call.words("channels") or ["all"]
    by_channel: dict[str, list[OnlineReview]] = {name: [] for name, word in REVIEW_CHANNELS.items() if word in wanted or "all" in wanted}
    for review in Reviews(call).online():
        if review.channel in by_channel:
            by_channel[review.channel].append(review)
    items = {name: _channel(call, reviews) for name, reviews in by_channel.items()}
    return {"reviews": {"count": sum(len(one.get("data", ())) for one in items.values()), "items": call.map(items)}}


def _channel(call: CheckedCall, reviews: list[OnlineReview]) -> dict[str, Any]:
    if not reviews:
        return {"AvgRating": None}
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
    return {"AvgRating": f"{sum(review.stars for review in reviews) / len(reviews):.1f}", "data": data}


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
def sentiment(call: CheckedCall) -> Payload:
    """Three stars are neutral and not shown."""
    wanted, channels = call.words("filter") or ["all"], call.words("channels") or ["all"]
    groups: dict[str, list[dict[str, Any]]] = {"positive": [], "negative": []}
    for one in Reviews(call).mentions(*call.between()):
        polarity = "positive" if one.stars > 3 else "negative"
        is_wanted = "all" in wanted or polarity in wanted
        if one.stars != 3 and is_wanted and ("all" in channels or REVIEW_CHANNELS[one.channel] in channels):
            groups[polarity].append({"inquiry": one.text, "social": one.channel, "reviewdate": call.moments.day(one.at)})
    totals = {"positives": len(groups["positive"]), "negatives": len(groups["negative"])}
    return {"sentiment": {"overall": {"stats": totals}, "items": {"Positives": groups["positive"], "Negatives": groups["negative"]}}}


@rule("reputation/stats")
def stats(call: CheckedCall) -> Payload:
    """A period is a day; days without a review are left out of `Reviews`."""
    wanted, found, date = call.get("filter", "all"), Reviews(call), call.moments.date
    first, end = call.between()
    by_day: dict[str, list[int]] = {}
    for review in found.direct(first, end):
        by_day.setdefault(date(review.at).isoformat(), [0, 0])[not review.is_good] += 1
    counted = [
        (date(noon).isoformat(), mentions, views) for noon, mentions, views in found.counters(first, end) if date(noon) <= date(call.now)
    ]
    parts: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "Reviews": ("reviews", [{"periode": day, "good": str(good), "bad": str(bad)} for day, (good, bad) in sorted(by_day.items())]),
        "SocialMedia": ("socialmedia", [{"periode": day, **mentions} for day, mentions, _ in counted]),
        "FeedbackHub": ("feedbackhub", [{"periode": day, "views": str(views)} for day, _, views in counted]),
    }
    shown = {name: _cut(call, days) if wanted in ("all", word) else [] for name, (word, days) in parts.items()}
    return {"stats": {"items": [], **shown}}


def _cut(call: CheckedCall, days: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = call.switches.number("series-cut") or len(days)
    return days[:most] if call.switches["series-kept"] == "first" else days[max(0, len(days) - most) :]
