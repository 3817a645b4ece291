"""What is told at the end of a sync: in few lines, and so that it can be typed."""

import datetime as dt

from assets.days import DateRange
from assets.result import AccountResult, group_lines, share_read
from marketing_api.errors import GivenUp


def test_an_account_that_cannot_be_reached_is_told_once() -> None:
    problems = {
        ("lists", "north"): ["the connection was refused"],
        ("users", "north"): ["the connection was refused"],
        ("users", "south"): ["the connection was refused", "the response lacks `users`"],
    }
    assert list(group_lines(problems)) == [
        "lists, users, account north: the connection was refused",
        "users, account south: the connection was refused",
        "users, account south: the response lacks `users`",
    ]


def result(account: str, *days: tuple[int, int], lacking: tuple[tuple[int, int], ...] = ()) -> AccountResult:
    def ranges(pairs: tuple[tuple[int, int], ...]) -> list[DateRange]:
        return [DateRange(dt.date(2026, 3, first), dt.date(2026, 3, last)) for first, last in pairs]

    return AccountResult(account, fetched=2, planned=2, days=ranges(days), lacking=ranges(lacking))


def test_what_was_read_counts_requests_and_days() -> None:
    assert share_read([result("north", (1, 8))]) == 1
    assert share_read([result("north", (1, 5), lacking=((6, 8),)), result("south", (1, 2))]) == 7 / 10
    assert share_read([AccountResult("north", fetched=1, planned=4)]) == 0.25
    assert share_read([AccountResult("north")]) is None
    assert share_read([result("north", (1, 8)), AccountResult("south", error=GivenUp("down"))]) == 0.5
