"""A response carries its envelope: whoever handles it after the client takes what the client has opened."""

from pathlib import Path

import pytest

from marketing_api import envelope
from marketing_api.client import Client, Connection, Secret
from marketing_api.operation import Operation
from marketing_api.operations import account, contacts, lists
from marketing_api.paging import Listing
from marketing_api.rate_limit import RateLimiter
from marketing_api.sandbox.options import DEFAULT_KEY
from tests.dialects.server import Options, serve
from tests.warehouse.answering import Home
from warehouse import tables
from warehouse.tables import Table

TIMELINES = (tables.TIMELINE_EVENTS, tables.TIMELINE_VISITS, tables.TIMELINE_AUTOMATIONS)


def test_a_response_is_opened_once_and_once_more_when_it_is_read_from_the_archive(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    open_ = envelope._open_envelope

    def counted(text: bytes | memoryview) -> envelope.Envelope:
        opened.append(len(text))
        return open_(text)

    monkeypatch.setattr(envelope, "_open_envelope", counted)
    with (
        serve(Options(contacts=100, rate_limit=0)) as url,
        Client(
            Connection("main", url, Secret(DEFAULT_KEY)),
            RateLimiter(tmp_path / "pace"),
            record=home.archive.record_exchange,
            spool=tmp_path / "spool",
        ) as client,
    ):
        me = client.fetch(account.ME.bind())
        home.warehouse.apply_load(home.event([me], tables.BUSINESS))

        def load_listing(operation: Operation, table: Table, **params: int) -> None:
            listing = Listing(operation, params)
            pages = list(listing.pages(client.fetch))
            assert listing.rows
            home.load(pages, table)  # reads the pages from the archive

        load_listing(lists.GETLISTS, tables.LISTS)
        first = min(home.values(tables.LISTS, "list_id"))
        load_listing(contacts.GETCONTACTS, tables.CONTACTS, listid=first)
        ids = home.values(tables.CONTACTS, "contact_id")[:6]
        timelines = [client.fetch(contacts.TIMELINE.bind(id=each)) for each in ids]
        home.warehouse.apply_load(home.event(timelines, *TIMELINES))
        sent = client.statistics.requests
    assert home.values(TIMELINES[0], "contact_id")
    assert (sent, len(opened)) == (11, 20)  # the loads read nine from the archive
