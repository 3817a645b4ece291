"""Listings in pages without a run: a client that answers from lists, and no warehouse."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from assets.fetch import Fetcher, FetchSettings
from assets.result import AccountResult
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import contacts
from tests.marketing_api.responses import DAY, ZONE, enveloped, of_body
from warehouse import tables


class Paged:
    """A client whose list of contacts has pages of two."""

    def __init__(self, *ids: int) -> None:
        self.ids, self.pages = ids, list[int]()

    def fetch_many(self, calls: Iterable[Call], **_: Any) -> Iterator[Response]:
        return map(self._fetch, calls)

    def _fetch(self, call: Call) -> Response:
        page = int(call.params["page"])
        self.pages.append(page)
        items = [{"id": one} for one in self.ids[2 * page - 2 : 2 * page]]
        data = {"contacts": {"count": len(self.ids), "items": items}}
        return of_body(call.operation, enveloped(data), **call.params)


@pytest.mark.parametrize(
    ("listed", "read"),
    [((1, 2), [1, 2]), ((1, 2, 3), [1, 2]), ((1, 2, 4), [1, 2, 1, 2])],
    ids=["one page and an empty one", "two pages, nothing gone", "two pages, one gone"],
)
def test_two_pages_with_something_gone_are_read_again_though_recognised(
    listed: tuple[int, ...], read: list[int]
) -> None:
    client = Paged(*listed)
    warehouse = SimpleNamespace(known_keys=lambda *_: ["1", "2", "3"])
    session: Any = SimpleNamespace(
        account="main", warehouse=warehouse, planner=None, today=lambda: DAY, zone=ZONE, client=client,
        accepts_shrinking=True, refused={}, unavailable={}, find_response=lambda asset, call: None,
    )  # fmt: skip
    fetcher = Fetcher(
        session, "contacts", (tables.CONTACTS,), AccountResult("main"), FetchSettings(dt.date(2015, 1, 1))
    )
    assert fetcher.fetch_pages(contacts.GETCONTACTS, listid=5).is_complete
    assert client.pages == read
