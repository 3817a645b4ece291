"""sync.requests shows what the archive has sealed, each file once; what refusals in it mean."""

import json
import random
from typing import Any

import pytest

from marketing_api.operations import account, lists
from marketing_api.records.contacts import GETCOUPON
from tests.warehouse.answering import Home
from warehouse import bookkeeping as module
from warehouse.sql import fetch_rows as sql_rows
from warehouse.warehouse import CONTRADICTING, FEWEST, SHARE

pytestmark = pytest.mark.usefixtures("kept_open")


def load(home: Home) -> int:
    """How many requests are new."""
    with home.warehouse.open_for_writing() as connection:
        return module.load_requests(connection, home.archive)


def ask(home: Home, times: int) -> None:
    for number in range(times):
        home.answer(lists.GETLIST, {"list": {}}, id=number)


def test_sealed_requests_are_shown_without_bodies(home: Home) -> None:
    home.answer(account.ME, {"business": {"businessName": "B"}})
    assert load(home) == 0
    home.archive.seal_requests()
    assert load(home) == 1
    (row,) = home.rows("sync.requests")
    assert (row["operation"], row["outcome"], row["http_status"], row["account"]) == (
        "app/me",
        "ok",
        200,
        "main",
    )
    assert "body" not in row


def test_a_file_is_shown_once(home: Home) -> None:
    for times in (3, 4):
        ask(home, times)
        home.archive.seal_requests()
        assert load(home) == times
    assert load(home) == 0
    assert len(home.rows("sync.requests")) == sum(home.values("sync.archive_files", "request_count")) == 7


def test_a_file_and_its_rows_come_together_or_not_at_all(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(home, 2)
    home.archive.seal_requests()
    original = sql_rows

    def fail(connection: Any, sql: str, params: Any = None, **given: Any) -> list[tuple[Any, ...]]:
        if "archive_files values" in sql:
            raise RuntimeError
        return original(connection, sql, params, **given)

    with monkeypatch.context() as patch:
        patch.setattr(module, "fetch_rows", fail)
        with pytest.raises(RuntimeError):
            load(home)
    assert home.rows("sync.requests") == []
    assert load(home) == 2


def refuse(home: Home, codes: list[int | None], answered: int, with_coupons: int) -> set[int]:
    """What is learnt from refusals of p0@…, p1@…, the first of whom have coupons, beside responses."""
    requests = [(f"p{number}@example.com", "refused", code) for number, code in enumerate(codes)]
    requests += [(f"q{number}@example.com", "ok", None) for number in range(answered)]
    with home.warehouse.open_for_writing() as connection:
        sql_rows(connection, "delete from sync.requests")
        sql_rows(connection, "delete from source.coupons")
        for email, outcome, code in requests:
            error = (
                None
                if outcome == "ok"
                else f"refused with errorCode {code}: no coupons"
                if code
                else "refused"
            )
            found = {
                "account": "main",
                "operation": GETCOUPON.name,
                "outcome": outcome,
                "error": error,
                "params": json.dumps({"email": email}),
            }
            sql_rows(connection, "insert into sync.requests by name select unnest($row)", {"row": found})
        for number in range(with_coupons):
            row = {
                "account": "main",
                "coupon_id": number,
                "email": f"P{number}@example.com",
                "email_normalized": f"p{number}@example.com",
            }
            sql_rows(connection, "insert into source.coupons by name select unnest($row)", {"row": row})
    return home.warehouse.refused_as_nothing("main", GETCOUPON.name)


def test_refusals_alike_are_learnt(home: Home) -> None:
    assert refuse(home, [1003] * 50 + [1004] * 3, 7, 0) == {1003}
    assert refuse(home, [1003] * 50 + [1004] * 3, 0, 0) == set(), (
        "nobody was answered: the operation may be broken"
    )
    assert refuse(home, [1003] * 50 + [1004] * 3, 7, 2) == set(), "an address with coupons is refused alike"
    assert refuse(home, [None] * 50, 10, 0) == set()


@pytest.mark.slow
def test_only_what_nothing_speaks_against_is_learnt(home: Home) -> None:
    draw = random.Random(7)
    for _ in range(12):
        codes = draw.choices([1003, 1003, 1003, 1003, 1004, None], k=draw.randint(0, 60))
        codes = [1003 if draw.random() < 0.8 else code for code in codes]
        answered, with_coupons = draw.randint(0, 5), draw.choice([0, 0, 1, 3])
        for code in refuse(home, codes, answered, with_coupons):
            same = [number for number, each in enumerate(codes) if each == code]
            assert answered
            assert len(same) >= max(FEWEST, SHARE * len(codes))
            assert sum(number < with_coupons for number in same) <= CONTRADICTING * len(same)
