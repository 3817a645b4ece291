"""Requests as public clients of the interface send them, of every build that was found: all are understood.

The clients: the vendor's PHP library, a PHP package for a framework, form plugins for a blog system,
connectors of four integration platforms (JavaScript and Java), serverless functions in JavaScript, a Java
batch job, a social-media poster, curl samples. Names of endpoints and parameters are as they write them;
addresses and values are invented."""

import datetime as dt
from typing import Any

import pytest

from marketing_api.sandbox.responses import Request
from tests.dialects.switches import AS_OBSERVED
from tests.marketing_api.sandbox.asking import Asking, asking, content, read

KEY = "key=sandbox-key"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
NEW = "new@example.com"
ADDED = f"email={NEW}&status=Active&listid=1801"
Sent = tuple[str, str, str, str, bytes]


def post(path: str, body: bytes, kind: str = FORM, query: str = KEY) -> Sent:
    return "POST", f"/1/{path}", query, kind, body


def multipart(**fields: str) -> bytes:
    part = '--B\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    return "".join(part.format(*pair) for pair in fields.items()).encode() + b"--B--\r\n"


#: What adds NEW to the first list with a city: (verb, path, query, content type, body), by who sends it so.
ADDING: dict[str, Sent] = {
    "platform connector, all in the query": post(
        "EmailMarketing/AddContact",
        b"",
        "",
        f"{KEY}&email={NEW}&status=Active&listid=1801&fields%5B9103%5D=Whitby",
    ),
    "platform connector, JSON with a map": post(
        "emailMarketing/AddContact",
        b'{"email":"new@example.com","status":"active","listid":"1801","ipaddress":null,"fields":{"9103":"Whitby","9101":null}}',
        f"{JSON}; charset=utf-8",
    ),
    "platform connector, form": post(
        "emailmarketing/addcontact.json",
        b"email=new%40example.com&listid=1801&status=active&fields%5B9103%5D=Whitby",
    ),
    "vendor's PHP library, form that is not encoded": post(
        "emailmarketing/addcontact.json",
        b"email=new@example.com&status=Active&listid=1801&fields[9103]=Whitby&",
        query="api_key=sandbox-key",
    ),
    "serverless function, key in the JSON": post(
        "emailmarketing/addcontact.json",
        b'{"key":"sandbox-key","email":"new@example.com","status":"active","listid":1801,"source":"chat","fields":{"9103":"Whitby"}}',
        JSON,
        "",
    ),
    "form plugin, lists numbered": post(
        "emailmarketing/addcontact",
        b"email=new%40example.com&status=1&listid%5B0%5D=1801&fields%5B9103%5D=Whitby",
    ),
    "JSON with a list of lists, sent as plain text": post(
        "emailmarketing/addcontact",
        b'{"email":"new@example.com","status":"Active","listid":[1801],"fields":{"9103":"Whitby"}}',
        "text/plain",
    ),
    "PHP package, multipart": post(
        "EmailMarketing/AddContact.json",
        multipart(**{"email": NEW, "status": "Active", "listid": "1801", "fields[9103]": "Whitby"}),
        "multipart/form-data; boundary=B",
    ),
}


@pytest.fixture
def ask() -> Asking:
    """Behaves as the clients have met the live service, and shows tags, so that a test can see them."""
    found = asking(contacts=100)
    for name, position in AS_OBSERVED.items():
        found.switch(name, position)
    found.switch("tags", "contact")
    return found


def send(ask: Asking, verb: str, path: str, query: str = KEY, kind: str = "", body: bytes = b"") -> Any:
    ask.clock += 1
    reply = ask.app.respond(Request(verb, path, query, kind, body), ask.clock)
    return read(content(reply), reply.status)


def by_email(ask: Asking, email: str = NEW) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask.data("emailmarketing/getcontactbyemail", email=email)["contact"]
    return found


@pytest.mark.parametrize("who", ADDING)
def test_contact_is_added_however_it_is_sent(ask: Asking, who: str) -> None:
    data = send(ask, *ADDING[who])
    (contact,) = by_email(ask)
    assert contact["id"] == data["id"]
    shown = [contact[name] for name in ("listid", "status", "9103", "9101")]
    assert shown == ["1801", "1", "Whitby", ""]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (FORM, f"{ADDED}&fields[9103][]=Whitby&fields[9103][]=Oak+Park"),
        (FORM, f"{ADDED}&fields%5B9103%5D%5B0%5D=Whitby&fields%5B9103%5D%5B1%5D=Oak+Park"),
        (
            JSON,
            f'{{"email":"{NEW}","status":"Active","listid":1801,"fields":{{"9103":["Whitby","Oak Park"]}}}}',
        ),
    ],
)
def test_field_with_several_values_keeps_all_of_them(ask: Asking, kind: str, body: str) -> None:
    send(ask, *post("emailmarketing/addcontact", body.encode(), kind))
    assert by_email(ask)[0]["9103"] == "Whitby,Oak Park"


@pytest.mark.parametrize(
    ("verb", "query", "kind", "body"),
    [
        ("POST", "&tagname%5B%5D=a&tagname%5B%5D=b", "", b""),
        ("POST", "", FORM, b"tagname[0]=a&tagname[1]=b"),
        ("POST", "", JSON, b'{"tagname":["a","b"]}'),
        ("POST", "", JSON, b'{"tagname":"a, b"}'),
    ],
)
def test_tags_are_added_and_removed_as_connectors_do(
    ask: Asking, verb: str, query: str, kind: str, body: bytes
) -> None:
    contact = ask.contacts(1801)[0]
    send(ask, verb, "/1/emailMarketing/AddTag", f"{KEY}&email={contact['email']}{query}", kind, body)
    tags = ask.data("emailmarketing/getcontact", id=contact["id"])["contact"]["tags"]
    send(ask, "DELETE", "/1/emailMarketing/RemoveTag", f"{KEY}&email={contact['email']}&tagname=a")
    left = ask.data("emailmarketing/getcontact", id=contact["id"])["contact"]["tags"]
    assert (tags, left) == (["a", "b"], ["b"])


@pytest.mark.parametrize(
    "path", ["/1/emailmarketing/getLists", "/1/EmailMarketing/GetLists", "/1/emailmarketing/getlists.json"]
)
@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_lists_are_read_under_any_spelling(ask: Asking, verb: str, path: str) -> None:
    assert send(ask, verb, path)["lists"]["items"]


def test_form_plugin_looks_up_by_post_and_understands_both_answers(ask: Asking) -> None:
    contact = ask.contacts(1801)[0]
    there, absent = (
        send(ask, "POST", "/1/emailmarketing/getcontactbyemail", f"{KEY}&email={email}&list_id=1801")
        for email in (contact["email"], "nobody@example.com")
    )
    assert there["contact"][0]["id"]
    assert absent["contact"]["errorCode"]


def test_calendar_is_asked_by_post(ask: Asking) -> None:
    body = b"channels=all&from=01%2F01%2F2026&to=2026-12-31&includeposted=true&limit=1000&page=1&sort=asc"
    assert send(ask, *post("socialmedia/calendar.json", body))["calendar"]["items"]


@pytest.mark.parametrize(("hours", "half"), [("9", "AM"), ("09:00", "am"), ("9:00", "Am"), ("09", "")])
def test_post_is_scheduled_with_the_hour_as_posters_write_it(ask: Asking, hours: str, half: str) -> None:
    body = f"message=Hello&channel=facebook&channelid=4&isscheduled=true&scheduleddate=12/24/2026&scheduledhours={hours}&scheduledampm={half}"
    new = send(ask, *post("socialmedia/addpost.json", body.encode()))["post_id"]
    shown = send(ask, "GET", "/1/socialmedia/getpost.json", f"{KEY}&id={new}&channel=facebook")["item"]
    assert shown["datetime"] == "12/24/2026 09:00 AM"


@pytest.mark.parametrize("moment", ["12/24/2026 09:30", "2026-12-24 09:30:00", "12/24/2026", "2026-12-24"])
def test_draft_is_scheduled_by_editing_it(ask: Asking, moment: str) -> None:
    texts = "name=News&subject=News&fromemail=a@example.com&from_name=A&reply_to=a@example.com&body=Hello"
    body = f"{texts}&isdraft=true&lists=1801&audiences="
    draft = send(ask, *post("EmailMarketing/AddCampaign", body.encode()))["id"]
    body = f"{texts}&id={draft}&isscheduled=true&isdraft=false&scheduled_datetime={moment}&type=standard"
    send(ask, *post("EmailMarketing/EditCampaign", body.encode()))
    scheduled = ask.data("emailmarketing/campaigns", filter="scheduled", limit=100)["campaigns"]["items"]
    assert draft in [one["id"] for one in scheduled]


def test_campaigns_are_read_as_a_flat_list_with_what_became_of_them(ask: Asking) -> None:
    """Row 40: one request for all of some years."""
    years = f"{KEY}&filter=all&from=01/01/2020&to=12/31/2030&limit=5000"
    data = send(ask, "GET", "/1/emailmarketing/campaigns.json", years)["campaigns"]
    sent = next(one for one in data["items"] if one["sent_date"])
    assert data["count"] == len(data["items"]) > 20
    sent_at, created_at = (
        dt.datetime.strptime(sent[name], "%m/%d/%Y %H:%M") for name in ("sent_date", "creation_date")
    )
    assert sent_at > created_at
    counts = ask.data("emailmarketing/stats", id=sent["id"])["campaign"]["stats"]
    told = [int(counts[name].split()[0]) for name in ("open", "unopened", "bounced")]
    assert (int(sent["delivery_success"]), int(sent["delivery_failed"])) == (told[0] + told[1], told[2])
    assert ask.data("emailmarketing/getcampaign", id=sent["id"])["item"] == {**sent, "name": sent["subject"]}


@pytest.mark.parametrize(("flag", "shown"), [("true", "1"), ("1", "1"), ("0", "0"), ("false", "0")])
def test_flags_are_taken_as_words_and_numbers(ask: Asking, flag: str, shown: str) -> None:
    body = f'{{"name":"News","doubleOptin":{flag}}}'.encode()
    new = send(ask, *post("emailmarketing/addlist", body, JSON))["id"]
    assert ask.data("emailmarketing/getlist", id=new)["list"]["doubleOptin"] == shown


def test_curl_sample_with_its_broken_header_is_understood(ask: Asking) -> None:
    """`-H 'Content Type: …'` is no header that anybody reads, so that curl calls its JSON a form."""
    assert send(ask, "POST", "/1/app/me.json", "", FORM, b'{"key":"sandbox-key"}')["business"]


@pytest.mark.parametrize(
    ("operation", "reading", "path"),
    [
        ("reputation/deletefeedback", "reputation/direct", "reviews"),
        ("goal/delete", "goal/lists", "goals"),
        ("webhook/delete", "webhook/lists", "webhooks"),
        ("user/groupdelete", "user/groups", "groups"),
    ],
)
def test_vendors_library_deletes_by_get(ask: Asking, operation: str, reading: str, path: str) -> None:
    before = [one["id"] for one in ask.data(reading)[path]["items"]]
    told = send(ask, "GET", f"/1/{operation}.json", f"id={before[0]}&api_key=sandbox-key")
    assert isinstance(told["item"], str)
    assert [one["id"] for one in ask.data(reading)[path]["items"]] == before[1:]
