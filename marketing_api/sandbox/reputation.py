"""The rules of reviews, feedback, sentiment and their statistics."""

from collections import Counter, defaultdict

from marketing_api.sandbox.rules import CheckedCall, Resource, show_list
from marketing_api.sandbox.seed import DAY, WORDS, Thing

#: How many of the latest reviews of a channel are shown (assumed).
_REVIEWS_PER_CHANNEL = 60


def _compute_members(call: CheckedCall, _id: int, review: Thing) -> Thing:
    date, _, time = call.moments.text(review["at"], "12h").partition(" ")
    notes = ""
    if review["noted_at"] <= call.now:
        notes = review["notes"]
    return {"date": date, "time": time, "notes": notes}


_REVIEWS = deletefeedback = Resource("review", compute_members=_compute_members)


def _find_channels(call: CheckedCall) -> list[str]:
    """Names of the requested channels."""
    channels = WORDS["review_channels"].items()
    return [name for name, word in channels if call.wants("channels", word)]


def direct(call: CheckedCall) -> Thing:
    """`from` and `to` only take effect when the filter is `date`; the weeks and months are the last
    7 and 30 days (assumed)."""
    days_filter = call["filter"]
    first = 0
    end = call.now + 1
    if days_filter == "date":
        first, end = call.between()
    elif days_filter:
        days = {"today": 0, "lastweek": 7, "lastmonth": 30}[days_filter]
        today = call.moments.date(call.now)
        first = call.moments.midnight(today) - days * DAY
    found = []
    for review_id, review in call.things("review").items():
        if first <= review["at"] < end:
            found.append(_REVIEWS.show(call, review_id, review))
    return show_list(found)


def getfeedback(call: CheckedCall) -> list[Thing]:
    return [_REVIEWS.show(call, call.id(), call.existing("review"))]


def online(call: CheckedCall) -> Thing:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    items: dict[str, Thing] = {}
    count = 0
    for name in _find_channels(call):
        item = items[name] = {"AvgRating": None}
        every_review = call.things("online review").values()
        reviews = [review for review in every_review if review["channel"] == name]
        if reviews:
            stars = sum(review["stars"] for review in reviews)
            latest = reviews[-_REVIEWS_PER_CHANNEL:]
            item["AvgRating"] = f"{stars / len(reviews):.1f}"
            item["data"] = list(map(_show_online, reversed(latest)))
            count += len(latest)
    return {"count": count, "items": items}


def _show_online(review: Thing) -> Thing:
    channel = WORDS["review_channels"][review["channel"]]
    return {
        "username": review["author"],
        "date": str(review["at"]),
        "inquiry": review["inquiry"],
        "rating": f'a:1:{{s:6:"rating";s:1:"{review["stars"]}";}}',
        "sourceUrl": f"https://reviews.example.org/{channel}/{review['at']}",
    }


def sentiment(call: CheckedCall) -> Thing:
    """Three stars are neutral and not shown."""
    (first, end) = call.between()
    channels = _find_channels(call)
    groups: dict[str, list[Thing]] = {"Positives": [], "Negatives": []}
    for mention in call.things("mention").values():
        stars = mention["stars"]
        polarity = "positive" if stars > 3 else "negative"
        if stars == 3 or mention["channel"] not in channels:
            continue
        if call.wants("filter", polarity) and first <= mention["at"] < end:
            entry = {
                "inquiry": mention["inquiry"],
                "social": mention["channel"],
                "reviewdate": call.moments.text(mention["at"], "day"),
            }
            groups[f"{polarity.title()}s"].append(entry)
    totals = {name.lower(): len(entries) for name, entries in groups.items()}
    return {"overall": {"stats": totals}, "items": groups}


def stats(call: CheckedCall) -> Thing:
    """A period is a day; days without a review are left out of `Reviews`."""
    parts: Thing = {"Reviews": _count_ratings(call), "SocialMedia": [], "FeedbackHub": []}
    first, end = call.between()
    for day in call.things("day").values():
        if first <= day["since"] < end:
            period = {"periode": day["periode"]}
            parts["SocialMedia"].append(period | day["mentions"])
            parts["FeedbackHub"].append(period | {"views": day["views"]})
    for name in parts:
        if not call.wants("filter", name.lower()):
            parts[name] = []
    return {"items": [], **parts}


def _count_ratings(call: CheckedCall) -> list[Thing]:
    first, end = call.between()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for review in call.things("review").values():
        if first <= review["at"] < end:
            day = str(call.moments.date(review["at"]))
            counts[day][review["rating"]] += 1
    return [
        {
            "periode": day,
            "good": str(count["Good"]),
            "bad": str(count["Bad"]),
        }
        for day, count in sorted(counts.items())
    ]
