"""What can be checked about tables."""

import pytest

from marketing_api.exchange import Response
from marketing_api.operations import contacts, lists, reputation
from tests.warehouse.answering import START, Home
from warehouse import tables
from warehouse.sql import fetch_rows

pytestmark = pytest.mark.usefixtures("kept_open")


def page(home: Home, *numbers: int, list_id: int = 12, minutes: float = 0, account: str = "main") -> Response:
    items = [{"id": number, "email": f"c{number}|@x.com"} for number in numbers]
    return home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, minutes, account, listid=list_id)


def test_rows_marked_as_deleted_do_not_count(home: Home) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    home.load([page(home, 1, minutes=1)], tables.CONTACTS)
    assert home.warehouse.row_count(tables.CONTACTS) == 1


def test_duplicate_keys_are_found(home: Home) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    assert home.warehouse.duplicate_keys(tables.CONTACTS) == 0
    with home.warehouse.open_for_writing() as connection:
        fetch_rows(connection, "insert into source.contacts from source.contacts where contact_id = 1")
    assert home.warehouse.duplicate_keys(tables.CONTACTS) == 1


def test_scopes_that_are_not_complete_are_named(home: Home) -> None:
    home.load([page(home, 1)], tables.CONTACTS, is_complete=False)
    home.load([page(home, 1, 2, list_id=13)], tables.CONTACTS, service_count=5)
    home.load([page(home, 1, 2, list_id=14)], tables.CONTACTS, service_count=2)
    assert home.warehouse.list_incomplete(tables.CONTACTS) == [
        "main, list_id=12: pages are missing",
        "main, list_id=13: 2 rows, the service counts 5",
    ]


def test_a_range_that_a_later_one_holds_is_not_named(home: Home) -> None:
    def reviews(first: int, last: int, minutes: float, is_complete: bool) -> None:
        days = {"from_": "2026-03-01", "to": "2026-03-09"}
        answer = home.answer(reputation.DIRECT, {"reviews": {"items": []}}, minutes, filter="date", **days)
        scope = {"from_on": f"2026-03-0{first}", "to_on": f"2026-03-0{last}"}
        home.load([answer], tables.DIRECT_REVIEWS, scope=scope, is_complete=is_complete)

    reviews(2, 3, 0, is_complete=False)
    reviews(4, 9, 1, is_complete=False)
    reviews(1, 5, 2, is_complete=True)
    assert home.warehouse.list_incomplete(tables.DIRECT_REVIEWS) == [
        "main, 2026-03-06..2026-03-09: pages are missing"
    ]


@pytest.mark.parametrize("table", tables.TABLES.values(), ids=tables.TABLES)
def test_columns_that_name_or_reach_people_are_declared_as_personal(table: tables.Table) -> None:
    """A column added later is not forgotten: these words in its name mean people."""
    words = ("email", "phone", "full_name", "contact_name", "username", "screen_name")
    words += ("inquiry", "notes", "reply_to", "custom_fields", "extra")
    texts = {"email_subject", "confirmation_email", "success_email"}  # of the business, sent to everybody
    named = {column.name for column in table.columns if any(word in column.name for word in words)} - texts
    assert named <= {column.name for column in table.columns if column.is_personal}


def test_look_ups_of_an_empty_warehouse_are_empty(home: Home) -> None:
    warehouse = home.warehouse
    for ids in (warehouse.list_ids, warehouse.domain_ids, warehouse.vanished_list_ids):
        assert ids("main") == []
    candidates = (
        warehouse.timeline_candidates("main", START),
        warehouse.coupon_candidates("main"),
        warehouse.find_rows("campaign_candidates", "main"),
    )
    assert [rows.num_rows for rows in candidates] == [0, 0, 0]
    assert warehouse.listing_hashes(tables.LISTS, "main") == {}


def test_lists_that_exist_and_contacts_of_those_that_do_not(home: Home) -> None:
    items = [{"id": 12, "name": "A"}, {"id": 9, "name": "B"}]
    home.load([home.answer(lists.GETLISTS, {"lists": {"items": items}})], tables.LISTS)
    home.load([page(home, 1), page(home, 1, list_id=77)], tables.CONTACTS)
    assert home.warehouse.list_ids("main") == [9, 12]
    assert home.warehouse.vanished_list_ids("main") == [77]
