"""What is told at the end of a sync: in few lines, and so that it can be typed."""

from __future__ import annotations

import datetime as dt

from assets.days import DateRange
from assets.result import AccountResult, share_read
from pipelines.summary import days_read, problem_lines


def test_an_account_that_cannot_be_reached_is_told_once() -> None:
    problems = {
        ("lists", "north"): ["the connection was refused"],
        ("users", "north"): ["the connection was refused"],
        ("users", "south"): ["the connection was refused", "the response lacks `users`"],
    }
    assert list(problem_lines(problems)) == [
        "lists, users, account north: the connection was refused",
        "users, account south: the connection was refused",
        "users, account south: the response lacks `users`",
    ]


def result(account: str, *days: tuple[int, int], lacking: tuple[tuple[int, int], ...] = ()) -> AccountResult:
    def ranges(pairs: tuple[tuple[int, int], ...]) -> list[DateRange]:
        return [DateRange(dt.date(2026, 3, first), dt.date(2026, 3, last)) for first, last in pairs]

    return AccountResult(account, fetched=2, planned=2, days=ranges(days), lacking=ranges(lacking))


def test_the_days_read_are_told_once_for_all_tables_and_accounts_that_agree() -> None:
    found = {
        ("direct_reviews", "north"): result("north", (1, 8)),
        ("direct_reviews", "south"): result("south", (5, 8), (1, 4)),
        ("sentiment", "north"): result("north", (1, 8)),
        ("sentiment", "south"): result("south", (1, 8)),
        ("reputation_stats", "north"): result("north", (1, 8)),
        ("reputation_stats", "south"): result("south", (2, 3), (7, 9), lacking=((4, 6),)),
        ("lists", "north"): result("north"),
    }
    assert list(days_read(found)) == [
        "days read of direct_reviews, sentiment_mentions, sentiment_totals: 2026-03-01 to 2026-03-08",
        "days read of review_stats, social_media_stats, feedback_views: account north: 2026-03-01 to "
        "2026-03-08; "
        "account south: 2026-03-02 to 2026-03-03, 2026-03-07 to 2026-03-09; incomplete: 2026-03-04 "
        "to 2026-03-06",
    ]


def test_what_was_read_counts_requests_and_days() -> None:
    assert share_read([result("north", (1, 8))]) == 1
    assert share_read([result("north", (1, 5), lacking=((6, 8),)), result("south", (1, 2))]) == 7 / 10
    assert share_read([AccountResult("north", fetched=1, planned=4)]) == 0.25
    assert share_read([AccountResult("north")]) is None
