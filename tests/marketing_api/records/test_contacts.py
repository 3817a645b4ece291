import datetime as dt
from typing import Any

import pytest

from marketing_api.operations import contacts
from marketing_api.records.contacts import Contact, Coupon
from marketing_api.records.contacts import read_contacts as rows_of_contacts
from marketing_api.records.shapes import read_single
from tests.marketing_api import samples
from tests.marketing_api.responses import records, utc


def contact(**entry: Any) -> Contact:
    (read,) = records(Contact, contacts.GETCONTACTS, {"contacts": {"items": [{"id": 1, **entry}]}}, listid=5)
    return read


def test_contacts_are_of_the_list_that_was_asked() -> None:
    ann, bob = records(Contact, contacts.GETCONTACTS, samples.CONTACTS, listid=5)
    assert (ann.list_id, ann.contact_id, ann.email, ann.status, ann.status_code) == (
        5,
        1001,
        "ann@example.com",
        "active",
        1,
    )
    assert ann.registered_at == utc("2014-11-04 21:33:00")
    assert "custom_fields" not in ann.model_fields_set
    assert bob.custom_fields == {"12": "London"}


@pytest.mark.parametrize(
    ("status", "word", "code"),
    [
        ("0", "unconfirmed", 0),
        (1, "active", 1),
        ("2", "unsubscribed", 2),
        (3, "bounced", 3),
        ("Active", "active", 1),
        (" BOUNCED ", "bounced", 3),
        ("Disactive", "disactive", None),
        ("7", None, 7),
        ("N/A", None, None),
        (None, None, None),
    ],
)
def test_status_codes_and_words_are_both_read(status: Any, word: str | None, code: int | None) -> None:
    read = contact(status=status)
    assert (read.status, read.status_code) == (word, code)


@pytest.mark.parametrize(
    ("entry", "custom"),
    [
        ({"fields": {"12": "London"}}, {"12": "London"}),
        ({"12": "London", "City": 7}, {"12": "London", "City": 7}),
        ({"12": "London", "fields": {"13": "x"}}, {"12": "London", "13": "x"}),
        ({"fields": []}, None),
    ],
    ids=["in an object", "beside the named fields", "both", "empty"],
)
def test_custom_fields_are_kept_wherever_they_stand(
    entry: dict[str, Any], custom: dict[str, Any] | None
) -> None:
    read = contact(**entry)
    assert read.custom_fields == custom
    assert read.extra is None
    assert "custom_fields" in read.model_fields_set


def test_list_of_an_entry_gives_way_to_the_list_that_was_asked() -> None:
    read = contact(listid="9", list_name="Newsletter")
    assert read.list_id == 5
    assert read.extra == {"list_name": "Newsletter"}
    assert read.custom_fields is None


def test_look_up_by_email_gives_one_contact_per_list() -> None:
    entries = [
        {"id": 1, "listid": "5", "email": "a@example.com", "12": "x"},
        {"id": 2, "listid": 6, "email": "a@example.com"},
    ]
    read = [Contact.model_validate(raw) for _, raw in read_single(rows_of_contacts)(entries, {})]
    assert [(each.list_id, each.contact_id, each.custom_fields) for each in read] == [
        (5, 1, {"12": "x"}),
        (6, 2, None),
    ]


def test_look_up_by_id_gives_an_object() -> None:
    (pair,) = read_single(rows_of_contacts)({"id": 1, "email": "a@example.com"}, {"listid": "5"})
    assert Contact.model_validate(pair[1]).list_id == 5


def test_coupons_that_were_not_redeemed_have_no_date() -> None:
    redeemed, open_ = records(Coupon, contacts.GETCOUPON, samples.COUPONS, email="ann@example.com")
    assert (redeemed.coupon_id, redeemed.coupon_code, redeemed.is_redeemed) == (3, "SPRING", True)
    assert redeemed.redeemed_on == dt.date(2014, 11, 4)
    assert (open_.is_redeemed, open_.redeemed_on) == (False, None)


def test_coupon_without_an_address_is_of_the_one_that_was_asked() -> None:
    (coupon,) = records(Coupon, contacts.GETCOUPON, {"coupons": {"1": {"id": 3}}}, email="ann@example.com")
    assert coupon.email == "ann@example.com"
