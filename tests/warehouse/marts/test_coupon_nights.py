"""When a coupon counts as issued: from responses of several nights to the mart."""

from typing import Any

import pytest

from marketing_api.operations import account, contacts, lists
from tests.warehouse.answering import Home
from tests.warehouse.selected import selected
from warehouse import tables
from warehouse.models import build_models

_DAY = 24 * 60

pytestmark = pytest.mark.usefixtures("kept_open")


def _list(home: Home, night: int, *people: tuple[int, str]) -> None:
    items: list[dict[str, Any]] = [{"id": number, "email": email, "status": "1"} for number, email in people]
    listing = home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, night * _DAY, listid=1)
    home.load([listing], tables.CONTACTS)


def _coupons(home: Home, night: int, given: dict[str, list[int]]) -> None:
    """Read the coupons of these addresses, a minute each, as one load."""
    responses = [
        home.answer(
            contacts.GETCOUPON,
            {"coupons": [{"id": number, "email": email} for number in numbers]},
            night * _DAY + 60 + minute,
            email=email,
        )
        for minute, (email, numbers) in enumerate(given.items())
    ]
    home.load(responses, tables.COUPONS)


def test_only_what_appears_at_an_address_that_was_read_is_issued(home: Home) -> None:
    """A first crawl of two nights issues nothing, nor does the first reading of an address that a contact has
    instead of another one: of these five coupons one was seen to appear."""
    home.load([home.answer(account.ME, {"business": {"id": 7, "businessName": "Corner"}})], tables.BUSINESS)
    listing = home.answer(lists.GETLISTS, {"lists": {"count": 1, "items": [{"id": 1, "name": "News"}]}})
    home.load([listing], tables.LISTS, tables.LIST_FIELDS)
    _list(home, 0, (1, "ann@x.example"), (2, "bob@x.example"))
    _coupons(home, 0, {"ann@x.example": [1]})
    _coupons(home, 1, {"bob@x.example": [2, 3]})
    _list(home, 2, (1, "ann@x.example"), (2, "robert@x.example"))
    timeline = home.answer(contacts.TIMELINE, {"timeline": []}, 2 * _DAY + 30, id=2)
    home.load([timeline], tables.TIMELINE_EVENTS, tables.TIMELINE_VISITS, tables.TIMELINE_AUTOMATIONS)
    _coupons(home, 3, {"ann@x.example": [1, 4], "robert@x.example": [5]})
    report = build_models(home.path / "warehouse.duckdb", select=selected("+coupon_funnel"))
    assert not report.failure_summary
    issued = {
        row["issued_month"]: row["issued_count"]
        for row in home.rows("marts.coupon_funnel", "issued_month, issued_count")
    }
    assert issued.pop("unknown") == 4
    assert list(issued.values()) == [1]
