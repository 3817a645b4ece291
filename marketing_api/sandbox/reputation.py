"""The rules of reviews, feedback, sentiment and their statistics."""

from collections import Counter

from marketing_api.sandbox.rules import CheckedCall, Resource, show_list
from marketing_api.sandbox.seed import DAY, WORDS, Thing

#: So many of the latest reviews of a channel are shown (assumed).
_REVIEWS_PER_CHANNEL = 60


def _compute_members(call: CheckedCall, _id: int, review: Thing) -> Thing:
    date, _, time = call.moments.text(review["at"], "12h").partition(" ")
    notes = review["notes"] if review["noted_at"] <= call.now else ""
    return {"date": date, "time": time, "notes": notes}


_REVIEWS = deletefeedback = Resource("review", compute_members=_compute_members)


def _find_channels(call: CheckedCall) -> list[str]:
    """Names of the channels that the call asks for."""
    return [name for name, word in WORDS["review_channels"].items() if call.wants("channels", word)]


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
        first = call.moments.midnight(call.moments.date(call.now)) - days * DAY
    reviews = call.things("review").items()
    return show_list([_REVIEWS.show(call, *one) for one in reviews if first <= one[1]["at"] < end])


def getfeedback(call: CheckedCall) -> list[Thing]:
    return [_REVIEWS.show(call, call.id(), call.existing("review"))]


def online(call: CheckedCall) -> Thing:
    """Every channel has its average; a channel without reviews has null and no `data`."""
    items: dict[str, Thing] = {name: {"AvgRating": None} for name in _find_channels(call)}
    for name, item in items.items():
        reviews = [one for one in call.things("online review").values() if one["channel"] == name]
        if reviews:
            item["AvgRating"] = f"{sum(one['stars'] for one in reviews) / len(reviews):.1f}"
            item["data"] = [_show_online(one) for one in reversed(reviews[-_REVIEWS_PER_CHANNEL:])]
    return {"count": sum(len(one.get("data", ())) for one in items.values()), "items": items}


def _show_online(review: Thing) -> Thing:
    return {
        "username": review["author"],
        "date": str(review["at"]),
        "inquiry": review["inquiry"],
        "rating": f'a:1:{{s:6:"rating";s:1:"{review["stars"]}";}}',
        "sourceUrl": f"https://reviews.example.org/{WORDS['review_channels'][review['channel']]}/{review['at']}",
    }


def sentiment(call: CheckedCall) -> Thing:
    """Three stars are neutral and not shown."""
    (first, end) = call.between()
    channels = _find_channels(call)
    groups: dict[str, list[Thing]] = {"Positives": [], "Negatives": []}
    for one in call.things("mention").values():
        polarity = "positive" if one["stars"] > 3 else "negative"
        is_meant = one["channel"] in channels and call.wants("filter", polarity)
        if is_meant and one["stars"] != 3 and first <= one["at"] < end:
            date = call.moments.text(one["at"], "day")
            entry = {"inquiry": one["inquiry"], "social": one["channel"], "reviewdate": date}
            groups[f"{polarity.title()}s"].append(entry)
    totals = {name.lower(): len(entries) for name, entries in groups.items()}
    return {"overall": {"stats": totals}, "items": groups}


def stats(call: CheckedCall) -> Thing:
    """A period is a day; days without a review are left out of `Reviews`."""
    parts: Thing = {"Reviews": _count_ratings(call), "SocialMedia": [], "FeedbackHub": []}
    first, end = call.between()
    for day in call.things("day").values():
        if first <= day["since"] < end:
            parts["SocialMedia"].append({"periode": day["periode"]} | day["mentions"])
            parts["FeedbackHub"].append({"periode": day["periode"], "views": day["views"]})
    chosen_parts = {
        name: days if call.wants("filter", name.lower()) else [] for name, days in parts.items()
    }
    return {"items": [], **chosen_parts}


def _count_ratings(call: CheckedCall) -> list[Thing]:
    first, end = call.between()
    counts = Counter(
        (str(call.moments.date(review["at"])), review["rating"])
        for review in call.things("review").values()
        if first <= review["at"] < end
    )
    return [
        {"periode": day, "good": str(counts[day, "Good"]), "bad": str(counts[day, "Bad"])}
        for day in sorted({day for day, _ in counts})
    ]
