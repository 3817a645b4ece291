"""One person is one person wherever their address comes from and however it is written."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.address import normal_form
from marketing_api.operations import campaigns, contacts, lists
from tests.depth import examples
from tests.spellings import PEOPLE, spelled, written
from tests.warehouse.answering import START
from tests.warehouse.in_memory import Tables, answer
from warehouse import tables
from warehouse.sql import fetch_records, load_query
from warehouse.warehouse import REFUSAL_CODE

_STATISTICS = (tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS)


def candidates(memory: Tables, name: str, **params: Any) -> list[dict[str, Any]]:
    sql = load_query(name).replace("{refusal_code}", REFUSAL_CODE)
    return fetch_records(memory.connection, sql, {"account": "main", **params})


def members(memory: Tables, minutes: float, list_id: int, *spellings: str | None, first: int = 0) -> None:
    items = [
        {"id": 100 * list_id + number, "email": each, "status": "1"}
        for number, each in enumerate(spellings, first)
    ]
    memory.load(
        [answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, minutes, listid=list_id)],
        tables.CONTACTS,
        is_complete=True,
    )


def clicked(memory: Tables, *spellings: str) -> None:
    clicks = [{"url": "u", "clickers": [{"email": each, "clicks": 1} for each in spellings]}]
    memory.load(
        [
            answer(
                campaigns.STATS,
                {"campaign": {"stats": {"open": "9 (9%)"}, "clicks": clicks}},
                3,
                id=1,
                type="standard",
            )
        ],
        *_STATISTICS,
    )


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(PEOPLE, st.data())
def test_who_clicked_redeemed_and_was_requested_is_the_same_person(
    memory: Tables, people: list[str], data: st.DataObject
) -> None:
    memory.fresh()
    memory.load(
        [answer(lists.GETLISTS, {"lists": {"count": 2, "items": [{"id": 1}, {"id": 2}]}}, 0)],
        tables.LISTS,
        tables.LIST_FIELDS,
    )
    for list_id in (1, 2):
        members(memory, 1, list_id, *(data.draw(spelled(each)) for each in people))
    clicked(memory, *(data.draw(written(each)) for each in people))
    asked = candidates(memory, "coupon_candidates", nothing=[])
    assert sorted(normal_form(row["email"]) for row in asked) == sorted(map(normal_form, people))
    responses = []
    for number, row in enumerate(asked):
        person = next(each for each in people if normal_form(each) == normal_form(row["email"]))
        coupon = {
            "id": number,
            "email": data.draw(spelled(person)),
            "couponredeemed": "1",
            "couponredeemedon": "03/01/2026",
        }
        responses.append(answer(contacts.GETCOUPON, {"coupons": [coupon]}, 2, email=row["email"]))
    memory.load(responses, tables.COUPONS)

    found = candidates(memory, "coupon_candidates", nothing=[])
    assert [row["asked_at"] for row in found] == [START + dt.timedelta(minutes=2)] * len(people)
    assert None not in [row["clicked_at"] for row in found]
    timelines = candidates(memory, "timeline_candidates", today=0, days=90)
    assert len(timelines) == 2 * len(people)
    assert None not in [row[name] for row in timelines for name in ("clicked_at", "redeemed_at")]

    for list_id in (1, 2):  # the first of them goes
        members(memory, 4, list_id, *(data.draw(spelled(each)) for each in people[1:]), first=1)
    orphans = memory.rows(load_query("orphaned_coupons").format(account="'main'"))
    assert {address for _, address in orphans} == {normal_form(people[0])}


@pytest.mark.parametrize("spelling", ["ann@x.com\t", "\u00a0ann@x.com", "ANN@x.com\u200b"])
def test_a_blank_that_sql_does_not_trim_has_coupons_requested_once(memory: Tables, spelling: str) -> None:
    memory.fresh()
    members(memory, 1, 1, spelling)
    ((asked,),) = memory.rows("select email from source.contacts")
    assert asked == spelling
    memory.load([answer(contacts.GETCOUPON, {"coupons": []}, 2, email=asked)], tables.COUPONS)
    assert [row["asked_at"] is None for row in candidates(memory, "coupon_candidates", nothing=[])] == [False]


@pytest.mark.parametrize("nobody", [None, "", " ", "\t\u200b"])
def test_who_has_no_address_has_no_normal_form(memory: Tables, nobody: str | None) -> None:
    memory.fresh()
    members(memory, 1, 1, nobody, nobody)
    assert memory.rows("select distinct email_normalized from source.contacts") == [(None,)]
    assert candidates(memory, "coupon_candidates", nothing=[]) == []
