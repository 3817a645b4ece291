"""Each switch changes what it says, and nothing by default. A case for each with a larger effect."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from marketing_api.sandbox.responses import Request
from tests.dialects.switches import SWITCHES
from tests.marketing_api.sandbox.asking import Asking, Refused, asking, content, params_for

#: A look at what a switch changes, and what each of its values makes of it.
Look = Callable[[Asking], Any]
CASES: list[tuple[str, Look, dict[str, Any]]] = []


def case(name: str, **expected: Any) -> Callable[[Look], Look]:
    """Declare what the look shows by value of the switch (`_` for `-`); the default's comes first."""

    def declare(look: Look) -> Look:
        CASES.append(
            (
                name,
                look,
                {value.replace("_", "-").removeprefix("n-"): wanted for value, wanted in expected.items()},
            )
        )
        return look

    return declare


def _refusal(ask: Asking, operation: str, **params: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        ask.data(operation, **params)
    return refused.value


def _first(ask: Asking) -> dict[str, Any]:
    return ask.contacts(1801)[0]


def _timeline(ask: Asking, contact_id: str = "", include: str = "") -> Any:
    return ask.data("emailmarketing/getcontacttimeline", id=contact_id or _first(ask)["id"], include=include)


@case("bad-key", n_1002=(200, 1002), n_401=(401, 1000))
def bad_key(ask: Asking) -> Any:
    ask.key = "wrong"
    refusal = _refusal(ask, "app/me")
    return refusal.status, refusal.code


@case("email-missing", error="refused", nested=1003)
def email_missing(ask: Asking) -> Any:
    try:
        return ask.data("emailmarketing/getcontactbyemail", email="nobody@example.com")["contact"][
            "errorCode"
        ]
    except Refused:
        return "refused"


@case("email-found", object=[dict, dict], array=[list, list], by_list=[list, dict])
def email_found(ask: Asking) -> Any:
    """Without and with a list (row 48)."""
    email = _first(ask)["email"]
    return [
        type(ask.data("emailmarketing/getcontactbyemail", email=email, **where)["contact"])
        for where in ({}, {"listid": 1801})
    ]


@case("addtag-missing", error="refused", soft="The contact doesn't exist")
def addtag_missing(ask: Asking) -> Any:
    try:
        return ask.data("emailmarketing/addtag", email="nobody@example.com", tagname="a")["item"]
    except Refused:
        return "refused"


@case("sync-delay", n_0=[True, True], n_5=[False, True])
def sync_delay(ask: Asking) -> Any:
    ask.data("emailmarketing/synccontact", email="late@example.com", listid=1801, status="Active")
    seen = []
    for wait in (0, 5):
        ask.clock += wait
        try:
            seen.append(bool(ask.data("emailmarketing/getcontactbyemail", email="late@example.com")))
        except Refused:
            seen.append(False)
    return seen


@case("email-field", off="The contact was added successfully", on="Email Address is required")
def email_field(ask: Asking) -> Any:
    """What adding a contact without an address gives."""
    try:
        return ask.data("emailmarketing/addcontact", listid=1801, status="Active")["item"]
    except Refused as refused:
        return refused.data["errorMessage"]


@case("validation-fields", off=None, on=["status", "listid"])
def validation_fields(ask: Asking) -> Any:
    return _refusal(ask, "emailmarketing/addcontact", email="a@example.com").data.get("fields")


@case("contact-paging", ignored=(True, 5), honoured=(False, 3))
def contact_paging(ask: Asking) -> Any:
    contacts = ask.data("emailmarketing/getcontacts", listid=1801, limit=3, page=1)["contacts"]["items"]
    lists = ask.data("emailmarketing/getlists", limit=3, page=1)["lists"]["items"]
    return len(contacts) > 3, len(lists)


def _sent(ask: Asking) -> str:
    return str(
        ask.data("emailmarketing/campaigns", filter="sent")["campaigns"]["items"]["Sent"]["data"][0]["id"]
    )


@case("rate-limit-after", n_0="1", n_2="2")
def rate_limit_after(ask: Asking) -> Any:
    ask.control("faults", **{"rate-limit": 1})
    replies = [ask.app.respond(Request("GET", "/1/app/me", "key=sandbox-key"), 9.0) for _ in range(2)]
    return json.loads(content(replies[1]))["rate-limit"]["after"]


@case("sending", added=("Sent", "Scheduled", "Scheduled"), edited=("Draft", "Scheduled", "Scheduled"))
def sending(ask: Asking) -> Any:
    """The status of a campaign that was added to be sent, edited, and added to be sent tomorrow (row 34)."""
    texts = {
        "name": "n",
        "subject": "Unmistakable",
        "fromemail": "a@example.com",
        "from_name": "f",
        "reply_to": "a@example.com",
        "body": "b",
    }
    added = ask.data("emailmarketing/addcampaign", **texts, type="standard", lists="1801")["id"]
    draft = ask.data("emailmarketing/addcampaign", **texts, type="standard", lists="1801", isdraft="true")[
        "id"
    ]
    tomorrow = {"isscheduled": "true", "scheduled_datetime": "11/21/2026 09:30"}
    ask.data("emailmarketing/editcampaign", **texts, **tomorrow, id=draft)
    later = ask.data("emailmarketing/addcampaign", **texts, **tomorrow, type="standard", lists="1801")["id"]
    groups = ask.data("emailmarketing/campaigns", filter="all", limit=1000)["campaigns"]["items"]
    ids = {name: [each["id"] for each in one["data"]] for name, one in groups.items()}
    return tuple(name for wanted in (added, draft, later) for name in ids if wanted in ids[name])


@case("delete-everywhere", off=1004, on=0)
def delete_everywhere(ask: Asking) -> Any:
    """How many entries an address on two lists keeps when it is deleted without a list (row 35)."""
    ids = [
        ask.data("emailmarketing/addcontact", email="two@example.com", listid=where, status=1)["id"]
        for where in (1801, 1814)
    ]
    try:
        ask.data("emailmarketing/deletecontact", id=ids[0])
    except Refused as refused:
        return refused.code
    return sum(
        contact["email"] == "two@example.com" for where in (1801, 1814) for contact in ask.contacts(where)
    )


@case("calendar-words", off=[1004, 1004, None], on=[None, None, None])
def calendar_words(ask: Asking) -> Any:
    """Ranges as public clients send them (row 37); all ask for everything, and get it where accepted."""
    ranges = (("2025-01-01 00:00:00", "2027-12-31 23:59:59"), ("none", "none"), ("01/01/1971", "12/31/2999"))
    codes: list[int | None] = []
    counts = set()
    for first, last in ranges:
        try:
            asked = {"from": first, "to": last, "includeposted": "true"}
            counts.add(ask.data("socialmedia/calendar", **asked)["calendar"]["count"])
            codes.append(None)
        except Refused as refused:
            codes.append(refused.code)
    assert len(counts) == 1
    return codes


@case("contact-exists", refused=1004, item=("0", "item"), error=("0", "error"))
def contact_exists(ask: Asking) -> Any:
    """Row 45: the id, and where the sentence is."""
    before = ask.contacts(1801)
    try:
        data = ask.data("emailmarketing/addcontact", email=before[0]["email"], listid=1801, status=1)
    except Refused as refused:
        return refused.code
    assert ask.contacts(1801) == before
    return data["id"], next(name for name, words in data.items() if words == "The contact already exists")


@case("sender-domain", any=[None, None], verified=[None, "The sender domain is not verified"])
def sender_domain(ask: Asking) -> Any:
    """Row 50."""
    said: list[str | None] = []
    for sender in ("a@example.com", "a@example.org"):
        try:
            ask.data(
                "emailmarketing/addcampaign",
                **params_for(ask)["emailmarketing/addcampaign"] | {"fromemail": sender},
            )
            said.append(None)
        except Refused as refused:
            said.append(refused.data["errorMessage"])
    return said


@case("required", primary=[None, None], variants=[1004, 1004])
def required(ask: Asking) -> Any:
    codes: list[int | None] = []
    synced = {"email": "two@example.com", "listid": "1801"}
    for operation, params in {
        "emailmarketing/stats": {"id": _sent(ask)},
        "emailmarketing/synccontact": synced,
    }.items():
        try:
            ask.data(operation, **params)
            codes.append(None)
        except Refused as refused:
            codes.append(refused.code)
    return codes


def _views(ask: Asking) -> list[str]:
    shown = ask.data("reputation/stats", from_="2026-11-01", to="2026-11-10", filter="all")["stats"][
        "FeedbackHub"
    ]
    return [entry["periode"][-2:] for entry in shown]


@case("series-kept", first=["01", "02"], last=["09", "10"])
def series_kept(ask: Asking) -> Any:
    ask.switch("series-cut", 2)
    return _views(ask)


@case("activity-delay", n_0=["activity", "activity"], n_5=["list-subscription", "activity"])
def activity_delay(ask: Asking) -> Any:
    wanted = ask.data("emailmarketing/addcontact", email="late@example.com", listid=1801, status="Active")[
        "id"
    ]
    ask.data("emailmarketing/addactivity", id=wanted, description="Called", datetime="2026-11-20 23:30:00")
    seen = []
    for wait in (0, 5):
        ask.clock += wait
        seen.append(_timeline(ask, wanted)["timeline"]["data"][0]["key"])
    return seen


@case(
    "activity",
    snippet=("activity", "Called", 0),
    detail=("activity", "Activity added", 1),
    other_key=("custom-activity", "Called", 0),
)
def activity(ask: Asking) -> Any:
    wanted = _first(ask)["id"]
    ask.data("emailmarketing/addactivity", id=wanted, description="Called", datetime="2026-11-20 14:30:00")
    entry = _timeline(ask, wanted)["timeline"]["data"][0]
    return entry["key"], entry["snippet"], len(entry["details"])


@case("tags", hidden=False, contact=True)
def tags(ask: Asking) -> Any:
    wanted = _first(ask)["id"]
    ask.data("emailmarketing/addtag", id=wanted, tagname="vip")
    return "tags" in ask.data("emailmarketing/getcontact", id=wanted)["contact"]


@case("sync-lists", all=2, first=1, refuse=1004)
def sync_lists(ask: Asking) -> Any:
    try:
        ask.data("emailmarketing/synccontact", email="two@example.com", listid="1801,1814")
    except Refused as refused:
        return refused.code
    return len(ask.control("written")["contacts"])


@pytest.mark.parametrize(
    ("name", "look", "value", "wanted"),
    [
        pytest.param(name, look, value, wanted, id=f"{name}={value}")
        for name, look, expected in CASES
        for value, wanted in expected.items()
    ],
)
def test_switch_changes_what_it_says(name: str, look: Look, value: str, wanted: Any) -> None:
    assert look(asking(switches={name: value.replace("n-a", "n/a")})) == wanted


def test_default_is_the_first_case() -> None:
    for name, look, expected in CASES:
        assert look(asking()) == next(iter(expected.values())), name


@cache
def _params() -> dict[str, dict[str, Any]]:
    return params_for(asking())


@cache
def _answers(**switches: str) -> list[tuple[int, bytes]]:
    """To every operation, one after another."""
    ask = asking(switches=switches)
    replies = (ask.reply(name, **asked) for name, asked in _params().items())
    return [(reply.status, content(reply)) for reply in replies]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (switch.name, value)
        for switch in SWITCHES.values()
        if switch.name not in {name for name, _, _ in CASES}
        for value in switch.choices[1:] or ("3",)
    ],
)
def test_every_other_switch_changes_an_answer(name: str, value: str) -> None:
    """What it changes of the tables is said in `tests.attack.test_dialects`."""
    assert _answers(**{name: value}) != _answers()


def test_unknown_switch_or_value_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no switch"):
        asking(switches={"colour": "red"})
    with pytest.raises(ValueError, match="choose any, verified"):
        asking(switches={"sender-domain": "none"})
