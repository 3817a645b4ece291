"""Window tables: the days that were asked for are replaced."""

from typing import Any

import pytest

from marketing_api.exchange import Response
from marketing_api.operations import reputation
from tests.warehouse.answering import Home
from warehouse import tables


def review(number: int, day: int, time: str = "12:00 PM", **more: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "email": "a@x.com",
        "date": f"03/{day:02}/2026",
        "time": time,
        "rating": "Good",
        **more,
    }


def reviews(home: Home, *entries: dict[str, Any], minutes: float = 0) -> Response:
    data = {"reviews": {"count": len(entries), "items": list(entries)}}
    return home.answer(reputation.DIRECT, data, minutes, filter="date", from_="2026-03-01", to="2026-03-31")


def days(first: int, last: int) -> dict[str, str]:
    return {"from_on": f"2026-03-{first:02}", "to_on": f"2026-03-{last:02}"}


def ids(home: Home) -> list[int]:
    return home.values(tables.DIRECT_REVIEWS, "review_id", "_deleted_at is null")


def test_exactly_the_range_asked_for_is_replaced(home: Home) -> None:
    home.load(
        [reviews(home, *(review(day, day) for day in range(1, 11)))], tables.DIRECT_REVIEWS, scope=days(1, 10)
    )
    report = home.load([reviews(home, review(5, 5), minutes=60)], tables.DIRECT_REVIEWS, scope=days(4, 7))
    assert ids(home) == [1, 2, 3, 5, 8, 9, 10]
    assert report.tables["direct_reviews"].deleted == 3


def test_rows_from_outside_the_range_are_taken_in_and_nothing_there_is_deleted(home: Home) -> None:
    home.load([reviews(home, review(1, 1), review(2, 2))], tables.DIRECT_REVIEWS, scope=days(1, 10))
    home.load(
        [reviews(home, review(2, 2, rating="Bad"), review(3, 20), minutes=60)],
        tables.DIRECT_REVIEWS,
        scope=days(5, 6),
    )
    assert home.values(tables.DIRECT_REVIEWS, "rating") == ["Bad", "Good", "Good"]
    assert ids(home) == [1, 2, 3]


def test_a_row_that_moved_into_the_range_is_one_row(home: Home) -> None:
    home.load([reviews(home, review(1, 1))], tables.DIRECT_REVIEWS, scope=days(1, 10))
    report = home.load([reviews(home, review(1, 15), minutes=60)], tables.DIRECT_REVIEWS, scope=days(11, 20))
    assert ids(home) == [1]
    assert report.tables["direct_reviews"].changed == 1


@pytest.mark.parametrize("options", [{"is_complete": False, "scope": days(1, 10)}, {}])
def test_nothing_is_deleted_when_the_range_was_not_read_whole_or_is_unknown(
    home: Home, options: dict[str, Any]
) -> None:
    home.load([reviews(home, review(1, 1), review(2, 2))], tables.DIRECT_REVIEWS, scope=days(1, 10))
    home.load([reviews(home, review(1, 1), minutes=60)], tables.DIRECT_REVIEWS, **options)
    assert ids(home) == [1, 2]


def test_nothing_is_deleted_when_an_entry_could_not_be_read(home: Home) -> None:
    home.load([reviews(home, review(1, 1), review(2, 2))], tables.DIRECT_REVIEWS, scope=days(1, 10))
    home.load(
        [reviews(home, review(1, 1), {"id": "?"}, minutes=60)], tables.DIRECT_REVIEWS, scope=days(1, 10)
    )
    assert ids(home) == [1, 2]


def test_a_day_is_one_in_the_accounts_zone(tmp_path: Any) -> None:
    home = Home(tmp_path, zone="America/New_York")
    home.load(
        [reviews(home, review(1, 5, "11:30 PM"), review(2, 6, "12:30 AM"))],
        tables.DIRECT_REVIEWS,
        scope=days(1, 10),
    )
    home.load([reviews(home, minutes=60)], tables.DIRECT_REVIEWS, scope=days(6, 6))
    assert ids(home) == [1]
    home.close()


def test_totals_of_a_range_are_replaced_by_the_same_range_only(home: Home) -> None:
    def sentiment(first: str, last: str, positives: int, minutes: float = 0) -> None:
        data = {
            "sentiment": {
                "overall": {"stats": {"positives": positives, "negatives": 0}},
                "items": {"Positives": []},
            }
        }
        answer = home.answer(reputation.SENTIMENT, data, minutes, from_=first, to=last)
        home.load(
            [answer],
            tables.SENTIMENT_MENTIONS,
            tables.SENTIMENT_TOTALS,
            scope={"from_on": first, "to_on": last},
        )

    sentiment("2026-03-02", "2026-03-03", 1)
    sentiment("2026-03-01", "2026-03-31", 5, minutes=1)
    sentiment("2026-03-02", "2026-03-03", 2, minutes=2)
    assert home.rows(tables.SENTIMENT_TOTALS, "positive_count, from_on::varchar as first") == [
        {"positive_count": 2, "first": "2026-03-02"},
        {"positive_count": 5, "first": "2026-03-01"},
    ]


def test_two_mentions_with_the_same_words_are_two_rows_and_stay_two(home: Home) -> None:
    mention = {"inquiry": "great", "social": "yelp", "reviewdate": "03/05/2026"}
    data = {"sentiment": {"items": {"Positives": [mention, mention]}}}
    for minutes in (0, 60):
        answer = home.answer(reputation.SENTIMENT, data, minutes, from_="2026-03-01", to="2026-03-31")
        home.load([answer], tables.SENTIMENT_MENTIONS, tables.SENTIMENT_TOTALS, scope=days(1, 31))
    assert len(home.rows(tables.SENTIMENT_MENTIONS)) == 2


A_MONTH = 30 * 24 * 60


def covered(home: Home, zone: str = "UTC") -> list[str]:
    return [
        f"{first}..{last}" for first, last in home.warehouse.covered_days(tables.DIRECT_REVIEWS, "main", zone)
    ]


def lacking(home: Home) -> list[str]:
    return [
        f"{first}..{last}"
        for first, last in home.warehouse.covered_days(tables.DIRECT_REVIEWS, "main", is_complete=False)
    ]


def test_the_days_covered_are_those_that_were_read_whole(home: Home) -> None:
    home.load([reviews(home, minutes=A_MONTH)], tables.DIRECT_REVIEWS, scope=days(1, 10))
    home.load(
        [reviews(home, minutes=A_MONTH + 1)], tables.DIRECT_REVIEWS, scope=days(11, 12), is_complete=False
    )
    assert covered(home) == ["2026-03-01..2026-03-10"]
    assert lacking(home) == ["2026-03-11..2026-03-12"]


def test_a_day_counts_as_read_when_it_was_over_in_the_accounts_zone(home: Home) -> None:
    home.load(
        [reviews(home, minutes=24 * 60)], tables.DIRECT_REVIEWS, scope=days(1, 31)
    )  # asked on 3 March, 08:00 UTC
    assert covered(home) == ["2026-03-01..2026-03-02"]
    assert covered(home, "Pacific/Honolulu") == ["2026-03-01..2026-03-01"], "it is the second there"
    assert covered(home, "Etc/GMT-14") == ["2026-03-01..2026-03-02"]


@pytest.mark.parametrize(
    ("then", "left"),
    [
        pytest.param([days(5, 10)], [], id="all of it"),
        pytest.param([days(1, 31)], [], id="more"),
        pytest.param([days(5, 7)], ["2026-03-08..2026-03-10"], id="its begin"),
        pytest.param([days(9, 20)], ["2026-03-05..2026-03-08"], id="its end"),
        pytest.param([days(6, 7)], ["2026-03-05..2026-03-05", "2026-03-08..2026-03-10"], id="its middle"),
        pytest.param([days(5, 6), days(7, 10)], [], id="in parts"),
        pytest.param([days(11, 12)], ["2026-03-05..2026-03-10"], id="nothing of it"),
    ],
)
def test_what_was_read_of_a_range_that_lacked_lacks_no_more(
    home: Home, then: list[dict[str, str]], left: list[str]
) -> None:
    reason = {"reason": "left out"}
    home.load(
        [reviews(home, minutes=A_MONTH)], tables.DIRECT_REVIEWS, scope=days(5, 10) | reason, is_complete=False
    )
    assert home.values("sync.coverage", "reason") == ["left out"]
    for number, scope in enumerate(then, 1):
        home.load([reviews(home, minutes=A_MONTH + number)], tables.DIRECT_REVIEWS, scope=scope)
    assert lacking(home) == left
    assert len(covered(home)) == len(then)


def test_one_answer_fills_three_tables(home: Home) -> None:
    stats = {
        "Reviews": [{"periode": "2026-03-01", "good": "3", "bad": "1"}],
        "SocialMedia": [{"periode": "2026-03-01", "twitter": 2, "facebook": 0}],
        "FeedbackHub": [{"periode": "2026-03-01", "views": "9"}],
    }
    answer = home.answer(reputation.STATS, {"stats": stats}, from_="2026-03-01", to="2026-03-31")
    report = home.load(
        [answer], tables.REVIEW_STATS, tables.SOCIAL_MEDIA_STATS, tables.FEEDBACK_VIEWS, scope=days(1, 31)
    )
    assert {name: table.new for name, table in report.tables.items()} == {
        "review_stats": 1,
        "social_media_stats": 2,
        "feedback_views": 1,
    }
