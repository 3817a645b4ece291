"""Ways to fetch without a run: a service that is a function, a real archive and warehouse."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from assets import fetch
from assets.days import ChosenDays
from assets.fetch import Fetcher, FetchSettings
from assets.result import AccountResult, Batch
from marketing_api.errors import (
    AuthenticationFailed,
    InvalidCall,
    NotAvailable,
    OtherBusiness,
    Refused,
    Unreachable,
)
from marketing_api.operation import Call
from marketing_api.operations import contacts, lists, reputation, social
from tests.assets.conftest import OpenAccount
from tests.assets.service import Account
from tests.marketing_api.samples import LIST
from warehouse import tables
from warehouse.loads.load import Load
from warehouse.tables import Table

Ids = tuple[int, ...]


def fetcher(account: Account, *of: Table, **options: Any) -> Fetcher:
    settings = FetchSettings(dt.date(2026, 11, 1), lookback_days=7)
    return Fetcher(account.session, "asset", of, AccountResult("main"), settings, **options)


def load(account: Account, batch: Batch, table: Table) -> None:
    now = account.session.now()
    account.warehouse.apply_load(
        Load(
            account="main",
            asset="asset",
            tables=(table.name,),
            request_ids=batch.request_ids,
            scope=batch.scope,
            is_complete=batch.is_complete,
            due_at=now,
            logged_at=now,
            zone="UTC",
        )
    )


def contact_pages(*readings: Ids | Exception, of: int = 2) -> Callable[[Call], Any]:
    """Each list in pages of two; a reading after the last repeats it. An exception is its second page."""
    begun: dict[str, int] = {}

    def respond(call: Call) -> Any:
        page, list_id = int(call.params["page"]), call.params["listid"]
        begun[list_id] = begun.get(list_id, 0) + (page == 1)
        ids = readings[min(begun[list_id], len(readings)) - 1]
        if isinstance(ids, Exception):
            if page > 1:
                return ids
            ids = (1, 2, 3)
        items = [
            {"id": str(each), "email": f"c{each}@example.com"} for each in ids[of * (page - 1) : of * page]
        ]
        return {"contacts": {"count": len(ids), "items": items}}

    return respond


def sync_contacts(account: Account) -> None:
    """Load the list of contacts that the service shows."""
    batch = fetcher(account, tables.CONTACTS).fetch_pages(contacts.GETCONTACTS, listid=5)
    load(account, batch, tables.CONTACTS)


# ---- one request


def test_one_request_is_a_whole_batch_and_counted(open_account: OpenAccount) -> None:
    account = open_account(lambda call: {"links": []})
    source = fetcher(account, tables.SOCIAL_LINKS)
    batch = source.fetch_one(social.STATS, channels="all")
    assert (batch.is_complete, len(batch.request_ids)) == (True, 1)
    assert (source.result.planned, source.result.fetched) == (1, 1)
    assert source.operations == {social.STATS}


def test_one_request_of_a_paged_operation_is_refused_before_it_is_sent(open_account: OpenAccount) -> None:
    account = open_account(contact_pages((1,)))
    with pytest.raises(InvalidCall, match="has pages"):
        fetcher(account, tables.CONTACTS).fetch_one(contacts.GETCONTACTS, listid=5)
    assert account.requested == []


def test_a_refused_call_is_not_sent_twice(open_account: OpenAccount) -> None:
    account = open_account(lambda call: Refused("no"))
    for _ in range(2):
        with pytest.raises(Refused):
            fetcher(account, tables.SOCIAL_LINKS).fetch_one(social.STATS, channels="all")
    assert len(account.requested) == 1


def test_an_operation_that_the_account_lacks_is_not_requested_again(open_account: OpenAccount) -> None:
    account = open_account(lambda call: NotAvailable("no"))
    batches = fetcher(account, tables.TIMELINE_EVENTS).fetch_many(contacts.TIMELINE, [{"id": 1}, {"id": 2}])
    assert [len(batch.failures) for batch in batches] == [2]
    assert len(account.requested) == 1


def test_an_archived_response_of_a_run_that_died_is_used_again(open_account: OpenAccount) -> None:
    account = open_account(lambda call: {"links": []})
    account.checkpoints.begin_assets(["asset"])
    first = fetcher(account, tables.SOCIAL_LINKS).fetch_one(social.STATS, channels="all")
    account.archive.close()
    later = open_account(lambda call: {"links": []})
    again = fetcher(later, tables.SOCIAL_LINKS).fetch_one(social.STATS, channels="all")
    assert again.request_ids == first.request_ids
    assert later.requested == []


# ---- days


def reviews(call: Call) -> Any:
    return {"reviews": {"count": 0, "items": []}}


def test_a_first_read_takes_all_days_in_one_request(open_account: OpenAccount) -> None:
    account = open_account(reviews)
    (batch,) = fetcher(account, tables.DIRECT_REVIEWS).fetch_days(reputation.DIRECT, ahead=3, filter="date")
    assert str(batch.days) == "2026-11-01 to 2026-11-23"
    assert account.requested == ["reputation/direct filter=date from=2026-11-01 to=2026-11-23"]


def test_a_range_that_is_refused_is_read_year_by_year(open_account: OpenAccount) -> None:
    def respond(call: Call) -> Any:
        is_long = call.params["from"][:4] != call.params["to"][:4]
        return Refused("too many days") if is_long else reviews(call)

    chosen = ChosenDays(dt.date(2024, 12, 30), dt.date(2026, 1, 2))
    source = fetcher(open_account(respond), tables.DIRECT_REVIEWS, chosen_days=chosen)
    batches = source.fetch_days(reputation.DIRECT, filter="date")
    assert [str(batch.days) for batch in batches] == [
        "2024-12-30 to 2024-12-31",
        "2025-01-01 to 2025-12-31",
        "2026-01-01 to 2026-01-02",
    ]


def test_a_refused_year_is_an_error(open_account: OpenAccount) -> None:
    account = open_account(lambda call: Refused("no reviews here"))
    with pytest.raises(Refused, match="no reviews here"):
        list(fetcher(account, tables.DIRECT_REVIEWS).fetch_days(reputation.DIRECT, filter="date"))
    assert len(account.requested) == 1


def test_days_that_a_series_lacks_are_requested_in_a_range_of_their_own(open_account: OpenAccount) -> None:
    def respond(call: Call) -> Any:
        """Every day, but no more than ten days of a request."""
        first, last = (dt.date.fromisoformat(call.params[name]) for name in ("from", "to"))
        days = [first + dt.timedelta(number) for number in range(min(10, (last - first).days + 1))]
        rows = [{"periode": str(day), "views": "1"} for day in days]
        return {"stats": {"Reviews": [], "SocialMedia": [], "FeedbackHub": rows}}

    account = open_account(respond)
    source = fetcher(account, tables.REVIEW_STATS, tables.SOCIAL_MEDIA_STATS, tables.FEEDBACK_VIEWS)
    batches = list(source.fetch_series(reputation.STATS, filter="all"))
    ranges = [(str(batch.days), batch.is_complete) for batch in batches]
    assert ranges == [("2026-11-01 to 2026-11-10", True), ("2026-11-11 to 2026-11-20", True)]


# ---- listings


@pytest.mark.parametrize(
    ("readings", "pages", "is_complete"),
    [
        (((1, 2, 3),), [1, 2], True),
        (((1, 2, 4), (1, 2, 4)), [1, 2, 1, 2], True),
        (((1, 2, 4), Unreachable("reset", was_sent=True)), [1, 2, 1, 2], False),
        ((Unreachable("reset", was_sent=True),), [1, 2], False),
    ],
    ids=["nothing gone", "one gone twice", "second reading cut short", "first reading cut short"],
)
def test_a_listing_of_pages_that_lost_a_row_is_read_twice(
    open_account: OpenAccount, readings: tuple[Any, ...], pages: list[int], is_complete: bool
) -> None:
    sync_contacts(open_account(contact_pages((1, 2, 3))))
    account = open_account(contact_pages(*readings))
    source = fetcher(account, tables.CONTACTS)
    batch = source.fetch_pages(contacts.GETCONTACTS, listid=5)
    assert [int(call.params["page"]) for call in account.client.calls] == pages
    assert batch.is_complete is is_complete
    assert len(batch.failures) == (not is_complete)


def test_nothing_of_a_listing_is_loaded_until_a_known_row_is_in_one(open_account: OpenAccount) -> None:
    account = open_account(contact_pages((1, 2, 3)))
    sync_contacts(account)
    source = fetcher(account, tables.CONTACTS)
    strange = Batch((1,), known_count=3, kept_count=0, unknown_count=4)
    familiar = Batch((2,), known_count=3, kept_count=3)
    loaded: list[int] = []
    for batch in source.hold_until_recognised(iter([strange, familiar])):
        loaded += batch.request_ids
    assert loaded == [1, 2]
    with pytest.raises(OtherBusiness, match="3 known contacts is listed, but 4 others are"):
        list(fetcher(account, tables.CONTACTS).hold_until_recognised(iter([strange])))


def test_one_list_that_fails_is_a_failure_of_its_own(open_account: OpenAccount) -> None:
    pages = contact_pages((1, 2, 3))
    account = open_account(lambda call: Refused("gone") if call.params["listid"] == "6" else pages(call))
    params = [{"listid": list_id} for list_id in (5, 6, 7)]
    batches = fetcher(account, tables.CONTACTS).fetch_listings(contacts.GETCONTACTS, params)
    assert [(batch.is_complete, len(batch.failures)) for batch in batches] == [
        (True, 0),
        (False, 1),
        (True, 0),
    ]


def test_details_are_fetched_of_new_and_changed_entries_alone(open_account: OpenAccount) -> None:
    names = {"5": "Newsletter", "6": "Regulars"}

    def respond(call: Call) -> Any:
        if call.operation is lists.GETLIST:
            list_id = call.params["id"]
            return {"list": {**LIST, "id": list_id, "name": names[list_id], "fields": {}}}
        items = [{**LIST, "id": list_id, "name": name} for list_id, name in names.items()]
        return {"lists": {"count": len(items), "items": items}}

    def read() -> list[str]:
        account = open_account(respond)
        source = fetcher(account, tables.LISTS)
        listing = source.fetch_pages(lists.GETLISTS)
        batch = source.with_details(listing, lists.GETLIST, lambda row: {"id": row.list_id})
        load(account, batch, tables.LISTS)
        return [call.params["id"] for call in account.client.calls if call.operation is lists.GETLIST]

    assert read() == ["5", "6"]
    assert read() == []
    names["6"] = "Friends"
    assert read() == ["6"]


# ---- many requests


def test_many_requests_come_in_batches_of_which_the_last_is_complete(
    open_account: OpenAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "BATCH_RESPONSES", 2)
    account = open_account(lambda call: {"timeline": []})
    source = fetcher(account, tables.TIMELINE_EVENTS)
    batches = list(source.fetch_many(contacts.TIMELINE, [{"id": number} for number in range(1, 6)]))
    assert [(len(batch.request_ids), batch.is_complete) for batch in batches] == [
        (2, False),
        (2, False),
        (1, True),
    ]


def test_a_value_that_the_operation_refuses_costs_no_request(open_account: OpenAccount) -> None:
    account = open_account(lambda call: {"coupons": []})
    source = fetcher(account, tables.COUPONS)
    (batch,) = source.fetch_many(contacts.GETCOUPON, [{"email": "no address"}, {"email": "ada@example.com"}])
    assert (len(batch.request_ids), len(batch.failures)) == (1, 1)
    assert account.requested == ["emailmarketing/getcoupon email=ada@example.com"]


def test_no_requests_at_all_are_a_batch_that_notes_it(open_account: OpenAccount) -> None:
    (batch,) = fetcher(open_account(reviews), tables.COUPONS).fetch_many(contacts.GETCOUPON, [])
    assert batch == Batch(is_nothing_due=True)


def test_what_came_before_the_key_was_revoked_is_kept(open_account: OpenAccount) -> None:
    def respond(call: Call) -> Any:
        return AuthenticationFailed("revoked") if call.params["id"] == "3" else {"timeline": []}

    source = fetcher(open_account(respond), tables.TIMELINE_EVENTS)
    batches = source.fetch_many(contacts.TIMELINE, [{"id": number} for number in range(1, 6)])
    kept = next(batches)
    assert (len(kept.request_ids), kept.is_complete) == (2, False)
    with pytest.raises(AuthenticationFailed):
        next(batches)
