import datetime as dt
from typing import Any

import pytest

from marketing_api.operations import reputation
from marketing_api.records.reputation import (
    DirectReview,
    FeedbackViews,
    OnlineReview,
    OnlineReviewChannel,
    ReviewStats,
    SentimentMention,
    SentimentTotals,
    SocialMediaStats,
)
from tests.marketing_api import samples
from tests.marketing_api.responses import DAY, read, records, rejected, utc

AUGUST = {"from_": "2013-08-01", "to": "2013-08-31"}


def test_direct_review_joins_date_and_time_in_the_accounts_zone() -> None:
    (review,) = records(DirectReview, reputation.DIRECT, samples.DIRECT)
    assert review.reviewed_at == utc("2013-05-16 14:34:00")
    assert (review.review_id, review.email, review.rating) == (5, "ann@example.com", "Good")
    assert review.extra is None


def test_empty_texts_stay_as_they_came() -> None:
    (review,) = records(DirectReview, reputation.DIRECT, samples.DIRECT)
    assert (review.phone, review.notes) == ("", "")


@pytest.mark.parametrize(
    ("date", "time", "expected"),
    [
        ("05/16/2013", "14:52 PM", utc("2013-05-16 18:52:00")),
        ("05/16/2013", "N/A", utc("2013-05-16 04:00:00")),
        ("05/16/2013 10:34 AM", "10:34 AM", utc("2013-05-16 14:34:00")),
        ("1368714840", "10:34 AM", utc("2013-05-16 14:34:00")),
        (1368714840, None, utc("2013-05-16 14:34:00")),
        ("-", "10:34 AM", None),
    ],
)
def test_direct_review_is_dated_by_what_there_is(
    date: object, time: object, expected: dt.datetime | None
) -> None:
    (review,) = records(
        DirectReview, reputation.DIRECT, {"reviews": {"items": [{"id": 1, "date": date, "time": time}]}}
    )
    assert review.reviewed_at == expected


@pytest.mark.parametrize("items", [[], {}, None])
def test_no_reviews_in_any_shape_are_no_rows(items: object) -> None:
    assert records(DirectReview, reputation.DIRECT, {"reviews": {"count": 0, "items": items}}) == []


def test_items_keyed_by_number_are_read_as_a_list() -> None:
    found = records(
        DirectReview,
        reputation.DIRECT,
        {"reviews": {"count": "2", "items": {"1": {"id": "1"}, "2": {"id": 2}}}},
    )
    assert [review.review_id for review in found] == [1, 2]


def test_online_review_keeps_the_raw_rating_beside_its_number() -> None:
    (review,) = records(OnlineReview, reputation.ONLINE, samples.ONLINE)
    assert (review.channel, review.username, review.rating) == ("Yelp", "bob", 4.0)
    assert review.rating_raw == 'a:1:{s:5:"value";s:1:"4";}'
    assert review.reviewed_at == utc("2013-11-04 16:33:00")
    assert review.source_url == "https://yelp.example/1"


def test_channels_without_reviews_have_a_row_for_the_day() -> None:
    yelp, zagat = records(OnlineReviewChannel, reputation.ONLINE, samples.ONLINE)
    assert (yelp.channel, yelp.average_rating, yelp.review_count, yelp.observed_on) == ("Yelp", 4.5, 1, DAY)
    assert (zagat.channel, zagat.average_rating, zagat.review_count) == ("Zagat", None, 0)


def test_reviews_that_are_not_served_are_not_counted_as_none() -> None:
    (channel,) = records(
        OnlineReviewChannel, reputation.ONLINE, {"reviews": {"items": {"Yelp": {"AvgRating": "4"}}}}
    )
    assert channel.review_count is None


def test_true_duplicates_of_a_review_survive_with_stable_keys() -> None:
    entry = {"username": "bob", "date": "1383582780", "inquiry": "Nice"}
    payload = {"reviews": {"items": {"Yelp": {"AvgRating": "N/A", "data": [entry, entry]}}}}
    first = [review.review_key for review in records(OnlineReview, reputation.ONLINE, payload)]
    again = [review.review_key for review in records(OnlineReview, reputation.ONLINE, payload)]
    assert first == again
    assert len(set(first)) == 2


def test_review_key_is_the_same_for_numbers_and_their_text() -> None:
    keys = set()
    for date in (1383582780, "1383582780"):
        data = [{"username": "bob", "date": date, "rating": 4 if date == 1383582780 else "4"}]
        keys |= {
            review.review_key
            for review in records(
                OnlineReview, reputation.ONLINE, {"reviews": {"items": {"Yelp": {"data": data}}}}
            )
        }
    assert len(keys) == 1


def test_mentions_carry_their_polarity_in_the_singular() -> None:
    found = records(SentimentMention, reputation.SENTIMENT, samples.SENTIMENT, **AUGUST)
    assert [mention.polarity for mention in found] == ["positive", "positive", "negative"]
    assert len({mention.mention_key for mention in found}) == 3
    assert (found[0].channel, found[0].reviewed_on, found[0].inquiry) == (
        "Twitter",
        dt.date(2013, 8, 15),
        "Great",
    )


@pytest.mark.parametrize(
    "group",
    [
        {"1": {"inquiry": "Great"}, "X": {"inquiry": "Fine"}},
        {"header": {"status": "ok"}, "data": {"coupons": []}},
        {"inquiry": "Great", "social": "Yelp"},
        None,
        "Great",
    ],
    ids=str,
)
def test_mentions_in_what_stands_for_no_list_prove_none_gone(group: Any) -> None:
    found = read(
        reputation.SENTIMENT, {"sentiment": {"items": {"Positives": group, "Negatives": []}}}, **AUGUST
    )
    assert [rows.missing for rows in found if rows.missing] == [["positive: missing from the response"]]


def test_sentiment_totals_are_of_the_range_that_was_asked() -> None:
    (totals,) = records(SentimentTotals, reputation.SENTIMENT, samples.SENTIMENT, **AUGUST)
    assert (totals.from_on, totals.to_on) == (dt.date(2013, 8, 1), dt.date(2013, 8, 31))
    assert (totals.positive_count, totals.negative_count) == (2, 1)


def test_sentiment_without_a_range_has_no_totals() -> None:
    assert records(SentimentTotals, reputation.SENTIMENT, samples.SENTIMENT) == []


def test_statistics_fill_three_tables() -> None:
    (review,) = records(ReviewStats, reputation.STATS, samples.REPUTATION_STATS, **AUGUST)
    assert (review.period_on, review.good_count, review.bad_count) == (dt.date(2013, 8, 15), 3, 1)
    networks = records(SocialMediaStats, reputation.STATS, samples.REPUTATION_STATS, **AUGUST)
    assert {each.network: each.mention_count for each in networks} == {
        "twitter": 2,
        "facebook": 0,
        "mastodon": 5,
    }
    (views,) = records(FeedbackViews, reputation.STATS, samples.REPUTATION_STATS, **AUGUST)
    assert (views.period_on, views.view_count) == (dt.date(2013, 8, 15), 12)


def test_a_series_without_its_name_proves_nothing_of_any() -> None:
    payload = {"stats": [{"periode": "2013-08-15", "views": "12"}]}
    found = read(reputation.STATS, payload, **AUGUST)
    assert not any(rows.records for rows in found)
    assert {rows.record for rows in found if rows.missing or rows.rejected} == {
        ReviewStats,
        SocialMediaStats,
        FeedbackViews,
    }


def test_section_names_are_compared_ignoring_case() -> None:
    payload = {"stats": {name.lower(): rows for name, rows in samples.REPUTATION_STATS["stats"].items()}}
    assert len(records(ReviewStats, reputation.STATS, payload, **AUGUST)) == 1
    assert len(records(SocialMediaStats, reputation.STATS, payload, **AUGUST)) == 3
    assert len(records(FeedbackViews, reputation.STATS, payload, **AUGUST)) == 1


def test_one_unreadable_review_does_not_lose_the_others() -> None:
    items = [{"id": "1"}, {"id": "no number"}, "...", {"id": "2"}]
    bad = rejected(reputation.DIRECT, {"reviews": {"items": items}})
    assert [(each.raw, each.reason) for each in bad] == [
        ({"id": "no number"}, "id: not a number"),
        ("...", "not an object"),
    ]
