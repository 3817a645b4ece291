"""Reviews, feedback, sentiment and their statistics: the seeded ones, and the rules that show them."""

from collections import Counter
from collections.abc import Iterator

from marketing_api.sandbox.rules import CheckedCall, Resource, rule
from marketing_api.sandbox.seed import DAY, WORDS, Thing, pick, salt, spread
from marketing_api.sandbox.world import events

#: So many of the latest reviews of a channel are shown (assumed).
_SHOWN_PER_CHANNEL = 60


def _shown(call: CheckedCall, wanted: int, review: Thing) -> Thing:
    date, _, time = call.moments.text(review["at"], "12h").partition(" ")
    return {
        "id": call.an_id(wanted),
        "email": review["email"],
        "phone": review["phone"],
        "date": date,
        "time": time,
        "inquiry": review["inquiry"],
        "notes": review["notes"] if review["noted_at"] <= call.now else "",
        "rating": review["rating"],
    }


def _channels(call: CheckedCall) -> list[str]:
    """Those that the call names."""
    return [name for name, word in WORDS["review_channels"].items() if call.wants("channels", word)]


def _public(call: CheckedCall, name: str, mask: int, rate: float) -> Iterator[tuple[int, str, int, int, str]]:
    """(when, channel, stars, draw, text) of public reviews or mentions in these channels, oldest first."""
    series, channels = salt(call.world.origin.seed, name), _channels(call)
    for day, place in events(call.world, series, rate, call.now):
        draw = spread(series ^ mask, day * 4 + place)
        at = call.world.start + day * DAY + draw % DAY
        channel, stars = pick("busy_review_channels", draw >> 5), pick("stars", draw >> 9)
        if at <= call.now and channel in channels:
            yield at, channel, stars, draw, pick("good_reviews" if stars > 2 else "bad_reviews", draw >> 13)


@rule("reputation/direct")
def direct(call: CheckedCall) -> Thing:
    """`from` and `to` only take effect when the filter is `date`; the weeks and months are the last 7 and 30
    days (assumed)."""
    wanted, first, end = call.get("filter"), 0, call.now + 1
    if wanted == "date":
        first, end = call.between()
    elif wanted:
        days = {"today": 0, "lastweek": 7, "lastmonth": 30}[wanted]
        first = call.moments.midnight(call.moments.date(call.now)) - days * DAY
    reviews = call.world.reviews.all(call.now).items()
    return call.listing([_shown(call, *one) for one in reviews if first <= one[1]["at"] < end])


_FEEDBACK = Resource(lambda call: call.world.reviews, _shown)
rule("reputation/getfeedback")(lambda call: [_FEEDBACK(call)])
rule("reputation/deletefeedback")(_FEEDBACK)


@rule("reputation/online")
def online(call: CheckedCall) -> Thing:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    rating, words = WORDS["rating_forms"][call.switches["rating"]], WORDS["review_channels"]
    data: dict[str, list[Thing]] = {name: [] for name in _channels(call)}
    rated: dict[str, list[int]] = {name: [] for name in data}
    for at, channel, stars, draw, text in _public(call, "online", 0x77, 0.16):
        review = {
            "username": f"{pick('first_names', draw >> 3)[0]} {pick('last_names', draw >> 11)[0][0]}.",
            "date": str(at),
            "inquiry": text,
            "rating": rating.format(stars),
            "sourceUrl": f"https://reviews.example.org/{words[channel]}/{draw:08x}",
        }
        data[channel].insert(0, review)
        rated[channel].append(stars)
    items: Thing = {name: {"AvgRating": None} for name in data}
    for name, reviews in data.items():
        if reviews:
            average = f"{sum(rated[name]) / len(reviews):.1f}"
            items[name] = {"AvgRating": average, "data": reviews[:_SHOWN_PER_CHANNEL]}
    return {"count": sum(len(one.get("data", ())) for one in items.values()), "items": call.map(items)}


@rule("reputation/sentiment")
def sentiment(call: CheckedCall) -> Thing:
    """Three stars are neutral and not shown."""
    first, end = call.between()
    groups: dict[str, list[Thing]] = {"Positives": [], "Negatives": []}
    for at, channel, stars, _, text in _public(call, "said", 0x99, 0.3):
        polarity = "positive" if stars > 3 else "negative"
        if stars != 3 and call.wants("filter", polarity) and first <= at < end:
            shown = {"inquiry": text, "social": channel, "reviewdate": call.moments.day(at)}
            groups[f"{polarity.title()}s"].append(shown)
    totals = {name.lower(): len(entries) for name, entries in groups.items()}
    return {"overall": {"stats": totals}, "items": groups}


@rule("reputation/stats")
def stats(call: CheckedCall) -> Thing:
    """A period is a day; days without a review are left out of `Reviews`."""
    wanted, counted = call.get("filter", "all"), list(_counted(call))
    parts = {
        "Reviews": _rated(call),
        "SocialMedia": [{"periode": day, **mentions} for day, mentions, _ in counted],
        "FeedbackHub": [{"periode": day, "views": str(views)} for day, _, views in counted],
    }
    for name, days in parts.items():
        most = call.switches.number("series-cut") or len(days)
        kept = days[:most] if call.switches["series-kept"] == "first" else days[max(0, len(days) - most) :]
        parts[name] = kept if wanted in ("all", name.lower()) else []
    return {"items": [], **parts}


def _rated(call: CheckedCall) -> list[Thing]:
    (first, end), reviews = call.between(), call.world.reviews.all(call.now).values()
    within = [one for one in reviews if first <= one["at"] < end]
    rated = Counter((call.moments.date(one["at"]).isoformat(), one["rating"]) for one in within)
    return [
        {"periode": day, "good": str(rated[day, "Good"]), "bad": str(rated[day, "Bad"])}
        for day in sorted({day for day, _ in rated})
    ]


def _counted(call: CheckedCall) -> Iterator[tuple[str, dict[str, int], int]]:
    """(date, mentions by network, views of the feedback page) of every day of the range, up to today."""
    world, date, (first, end) = call.world, call.moments.date, call.between()
    series = salt(world.origin.seed, "counted")
    for number in range((call.now + DAY - world.start) // DAY + 1):
        # The noon shows the local date: days of 23 or 25 hours move midnight, but never past it.
        noon = world.start + number * DAY + DAY // 2
        if first <= noon < end and date(noon) <= date(call.now):
            mentions = {
                name: spread(series ^ place, number) % most
                for place, (name, most) in enumerate(WORDS["mention_networks"].items())
            }
            yield date(noon).isoformat(), mentions, 5 + spread(series ^ 0x55, number) % 60
