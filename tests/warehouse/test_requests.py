"""sync.requests shows what the archive has sealed, each file once."""

from __future__ import annotations

from typing import Any

import pytest

from marketing_api.operations import account, lists
from tests.warehouse.answering import Home
from warehouse import bookkeeping as module
from warehouse.sql import rows as sql_rows


def load(home: Home) -> int:
    """How many requests are new."""
    with home.warehouse.writing() as connection:
        return module.load_requests(connection, home.archive)


def ask(home: Home, times: int) -> None:
    for number in range(times):
        home.answer(lists.GETLIST, {"list": {}}, id=number)


def test_sealed_requests_are_shown_without_bodies(home: Home) -> None:
    home.answer(account.ME, {"business": {"businessName": "B"}})
    assert load(home) == 0
    home.archive.seal()
    assert load(home) == 1
    (row,) = home.rows("sync.requests")
    assert (row["operation"], row["outcome"], row["http_status"], row["account"]) == ("app/me", "ok", 200, "main")
    assert "body" not in row


def test_a_file_is_shown_once(home: Home) -> None:
    for times in (3, 4):
        ask(home, times)
        home.archive.seal()
        assert load(home) == times
    assert load(home) == 0
    assert len(home.rows("sync.requests")) == sum(home.values("sync.archive_files", "request_count")) == 7


def test_a_file_and_its_rows_come_together_or_not_at_all(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(home, 2)
    home.archive.seal()
    original = sql_rows

    def fail(connection: Any, sql: str, params: Any = None) -> list[tuple[Any, ...]]:
        if "archive_files values" in sql:
            raise RuntimeError
        return original(connection, sql, params)

    with monkeypatch.context() as patch:
        patch.setattr(module, "rows", fail)
        with pytest.raises(RuntimeError):
            load(home)
    assert home.rows("sync.requests") == []
    assert load(home) == 2
