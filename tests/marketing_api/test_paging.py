"""Reading listings to their end, from services that page in every observed way."""

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api import parsing
from marketing_api.errors import BrokenResponse
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import account, campaigns, contacts
from marketing_api.paging import Listing


@dataclass
class Service:
    """A listing of `total` contacts. `cap`: the largest page; `count`: "page", "total" or "none"."""

    total: int
    cap: int = 1_000_000
    count: str = "page"
    ignores_page: bool = False
    ignores_limit: bool = False
    past_end: str = "empty"  # or "last": the last page again
    asked: list[dict[str, str]] = field(default_factory=list)

    def fetch(self, call: Call) -> Response:
        self.asked.append(call.params)
        assert len(self.asked) < 5000, "reads for ever"
        rows = self.page(int(call.params["limit"]), int(call.params["page"]))
        counts = {"page": len(rows), "total": self.total if rows else 0}
        payload: dict[str, Any] = {"items": rows}
        if self.count in counts:
            payload = {"count": counts[self.count], **payload}
        return answer_to(call, {"contacts": payload})

    def page(self, limit: int, page: int) -> list[dict[str, str]]:
        size = self.total if self.ignores_limit and self.ignores_page else min(limit, self.cap)
        start = 0 if self.ignores_page else (page - 1) * size
        if start >= self.total and self.past_end == "last" and self.total:
            start = (self.total - 1) // size * size
        return [
            {"id": str(number), "email": f"{number}@example.com"}
            for number in range(start, min(start + size, self.total))
        ]


def answer_to(call: Call, data: dict[str, Any]) -> Response:
    body = json.dumps({"response": {"header": {"status": "ok"}, "data": data}}).encode()
    return Response(1, "main", call, dt.datetime(2026, 3, 9, tzinfo=dt.UTC), body)


def read(fetch: Callable[[Call], Response], *, limit: int = 1000) -> tuple[Listing, list[str]]:
    """The listing when it was read, and the keys of all rows in order."""
    listing = Listing(contacts.GETCONTACTS, {"listid": 12, "limit": limit})
    return listing, [key for response in listing.pages(fetch) for key in parsing.item_keys(response)]


@given(
    total=st.integers(0, 60),
    cap=st.integers(1, 30),
    limit=st.integers(1, 40),
    count=st.sampled_from(["page", "total", "none"]),
    ignores_limit=st.booleans(),
    past_end=st.sampled_from(["empty", "last"]),
)
def test_each_row_comes_once_with_few_requests_to_spare(
    total: int, cap: int, limit: int, count: str, ignores_limit: bool, past_end: str
) -> None:
    service = Service(total, cap, count, ignores_limit=ignores_limit, past_end=past_end)
    listing, keys = read(service.fetch, limit=limit)
    assert sorted(map(int, keys)) == list(range(total))
    assert listing.rows == total
    assert listing.is_complete
    needed = max(1, -(-total // min(cap, limit)))
    assert len(service.asked) <= needed + 2


@given(total=st.integers(0, 60), limit=st.integers(1, 40), count=st.sampled_from(["page", "total", "none"]))
def test_a_service_that_ignores_page_and_limit_is_asked_at_most_twice(
    total: int, limit: int, count: str
) -> None:
    service = Service(total, count=count, ignores_page=True, ignores_limit=True)
    listing, keys = read(service.fetch, limit=limit)
    assert sorted(map(int, keys)) == list(range(total))
    assert listing.is_complete
    assert len(service.asked) <= 2


@given(total=st.integers(1, 60), cap=st.integers(1, 30), count=st.sampled_from(["page", "total", "none"]))
def test_a_capped_service_that_ignores_page_does_not_loop_and_is_found_out_by_its_total(
    total: int, cap: int, count: str
) -> None:
    service = Service(total, cap, count, ignores_page=True)
    listing, keys = read(service.fetch)
    assert len(keys) == len(set(keys)) == min(cap, total)
    assert len(service.asked) == 2
    assert listing.is_complete == (count != "total" or total <= cap)
    if not listing.is_complete:
        assert listing.missing == total - cap


def test_a_page_shorter_than_the_one_before_is_the_last() -> None:
    service = Service(25, cap=10)
    listing, _ = read(service.fetch)
    assert (listing.is_over, len(service.asked)) == (True, 3)


def test_a_short_first_page_may_be_a_cap() -> None:
    service = Service(7, cap=10)
    listing, _ = read(service.fetch)
    assert (listing.is_over, len(service.asked)) == (True, 2)


def test_more_rows_than_asked_for_mean_no_pages() -> None:
    service = Service(30, ignores_page=True, ignores_limit=True)
    listing, _ = read(service.fetch, limit=10)
    assert (listing.is_over, len(service.asked)) == (True, 1)


def test_an_empty_listing_costs_one_request() -> None:
    service = Service(0)
    listing, keys = read(service.fetch)
    assert (listing.is_over, keys, len(service.asked)) == (True, [], 1)


def test_a_total_above_what_was_read_means_go_on_past_a_short_page() -> None:
    """The service leaves hidden rows out of a page, so that pages differ in length."""
    pages = {1: [1, 2, 3], 2: [4], 3: [5, 6, 7], 4: [8]}

    def fetch(call: Call) -> Response:
        rows = [{"id": str(number)} for number in pages.get(int(call.params["page"]), [])]
        return answer_to(call, {"contacts": {"count": 8, "items": rows}})

    listing, keys = read(fetch)
    assert keys == [str(number) for number in range(1, 9)]
    assert listing.is_complete


def test_rows_that_move_to_the_next_page_meanwhile_do_not_end_the_reading() -> None:
    pages = {1: [1, 2, 3], 2: [3, 4, 5], 3: [6]}

    def fetch(call: Call) -> Response:
        rows = [{"id": str(number)} for number in pages.get(int(call.params["page"]), [])]
        return answer_to(call, {"contacts": {"items": rows}})

    listing, keys = read(fetch)
    assert sorted(set(keys)) == ["1", "2", "3", "4", "5", "6"]
    assert listing.rows == 6


def test_a_total_that_is_never_reached_is_reported() -> None:
    def fetch(call: Call) -> Response:
        rows = [{"id": str(number)} for number in range(3)] if call.params["page"] == "1" else []
        return answer_to(call, {"contacts": {"count": 5 if rows else 0, "items": rows}})

    listing, _ = read(fetch)
    assert not listing.is_complete
    assert (listing.rows, listing.service_count, listing.missing) == (3, 5, 2)


def test_equal_rows_without_an_id_on_one_page_are_two_rows() -> None:
    def fetch(call: Call) -> Response:
        rows = [{"email": "ann@example.com"}] * 2 if call.params["page"] == "1" else []
        return answer_to(call, {"contacts": {"count": len(rows), "items": rows}})

    listing, keys = read(fetch)
    assert len(keys) == listing.rows == 2


def test_a_failed_page_leaves_the_listing_incomplete() -> None:
    service = Service(30, cap=10)

    def fetch(call: Call) -> Response:
        if call.params["page"] == "3":
            raise BrokenResponse("cut")
        return service.fetch(call)

    listing = Listing(contacts.GETCONTACTS, {"listid": 12})
    with pytest.raises(BrokenResponse):
        list(listing.pages(fetch))
    assert not listing.is_complete
    assert (listing.pages_read, listing.rows) == (2, 20)


def test_the_declared_page_size_is_asked_for_unless_another_is_given() -> None:
    service = Service(3)
    list(Listing(contacts.GETCONTACTS, {"listid": 12}).pages(service.fetch))
    read(service.fetch, limit=7)
    assert [(each["limit"], each["page"]) for each in service.asked] == [
        ("1000", "1"),
        ("1000", "2"),
        ("7", "1"),
        ("7", "2"),
    ]


@given(groups=st.lists(st.integers(0, 9), min_size=1, max_size=4), cap=st.integers(1, 4))
def test_groups_that_are_paged_each_for_itself_are_read_to_the_end_of_the_longest(
    groups: list[int], cap: int
) -> None:
    everything = [
        [{"id": str(100 * group + number)} for number in range(size)] for group, size in enumerate(groups)
    ]

    def fetch(call: Call) -> Response:
        start = (int(call.params["page"]) - 1) * cap
        pages = {
            f"group {number}": {"data": rows[start : start + cap]}
            for number, rows in enumerate(everything)
            if rows[start:]
        }
        return answer_to(
            call, {"campaigns": {"count": sum(len(page["data"]) for page in pages.values()), "items": pages}}
        )

    listing = Listing(campaigns.CAMPAIGNS, {"filter": "all"})
    keys = [key for response in listing.pages(fetch) for key in parsing.item_keys(response)]
    assert len(keys) == len(set(keys)) == sum(groups)
    assert listing.is_complete


def test_what_is_not_paged_is_asked_once() -> None:
    asked: list[Call] = []

    def fetch(call: Call) -> Response:
        asked.append(call)
        return answer_to(call, {"business": {"businessName": "Harbor"}})

    listing = Listing(account.ME, {})
    assert len(list(listing.pages(fetch))) == 1
    assert listing.is_complete
    assert (listing.is_over, asked[0].params) == (True, {})


@pytest.mark.parametrize(("gone_after", "is_complete"), [(None, True), (1, False), (2, False)])
def test_what_slipped_past_while_entries_went_away_is_not_taken_for_deleted(
    gone_after: int | None, is_complete: bool
) -> None:
    """An entry of a read page is deleted: all others move up by one, one of them onto that page."""
    service = Service(20, cap=4, count="total")
    there = [str(number) for number in range(20)]

    def fetch(call: Call) -> Response:
        if len(service.asked) == gone_after:
            del there[0]
        service.asked.append(call.params)
        start = (int(call.params["page"]) - 1) * 4
        return answer_to(
            call,
            {"contacts": {"count": len(there), "items": [{"id": each} for each in there[start : start + 4]]}},
        )

    listing, keys = read(fetch)
    assert len(set(keys)) == len(there) + (gone_after is not None) - (not is_complete)
    assert listing.is_complete == is_complete


@pytest.mark.parametrize("count", ["page", "total", "none"])
@pytest.mark.parametrize("total", [3, 8, 10])
def test_a_short_last_page_is_no_sign_of_it(total: int, count: str) -> None:
    listing, _ = read(Service(total, cap=4, count=count).fetch)
    assert not listing.has_moved
    assert listing.is_complete
