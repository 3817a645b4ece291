"""Batches, streams, what is set aside, and what paging and coverage go by."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marketing_api import parsing, validation
from marketing_api.envelope import read_envelope
from marketing_api.errors import BrokenResponse
from marketing_api.exchange import Response
from marketing_api.operations import ALL, campaigns, contacts, lists, social
from marketing_api.records.contacts import Contact
from marketing_api.records.lists import ContactList, ListField
from tests.marketing_api import samples
from tests.marketing_api.responses import DAY, ZONE, enveloped, of_body, read, records, response

APRIL = {"from_": "2026-04-01", "to": "2026-04-30"}


def many_contacts(number: int) -> dict[str, Any]:
    return {
        "contacts": {
            "count": number,
            "items": [{"id": index, "email": f"c{index}@example.com"} for index in range(number)],
        }
    }


def in_file(tmp_path: Path, body: bytes) -> Response:
    path = tmp_path / "body.json"
    path.write_bytes(body)
    return of_body(contacts.GETCONTACTS, path, listid=5)


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_sample_is_read_completely(name: str) -> None:
    data, params = samples.SAMPLES[name]
    for record in ALL[name].records:
        assert records(record, ALL[name], data, **params) or (name, record) == (
            "emailmarketing/getlists",
            ListField,
        )


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_samples_without_their_envelope_give_the_same_records(name: str) -> None:
    data, params = samples.SAMPLES[name]
    made = of_body(ALL[name], json.dumps(data).encode(), **params)
    bare = [rows.records for rows in parsing.parse_rows(made, ZONE, DAY)]
    assert bare == [
        rows.records for rows in parsing.parse_rows(response(ALL[name], data, **params), ZONE, DAY)
    ]


def test_batches_are_no_larger_than_asked_and_lose_nothing() -> None:
    made = response(contacts.GETCONTACTS, many_contacts(25), listid=5)
    batches = list(parsing.parse_rows(made, ZONE, DAY, batch=10))
    assert [len(rows.records) for rows in batches] == [10, 10, 5]
    assert [
        record.contact_id for rows in batches for record in rows.records if isinstance(record, Contact)
    ] == list(range(25))


def test_body_in_a_file_is_read_like_one_in_memory(tmp_path: Path) -> None:
    body = enveloped(many_contacts(3000))
    from_file = [rows.records for rows in parsing.parse_rows(in_file(tmp_path, body), ZONE, DAY)]
    assert from_file == [
        rows.records for rows in parsing.parse_rows(of_body(contacts.GETCONTACTS, body, listid=5), ZONE, DAY)
    ]
    assert sum(map(len, from_file)) == 3000


def test_one_entry_that_cannot_be_read_does_not_lose_the_others() -> None:
    items = [
        {"id": "1"},
        {"id": None, "email": "ann@example.com"},
        {"id": "3", "registration_date": "soon"},
        7,
        {"id": "5"},
    ]
    (rows,) = parsing.parse_rows(
        response(contacts.GETCONTACTS, {"contacts": {"items": items}}, listid=5), ZONE, DAY
    )
    assert [record.contact_id for record in rows.records if isinstance(record, Contact)] == [1, 3, 5]
    assert [each.reason for each in rows.rejected] == ["id: not a number", "not an object"]
    assert rows.rejected[1].raw == 7
    assert not any("ann" in each.reason for each in rows.rejected)


def test_a_value_that_cannot_be_read_costs_the_value_and_is_kept_as_it_came() -> None:
    item = {"id": "3", "registration_date": "soon", "email": "ann@example.com", "status": ["?"], "7": "Oslo"}
    (rows,) = parsing.parse_rows(
        response(contacts.GETCONTACTS, {"contacts": {"items": [item]}}, listid=5), ZONE, DAY
    )
    (contact,) = rows.records
    assert isinstance(contact, Contact)
    assert (contact.registered_at, contact.status, contact.email, contact.custom_fields) == (
        None,
        None,
        "ann@example.com",
        {"7": "Oslo"},
    )
    (flaw,) = rows.flawed
    assert flaw.reason == "status: not a word; registration_date: not a date or time"
    assert (flaw.raw["registration_date"], flaw.raw["status"]) == ("soon", ["?"])
    assert rows.rejected == []


def test_half_a_surrogate_pair_costs_its_character_only() -> None:
    items = rb'[{"id":1,"x":"a\ud800b","y":"\\ud800","z":"\ud83d\ude00"},{"id":2}]'
    body = b'{"response":{"header":{"status":"ok"},"data":{"contacts":{"items":' + items + b"}}}}"
    validation.check_response(contacts.GETCONTACTS.bind(listid=5), 200, {}, read_envelope(body))
    (rows,) = parsing.parse_rows(of_body(contacts.GETCONTACTS, body, listid=5), ZONE, DAY)
    first, second = rows.records
    assert isinstance(first, Contact)
    assert first.custom_fields == {"x": "a\ufffdb", "y": "\\ud800", "z": "\U0001f600"}
    assert isinstance(second, Contact)


ODD = {
    "what JSON does not know": b'{"id":1,"email":"a@example.com","score":NaN,"low":-Infinity,"big":1e999}',
    "raw control characters": b'{"id":1,"email":"a@example.com","note":"a\tb\nc\x01"}',
    "the same name twice": b'{"id":7,"email":"first@example.com","id":1,"email":"a@example.com"}',
    "a number of 400 digits": b'{"id":1,"email":"a@example.com","note":' + b"9" * 400 + b"}",
}


@pytest.mark.parametrize("entry", ODD.values(), ids=ODD)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_what_only_careless_writers_write_is_read(entry: bytes, encoding: str) -> None:
    text = (
        b'{"response":{"header":{"status":"ok"},"data":{"contacts":{"count":2,"items":[%b,{"id":2}]}}}}'
        % entry
    )
    body = text.decode().encode(encoding)
    validation.check_response(contacts.GETCONTACTS.bind(listid=5), 200, {}, read_envelope(body))
    made = of_body(contacts.GETCONTACTS, body, listid=5)
    (rows,) = parsing.parse_rows(made, ZONE, DAY)
    assert [(record.contact_id, record.email) for record in rows.records if isinstance(record, Contact)] == [
        (1, "a@example.com"),
        (2, None),
    ]
    assert parsing.service_count(made) == len(parsing.item_keys(made)) == 2


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1',
        b'{"a": 1} tail',
        b"{'a': 1}",
        b"\xff\xfe{",
        b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    ],
    ids=range(5),
)
def test_what_is_no_json_by_anybodys_rules_is_broken(body: bytes) -> None:
    with pytest.raises(BrokenResponse):
        validation.check_response(contacts.GETCONTACTS.bind(listid=5), 200, {}, read_envelope(body))


def test_bytes_that_are_not_utf8_cost_their_value_and_are_reported() -> None:
    body = b'{"contacts":{"items":[{"id":1,"email":"a\xffb","7":"Z\xfcrich","8":"Oslo"},{"id":2}]}}'
    (rows,) = parsing.parse_rows(of_body(contacts.GETCONTACTS, body, listid=5), ZONE, DAY)
    first, second = rows.records
    assert isinstance(first, Contact)
    assert (first.contact_id, first.email, first.custom_fields) == (1, None, {"8": "Oslo"})
    assert isinstance(second, Contact)
    assert [flaw.reason for flaw in rows.flawed] == ["email: not UTF-8; custom_fields.7: not UTF-8"]


def test_an_entry_whose_key_is_not_utf8_is_rejected() -> None:
    body = b'{"contacts":{"items":[{"id":"1\xff","email":"a@example.com"},{"id":2}]}}'
    (rows,) = parsing.parse_rows(of_body(contacts.GETCONTACTS, body, listid=5), ZONE, DAY)
    assert [record.contact_id for record in rows.records if isinstance(record, Contact)] == [2]
    assert len(rows.rejected) == 1


def test_what_is_kept_of_bytes_that_are_not_utf8_prints_as_json() -> None:
    body = b'{"contacts":{"items":[{"id":"\xff\\ud800","n":"\xef\xb7\x90"}]}}'
    (rows,) = parsing.parse_rows(of_body(contacts.GETCONTACTS, body, listid=5), ZONE, DAY)
    raw = rows.rejected[0].raw
    printed = json.dumps(raw, ensure_ascii=False).encode()
    assert json.loads(printed) == raw
    assert raw["id"] == "\ufdd0\ufffd"


def test_number_out_of_range_costs_its_entry_only() -> None:
    body = b'{"lists":{"items":[{"id":1e400},{"id":2,"name":"x"}]}}'
    rows = next(iter(parsing.parse_rows(of_body(lists.GETLISTS, body), ZONE, DAY)))
    assert [record.list_id for record in rows.records if isinstance(record, ContactList)] == [2]
    assert len(rows.rejected) == 1


def test_look_ups_give_no_rows() -> None:
    assert (
        list(parsing.parse_rows(response(contacts.GETCONTACT, {"contact": {"id": 1}}, id=1), ZONE, DAY)) == []
    )


@pytest.mark.parametrize(("count", "expected"), [(7, 7), ("1,204", 1204), (None, None), ("many", None)])
def test_count_of_the_service_is_told_as_it_says(count: Any, expected: int | None) -> None:
    assert (
        parsing.service_count(
            response(contacts.GETCONTACTS, {"contacts": {"count": count, "items": []}}, listid=5)
        )
        == expected
    )


@pytest.mark.parametrize(
    ("count", "shortage"),
    [("many", "its count is not a number"), (1, ""), (0, ""), (2, "counts 2 entries and lists 1")],
)
def test_a_listing_that_contradicts_its_count_falls_short(count: Any, shortage: str) -> None:
    made = response(lists.GETAUDIENCES, {"audiences": {"count": count, "items": [{"id": 1}]}})
    assert parsing.find_shortage(made).endswith(shortage)
    assert bool(parsing.find_shortage(made)) is bool(shortage)


def test_payload_without_a_count_has_none() -> None:
    assert parsing.service_count(response(contacts.GETCOUPON, samples.COUPONS, email="a@example.com")) is None
    assert parsing.service_count(response(contacts.TIMELINE, samples.TIMELINE, id=1)) is None


@pytest.mark.parametrize("items", [[{"id": 1}, {"id": "2"}], {"1": {"id": "1"}, "2": {"id": 2}}])
def test_contacts_are_counted_and_identified_in_any_shape(items: Any) -> None:
    made = response(contacts.GETCONTACTS, {"contacts": {"count": 99, "items": items}}, listid=5)
    assert parsing.item_keys(made) == ["1", "2"]


def test_campaigns_are_counted_over_all_groups() -> None:
    made = response(campaigns.CAMPAIGNS, samples.CAMPAIGNS)
    assert parsing.item_keys(made) == ["41", "42"]


def test_posts_are_counted_over_all_dates_and_identified_by_network() -> None:
    made = response(social.CALENDAR, samples.CALENDAR, **APRIL)
    assert parsing.item_keys(made) == ["31/facebook"]


def test_lists_with_fields_are_counted_once() -> None:
    items = [{"id": 5, "fields": {"1": "a", "2": "b"}}]
    assert len(parsing.item_keys(response(lists.GETLISTS, {"lists": {"items": items}}))) == 1


def test_entries_without_an_id_are_identified_by_their_content() -> None:
    made = response(
        contacts.GETCONTACTS,
        {"contacts": {"items": [{"email": "a"}, {"email": "b"}, {"email": "a"}]}},
        listid=5,
    )
    first, second, third = parsing.item_keys(made)
    assert first.partition("-")[0] == third.partition("-")[0] != second.partition("-")[0]
    assert first != third, "equal entries of one answer are two"


@pytest.mark.parametrize("payload", [[], None, {}, {"count": "0"}, {"count": 0, "items": []}])
def test_page_past_the_end_has_no_entries(payload: Any) -> None:
    made = response(contacts.GETCONTACTS, {"contacts": payload}, listid=5)
    assert (parsing.item_keys(made), list(parsing.parse_rows(made, ZONE, DAY))) == ([], [])


def test_zone_defaults_to_utc() -> None:
    made = response(contacts.GETCONTACTS, samples.CONTACTS, listid=5)
    record = next(iter(parsing.parse_rows(made, None, DAY))).records[0]
    assert isinstance(record, Contact)
    assert record.registered_at is not None
    assert record.registered_at.isoformat() == "2014-11-04T16:33:00+00:00"


def test_an_answer_that_nobody_can_read_to_its_end_is_a_rejected_entry_of_each_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = parsing.pair_entries

    def broken(response: Response) -> Iterator[Any]:
        yield next(pairs(response))
        raise RecursionError

    monkeypatch.setattr(parsing, "pair_entries", broken)
    rows = read(campaigns.STATS, samples.CAMPAIGN_STATS, id=41, type="standard")
    rejected = [(each.record, entry.reason) for each in rows for entry in each.rejected]
    assert rejected == [
        (record, "the rest of the response cannot be read (RecursionError)")
        for record in campaigns.STATS.records
    ]
