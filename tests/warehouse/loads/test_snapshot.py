"""Snapshot tables: what a listing says about its scope."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pytest

from marketing_api.exchange import Response
from marketing_api.operations import account, campaigns, contacts, lists, users
from tests.warehouse.answering import START, Home
from warehouse import tables

HOUR = dt.timedelta(hours=1)


def contact(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "email": f"c{number}@example.com",
        "status": "1",
        "registration_date": "01/02/2025 10:00",
        **more,
    }


def page(home: Home, *numbers: int, list_id: int = 12, minutes: float = 0, **more: Any) -> Response:
    items = [contact(number, **more) for number in numbers]
    return home.answer(
        contacts.GETCONTACTS, {"contacts": {"count": len(items), "items": items}}, minutes, listid=list_id
    )


def live(home: Home) -> list[int]:
    return home.values(tables.CONTACTS, "contact_id", "_deleted_at is null")


def test_new_rows_carry_the_time_they_were_asked_for(home: Home) -> None:
    report = home.load([page(home, 1, 2)], tables.CONTACTS)
    assert (report.tables["contacts"].new, report.tables["contacts"].changed) == (2, 0)
    (first, _) = home.rows(tables.CONTACTS)
    assert first["_first_seen_at"] == first["_changed_at"] == START
    assert first["_deleted_at"] is None


def test_only_rows_that_differ_are_touched(home: Home) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    report = home.load([page(home, 1, minutes=60), page(home, 2, minutes=60, status="2")], tables.CONTACTS)
    counts = report.tables["contacts"]
    assert (counts.new, counts.changed, counts.unchanged, counts.deleted) == (0, 1, 1, 0)
    first, second = home.rows(tables.CONTACTS)
    assert first["_changed_at"] == START
    assert (second["_first_seen_at"], second["_changed_at"], second["status"]) == (
        START,
        START + HOUR,
        "unsubscribed",
    )


def test_a_missing_row_is_marked_and_kept(home: Home) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    report = home.load([page(home, 1, minutes=60)], tables.CONTACTS)
    assert report.tables["contacts"].deleted == 1
    (gone,) = home.rows(tables.CONTACTS, where="contact_id = 2")
    assert gone["_deleted_at"] == gone["_changed_at"] == START + HOUR
    assert gone["email"] == "c2@example.com"


def test_a_row_that_comes_back_exists_again(home: Home) -> None:
    for minutes, numbers in enumerate([(1, 2), (1,), (1, 2)]):
        report = home.load([page(home, *numbers, minutes=minutes)], tables.CONTACTS)
    assert report.tables["contacts"].changed == 1
    (back,) = home.rows(tables.CONTACTS, where="contact_id = 2")
    assert (back["_deleted_at"], back["_first_seen_at"]) == (None, START)
    assert back["_changed_at"] == START + dt.timedelta(minutes=2)


def test_an_incomplete_listing_deletes_nothing(home: Home) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    home.load([page(home, 3, minutes=60)], tables.CONTACTS, is_complete=False)
    assert live(home) == [1, 2, 3]
    (coverage,) = home.rows("sync.coverage")
    assert (coverage["is_complete"], coverage["rows"]) == (False, 3)
    assert coverage["reason"]


def test_every_reading_of_a_list_is_written_down_with_the_time_zone_it_was_made_in(home: Home) -> None:
    """Coverage keeps the newest one only; loading twice, or parts of a single entry, adds none."""
    home.load([page(home, 1, 2)], tables.CONTACTS)
    home.zone = "America/New_York"
    again = page(home, 1, minutes=60)
    for is_complete in (True, False):
        home.load([again], tables.CONTACTS, is_complete=is_complete)
    home.load(
        [home.answer(lists.GETLISTS, {"lists": {"items": [{"id": 12, "fields": {"1": "City"}}]}})],
        tables.LISTS,
        tables.LIST_FIELDS,
    )
    told = [
        (row["scope"], row["as_of"], row["timezone"], row["is_complete"])
        for row in home.rows("sync.readings")
    ]
    assert told == [
        ("list_id=12", START, "UTC", True),
        ("list_id=12", START + HOUR, "America/New_York", False),
    ]


def test_other_scopes_and_accounts_are_left_alone(home: Home) -> None:
    home.load([page(home, 1, list_id=12), page(home, 1, list_id=13)], tables.CONTACTS)
    other = home.answer(
        contacts.GETCONTACTS, {"contacts": {"items": [contact(1)]}}, account="second", listid=12
    )
    home.load([other], tables.CONTACTS)
    home.load([page(home, 2, list_id=12, minutes=60)], tables.CONTACTS)
    rows = home.rows(tables.CONTACTS, "account, list_id, contact_id", "_deleted_at is null")
    assert [tuple(row.values()) for row in rows] == [("main", 12, 2), ("main", 13, 1), ("second", 12, 1)]


def test_an_empty_listing_empties_its_scope(home: Home) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    home.load([page(home, minutes=60)], tables.CONTACTS)
    assert live(home) == []


def test_a_listing_that_shrinks_too_much_is_refused(home: Home) -> None:
    home.load([page(home, *range(20))], tables.CONTACTS, shrink_limit=0.5)
    report = home.load([page(home, 1, 2, 3, 99, minutes=60, status="2")], tables.CONTACTS, shrink_limit=0.5)
    assert list(report.refused) == ["contacts"]
    assert "list_id=12" in report.refused["contacts"]
    assert home.values(tables.CONTACTS, "status") == ["active"] * 20
    (coverage,) = home.rows("sync.coverage")
    assert (coverage["is_complete"], coverage["is_refused"], coverage["rows"]) == (False, True, 20)
    assert "4 rows were listed where 20 are known" in coverage["reason"]
    home.load([page(home, 1, minutes=120)], tables.CONTACTS)
    assert home.values("sync.coverage", "is_refused") == [False]


@pytest.mark.parametrize(
    ("known", "kept", "limit", "is_refused"),
    [
        (20, 10, 0.5, False),
        (20, 9, 0.5, True),
        (20, 0, 1.0, False),
        (20, 0, None, False),
        (20, 11, 0.0, False),
        (20, 10, 0.0, True),
        (3, 1, 0.5, False),
        (9, 0, 0.5, False),
        (10, 0, 0.5, True),
    ],
)
def test_listing_may_lose_a_share_of_its_rows_and_always_nine(
    home: Home, known: int, kept: int, limit: float | None, is_refused: bool
) -> None:
    home.load([page(home, *range(known))], tables.CONTACTS)
    report = home.load([page(home, *range(kept), minutes=60)], tables.CONTACTS, shrink_limit=limit)
    assert bool(report.refused) is is_refused
    assert len(live(home)) == (known if is_refused else kept)


@pytest.mark.parametrize("nothing", [{}, [], {"items": []}])
def test_few_rows_are_not_lost_to_an_empty_listing_without_a_count(home: Home, nothing: Any) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    empty = home.answer(contacts.GETCONTACTS, {"contacts": nothing}, 60, listid=12)
    assert home.load([empty], tables.CONTACTS, shrink_limit=0.5).refused
    assert live(home) == [1, 2]


def test_only_the_scope_that_shrinks_is_refused(home: Home) -> None:
    known = range(20)
    home.load([page(home, *known, list_id=12), page(home, *known, list_id=13)], tables.CONTACTS)
    report = home.load(
        [page(home, 99, list_id=12, minutes=60), page(home, *known[1:], 99, list_id=13, minutes=60)],
        tables.CONTACTS,
        shrink_limit=0.5,
    )
    assert len(report.tables["contacts"].refused) == 1
    there = "list_id = {} and _deleted_at is null"
    assert home.values(tables.CONTACTS, "contact_id", there.format(12)) == [*known]
    assert sorted(home.values(tables.CONTACTS, "contact_id", there.format(13))) == [*known[1:], 99]
    assert home.values("sync.coverage", "scope", "is_refused") == ["list_id=12"]


def test_small_listings_of_one_load_are_not_emptied_together(home: Home) -> None:
    many = range(12, 17)
    home.load([page(home, 1, 2, 3, list_id=each) for each in many], tables.CONTACTS)
    report = home.load(
        [page(home, list_id=each, minutes=60) for each in many], tables.CONTACTS, shrink_limit=0.5
    )
    assert len(report.tables["contacts"].refused) == len(many)
    assert len(live(home)) == 3 * len(many)


@pytest.mark.parametrize(("members", "is_refused"), [(3, False), (20, True)])
def test_lost_list_counts_with_its_contacts(home: Home, members: int, is_refused: bool) -> None:
    def listing(*ids: int, minutes: float = 0) -> Response:
        return home.answer(lists.GETLISTS, {"lists": {"items": [{"id": id_} for id_ in ids]}}, minutes)

    home.load([listing(12, 13, 14)], tables.LISTS)
    home.load([page(home, *range(members), list_id=13)], tables.CONTACTS)
    report = home.load([listing(12, minutes=60)], tables.LISTS, shrink_limit=0.5)
    assert bool(report.refused) is is_refused
    assert len(live(home)) == (members if is_refused else 0)


@pytest.mark.parametrize(
    ("known", "kept", "others", "elsewhere", "is_refused"),
    [
        (30, 0, 30, 0, True),
        (30, 14, 16, 0, True),
        (30, 15, 15, 0, False),
        (30, 0, 30, 30, False),
        (30, 0, 30, 29, True),
        (9, 0, 9, 0, False),
        (1, 0, 1, 0, False),
        (30, 14, 0, 300, True),
    ],
)
def test_a_listing_that_has_others_in_the_place_of_most_rows_of_the_account_is_refused(
    home: Home, known: int, kept: int, others: int, elsewhere: int, is_refused: bool
) -> None:
    home.load([page(home, *range(known)), page(home, *range(elsewhere), list_id=13)], tables.CONTACTS)
    report = home.load(
        [page(home, *range(kept), *range(900, 900 + others), minutes=60)], tables.CONTACTS, shrink_limit=0.5
    )
    assert bool(report.refused) is is_refused
    there = set(home.values(tables.CONTACTS, "contact_id", "list_id = 12 and _deleted_at is null"))
    assert there == ({*range(known)} if is_refused else {*range(kept), *range(900, 900 + others)})


def test_an_entry_that_cannot_be_read_may_be_any_row(home: Home) -> None:
    home.load([page(home, 1, 2)], tables.CONTACTS)
    items = [contact(1), {"id": "not a number", "email": "c2@example.com"}]
    home.load(
        [home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, 60, listid=12)], tables.CONTACTS
    )
    assert live(home) == [1, 2]
    (coverage,) = home.rows("sync.coverage")
    assert not coverage["is_complete"]
    assert (
        coverage["reason"]
        == "1 rows were not listed, and 1 entries or collections could not be read: nothing was "
        "marked as deleted"
    )


def test_a_field_that_the_only_operation_leaves_out_is_empty(home: Home) -> None:
    home.load([page(home, 1, city="Rome")], tables.CONTACTS)
    home.load([page(home, 1, minutes=60)], tables.CONTACTS)
    assert home.values(tables.CONTACTS, "custom_fields") == [None]


def test_of_an_entry_that_two_pages_show_the_later_counts(home: Home) -> None:
    home.load([page(home, 1, 2, city="Rome"), page(home, 2, 3)], tables.CONTACTS)
    assert home.values(tables.CONTACTS, "custom_fields", "contact_id < 3") == ['{"city":"Rome"}', None]


def test_older_answers_do_not_replace_newer_ones(home: Home) -> None:
    home.load([page(home, 1, minutes=60, status="2")], tables.CONTACTS)
    report = home.load([page(home, 1, 2, minutes=0)], tables.CONTACTS)
    assert report.tables["contacts"].stale == ["list_id=12"]
    assert home.values(tables.CONTACTS, "status") == ["unsubscribed"]
    assert home.values("sync.coverage", "as_of") == [START + HOUR]


def test_a_table_without_key_holds_one_row_per_account(home: Home) -> None:
    for minutes, name in enumerate(["Old", "New"]):
        home.load([home.answer(account.ME, {"business": {"businessName": name}}, minutes)], tables.BUSINESS)
    assert home.values(tables.BUSINESS, "business_name") == ["New"]


def test_a_list_that_is_gone_takes_its_contacts_and_fields_along(home: Home) -> None:
    def listing(*ids: int, minutes: float = 0) -> Response:
        items = [{"id": id_, "name": "N", "fields": {"7": "City"}} for id_ in ids]
        return home.answer(lists.GETLISTS, {"lists": {"items": items}}, minutes)

    home.load([listing(12, 13)], tables.LISTS, tables.LIST_FIELDS)
    home.load([page(home, 1, 2, list_id=12), page(home, 1, list_id=13)], tables.CONTACTS)
    report = home.load([listing(13, minutes=60)], tables.LISTS, tables.LIST_FIELDS)
    assert report.tables["list_fields"].deleted == 1
    assert home.values(tables.CONTACTS, "list_id", "_deleted_at is null") == [13]
    assert home.values(tables.LIST_FIELDS, "list_id", "_deleted_at is null") == [13]
    assert home.values("sync.coverage", "scope", "table_name = 'contacts'") == ["list_id=13"]


def test_a_load_without_answers_empties_the_scope_it_names(home: Home) -> None:
    home.load([page(home, 1, list_id=12), page(home, 2, list_id=13)], tables.CONTACTS)
    home.load([], tables.CONTACTS, scope={"list_id": [12]})
    assert live(home) == [2]


def test_one_answer_is_the_whole_of_an_addresss_coupons(home: Home) -> None:
    def coupons(email: str, *ids: int, minutes: float = 0) -> Response:
        data = {"coupons": [{"id": id_, "email": email.swapcase(), "couponcode": "A"} for id_ in ids]}
        return home.answer(contacts.GETCOUPON, data, minutes, email=email)

    home.load(
        [coupons("Ann@x.com", 1, 2), coupons("bob@x.com", 3)],
        tables.COUPONS,
        is_complete=False,
        shrink_limit=0.5,
    )
    home.load([coupons("Ann@x.com", minutes=60)], tables.COUPONS, is_complete=False, shrink_limit=0.5)
    assert home.values(tables.COUPONS, "coupon_id", "_deleted_at is null") == [3]


def test_clickers_of_a_campaign_come_and_go_with_its_answer(home: Home) -> None:
    def stats(campaign_id: int, *people: str, minutes: float = 0) -> Response:
        clicks = [
            {
                "url": "https://a.example",
                "message": "m",
                "clickers": [f"{name}@x.com(2 clicks)" for name in people],
            }
        ]
        data = {"campaign": {"stats": {"open": "1 (10%)"}, "clicks": clicks}}
        return home.answer(campaigns.STATS, data, minutes, id=campaign_id, type="standard")

    home.load(
        [stats(1, "ann", "bob"), stats(2, "ann")],
        tables.CAMPAIGN_STATS,
        tables.CAMPAIGN_LINKS,
        tables.CAMPAIGN_CLICKERS,
    )
    home.load(
        [stats(1, "bob", minutes=60)], tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS
    )
    left = home.rows(tables.CAMPAIGN_CLICKERS, "campaign_id, email", "_deleted_at is null")
    assert [tuple(row.values()) for row in left] == [(1, "bob@x.com"), (2, "ann@x.com")]


@pytest.mark.parametrize(("known", "others", "is_refused"), [(20, 12, True), (20, 10, False), (9, 9, False)])
def test_clickers_that_were_exchanged_for_others_are_refused_where_they_are_many(
    home: Home, known: int, others: int, is_refused: bool
) -> None:
    def stats(numbers: Iterable[int], minutes: float = 0) -> Response:
        clicks = [
            {
                "url": "https://a.example",
                "message": "m",
                "clickers": [f"c{number}@x.com(2 clicks)" for number in numbers],
            }
        ]
        return home.answer(
            campaigns.STATS, {"campaign": {"stats": {}, "clicks": clicks}}, minutes, id=1, type="standard"
        )

    home.load([stats(range(known))], tables.CAMPAIGN_CLICKERS)
    report = home.load([stats(range(others, others + known), 60)], tables.CAMPAIGN_CLICKERS, shrink_limit=0.5)
    assert bool(report.refused) is is_refused


def test_users_of_several_businesses_are_one_listing(home: Home) -> None:
    def listing(*businesses: int, minutes: float = 0) -> Response:
        items = {
            str(id_): {"users": {"1": {"fullname": "Ann", "username": "ann", "status": "Active"}}}
            for id_ in businesses
        }
        return home.answer(users.LISTS, {"users": {"count": len(items), "items": items}}, minutes)

    home.load([listing(1, 2)], tables.USERS)
    home.load([listing(2, minutes=60)], tables.USERS)
    assert home.values(tables.USERS, "business_id", "_deleted_at is null") == [2]


def test_a_listing_of_which_nothing_came_is_noted_without_a_time(home: Home) -> None:
    home.load([], tables.CONTACTS, scope={"list_id": 12}, is_complete=False)
    (coverage,) = home.rows("sync.coverage")
    assert (coverage["scope"], coverage["is_complete"], coverage["as_of"]) == ("list_id=12", False, None)
    home.load([page(home, 1)], tables.CONTACTS)
    home.load([], tables.CONTACTS, scope={"list_id": 12}, is_complete=False, logged_at=START + 48 * HOUR)
    assert home.values("sync.coverage", "as_of") == [START]
    assert live(home) == [1]
