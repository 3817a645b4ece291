"""What is told at the end of a sync: in few lines, and so that it can be typed."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import duckdb
import pytest

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


def test_the_first_query_can_be_typed_whatever_the_home_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    file = Path("/home/any one's/ü/marketing.duckdb")
    words = shlex.split(first_query(file))
    assert (words[:3], len(words)) == (["duckdb", "-readonly", str(file)], 4)


def test_the_first_query_needs_no_program_that_was_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    file = tmp_path / "any one's ü.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute("create schema source")
        connection.execute("create table source.campaigns as select 'main' as account, 7 as campaign_id, 'Spring' as subject")
        connection.execute(
            "create table source.campaign_stats as select 'main' as account, 7 as campaign_id, 5 as opened_count, "
            "50.0 as opened_percent, date '2026-01-01' as observed_on"
        )
    shown = subprocess.run(shlex.split(first_query(file)), capture_output=True, text=True, check=True)
    assert "Spring" in shown.stdout
