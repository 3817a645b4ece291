"""Which answers are whole, and which error every other one is."""

import json
from pathlib import Path
from typing import Any

import pytest

from marketing_api.envelope import read_envelope
from marketing_api.errors import (
    AuthenticationFailed,
    BrokenResponse,
    MarketingApiError,
    NotAvailable,
    RateLimited,
    Refused,
)
from marketing_api.operation import Operation
from marketing_api.operations import account, campaigns, contacts, lists, social
from marketing_api.validation import check_response
from tests.marketing_api import samples
from tests.marketing_api.responses import enveloped

CONTACTS = contacts.GETCONTACTS.bind(listid=5)
BLOCKED: dict[str, Any] = {
    "rate-limit": {"limit": "15", "requests": "16", "remaining": "0", "reached": "1", "after": "2"}
}


def error(code: Any, message: str = "No", **more: Any) -> bytes:
    return enveloped({"errorCode": code, "errorMessage": message, **more}, status="error")


def verdict(
    operation: Operation, body: bytes, status: int = 200, headers: dict[str, str] | None = None, **params: Any
) -> MarketingApiError | None:
    try:
        check_response(operation.bind(**params), status, headers or {}, read_envelope(body))
    except MarketingApiError as problem:
        return problem
    return None


def contacts_verdict(
    body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> MarketingApiError | None:
    return verdict(contacts.GETCONTACTS, body, status, headers, listid=5)


@pytest.mark.parametrize(
    "payload",
    [
        {"count": 1, "items": [{"id": 1}]},
        {"items": {}},
        {"count": "0"},
        {"count": 0, "items": []},
        {"count": 0, "items": None},
        [],
        {},
    ],
)
def test_whole_and_empty_answers_are_accepted(payload: Any) -> None:
    assert contacts_verdict(enveloped({"contacts": payload})) is None


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_ok_envelope_counts_whatever_the_http_status(status: int) -> None:
    assert contacts_verdict(enveloped(samples.CONTACTS), status) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"<html>Bad gateway</html>",
        b'{"response":{"header":{"status":"ok"},"data":{"contacts":{"items":[{"id":1},',
        b"null",
        b"[]",
        b'"ok"',
        b"{}",
        b'{"response": []}',
        enveloped({}),
        enveloped([]),
        enveloped(None),
        enveloped({"contact": {}}),
        enveloped({"contacts": {"count": "3"}}),
        enveloped({"contacts": {"entries": []}}),
        enveloped({"contacts": False}),
        enveloped({"contacts": 7}),
        enveloped({"contacts": None}),
        enveloped({"contacts": ""}),
        enveloped({"contacts": {"count": 80, "items": None}}),
        enveloped({"contacts": {"items": None}}),
        enveloped({"contacts": {"count": 0, "items": ""}}),
        enveloped({"contacts": {"count": 1, "items": 7}}),
        enveloped({"contacts": float("nan")}),
        enveloped({"contacts": {"items": float("nan")}}),
        enveloped({"contacts": {"items": [{"id": 1}], "Items": []}}),
        enveloped({"contacts": {"items": [{"id": 1}]}, "CONTACTS": []}),
        b'{"response":{"header":{"status":"ok"},"data":{"contacts":{"count":1,"items":[{"id":1}],"items":[]}}}}',
        b'{"response":{"header":{"status":"ok"},"data":{"contacts":{"count":1,"count":0,"items":[{"id":1}]}}}}',
        b'{"response": {"header": {"status": "ok"}, "data": {"contacts": {"items": [{"id": 1}]}, '
        b'"contacts": []}}}',
        b'{"response":{"header":{"status":"ok"},"data":{"contacts":{"items":[{"id":1}]}},"data":{"contacts":[]}}}',
        b'{"response":{"header":{"status":"ok"},"data":{"contacts":{"items":[{"id":1}]}}},"response":{"header":{"status":"ok"},"data":{"contacts":[]}}}',
        enveloped(samples.CONTACTS, status=""),
    ],
)
def test_an_answer_that_is_not_whole_is_broken_never_empty(body: bytes) -> None:
    assert isinstance(contacts_verdict(body), BrokenResponse)


@pytest.mark.parametrize("status", [200, 404, 502])
def test_html_is_broken_with_any_status(status: int) -> None:
    problem = contacts_verdict(b"<!DOCTYPE html><p>Oops", status)
    assert isinstance(problem, BrokenResponse)
    assert f"HTTP {status}" in str(problem)
    assert "HTML" in str(problem)


@pytest.mark.parametrize("status", [200, 400, 403])
@pytest.mark.parametrize("code", [1004, "1004", None])
def test_error_envelope_is_a_refusal_whatever_the_http_status(status: int, code: Any) -> None:
    problem = contacts_verdict(error(code, "Bad list", fields=["listid"]), status)
    assert isinstance(problem, Refused)
    assert problem.code == (1004 if code else None)
    assert problem.detail["fields"] == ["listid"]
    assert "Bad list" in str(problem)


@pytest.mark.parametrize(
    ("body", "status"),
    [(error(1000), 401), (error(1000), 200), (b"", 401), (b"<html>", 401), (b'{"message":"no"}', 401)],
)
def test_bad_key_stops(body: bytes, status: int) -> None:
    assert isinstance(contacts_verdict(body, status), AuthenticationFailed)


def test_1002_is_the_key_on_app_me_and_the_operation_elsewhere() -> None:
    assert isinstance(verdict(account.ME, error("1002")), AuthenticationFailed)
    assert isinstance(contacts_verdict(error("1002")), NotAvailable)
    assert isinstance(
        contacts_verdict(error(1002), 401), NotAvailable
    )  # the client then asks app/me whether the key still holds


def test_a_401_with_a_code_of_its_own_is_a_refusal_like_others() -> None:
    assert isinstance(contacts_verdict(error(1010), 401), Refused)
    assert isinstance(verdict(account.ME, error(1010), 401), AuthenticationFailed)


def test_error_envelope_with_a_server_error_is_worth_another_try() -> None:
    assert isinstance(contacts_verdict(error(1), 503), BrokenResponse)


@pytest.mark.parametrize(
    ("body", "status", "headers", "seconds"),
    [
        (b"", 429, {}, 1.0),
        (b"", 429, {"X-Rate-Limit-After": "3"}, 3.0),
        (b"", 429, {"Retry-After": "4"}, 4.0),
        (enveloped(samples.CONTACTS), 429, {}, 1.0),
        (json.dumps(BLOCKED).encode(), 429, {}, 2.0),
        (json.dumps(BLOCKED).encode(), 200, {}, 2.0),
        (enveloped({"errorCode": 1002}, status="error", **BLOCKED), 400, {}, 2.0),
    ],
)
def test_over_the_limit_says_how_long_to_wait(
    body: bytes, status: int, headers: dict[str, str], seconds: float
) -> None:
    problem = contacts_verdict(body, status, headers)
    assert isinstance(problem, RateLimited)
    assert problem.retry_after == seconds


def test_whole_answer_is_kept_though_it_used_up_the_limit() -> None:
    assert contacts_verdict(enveloped(samples.CONTACTS, **BLOCKED)) is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, NotAvailable),
        (405, NotAvailable),
        (403, Refused),
        (408, BrokenResponse),
        (500, BrokenResponse),
        (200, BrokenResponse),
    ],
)
def test_whole_json_without_an_envelope_goes_by_the_status(
    status: int, kind: type[MarketingApiError]
) -> None:
    assert type(contacts_verdict(b'{"message": "Not found"}', status)) is kind


def test_wrong_address_is_not_an_operation_that_is_missing() -> None:
    assert isinstance(verdict(account.ME, b'{"message": "Not found"}', 404), Refused)


@pytest.mark.parametrize("contact", [{"errorCode": 1006, "errorMessage": "Unknown"}, [{"errorCode": "1006"}]])
def test_error_nested_in_the_payload_is_a_refusal(contact: Any) -> None:
    problem = verdict(contacts.GETCONTACTBYEMAIL, enveloped({"contact": contact}), email="a@example.com")
    assert isinstance(problem, Refused)
    assert problem.code == 1006


def test_error_in_data_under_an_ok_header_is_a_refusal() -> None:
    assert isinstance(contacts_verdict(enveloped({"errorCode": 1004})), Refused)


def test_words_in_place_of_the_payload_are_a_refusal() -> None:
    problem = verdict(
        social.GETPOST,
        enveloped({"item": "The post of ann@example.com doesn't exist"}),
        id=1,
        channel="facebook",
    )
    assert isinstance(problem, Refused)
    assert "ann" not in str(problem)
    assert "ann@example.com" in problem.detail["item"]


def test_service_texts_are_shown_without_personal_data() -> None:
    problem = contacts_verdict(error(1004, "Contact ann@example.com, +1 (555) 010-0199 is not in list 12"))
    assert (
        str(problem)
        == "emailmarketing/getcontacts: the service refused with errorCode 1004 (Contact …, … is "
        "not in list 12)"
    )


@pytest.mark.parametrize("data", [samples.TIMELINE, {"timeline": []}, {"timeline": {"count": 0}}])
def test_timeline_needs_its_timeline(data: Any) -> None:
    assert verdict(contacts.TIMELINE, enveloped(data), id=1001) is None


@pytest.mark.parametrize("told", [1002, "1002", 1002.0])
def test_timeline_of_somebody_else_is_broken(told: Any) -> None:
    problem = verdict(contacts.TIMELINE, enveloped(samples.TIMELINE | {"id": told}), id=1001)
    assert isinstance(problem, BrokenResponse)
    assert "another call" in str(problem)


@pytest.mark.parametrize("told", [1001, "1001", 1001.0, " 1001", None, "", "c1001", []])
def test_timeline_may_say_its_contact_in_any_form_or_not_at_all(told: Any) -> None:
    assert verdict(contacts.TIMELINE, enveloped(samples.TIMELINE | {"id": told}), id=1001) is None


@pytest.mark.parametrize(
    "data", [{"id": 1, "utm": {"data": []}}, {"timeline": {"count": 2, "total": 2}}, {"timeline": None}, []]
)
def test_timeline_without_its_entries_is_broken(data: Any) -> None:
    assert isinstance(verdict(contacts.TIMELINE, enveloped(data), id=1), BrokenResponse)


@pytest.mark.parametrize("name", ["timeline", "utm", "automated", "Utm"])
@pytest.mark.parametrize("second", [{}, [], None, {"data": [], "data ": []}])
def test_timeline_that_tells_a_part_twice_is_broken(name: str, second: Any) -> None:
    entry = [{"link": "https://a.example", "timestamp": 1383582780}]
    whole = {"id": 1001, "timeline": {"data": []}, "utm": {"data": entry}, "automated": {"data": []}}
    assert verdict(contacts.TIMELINE, enveloped(whole), id=1001) is None
    doubled = json.dumps(whole)[:-1] + f', "{name}": {json.dumps(second)}}}'
    within = json.dumps(whole).replace('"data": [', f'"data": {json.dumps(second)}, "data": [')
    for data in (doubled, within):
        body = enveloped("here").replace(b'"here"', data.encode())
        assert isinstance(verdict(contacts.TIMELINE, body, id=1001), BrokenResponse)


@pytest.mark.parametrize("data", [{"item": "Added"}, [], None, {"id": 1, "item": "Added"}])
def test_ok_header_is_enough_for_a_write(data: Any) -> None:
    assert verdict(contacts.ADDTAG, enveloped(data), email="a@example.com", tagname="vip") is None


def test_write_without_a_verdict_is_broken() -> None:
    assert isinstance(verdict(contacts.ADDTAG, b"{}", email="a@example.com", tagname="vip"), BrokenResponse)


@pytest.mark.parametrize(
    ("operation", "body", "params"),
    [
        (contacts.GETCONTACTS, samples.CONTACTS, {"listid": 5}),
        (contacts.TIMELINE, samples.TIMELINE, {"id": 1001}),
        (lists.GETAUDIENCES, samples.AUDIENCES, {}),
        (contacts.ADDTAG, {"item": "Added"}, {"email": "a@example.com", "tagname": "vip"}),
    ],
)
def test_samples_without_an_envelope_are_accepted(
    operation: Operation, body: Any, params: dict[str, Any]
) -> None:
    assert verdict(operation, json.dumps(body).encode(), **params) is None


def test_error_without_an_envelope_is_a_refusal() -> None:
    assert isinstance(contacts_verdict(b'{"errorCode": 1004, "errorMessage": "No"}'), Refused)


def test_byte_order_mark_and_odd_case_do_not_matter() -> None:
    assert (
        contacts_verdict(b'\xef\xbb\xbf{"Response": {"Header": {"Status": "OK"}, "Data": {"Contacts": []}}}')
        is None
    )


@pytest.mark.parametrize("at", [b"contacts", b"items", b"city"])
def test_a_damaged_name_breaks_an_answer_and_a_damaged_value_costs_its_character(at: bytes) -> None:
    body = enveloped({"contacts": {"items": [{"id": 1, "city": "city"}]}})
    assert isinstance(contacts_verdict(body.replace(b'"%b": ' % at, b'"%b\xff": ' % at)), BrokenResponse)
    assert contacts_verdict(body.replace(b'"city"}', b'"city\xff"}')) is None


def test_body_in_a_file_is_judged_like_one_in_memory(tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_bytes(enveloped(samples.CONTACTS))
    check_response(CONTACTS, 200, {}, read_envelope(body))
    body.write_bytes(b"")
    with pytest.raises(BrokenResponse, match="no body"):
        check_response(CONTACTS, 200, {}, read_envelope(body))


def test_campaign_of_another_type_is_refused_not_empty() -> None:
    body = enveloped({"item": {"errorCode": 1004}})
    assert isinstance(verdict(campaigns.GETCAMPAIGN, body, id=1, type="standard"), Refused)
