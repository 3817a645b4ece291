"""Reviews, feedback, sentiment and their statistics: the seeded ones, and the rules that show them."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from marketing_api.sandbox.rules import CheckedCall, Resource
from marketing_api.sandbox.seed import DAY, WORDS, Thing, salt
from marketing_api.sandbox.world import Public

#: So many of the latest reviews of a channel are shown (assumed).
_SHOWN_PER_CHANNEL = 60


def _shown(call: CheckedCall, wanted: int, review: Thing) -> Thing:
    date, _, time = call.moments.text(review["at"], "12h").partition(" ")
    notes = review["notes"] if review["noted_at"] <= call.now else ""
    members = ("email", "phone", "inquiry", "rating")
    return call.shown(wanted, review, *members, date=date, time=time, notes=notes)


def _channels(call: CheckedCall) -> list[str]:
    """Those that the call names."""
    return [name for name, word in WORDS["review_channels"].items() if call.wants("channels", word)]


def _public(call: CheckedCall, every: list[Public]) -> Iterator[Public]:
    """What was written in the channels that the call names, oldest first."""
    channels = _channels(call)
    return (one for one in every if one.at <= call.now and one.channel in channels)


def direct(call: CheckedCall) -> Thing:
    """`from` and `to` only take effect when the filter is `date`; the weeks and months are the last 7 and 30
    days (assumed)."""
    wanted, first, end = call["filter"], 0, call.now + 1
    if wanted == "date":
        first, end = call.between()
    elif wanted:
        days = {"today": 0, "lastweek": 7, "lastmonth": 30}[wanted]
        first = call.moments.midnight(call.moments.date(call.now)) - days * DAY
    reviews = call.things("review").items()
    return call.listing([_shown(call, *one) for one in reviews if first <= one[1]["at"] < end])


deletefeedback = Resource("review", _shown)


def getfeedback(call: CheckedCall) -> list[Thing]:
    return [_shown(call, call.id(), call.existing("review"))]


def online(call: CheckedCall) -> Thing:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    words = WORDS["review_channels"]
    by_channel = defaultdict[str, list[Public]](list)
    for one in _public(call, call.world.reviews_online):
        by_channel[one.channel].append(one)
    items: dict[str, Thing] = {name: {"AvgRating": None} for name in _channels(call)}
    for name, reviews in by_channel.items():
        data = [
            {
                "username": one.author,
                "date": str(one.at),
                "inquiry": one.text,
                "rating": f'a:1:{{s:6:"rating";s:1:"{one.stars}";}}',
                "sourceUrl": f"https://reviews.example.org/{words[name]}/{one.at:08x}",
            }
            for one in reversed(reviews[-_SHOWN_PER_CHANNEL:])
        ]
        average = sum(one.stars for one in reviews) / len(reviews)
        items[name] = {"AvgRating": f"{average:.1f}", "data": data}
    return {"count": sum(len(one.get("data", ())) for one in items.values()), "items": items}


def sentiment(call: CheckedCall) -> Thing:
    """Three stars are neutral and not shown."""
    first, end = call.between()
    groups: dict[str, list[Thing]] = {"Positives": [], "Negatives": []}
    for one in _public(call, call.world.mentions):
        polarity = "positive" if one.stars > 3 else "negative"
        if one.stars != 3 and call.wants("filter", polarity) and first <= one.at < end:
            shown = {"inquiry": one.text, "social": one.channel, "reviewdate": call.moments.day(one.at)}
            groups[f"{polarity.title()}s"].append(shown)
    totals = {name.lower(): len(entries) for name, entries in groups.items()}
    return {"overall": {"stats": totals}, "items": groups}


def stats(call: CheckedCall) -> Thing:
    """A period is a day; days without a review are left out of `Reviews`."""
    parts: Thing = {"Reviews": _rated(call), "SocialMedia": [], "FeedbackHub": []}
    for day, mentions, views in _counted(call):
        parts["SocialMedia"].append({"periode": day} | mentions)
        parts["FeedbackHub"].append({"periode": day, "views": str(views)})
    for name, days in parts.items():
        parts[name] = days if call.wants("filter", name.lower()) else []
    return {"items": [], **parts}


def _rated(call: CheckedCall) -> list[Thing]:
    (first, end), date = call.between(), call.moments.date
    rated = defaultdict[str, Counter[str]](Counter)
    for one in call.things("review").values():
        if first <= one["at"] < end:
            rated[date(one["at"]).isoformat()][one["rating"]] += 1
    return [
        {"periode": day, "good": str(count["Good"]), "bad": str(count["Bad"])}
        for day, count in sorted(rated.items())
    ]


def _counted(call: CheckedCall) -> Iterator[tuple[str, dict[str, int], int]]:
    """(date, mentions by network, views of the feedback page) of every day of the range, up to today."""
    world, date, (first, end) = call.world, call.moments.date, call.between()
    networks = WORDS["mention_networks"].items()
    for number in range((call.now + DAY - world.start) // DAY + 1):
        # The noon shows the local date: days of 23 or 25 hours move midnight, but never past it.
        noon = world.start + number * DAY + DAY // 2
        if first <= noon < end and date(noon) <= date(call.now):
            draw = salt(world.origin.seed, number)
            mentions = {name: (draw >> most) % most for name, most in networks}
            yield date(noon).isoformat(), mentions, 5 + draw % 60
