"""Reviews, feedback, sentiment and their statistics: the seeded ones, and the rules that show them."""

from collections.abc import Iterator
from typing import Any

from marketing_api.sandbox.rules import CheckedCall, Payload, missing, rule
from marketing_api.sandbox.seed import DAY, WORDS, Thing, pick, salt, spread

_FIRST_REVIEW_ID = 70_000
_PER_DAY = 16  # ids kept for each day
#: So many of the latest reviews of a channel are shown (assumed).
_SHOWN_PER_CHANNEL = 60


def _days(call: CheckedCall, first: int, end: int, ahead: int = 0) -> range:
    """The days of the account, by number, in a range [first, end) of unix seconds, up to so many seconds from
    now."""
    start = call.world.account.start
    return range(
        max(0, (first - start) // DAY), max(0, (min(end, call.now + ahead + 1) - start + DAY - 1) // DAY)
    )


def _reviews(call: CheckedCall, first: int, end: int) -> Iterator[tuple[int, int, Thing]]:
    """(id, when, as it is shown) of the private reviews of a range, in the order of days and ids."""
    account = call.world.account
    series, rate = salt(account.origin.seed, "direct"), min(6.0, 0.25 + account.origin.contacts / 3000)
    for day in _days(call, first, end):
        for place in range(_times(rate, spread(series, day))):
            number = day * _PER_DAY + place
            draw, more = spread(series ^ 0x1234, number), spread(series ^ 0x4321, number)
            at = account.start + day * DAY + 36_000 + draw % 43_200
            guests = account.rolls[0].registered(at)
            if (
                not first <= at < min(end, call.now + 1)
                or not guests
                or _FIRST_REVIEW_ID + number in call.world.deleted_reviews
            ):
                continue
            person, is_good = account.people.of_contact(0, more % guests), draw >> 16 & 31 > 6
            noted_at = at + DAY + (more >> 8) % (2 * DAY)  # notes are written a day to three later
            date, _, time = call.moments.text(at, "12h").partition(" ")
            shown = {
                "id": call.an_id(_FIRST_REVIEW_ID + number),
                "email": person.email,
                "phone": person.phone,
                "date": date,
                "time": time,
                "inquiry": pick("good_reviews" if is_good else "bad_reviews", more),
                "notes": pick("notes", more >> 4)
                if (more & 7 == 0 if is_good else more & 3 > 0) and noted_at <= call.now
                else "",
                "rating": "Good" if is_good else "Bad",
            }
            yield _FIRST_REVIEW_ID + number, at, shown


def _public(
    call: CheckedCall, name: str, mask: int, rate: float, first: int = 0, end: int = 1 << 40
) -> Iterator[Thing]:
    """Public reviews or mentions of a range, oldest first."""
    account = call.world.account
    series = salt(account.origin.seed, name)
    for day in _days(call, first, end):
        for place in range(_times(rate, spread(series, day))):
            draw = spread(series ^ mask, day * 4 + place)
            at = account.start + day * DAY + draw % DAY
            if first <= at < min(end, call.now + 1):
                channel, stars = (
                    pick("busy_review_channels", draw >> 5),
                    (5, 5, 5, 4, 4, 4, 3, 2, 1, 5)[(draw >> 9) % 10],
                )
                yield {
                    "at": at,
                    "channel": channel,
                    "username": f"{pick('first_names', draw >> 3)[0]} "
                    f"{pick('last_names', draw >> 11)[0][0]}.",
                    "inquiry": pick("good_reviews" if stars > 2 else "bad_reviews", draw >> 13),
                    "stars": stars,
                    "url": f"https://reviews.example.org/{WORDS['review_channels'][channel]}/{draw:08x}",
                }


def _counters(call: CheckedCall, first: int, end: int) -> Iterator[tuple[str, dict[str, int], int]]:
    """(date, mentions by network, views of the feedback page) of every day of a range, up to today.

    The noon shows the local date: local days that are 23 or 25 hours long move midnight, but never past it.
    """
    start, series = call.world.account.start, salt(call.world.account.origin.seed, "counted")
    for day in _days(call, first, end, DAY):
        noon = start + day * DAY + DAY // 2
        if first <= noon < end and call.moments.date(noon) <= call.moments.date(call.now):
            mentions = {
                name: spread(series ^ place, day) % most
                for place, (name, most) in enumerate(WORDS["mention_networks"].items())
            }
            yield call.moments.date(noon).isoformat(), mentions, 5 + spread(series ^ 0x55, day) % 60


def _times(rate: float, draw: int) -> int:
    """How often something happens on a day, `rate` times on average."""
    spread_out = rate * (0.5 + (draw & 0xFFFF) / 0x10000)
    return min(int(spread_out) + ((draw >> 16) / 0x10000 < spread_out % 1), _PER_DAY)


@rule("reputation/direct")
def direct(call: CheckedCall) -> Payload:
    """`from` and `to` only take effect when the filter is `date`; the weeks and months are the last 7 and 30
    days (assumed)."""
    first, end = call.between() if call.get("filter") == "date" else (0, 1 << 40)
    days = {"today": 0, "lastweek": 7, "lastmonth": 30}.get(call.get("filter"))
    if days is not None:
        first = call.moments.midnight(call.moments.date(call.now)) - days * DAY
    return call.listing("reviews", [review for _, _, review in _reviews(call, first, end)])


@rule("reputation/getfeedback")
@rule("reputation/deletefeedback")
def feedback(call: CheckedCall) -> Payload:
    day = call.world.account.start + (call.id() - _FIRST_REVIEW_ID) // _PER_DAY * DAY
    review = next(
        (review for wanted, _, review in _reviews(call, day, day + DAY) if wanted == call.id()), None
    )
    if review is None:
        raise missing("The review")
    if call.operation.is_read:
        return {"item": [review]}
    call.world.deleted_reviews.add(call.id())
    return {"item": "The review was deleted successfully"}


@rule("reputation/online")
def online(call: CheckedCall) -> Payload:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    wanted = call.words("channels") or ["all"]
    by_channel: dict[str, list[Thing]] = {
        name: [] for name, word in WORDS["review_channels"].items() if word in wanted or "all" in wanted
    }
    for review in _public(call, "online", 0x77, 0.16):
        if review["channel"] in by_channel:
            by_channel[review["channel"]].append(review)
    items = {name: _channel(call, reviews) for name, reviews in by_channel.items()}
    return {
        "reviews": {
            "count": sum(len(one.get("data", ())) for one in items.values()),
            "items": call.map(items),
        }
    }


def _channel(call: CheckedCall, reviews: list[Thing]) -> dict[str, Any]:
    if not reviews:
        return {"AvgRating": None}
    rating = WORDS["rating_forms"][call.switches["rating"]]
    data = [
        {
            "username": review["username"],
            "date": str(review["at"]),
            "inquiry": review["inquiry"],
            "rating": rating.format(review["stars"]),
            "sourceUrl": review["url"],
        }
        for review in reversed(reviews[-_SHOWN_PER_CHANNEL:])
    ]
    return {"AvgRating": f"{sum(review['stars'] for review in reviews) / len(reviews):.1f}", "data": data}


@rule("reputation/sentiment")
def sentiment(call: CheckedCall) -> Payload:
    """Three stars are neutral and not shown."""
    wanted, channels = call.words("filter") or ["all"], call.words("channels") or ["all"]
    groups: dict[str, list[dict[str, Any]]] = {"positive": [], "negative": []}
    for one in _public(call, "said", 0x99, 0.3, *call.between()):
        polarity = "positive" if one["stars"] > 3 else "negative"
        is_wanted = "all" in wanted or polarity in wanted
        if (
            one["stars"] != 3
            and is_wanted
            and ("all" in channels or WORDS["review_channels"][one["channel"]] in channels)
        ):
            shown = {
                "inquiry": one["inquiry"],
                "social": one["channel"],
                "reviewdate": call.moments.day(one["at"]),
            }
            groups[polarity].append(shown)
    totals = {"positives": len(groups["positive"]), "negatives": len(groups["negative"])}
    return {
        "sentiment": {
            "overall": {"stats": totals},
            "items": {"Positives": groups["positive"], "Negatives": groups["negative"]},
        }
    }


@rule("reputation/stats")
def stats(call: CheckedCall) -> Payload:
    """A period is a day; days without a review are left out of `Reviews`."""
    wanted, (first, end) = call.get("filter", "all"), call.between()
    by_day: dict[str, list[int]] = {}
    for _, at, review in _reviews(call, first, end):
        by_day.setdefault(call.moments.date(at).isoformat(), [0, 0])[review["rating"] == "Bad"] += 1
    counted = list(_counters(call, first, end))
    parts: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "Reviews": (
            "reviews",
            [
                {"periode": day, "good": str(good), "bad": str(bad)}
                for day, (good, bad) in sorted(by_day.items())
            ],
        ),
        "SocialMedia": ("socialmedia", [{"periode": day, **mentions} for day, mentions, _ in counted]),
        "FeedbackHub": ("feedbackhub", [{"periode": day, "views": str(views)} for day, _, views in counted]),
    }
    shown = {
        name: _cut(call, days) if wanted in ("all", word) else [] for name, (word, days) in parts.items()
    }
    return {"stats": {"items": [], **shown}}


def _cut(call: CheckedCall, days: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = call.switches.number("series-cut") or len(days)
    return days[:most] if call.switches["series-kept"] == "first" else days[max(0, len(days) - most) :]
