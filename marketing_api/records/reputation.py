"""Records of reviews, feedback, sentiment and their statistics, and the operations that return
them."""

import contextlib
import datetime as dt
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import phpserialize

from marketing_api.operation import Area
from marketing_api.records.fields import (
    ApiWord,
    AsWorded,
    MaybeDate,
    MaybeFloat,
    MaybeInt,
    MaybeMoment,
    MaybeText,
    Network,
    RawText,
    Record,
    Rows,
    field,
    key,
    mark_missing,
)
from marketing_api.records.shapes import (
    Entry,
    Params,
    add_keys,
    as_object,
    first_member,
    is_collection,
    is_full,
    is_numbered,
    is_whole,
    items_of,
    list_entries,
    shape_entries,
)
from marketing_api.records.values import as_text, is_no_moment, is_nothing, to_singular


class DirectReview(Record):
    """One private review left on the business's own feedback page."""

    review_id: int = key("The service's id of the review.", "id")
    email: MaybeText = field("E-mail address of the reviewer.", personal=True)
    phone: MaybeText = field("Phone number of the reviewer; may be empty.", personal=True)
    reviewed_at: MaybeMoment = field("Time of the review, UTC.")
    inquiry: MaybeText = field("Text of the review.", personal=True)
    notes: MaybeText = field("Notes on the review; may be empty.", personal=True)
    rating: AsWorded = field("Good or Bad, as the service returns it.")


class OnlineReview(Record):
    """One public review on a review site."""

    review_key: str = key("Hash of the content, and a number.")
    channel: str = key("Name of the review site, e.g. Yelp.")
    username: MaybeText = field("Name of the reviewer on the site.", personal=True)
    reviewed_at: MaybeMoment = field("Time of the review, UTC.", "date")
    inquiry: MaybeText = field("Text of the review.", personal=True)
    rating: MaybeFloat = field("Number in rating_raw, if it has exactly one.")
    rating_raw: RawText = field("Rating as received: a serialized structure.")
    source_url: MaybeText = field(
        "Web address of the review, often the page of its reviewer.", "sourceUrl", personal=True
    )


class OnlineReviewChannel(Record):
    """The average rating on one review site, as of one day."""

    channel: str = key("Name of the review site, e.g. Yelp.")
    observed_on: dt.date = key("The account's local date of the request.")
    average_rating: MaybeFloat = field("Average rating, as reported by the service.", "AvgRating")
    review_count: MaybeInt = field("Reviews of the site in the response.")


class SentimentMention(Record):
    """One mention of the business with its polarity."""

    mention_key: str = key("Hash of the content, and a number.")
    polarity: ApiWord = key("positive, negative or neutral.")
    channel: MaybeText = field("Where the mention was found.", "social")
    reviewed_on: MaybeDate = field("Date of the mention, in the account's time zone.", "reviewdate")
    inquiry: MaybeText = field("Text of the mention.", personal=True)


class SentimentTotals(Record):
    """Mentions in one range of dates, as counted by the service."""

    from_on: dt.date = key("First day of the requested range.", "from")
    to_on: dt.date = key("Last day of the requested range.", "to")
    positive_count: MaybeInt = field("Positive mentions.", "positives", "positive")
    negative_count: MaybeInt = field("Negative mentions.", "negatives", "negative")


class ReviewStats(Record):
    """Good and bad reviews of one day."""

    period_on: dt.date = key("Day that the row is about.", "periode", "period")
    good_count: MaybeInt = field("Good reviews.", "good")
    bad_count: MaybeInt = field("Bad reviews.", "bad")


class SocialMediaStats(Record):
    """Mentions on one network on one day."""

    period_on: dt.date = key("Day that the row is about.", "periode", "period")
    network: Network = key("Network in lower case, e.g. facebook.")
    mention_count: MaybeInt = field("Mentions.")


class FeedbackViews(Record):
    """Views of the feedback page on one day."""

    period_on: dt.date = key("Day that the row is about.", "periode", "period")
    view_count: MaybeInt = field("Views.", "views")


def direct_reviews(payload: Any, params: Params) -> Rows:
    """`reviews`: {count, items}."""
    yield from shape_entries(DirectReview, items_of(payload), _direct_review)


def _direct_review(entry: Entry) -> Entry:
    """Joins date and time of day. The date stays alone if it has the time already (unix seconds, or
    both in one), or if no time is given."""
    raw = dict(entry)
    if "date" not in raw:
        return raw
    date = raw.pop("date")
    time = raw.pop("time", None)
    is_day = isinstance(date, str) and not is_no_moment(date)
    if is_day and not is_nothing(time) and not (":" in date or date.strip().isdigit()):
        # the record refuses the pair
        date = f"{date} {time}" if isinstance(time, str) else [date, time]
    raw["reviewed_at"] = date
    return raw


def online_reviews(payload: Any, params: Params) -> Rows:
    """`reviews`: {count, items: {channel: {AvgRating, data?: […]}}}."""
    items = items_of(payload)
    if not is_collection(items):
        yield OnlineReviewChannel, items
        return
    is_named = isinstance(items, dict) and not is_numbered(items)
    for name, value in as_object(items).items():
        if isinstance(value, dict):
            yield from _shape_channel({"channel": name} if is_named else {}, value)
        else:
            yield OnlineReviewChannel, value


def _shape_channel(named: Entry, value: Entry) -> Rows:
    channel = named | value
    data = channel.pop("data", None)
    count = channel.pop("count", None)
    if not is_nothing(count):
        channel["review_count"] = count
    elif isinstance(data, (dict, list)):
        channel["review_count"] = len(data)
    # A channel without reviews has neither `data` nor an average. With an average it has reviews
    # that were not served.
    elif is_nothing(value.get("AvgRating")):
        channel["review_count"] = 0
    yield OnlineReviewChannel, channel
    raws = [_online_review(entry, channel.get("channel")) for entry in list_entries(data)]
    for raw in add_keys(raws, "review_key", lambda raw: map(raw.get, _REVIEW_IDENTITY)):
        yield OnlineReview, raw


def _online_review(entry: Any, channel: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    raw = {"channel": channel, **entry}
    if "rating" in raw:
        rating = raw["rating"]
        raw["rating"] = read_rating(rating)
        raw["rating_raw"] = rating
        with contextlib.suppress(ValueError):
            raw["rating_raw"] = as_text(rating)
    return raw


_REVIEW_IDENTITY = ("channel", "username", "date", "inquiry", "rating_raw", "sourceUrl")
_MENTION_IDENTITY = ("polarity", "social", "reviewdate", "inquiry")


def read_sentiment(payload: Any, params: Params) -> Rows:
    """`read_sentiment`: {overall: {stats: {positives, negatives}}, items: {Positives: […],
    Negatives: […]}}."""
    if not isinstance(payload, dict):
        yield from shape_entries(SentimentMention, payload)
        return
    overall = first_member(payload, "overall")
    items = items_of(payload)
    stats = first_member(overall, "stats") or first_member(payload, "overall.stats") or overall
    if isinstance(stats, dict) and stats and params.keys() >= {"from", "to"}:
        yield SentimentTotals, {**stats, "from": params["from"], "to": params["to"]}
    totals = _by_polarity(stats)
    groups = _by_polarity(items)
    for polarity in groups.keys() | totals.keys() & {"positive", "negative"}:
        # fewer mentions are listed than the totals say, or none at all
        counted = {"count": totals.get(polarity)}
        if not is_whole(counted, groups.get(polarity)):
            yield mark_missing(SentimentMention, polarity)
    if not isinstance(items, dict):
        yield from shape_entries(SentimentMention, items)
        return
    for name, group in items.items():
        yield from _shape_mentions(group, to_singular(name))


def _shape_mentions(group: Any, polarity: str) -> Rows:
    raws = (raw for _, raw in shape_entries(SentimentMention, group, known={"polarity": polarity}))
    for raw in add_keys(raws, "mention_key", lambda raw: map(raw.get, _MENTION_IDENTITY)):
        yield SentimentMention, raw


def _by_polarity(groups: Any) -> Entry:
    if isinstance(groups, dict):
        return {to_singular(name): value for name, value in groups.items()}
    return {}


#: The series of `stats`, by record.
_SERIES: dict[type[Record], str] = {
    ReviewStats: "Reviews",
    SocialMediaStats: "SocialMedia",
    FeedbackViews: "FeedbackHub",
}


def read_stats(payload: Any, params: Params) -> Rows:
    """`stats`: {Reviews: […], SocialMedia: […], FeedbackHub: […]}; samples differ in the case of
    the names."""
    if not isinstance(payload, dict):
        if payload:  # entries without the name of their series
            yield ReviewStats, payload
            yield from itertools.starmap(mark_missing, _SERIES.items())
        return
    served = {record: first_member(payload, name) for record, name in _SERIES.items()}
    is_known = any(series is not None for series in served.values())
    if not is_known and any(map(is_full, payload.values())):
        yield ReviewStats, payload  # entries under unknown names: rejected
    for record, name in _SERIES.items():
        if payload and not is_whole(None, served[record]):
            yield mark_missing(record, name)
    yield from shape_entries(ReviewStats, served[ReviewStats])
    for entry in list_entries(served[SocialMediaStats]):
        yield from _by_network(entry)
    yield from shape_entries(FeedbackViews, served[FeedbackViews])


def _by_network(entry: Any) -> Rows:
    """Networks are an open set: the specification names six."""
    if not isinstance(entry, dict):
        yield SocialMediaStats, entry
        return
    period = {name: value for name, value in entry.items() if name.lower() in ("periode", "period")}
    for network, count in entry.items():
        if network not in period:
            yield SocialMediaStats, {**period, "network": network, "mention_count": count}


# ---- the number inside an online review's rating, "a serialized structure" without a sample
# (observation 32). The back end is PHP, so a plain number, PHP-serialized text and JSON are tried.

_NUMBER = re.compile(r"\s*-?\d{1,15}(\.\d{1,15})?\s*", re.ASCII)
#: PHP's serialized forms: `i:5;` `d:4.5;` `s:1:"5";` `a:1:{…}` `O:8:"stdClass":1:{…}` `b:1;` `N;`.
_PHP = re.compile(r"\s*([idbsaO]:|N;)", re.ASCII)
#: A number that PHP does not write like this, but that our reader would accept: `i:1_000;`.
_NO_PHP = re.compile(
    r"(?:^|[;{])\s*(?:i:(?!-?\d{1,19};)|d:(?!-?\d{1,20}(?:\.\d{1,25})?(?:E[+-]?\d{1,3})?;))",
    re.ASCII,
)
#: Longer text is no rating; it is kept raw and not parsed.
_LONGEST = 10_000


def read_rating(value: Any) -> float | None:
    """The number in `value` if there is exactly one, anywhere in the structure; else None. Never
    raises."""
    structure = value
    if isinstance(value, str):
        structure = _parse_structure(value)
    try:
        numbers = list(_find_numbers(structure))
    except RecursionError:
        return None
    if len(numbers) == 1:
        return numbers[0]
    return None


def _parse_structure(text: str) -> Any:
    if len(text) > _LONGEST:
        return None
    is_php = _PHP.match(text) is not None
    if is_php and _NO_PHP.search(text):
        return None
    try:
        if is_php:
            return phpserialize.loads(
                text.strip().encode(),
                object_hook=lambda name, members: members,
                decode_strings=True,
            )
        if _NUMBER.fullmatch(text):
            return text
        return json.loads(text)
    except Exception:  # a text from outside may make a parser raise anything
        return None


def _find_numbers(value: Any) -> Iterator[float]:
    """Every number among the values (not the names) of a structure; texts count when they are
    nothing but a number."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _find_numbers(item)
    elif isinstance(value, str):
        if _NUMBER.fullmatch(value):
            yield float(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15:
        yield float(value)


AREA = Area("reputation")
DIRECT = AREA.declare_rows("reputation/direct", direct_reviews, DirectReview)
ONLINE = AREA.declare_rows("reputation/online", online_reviews, OnlineReview, OnlineReviewChannel)
SENTIMENT = AREA.declare_rows(
    "reputation/sentiment", read_sentiment, SentimentMention, SentimentTotals
)
STATS = AREA.declare_rows(
    "reputation/stats", read_stats, ReviewStats, SocialMediaStats, FeedbackViews
)
