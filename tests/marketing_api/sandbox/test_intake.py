"""How requests are read: paths, names, places of parameters and key, refusals (observations 1, 9 to 13)."""

import json
import urllib.parse

import pytest

from marketing_api.sandbox.responses import Request
from tests.marketing_api.sandbox.asking import Asking, Refused, asking, content, params_for, read


@pytest.fixture
def ask() -> Asking:
    return asking(contacts=100)


def _send(ask: Asking, path: str, query: str = "", body: bytes = b"", kind: str = "") -> object:
    reply = ask.app.respond(Request("POST", path, query, kind, body), 5.0)
    return read(content(reply), reply.status)


@pytest.mark.parametrize("path", ["/1/app/me.json", "/1/app/me", "/1/APP/Me.JSON", "/1/app/me/"])
def test_path_ignores_case_and_suffix(ask: Asking, path: str) -> None:
    assert _send(ask, path, "key=sandbox-key")


@pytest.mark.parametrize(
    "query", ["key=sandbox-key", "api_key=sandbox-key", "KEY=sandbox-key", "%20key=sandbox-key"]
)
def test_key_is_found_under_its_names(ask: Asking, query: str) -> None:
    assert _send(ask, "/1/app/me", query)


def test_key_is_found_in_a_json_body(ask: Asking) -> None:
    assert _send(ask, "/1/app/me", body=b'{"key": "sandbox-key"}', kind="application/json")


def test_wrong_key_is_1002_and_so_is_an_unknown_operation(ask: Asking) -> None:
    with pytest.raises(Refused) as wrong_key:
        _send(ask, "/1/app/me", "key=nope")
    with pytest.raises(Refused) as unknown:
        _send(ask, "/1/app/you", "key=sandbox-key")
    assert wrong_key.value.code == unknown.value.code == 1002


def test_query_form_and_json_are_merged_and_names_folded(ask: Asking) -> None:
    where = ask.data("emailmarketing/getlists")["lists"]["items"][0]["id"]
    form = urllib.parse.urlencode({"Email": "form@example.com", " listid": where, "fields[9103]": "Whitby"})
    _send(
        ask,
        "/1/emailmarketing/addcontact",
        "key=sandbox-key&STATUS=Active",
        form.encode(),
        "application/x-www-form-urlencoded",
    )
    body = json.dumps(
        {
            "email": "json@example.com",
            "listid": int(where),
            "status": "active",
            "fields": {"9103": "Oak Park"},
        }
    )
    _send(ask, "/1/emailmarketing/synccontact", "key=sandbox-key", body.encode(), "application/json")
    cities = [
        ask.data("emailmarketing/getcontactbyemail", email=f"{name}@example.com")["contact"]["9103"]
        for name in ("form", "json")
    ]
    assert cities == ["Whitby", "Oak Park"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"tagname%5B%5D=a&tagname%5B%5D=b"),
        ("application/json", b'{"tagname": ["a", "b"]}'),
        ("application/x-www-form-urlencoded", b"tagname=a,b"),
    ],
)
def test_several_tags_arrive_in_any_form(ask: Asking, kind: str, body: bytes) -> None:
    ask.switch("tags", "contact")
    contact = ask.contacts(1801)[0]
    _send(ask, "/1/emailmarketing/addtag", f"key=sandbox-key&id={contact['id']}", body, kind)
    assert ask.data("emailmarketing/getcontact", id=contact["id"])["contact"]["tags"] == ["a", "b"]


def test_uploaded_picture_is_accepted(ask: Asking) -> None:
    body = (
        b'--X\r\nContent-Disposition: form-data; name="message"\r\n\r\nLook\r\n'
        b'--X\r\nContent-Disposition: form-data; name="photo"; filename="a.jpg"\r\nContent-Type: '
        b"image/jpeg\r\n\r\n"
        b"\xff\xd8\xff\r\n--X--\r\n"
    )
    data = _send(
        ask,
        "/1/socialmedia/addpost",
        "key=sandbox-key&channel=facebook&channelid=1",
        body,
        "multipart/form-data; boundary=X",
    )
    assert isinstance(data, dict)
    assert set(data) == {"post_id", "item"}


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("emailmarketing/getcontacts", {}),
        ("emailmarketing/getcontactbyemail", {"email": "no address"}),
        ("emailmarketing/addcontact", {"listid": "1801", "email": "a@example.com"}),
        ("emailmarketing/addcontact", {"listid": "1801", "status": "Sleepy"}),
        ("socialmedia/calendar", {"from": "soon", "to": "2026-01-01"}),
        ("account/getsubaccountautologin", {"id": "5", "expire": "3601"}),
        ("user/add", {"fullname": "a", "username": "b", "password": "c", "type": "user"}),
    ],
)
def test_call_that_does_not_fit_its_declaration_is_refused(
    ask: Asking, operation: str, params: dict[str, str]
) -> None:
    with pytest.raises(Refused) as refused:
        ask.data(operation, **params)
    assert refused.value.code == 1004


def test_broken_json_body_is_refused(ask: Asking) -> None:
    with pytest.raises(Refused):
        _send(ask, "/1/app/me", "key=sandbox-key", b'{"a": ', "application/json")


def test_parameters_that_only_a_variant_requires_may_be_left_out(ask: Asking) -> None:
    campaign = ask.data("emailmarketing/campaigns")["campaigns"]["items"]["Sent"]["data"][0]["id"]
    assert ask.data("emailmarketing/stats", id=campaign)["campaign"]["stats"]["open"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("9100:Ann,9103:Rome", {"9100": "Ann", "9103": "Rome"}),
        (" 9100: Ann , 9103:Rome, Italy", {"9100": " Ann ", "9103": "Rome, Italy"}),
        ("9103:12:30 o'clock", {"9103": "12:30 o'clock"}),
    ],
)
def test_fields_may_come_as_one_text(ask: Asking, text: str, wanted: dict[str, str]) -> None:
    """observation 33."""
    added = ask.data(
        "emailmarketing/addcontact", listid=1801, status=1, email="new@example.com", fields=text
    )["id"]
    shown = ask.data("emailmarketing/getcontact", id=added)["contact"]
    assert {name: shown[name] for name in wanted} == wanted


@pytest.mark.parametrize("operation", ["user/add", "user/edit"])
def test_permissions_are_what_is_missing_without_a_group(ask: Asking, operation: str) -> None:
    params = {**params_for(ask)[operation], "group": ""}
    with pytest.raises(Refused, match="permissions is required"):
        ask.data(operation, **params)
    assert ask.data(operation, **params, permissions="notes,heatmap")
