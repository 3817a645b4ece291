"""What is told at the end of a sync: in few lines, and so that it can be typed."""

from __future__ import annotations

import shlex
from pathlib import Path

from pipelines.summary import first_query, problem_lines


def test_an_account_that_cannot_be_reached_is_told_once() -> None:
    problems = {
        ("lists", "north"): ["the connection was refused"],
        ("users", "north"): ["the connection was refused"],
        ("users", "south"): ["the connection was refused", "the answer lacks `users`"],
    }
    assert list(problem_lines(problems)) == [
        "lists, users, account north: the connection was refused",
        "users, account south: the connection was refused",
        "users, account south: the answer lacks `users`",
    ]


def test_the_first_query_can_be_typed_whatever_the_home_is_called() -> None:
    file = Path("/home/any one's/ü/marketing.duckdb")
    words = shlex.split(first_query(file))
    assert (words[:3], len(words)) == (["duckdb", "-readonly", str(file)], 4)
