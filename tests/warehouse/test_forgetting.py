"""People who asked to be forgotten are in no text, call or response, however they are named; everybody else
stays as they are."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api import validation
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import contacts, find, reputation
from marketing_api.parsing import pairs
from marketing_api.records.campaigns import STATS, CampaignClicker
from tests.warehouse.exchanges import envelope, exchange
from warehouse.forgetting import Forgotten, is_pseudonym

ANN, BOB = "ann.lee+news@example.com", "bob@example.com"
FORGOTTEN = Forgotten(b"a key").including([ANN], [("main", 7)])
PSEUDONYM, NUMBER = FORGOTTEN.address(ANN), FORGOTTEN.contact("main", 7)

words = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="@\\%"), max_size=12)
addresses = st.from_regex(
    r"[a-z0-9äé'!#][a-z0-9.+äé'_-]{0,14}[a-z0-9ä]@[a-z0-9ü][a-z0-9ü-]{0,8}[a-z0-9](\.[a-z]{2,4}){1,2}",
    fullmatch=True,
)
#: How an address comes to stand in a text, each with what it is done by.
escapes = st.lists(
    st.sampled_from(
        [
            lambda text: text,
            quote,
            lambda text: quote(text, safe=""),
            json.dumps,
            lambda text: json.dumps(text)[1:-1],
        ]
    ),
    max_size=3,
)

BY_PHONE = find("emailmarketing/getcontactsbyphonenumber")


def escaped(text: str, ways: list[Any]) -> str:
    for way in ways:
        text = way(text)
    return text


@given(addresses, words, words, escapes)
def test_an_address_goes_however_it_is_escaped(
    address: str, before: str, behind: str, ways: list[Any]
) -> None:
    who = Forgotten(b"k").including([address], [])
    after = who.text(escaped(f"{before} {address.upper()} {behind}", ways))
    assert who.address(address) in after
    assert escaped(address.upper(), ways).strip('"') not in after
    assert who.text(after) == after


@given(addresses, addresses, escapes)
def test_another_address_stays(address: str, other: str, ways: list[Any]) -> None:
    who = Forgotten(b"k").including([address], [])
    text = escaped(f"to {other}, or {other}.", ways)
    if other.lower() != address.lower() and address.lower() not in other.lower():
        assert who.text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "joann.lee+news@example.com",
        "x.ann.lee+news@example.com",
        "ann.lee+news@example.com.au",
        "ann.lee+news@example.community",
        "ann.lee+news@example.com-x.org",
        "ann.lee+news@@example.com",
        "ann.lee+news@",
        "@example.com",
        "a 40 year old%40",
        "o'ann.lee+news@example.com",
        "o’ann.lee+news@example.com",
        "e\u0301ann.lee+news@example.com",
        "%C3%A9ann.lee+news%40example.com",
        "&eacute;ann.lee+news&#64;example.com",
        "contact 70, the 7 of us, list 7, contacts7x",
    ],
)
def test_what_only_contains_an_address_is_somebody_else(text: str) -> None:
    assert FORGOTTEN.text(text) == text


@pytest.mark.parametrize(
    "form",
    [
        "mailto:{}?subject=Hello",
        "<{}>",
        "Ann <{}>, Bob",
        "{}(2 clicks)",
        "{}.",
        "“{}”",
        "'{}'",
        "a@{}",
        "https://shop.example/?e={}&x=1",
        "\\n{}\\n",
        "e%3D{}%26x",
        "\\u003c{}\\u003e",
    ],
)
def test_an_address_goes_from_the_middle_of_a_text(form: str) -> None:
    assert FORGOTTEN.text(form.format(ANN)) == form.format(PSEUDONYM)


@pytest.mark.parametrize(
    "at",
    ["&#64;", "&#x40;", "&commat;", "&amp;#64;", "&#064;", "%40", "%2540", "%252540", "\\u0040", "\\\\u0040"],
)
def test_an_address_goes_in_the_spellings_of_pages_links_and_json(at: str) -> None:
    text = f"<a href='mailto:{ANN.replace('@', at)}'>&lt;{ANN.replace('@', at)}&gt;</a>"
    assert FORGOTTEN.text(text) == f"<a href='mailto:{PSEUDONYM}'>&lt;{PSEUDONYM}&gt;</a>"
    assert pc.match_substring_regex(pa.scalar(text.encode()), FORGOTTEN.likely).as_py()


@given(
    addresses,
    st.sampled_from(["{}", "{}\t", "\u200b{}", " {} "]),
    st.sampled_from([str, str.upper, partial(unicodedata.normalize, "NFD")]),
)
def test_every_spelling_of_an_address_is_theirs(address: str, form: str, spelled: Any) -> None:
    who = Forgotten(b"k").including([address], [])
    text = form.format(spelled(address))
    assert who.is_address(text)
    assert who.address(address) in who.text(f"to {text}, and")


NUMBERS = Forgotten(b"k").including([ANN], [], ["41791234567"])


@pytest.mark.parametrize(
    "number",
    [
        "+41 79 123 45 67",
        "0041791234567",
        "41-79-123-45-67",
        "+41 (79) 123.45.67",
        "%2B41%2079%20123%2045%2067",
        "+41&nbsp;79&nbsp;1234567",
        "\\u002b41 791234567",
    ],
)
def test_a_telephone_number_goes_however_it_is_written(number: str) -> None:
    for form in ("call {}!", '{{"phone":"{}"}}', "tel:{}?x=1", "{}"):
        after = NUMBERS.text(form.format(number))
        assert NUMBERS.text(after) == after
        assert not re.search("7.*9.*1.*2.*3.*4.*5.*6.*7", after), after
        assert pc.match_substring_regex(pa.scalar(form.format(number).encode()), NUMBERS.likely).as_py()


@pytest.mark.parametrize(
    "text",
    ["417912345678", "1 417912345670", "a41791234567", "2026-01-02 79 123 45 67", "order 441791234567x"],
)
def test_what_only_contains_a_telephone_number_is_another(text: str) -> None:
    assert NUMBERS.text(text) == text


@pytest.mark.parametrize(
    "form",
    [
        "contact {}",
        "contact_id={}&x",
        "contactid%3D{}",
        '{{"contact_id": "{}"}}',
        '{{\\"contactid\\":\\"{}\\"}}',
        "contact: {}.",
    ],
)
def test_an_id_goes_where_a_text_says_that_it_is_a_contacts(form: str) -> None:
    assert FORGOTTEN.text(form.format(7), "main") == form.format(NUMBER)
    assert FORGOTTEN.text(form.format(7), "other") == form.format(7)
    assert FORGOTTEN.text(form.format(70), "main") == form.format(70)


@given(addresses, st.integers(1, 10**15))
def test_pseudonyms_are_their_own_and_nobody_is_told_from_them(address: str, contact_id: int) -> None:
    pseudonym, number = FORGOTTEN.address(address), FORGOTTEN.contact("main", contact_id)
    assert FORGOTTEN.address(pseudonym) == pseudonym
    assert FORGOTTEN.contact("main", number) == number < 0
    assert is_pseudonym(pseudonym)
    assert is_pseudonym(str(number), is_id=True)
    assert not is_pseudonym(address)
    assert (
        pseudonym == FORGOTTEN.address(f" {address.upper()} ") != Forgotten(b"another key").address(address)
    )


def contact(number: int, email: str, **more: Any) -> dict[str, Any]:
    fields = {"12": f"name of {email}", "13": "+41 79 123 45 67"}
    return {
        "id": number,
        "email": email,
        "status": "Active",
        "registration_date": "2026-01-02 03:04:05",
        "fields": fields,
        **more,
    }


def listing(*entries: Any) -> bytes:
    return envelope({"contacts": {"count": len(entries), "items": list(entries)}})


def data(body: bytes) -> Any:
    return json.loads(body)["response"]["data"]


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.sampled_from([ANN, ANN.upper(), BOB, "cy@example.com"])), max_size=8
    )
)
def test_a_listing_keeps_its_places_dates_and_counts(people: list[tuple[int, str]]) -> None:
    before = listing(*(contact(number, email) for number, email in people))
    after = FORGOTTEN.body("main", contacts.GETCONTACTS, {"listid": "3"}, before)
    assert data(after)["contacts"]["count"] == len(people)
    for (number, email), entry in zip(people, data(after)["contacts"]["items"], strict=True):
        if number == 7 or email.lower() == ANN:
            assert entry == {
                "id": FORGOTTEN.contact("main", number),
                "email": FORGOTTEN.address(email),
                "status": "Active",
                "registration_date": "2026-01-02 03:04:05",
            }
        else:
            assert entry == contact(number, email)
    is_named = any(number == 7 or email.lower() == ANN for number, email in people)
    assert (after is before) == (not is_named)
    assert FORGOTTEN.body("main", contacts.GETCONTACTS, {"listid": "3"}, after) is after


@pytest.mark.parametrize(
    "spoil", [lambda text: text.replace("{", '{"x":NaN,', 1), lambda text: text + " "], ids=["NaN", "blank"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_body_that_has_to_be_mended_loses_nobody_else(spoil: Any, encoding: str) -> None:
    before = spoil(listing(contact(7, ANN), contact(8, BOB)).decode()).encode(encoding)
    after = FORGOTTEN.body("main", contacts.GETCONTACTS, {"listid": "3"}, before)
    assert data(after)["contacts"]["items"][1] == contact(8, BOB)
    assert b"ann" not in after


def test_a_body_that_cannot_be_read_and_names_somebody_is_empty() -> None:
    cut = listing(contact(7, ANN), contact(8, BOB))[:-9]
    assert FORGOTTEN.body("main", contacts.GETCONTACTS, {"listid": "3"}, cut) == b""
    cut = listing(contact(8, BOB))[:-9]
    assert FORGOTTEN.body("main", contacts.GETCONTACTS, {"listid": "3"}, cut) is cut


def test_an_id_among_other_ids_is_no_contact() -> None:
    """A list or field of the number 7 is not the contact 7."""
    before = listing(contact(8, BOB, fields=[{"id": 7, "value": "x"}]))
    assert FORGOTTEN.body("main", contacts.GETCONTACTS, {"listid": "7"}, before) is before
    review = envelope({"reviews": {"count": 1, "items": [{"id": 7, "email": BOB, "inquiry": "fine"}]}})
    assert FORGOTTEN.body("main", reputation.DIRECT, {}, review) is review
    assert FORGOTTEN.params("main", "emailmarketing/getcontacts", {"listid": "7"}) == {"listid": "7"}
    assert FORGOTTEN.params("main", "reputation/getfeedback", {"id": "7"}) == {"id": "7"}


def test_somebody_who_comes_back_under_another_id_is_forgotten_too() -> None:
    (entry,) = data(FORGOTTEN.body("main", contacts.GETCONTACTS, {"listid": "3"}, listing(contact(99, ANN))))[
        "contacts"
    ]["items"]
    assert entry["id"] == FORGOTTEN.contact("main", 99)


def test_a_pseudonym_is_of_the_type_that_the_id_was_of() -> None:
    """Another one would be listed as a change of the service."""
    given = [contact(7, ANN), contact(7, ANN) | {"id": "7"}]
    ids = [
        entry["id"]
        for entry in data(FORGOTTEN.body("main", contacts.GETCONTACTS, {}, listing(*given)))["contacts"][
            "items"
        ]
    ]
    assert ids == [NUMBER, str(NUMBER)]


def test_a_contact_of_another_account_stays() -> None:
    before = listing(contact(7, BOB))
    assert FORGOTTEN.body("other", contacts.GETCONTACTS, {"listid": "3"}, before) is before


TIMELINE = {
    "id": 7,
    "email": ANN,
    "phone": "+41 79 123 45 67",
    "timeline": {
        "count": 2,
        "total": 2,
        "data": [
            {
                "key": "email-campaign-sent",
                "snippet": "Summer sale",
                "datetime": "2026-01-02 03:04:05",
                "timestamp": 1767323045,
                "details": [
                    {"key": "subject", "label": "Subject", "value": "Summer sale"},
                    {"key": "open-date", "label": "Open Date", "value": "2026-01-03 10:00:00"},
                    {"key": "device", "label": "Device", "value": "Ann's phone"},
                ],
            },
            {
                "key": "note",
                "snippet": "Ann called",
                "datetime": "2026-01-02 03:04:05",
                "details": {"1": {"key": "subject", "value": "Dear Ann"}},
            },
        ],
    },
    "utm": {
        "count": 1,
        "data": [
            {
                "link": "https://ann:x@shop.example/p?e=1#a",
                "utm": {"source": "mail"},
                "datetime": "2026-01-02 03:04:05",
            }
        ],
    },
}


def test_a_timeline_keeps_when_and_what_was_sent_to_many() -> None:
    who = Forgotten(FORGOTTEN.key, FORGOTTEN.fingerprints, titles={"summer sale"})
    params = {"id": "7", "include": "utm,automated"}
    after = who.body("main", contacts.TIMELINE, params, envelope(TIMELINE))
    sent, note = data(after)["timeline"]["data"]
    assert sent["snippet"] == "Summer sale"
    assert [detail["key"] for detail in sent["details"]] == ["subject", "open-date"]
    assert note == {"key": "note", "datetime": "2026-01-02 03:04:05", "details": {}}
    assert data(after)["utm"]["data"] == [
        {"link": "https://shop.example/p", "utm": {"source": "mail"}, "datetime": "2026-01-02 03:04:05"}
    ]
    assert data(after)["id"] == NUMBER
    assert not any(trace in after.lower() for trace in (b"ann", b"123 45"))
    kept = who.params("main", contacts.TIMELINE.name, params)
    assert kept == {"id": str(NUMBER), "include": "utm,automated"}
    assert not validation.flaw(exchange_of(after, contacts.TIMELINE.name, kept))


def exchange_of(body: bytes, operation: str, params: dict[str, str]) -> Response:

    one = exchange(body)
    return Response(one.request_id, one.account, Call(find(operation), params), one.requested_at, body)


@pytest.mark.parametrize(
    ("operation", "params", "payload"),
    [
        (contacts.GETCONTACTBYEMAIL, {"email": ANN}, {"contact": [contact(7, ANN, listid=3)]}),
        (
            find("emailmarketing/getcontactsbyphonenumber"),
            {"phone": "+41 79 123 45 67"},
            {"contacts": {"count": 1, "items": [contact(7, ANN)]}},
        ),
        (contacts.GETCONTACT, {"id": "7"}, {"contact": contact(7, "an.older@example.com")}),
        (find("emailmarketing/getcontacttimelinebyemailaddress"), {"email": ANN, "include": "utm"}, TIMELINE),
        (
            contacts.GETCOUPON,
            {"email": ANN},
            {"coupons": [{"id": 7, "couponcode": "SUMMER", "couponredeemed": False}]},
        ),
        (
            find("emailmarketing/addcontact"),
            {"email": ANN, "listid": "3", "status": "1", "fields[12]": "Ann"},
            {"id": 7, "item": f"{ANN} was added"},
        ),
        (contacts.ADDTAG, {"email": ANN, "tagname": "called Ann"}, {"item": "tagged Ann"}),
        (
            reputation.DIRECT,
            {},
            {
                "reviews": {
                    "count": 1,
                    "items": [{"id": 5, "email": ANN, "phone": "1234567", "inquiry": "I am Ann"}],
                }
            },
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_no_response_names_them(operation: Any, params: dict[str, str], payload: Any) -> None:
    one = exchange(envelope(payload), error=f"refused {ANN}")

    kept = FORGOTTEN.exchange(replace(one, call=Call(operation, params)))
    assert isinstance(kept.body, bytes)
    left = f"{kept.call.params} {kept.body.decode()} {kept.error}".lower()
    assert not [trace for trace in ("ann", "79 123", "1234567", "older") if trace in left]
    assert data(kept.body).get("id", NUMBER) == NUMBER
    if operation.is_read and operation.records:
        assert not validation.flaw(exchange_of(kept.body, operation.name, kept.call.params))
    assert FORGOTTEN.exchange(kept) is kept


@pytest.mark.parametrize(
    "clickers",
    [
        [f"{ANN}(2 clicks)", f"{BOB}(1 click)"],
        {ANN: 2, BOB: 1},
        [[ANN, 2], [BOB, 1]],
        [{"address": ANN, "clicks": 2}, {"address": BOB, "clicks": 1}],
    ],
)
def test_clicks_are_still_counted(clickers: Any) -> None:

    stats = {
        "campaign": {
            "stats": {"open": "2 (10%)"},
            "clicks": [{"url": "https://shop.example", "clickers": clickers}],
        }
    }
    after = FORGOTTEN.body("main", STATS, {"id": "4", "type": "standard"}, envelope(stats))
    found = [
        raw for record, raw in pairs(exchange_of(after, STATS.name, {"id": "4"})) if record is CampaignClicker
    ]
    assert {raw["email"]: raw["click_count"] for raw in found} == {PSEUDONYM: 2, BOB: 1}


def test_a_body_in_a_file_is_written_anew_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "7.json"
    path.write_bytes(listing(contact(8, BOB)))
    one = exchange(path, contacts.GETCONTACTS.bind(listid=3))
    assert FORGOTTEN.exchange(one) is one
    path.write_bytes(listing(contact(7, ANN), contact(8, BOB)))
    kept = FORGOTTEN.exchange(one)
    assert kept.body == path
    assert path.read_bytes() == FORGOTTEN.body(
        "main", contacts.GETCONTACTS, {"listid": "3"}, listing(contact(7, ANN), contact(8, BOB))
    )
    path.write_bytes(b"")
    assert FORGOTTEN.exchange(one) is one
    assert [each.name for each in tmp_path.iterdir()] == ["7.json"]


@pytest.mark.slow
def test_in_a_large_body_they_are_found_where_they_are_likely_to_be() -> None:
    people = [
        contact(number, ANN if number in (7, 4000) else f"contact{number}@example.com")
        for number in range(1, 9000)
    ]
    for name, who in {"by name": FORGOTTEN, "by list": replace(FORGOTTEN, likely=None)}.items():
        after = who.body("main", contacts.GETCONTACTS, {"listid": "3"}, listing(*people))
        changed = [
            one["id"]
            for one, entry in zip(people, data(after)["contacts"]["items"], strict=True)
            if entry != one
        ]
        assert changed == [7, 4000], name


@given(addresses, words, words, escapes)
def test_what_names_somebody_is_likely_to(address: str, before: str, behind: str, ways: list[Any]) -> None:
    """The archive is searched by a pattern first: it must find all that is looked at closely then."""

    who = Forgotten(b"k").including([address], [("main", 7)])
    text = escaped(f"{before} {address} {behind}", ways)
    texts = [text, '{"id":"7"}', '{"contact_id": 7, "x": 1}', '{"id": 70}']
    found = pc.match_substring_regex(pa.array([each.encode() for each in texts]), who.likely)
    assert found.to_pylist()[:3] == [True, True, True]
    assert pc.match_substring_regex(pa.scalar(f"x {address.upper()}".encode("utf-16")), who.likely).as_py()
    many = who.including([f"somebody{number}@corner.example" for number in range(20)], [], ["0795550102"])
    assert pc.match_substring_regex(pa.scalar(text.encode()), many.likely).as_py()


@given(st.binary(max_size=200), st.sampled_from([b"", b"\\", b"%5C", b"&#"]))
def test_bytes_that_are_no_text_are_searched_too(noise: bytes, before: bytes) -> None:
    raw = before + noise + b" ann.lee+news@example.com "
    assert [raw[begin:end] for begin, end, _ in FORGOTTEN.found(raw) if end > len(before + noise)] == [
        ANN.encode()
    ]
