"""A response is archived without entries about forgotten people, and says of everybody else what it said."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api import parsing, validation
from marketing_api.exchange import Exchange, Response
from marketing_api.operation import Call, Operation
from marketing_api.operations import account, contacts, find, lists, reputation
from marketing_api.records.campaigns import STATS, CampaignClicker, CampaignLink
from marketing_api.records.contacts import Contact
from tests.warehouse.exchanges import NOON, envelope, exchange
from warehouse.forgetting import Forgotten, Person

ANN, BOB = "ann@corner.example", "bob@corner.example"
PERSON = Person((ANN,), (("main", 7),))
WHO = Forgotten(b"a key", frozenset(Forgotten(b"a key").fingerprints_of(PERSON)))


def test_fingerprints_are_those_that_homes_have_stored() -> None:
    assert WHO.fingerprints == {"9fe182f9ddad8b9be4c43723664c3c60", "5a945462c7dc96873bacc09d178d79dc"}


def contact(number: int, email: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "email": email, "status": 1, "fields": {"1": f"name of {email}"}} | more


def listing(*people: dict[str, Any]) -> bytes:
    return envelope({"contacts": {"count": len(people), "items": people}})


def asked(body: bytes | Path, operation: Operation = contacts.GETCONTACTS, **params: str) -> Exchange:
    params = params or {"listid": "3"}
    return replace(exchange(body), call=Call(operation, params))


def response(archived: Exchange) -> Response:
    body = archived.body
    return Response(archived.request_id, archived.account, archived.call, archived.requested_at, body)


def people_of(archived: Exchange) -> list[str]:
    found = parsing.parse_rows(response(archived), NOON.tzinfo, NOON.date())
    return [record.email for rows in found for record in rows.records if isinstance(record, Contact)]


def data(archived: Exchange) -> Any:
    assert isinstance(archived.body, bytes)
    return json.loads(archived.body)["response"]["data"]


@given(
    st.lists(st.tuples(st.integers(1, 12), st.sampled_from([ANN, BOB, f"jo{ANN}", f"{ANN}.org", f"o'{ANN}"])))
)
def test_a_listing_keeps_its_places_and_counts_and_everybody_else(people: list[tuple[int, str]]) -> None:
    before = asked(listing(*(contact(*each) for each in people)))
    after = WHO.cut_exchange(before)
    others = [email for number, email in people if email != ANN and number != 7]
    assert people_of(after) == others
    assert parsing.item_keys(response(after)).__len__() == len(people)
    assert not validation.find_flaw(response(after))
    assert parsing.find_shortage(response(after)) == parsing.find_shortage(response(before))
    assert (after is before) == (len(others) == len(people))
    assert WHO.cut_exchange(after) is after


def test_how_many_were_cut_is_told() -> None:
    after = WHO.cut_exchange(
        asked(listing(contact(1, BOB), contact(7, "older@corner.example"), contact(8, ANN)))
    )
    found = list(parsing.parse_rows(response(after), NOON.tzinfo, NOON.date()))
    assert sum(rows.cut for rows in found) == 2
    assert sum(len(rows.rejected) for rows in found) == 0


def test_an_entry_that_moves_to_another_page_is_recognised() -> None:
    pages = [
        WHO.cut_exchange(asked(listing(contact(1, BOB), contact(7, ANN)))),
        WHO.cut_exchange(asked(listing(contact(7, ANN)))),
    ]
    first, second = (parsing.item_keys(response(page)) for page in pages)
    assert set(second) < set(first)


@pytest.mark.parametrize(
    "spelling", [ANN.upper(), f" {ANN}\t", f"{ANN}​", f"{ANN} (2 clicks)", f"Ann <{ANN}>"]
)
def test_whatever_the_spelling_it_is_them(spelling: str) -> None:
    clicks = [{"url": "https://shop.example", "clickers": [spelling, f"{BOB}(1 click)"]}]
    after = WHO.cut_exchange(asked(envelope({"campaign": {"clicks": clicks}}), STATS, id="4"))
    assert "ann" not in json.dumps(data(after)).lower()


@pytest.mark.parametrize("at", ["\\u0040", "@"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_however_the_body_is_written(at: str, encoding: str) -> None:
    body = listing(contact(1, BOB), contact(8, ANN)).decode().replace("@", at).encode(encoding)
    assert people_of(WHO.cut_exchange(asked(body))) == [BOB]


def test_a_body_in_a_file_is_replaced_there(tmp_path: Path) -> None:
    spool = tmp_path / "spool.json"
    spool.write_bytes(
        b"\xef\xbb\xbf" + listing(*(contact(number, f"c{number}@x.example") for number in range(1, 2000)))
    )
    before = spool.stat().st_ino
    after = WHO.cut_exchange(asked(spool))
    assert after.body == spool
    assert spool.stat().st_ino != before
    assert len(people_of(after)) == 1998
    assert [path.name for path in tmp_path.iterdir()] == ["spool.json"]


@pytest.mark.parametrize("body", [b'{"response": {"data": {"contacts"', b"<html>ann"])
def test_a_body_that_cannot_be_read_is_not_kept(body: bytes) -> None:
    assert WHO.cut_exchange(asked(body)).body == b""


@pytest.mark.parametrize(
    ("operation", "params", "payload"),
    [
        (contacts.GETCONTACTBYEMAIL, {"email": ANN}, {"contact": [contact(7, ANN, listid=3)]}),
        (contacts.TIMELINE, {"id": "7"}, {"id": 7, "email": "", "timeline": {"data": []}}),
        (contacts.GETCOUPON, {"email": ANN.upper()}, {"coupons": [{"id": 1, "couponcode": "Ann"}]}),
        (find("emailmarketing/addcontact"), {"email": ANN, "listid": "3", "fields[1]": "Ann"}, {"id": 7}),
        (contacts.GETCONTACT, {"id": "12"}, {"contact": contact(12, ANN)}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_of_a_response_about_them_nothing_is_kept(
    operation: Operation, params: dict[str, str], payload: Any
) -> None:
    after = WHO.cut_exchange(
        replace(exchange(envelope(payload), error=f"no {ANN}"), call=Call(operation, params))
    )
    assert after.body == b""
    is_named = "12" not in params.values()
    assert (after.call.params, after.error) == (({}, None) if is_named else (params, f"no {ANN}"))


@pytest.mark.parametrize(
    "clickers",
    [
        [f"{ANN}(2 clicks)", f"{BOB}(1 click)"],
        {ANN: 2, BOB: 1},
        [[ANN, 2], [BOB, 1]],
        {"1": [ANN, 2], "2": [BOB, 1]},
        {"1": f"{ANN}(2 clicks)", "2": f"{BOB}(1 click)"},
        [{"address": ANN, "clicks": 2}, {"address": BOB, "clicks": 1}],
    ],
)
def test_clicks_of_others_stay(clickers: Any) -> None:
    clicks = [{"url": "https://shop.example", "clickers": clickers}]
    after = WHO.cut_exchange(
        asked(envelope({"campaign": {"stats": {"open": "2 (10%)"}, "clicks": clicks}}), STATS, id="4")
    )
    assert not validation.find_flaw(response(after))
    found = list(parsing.parse_rows(response(after), NOON.tzinfo, NOON.date()))
    assert not [each for rows in found for each in (*rows.rejected, *rows.flawed)]
    clicked = {
        each.email: each.click_count
        for rows in found
        for each in rows.records
        if isinstance(each, CampaignClicker)
    }
    assert clicked == {BOB: 1}
    links = [each for rows in found for each in rows.records if isinstance(each, CampaignLink)]
    assert [(link.clicker_count, link.click_count) for link in links] == [(1, 1)]


def test_a_list_whose_sender_they_are_stays_without_their_address() -> None:
    items = [{"id": 3, "name": "News", "reply_to": ANN, "from_email": BOB}]
    after = WHO.cut_exchange(asked(envelope({"lists": {"count": 1, "items": items}}), lists.GETLISTS, x="1"))
    assert data(after)["lists"]["items"] == [items[0] | {"reply_to": None}]


def test_a_contact_who_has_their_address_in_a_field_stays_without_it() -> None:
    friend = contact(1, BOB, fields={"1": ANN, "2": "Bob"}, referrer=ANN.upper())
    after = WHO.cut_exchange(asked(listing(friend, contact(8, ANN))))
    assert data(after)["contacts"]["items"][0] == friend | {
        "fields": {"1": None, "2": "Bob"},
        "referrer": None,
    }
    assert people_of(after) == [BOB]


def test_reviews_of_theirs_go_and_an_id_among_other_ids_is_no_contact() -> None:
    reviews = [{"id": 7, "email": BOB, "inquiry": "7"}, {"id": 8, "email": ANN, "inquiry": "I am Ann"}]
    after = WHO.cut_exchange(
        asked(envelope({"reviews": {"count": 2, "items": reviews}}), reputation.DIRECT, x="1")
    )
    assert data(after)["reviews"]["items"][0] == reviews[0]
    assert "ann" not in json.dumps(data(after)).lower()


def test_the_business_stays_whoever_owns_it() -> None:
    before = asked(envelope({"id": 4001, "email": ANN}), account.ME, x="1")
    assert WHO.cut_exchange(before) is before


def test_a_contact_of_another_account_stays() -> None:
    before = replace(asked(listing(contact(7, BOB))), account="other")
    assert WHO.cut_exchange(before) is before


def test_fingerprints_tell_nobody_without_the_key() -> None:
    other = Forgotten(b"another key", WHO.fingerprints)
    assert WHO.is_address(f" {ANN.title()}")
    assert not other.is_address(ANN)
    assert not any(ANN in each for each in WHO.fingerprints)
