"""What is known about asking each contact."""

import datetime as dt
from typing import Any

from marketing_api.operations import contacts
from tests.warehouse.answering import START, Home
from tests.warehouse.timelines import event, load, timeline
from warehouse import tables


def coverage(home: Home, contact_id: int = 1) -> dict[str, Any]:
    (row,) = home.rows("sync.contact_coverage", where=f"contact_id = {contact_id}")
    return row


def timeline_state(home: Home, contact_id: int = 1) -> tuple[Any, ...]:
    row = coverage(home, contact_id)
    return tuple(row[f"timeline_{name}"] for name in ("times_asked", "times_changed", "served", "total"))


def add_contacts(home: Home, *people: tuple[int, str], list_id: int = 12) -> None:
    items = [{"id": id_, "email": email, "status": "1"} for id_, email in people]
    home.load(
        [home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, -60, listid=list_id)],
        tables.CONTACTS,
    )


def coupons(home: Home, email: str, *ids: int, minutes: float = 0, **options: Any) -> None:
    data = {"coupons": [{"id": id_, "couponcode": "C"} for id_ in ids]}
    home.load([home.answer(contacts.GETCOUPON, data, minutes, email=email)], tables.COUPONS, **options)


def test_each_asking_is_counted_and_whether_it_brought_something(home: Home) -> None:
    load(home, timeline(home, 1, event(1)))
    load(home, timeline(home, 1, event(1), minutes=60))
    load(home, timeline(home, 1, event(1), event(2), total=7, minutes=120))
    assert timeline_state(home) == (3, 2, 2, 7)
    row = coverage(home)
    assert row["timeline_asked_at"] == row["timeline_changed_at"] == START + dt.timedelta(hours=2)
    assert row["timeline_first_asked_at"] == START


def test_coupons_of_some_people_do_not_make_the_table_complete_and_those_that_are_gone_are_marked_all_the_same(
    home: Home,
) -> None:
    coupons(home, "ann@x.com", 7, 8, is_complete=False)
    coupons(home, "ann@x.com", 8, minutes=60, is_complete=False)
    (row,) = home.rows("sync.coverage", "is_complete, reason")
    assert row == {"is_complete": False, "reason": "incomplete reading"}
    assert home.values(tables.COUPONS, "coupon_id", "_deleted_at is null") == [8]
    coupons(home, "bob@x.com", minutes=90)
    assert home.values("sync.coverage", "is_complete") == [True]


def test_an_empty_timeline_counts_as_asked(home: Home) -> None:
    load(home, timeline(home, 1))
    assert timeline_state(home) == (1, 0, 0, 0)
    assert coverage(home)["timeline_changed_at"] is None


def test_an_answer_that_is_loaded_again_or_is_older_counts_once(home: Home) -> None:
    answers = [timeline(home, 1, event(1)), timeline(home, 1, event(1), minutes=60)]
    load(home, answers[1])
    load(home, *answers)
    load(home, answers[0])
    assert timeline_state(home) == (1, 1, 1, 1)


def test_the_address_is_the_contacts(home: Home) -> None:
    add_contacts(home, (1, "ann@x.com"))
    load(home, timeline(home, 1), timeline(home, 2))
    assert (coverage(home, 1)["email"], coverage(home, 2)["email"]) == ("ann@x.com", None)


def test_an_addresss_coupons_are_known_of_every_contact_that_has_it(home: Home) -> None:
    add_contacts(home, (1, "Ann@x.com"), (2, "bob@x.com"), (3, "ann@x.com"))
    coupons(home, "ann@x.com", 7, 8)
    assert home.values("sync.contact_coverage", "contact_id") == [1, 3]
    assert [coverage(home, id_)["coupon_count"] for id_ in (1, 3)] == [2, 2]


def test_coupons_and_timelines_do_not_disturb_one_another(home: Home) -> None:
    add_contacts(home, (1, "ann@x.com"))
    load(home, timeline(home, 1, event(1)))
    coupons(home, "ann@x.com", minutes=10)
    coupons(home, "ann@x.com", 7, minutes=20)
    coupons(home, "ann@x.com", minutes=30)
    row = coverage(home)
    assert timeline_state(home) == (1, 1, 1, 1)
    assert (row["coupon_times_asked"], row["coupon_times_changed"], row["coupon_count"]) == (3, 2, 0)
    assert row["coupon_changed_at"] == START + dt.timedelta(minutes=30)
