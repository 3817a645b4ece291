"""Each switch changes what it says, and nothing says so by default. A test per switch; a last one counts
them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from marketing_api.sandbox.responses import Request
from tests.dialects.switches import SWITCHES
from tests.marketing_api.sandbox.asking import Asking, Refused, asking, content, params_for

COMPANY = "Our kitchen, the company"
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


@case("error-status", n_200=200, n_400=400)
def error_status(ask: Asking) -> Any:
    return _refusal(ask, "emailmarketing/getcontact", id=1).status


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


@case("validation-fields", off=None, on=["status", "listid"])
def validation_fields(ask: Asking) -> Any:
    return _refusal(ask, "emailmarketing/addcontact", email="a@example.com").data.get("fields")


@case("key-place", any="ok", query="error")
def key_place(ask: Asking) -> Any:
    reply = ask.app.respond(
        Request("POST", "/1/app/me", "", "application/json", b'{"key": "sandbox-key"}'), 1.0
    )
    return json.loads(content(reply))["response"]["header"]["status"]


@case("deletions", any=[200, 200, 200], declared=[405, 200, 405])
def deletions(ask: Asking) -> Any:
    verbs = (("GET", 301), ("POST", 303), ("DELETE", 305))
    return [ask.reply("goal/delete", as_verb=verb, id=wanted).status for verb, wanted in verbs]


@case("contact-paging", ignored=(True, 5), honoured=(False, 3))
def contact_paging(ask: Asking) -> Any:
    contacts = ask.data("emailmarketing/getcontacts", listid=1801, limit=3, page=1)["contacts"]["items"]
    lists = ask.data("emailmarketing/getlists", limit=3, page=1)["lists"]["items"]
    return len(contacts) > 3, len(lists)


@case("page-cap", n_0=20, n_7=7)
def page_cap(ask: Asking) -> Any:
    return _campaigns_on_page(ask, limit=20)


@case("page-ignored", off=False, on=True)
def page_ignored(ask: Asking) -> Any:
    first, second = (ask.data("emailmarketing/campaigns", limit=5, page=page) for page in (1, 2))
    return first == second


@case("limit-ignored", off=20, on=10)
def limit_ignored(ask: Asking) -> Any:
    return _campaigns_on_page(ask, limit=20)


def _campaigns_on_page(ask: Asking, **params: Any) -> int:
    items = ask.data("emailmarketing/campaigns", **params)["campaigns"]["items"]
    return sum(len(group["data"]) for group in items.values())


@case("count", total=True, page=False)
def count(ask: Asking) -> Any:
    return ask.data("emailmarketing/campaigns", limit=5)["campaigns"]["count"] > 5


@case("items", list="list", numbered=["1", "2", "3", "4", "5"])
def items(ask: Asking) -> Any:
    found = ask.data("emailmarketing/getlists")["lists"]["items"]
    return list(found) if isinstance(found, dict) else "list"


@case("empty-object", object={}, list=[])
def empty_object(ask: Asking) -> Any:
    return ask.data("socialmedia/calendar", from_="2011-01-01", to="2011-01-02")["calendar"]["items"]


@case("listed-fields", off=False, on=True)
def listed_fields(ask: Asking) -> Any:
    return "fields" in ask.data("emailmarketing/getlists")["lists"]["items"][0]


@case(
    "confirmation",
    confimation=["confimation_email", "confimation_message"],
    confirmation=["confirmation_email", "confirmation_message"],
    both=["confimation_email", "confimation_message", "confirmation_email", "confirmation_message"],
)
def confirmation(ask: Asking) -> Any:
    return sorted(
        name for name in ask.data("emailmarketing/getlist", id=1801)["list"] if name.startswith("conf")
    )


@case("contact-status", code="1", word="Active")
def contact_status(ask: Asking) -> Any:
    return max(
        (one["status"] for one in ask.contacts(1801)), key=[one["status"] for one in ask.contacts(1801)].count
    )


@case("contact-fields", id="9100", label="First Name", nested="fields", off=None)
def contact_fields(ask: Asking) -> Any:
    return next(
        (name for name in _first(ask) if name not in ("id", "email", "status", "registration_date")), None
    )


@case("show-timezone", off=None, on="UTC")
def show_timezone(ask: Asking) -> Any:
    return ask.data("app/me")["business"].get("timezone")


_SPECIFIED = r"\d\d/\d\d/\d{4} \d\d:\d\d"
_DATES = {
    "specified": _SPECIFIED,
    "24h": _SPECIFIED,
    "24h-pm": _SPECIFIED + " [AP]M",
    "12h": r"\d\d/\d\d/\d{4} (0\d|1[012]):\d\d [AP]M",
    "iso-12h": r"\d{4}-\d\d-\d\d (0\d|1[012]):\d\d [AP]M",
    "dmy-12h": r"\d\d-\d\d-\d{4} (0\d|1[012]):\d\d [AP]M",
    "iso-12h-tight": r"\d{4}-\d\d-\d\d (0\d|1[012]):\d\d[AP]M",
}


@pytest.mark.parametrize("form", _DATES)
def test_dates_are_written_in_the_form_asked_for(form: str) -> None:
    ask = asking(switches={"dates": form})
    dates = [one["registration_date"] for one in ask.contacts(1801)]
    dates += [one["creation_date"] for one in ask.data("emailmarketing/getlists")["lists"]["items"]]
    assert all(re.fullmatch(_DATES[form], date) for date in dates)


@case("dates", specified=1, mixed=True)
def dates(ask: Asking) -> Any:
    shapes = {re.sub(r"\d", "0", one["registration_date"]) for one in ask.contacts(1801)}
    return len(shapes) if len(shapes) == 1 else len(shapes) > 3


@case("timestamps", number=int, text=str)
def timestamps(ask: Asking) -> Any:
    return type(_timeline(ask)["timeline"]["data"][0]["timestamp"])


@case("nothing", n_n_a="N/A", dash="-", empty="")
def nothing(ask: Asking) -> Any:
    details = [
        detail
        for entry in _timeline(ask)["timeline"]["data"]
        for detail in entry["details"]
        if detail["key"] == "open-date"
    ]
    return min((detail["value"] for detail in details), key=len)


@case("detail-values", text=str, number=int)
def detail_values(ask: Asking) -> Any:
    details = [detail for entry in _timeline(ask)["timeline"]["data"] for detail in entry["details"]]
    return next(type(detail["value"]) for detail in details if detail["key"] == "links-clicked")


@case("sent-key", email_campaign_sent="email-campaign-sent", mail_sent="mail-sent", email_sent="email-sent")
def sent_key(ask: Asking) -> Any:
    return _timeline(ask)["timeline"]["data"][0]["key"]


@case(
    "channels",
    specified=None,
    observed={"id": "7799", "name": COMPANY},
    company_id={"companyId": "7799", "companyName": COMPANY},
)
def channels(ask: Asking) -> Any:
    """The company (row 46)."""
    found = ask.data("socialmedia/channels")["channels"]
    assert ("Instagram" in found) is ("companies" in found["Linkedin"])
    return next(iter(found["Linkedin"].get("companies", ())), None)


@case("clickers", any={0: False, 1: True}, always={0: True, 1: True}, never={0: False, 1: False})
def clickers(ask: Asking) -> Any:
    """Whether `clickers` is there, in the newest automation (nobody clicked yet) and in the oldest
    campaign."""
    found = ask.data("emailmarketing/campaigns", limit=100)["campaigns"]["items"]
    asked = (found["Automation"]["data"][1], found["Sent"]["data"][0])
    links = [ask.data("emailmarketing/stats", id=one["id"])["campaign"]["clicks"][0] for one in asked]
    return {place: "clickers" in link for place, link in enumerate(links)}


@case("over-100-percent", off=False, on=True)
def over_100_percent(ask: Asking) -> Any:
    stats = ask.data("emailmarketing/stats", id=_sent(ask))["campaign"]["stats"]
    return any(float(re.search(r"\((.+)%\)", text)[1]) > 100 for text in stats.values())  # type: ignore[index]


def _sent(ask: Asking) -> str:
    return str(
        ask.data("emailmarketing/campaigns", filter="sent")["campaigns"]["items"]["Sent"]["data"][0]["id"]
    )


@case("action-deleted", off=False, on=True)
def action_deleted(ask: Asking) -> Any:
    return ask.data("goal/lists")["goals"]["items"][0]["action"].get("name") == "Action is deleted!"


@case("goal-decimals", n_2="80.00", n_4="80.0000")
def goal_decimals(ask: Asking) -> Any:
    return ask.data("goal/show", id=301)["goal"]["goal_value"]["value"]


@case("rate-limit-place", top=(True, True), headers_only=(False, False))
def rate_limit_place(ask: Asking) -> Any:
    """Errors are as payloads are, and the payload is whole."""
    assert ask.contacts(1801)
    return tuple("rate-limit" in whole for whole in (ask.whole("app/me"), ask.whole("nix")))


@case("rate-limit-values", text=str, number=int)
def rate_limit_values(ask: Asking) -> Any:
    return type(ask.whole("app/me")["rate-limit"]["limit"])


@case("rate-limit-after", n_0="1", n_2="2")
def rate_limit_after(ask: Asking) -> Any:
    ask.control("faults", **{"rate-limit": 1})
    replies = [ask.app.respond(Request("GET", "/1/app/me", "key=sandbox-key"), 9.0) for _ in range(2)]
    return json.loads(content(replies[1]))["rate-limit"]["after"]


@case("header-extras", off=(False, int), on=(True, str))
def header_extras(ask: Asking) -> Any:
    header = ask.whole("app/me")["response"]["header"]
    return "cached" in header, type(header["limit"])


@case("reputation", present=None, gone=1002, refused=1000)
def reputation(ask: Asking) -> Any:
    try:
        ask.data("reputation/direct")
    except Refused as refused:
        return refused.code
    return None


@case("sending", added=("Sent", "Scheduled", "Scheduled"), edited=("Draft", "Scheduled", "Scheduled"))
def sending(ask: Asking) -> Any:
    """The status of a campaign that was added to be sent; of one edited, and one added, to be sent tomorrow
    (row 34)."""
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
    """How many entries an address on two lists keeps when it is deleted without saying from which (row
    35)."""
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
    """Ranges as public clients send them (row 37); all ask for everything, and where they are taken, all get
    it."""
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


@case(
    "email-field", off=(None, "", "refused"), on=("Email Address", "mapped@example.com", "mapped@example.com")
)
def email_field(ask: Asking) -> Any:
    """The label of the field, the address of a contact added with it alone, and what the contact shows in it
    (row 38)."""
    field = "18019"
    label = ask.data("emailmarketing/getlist", id=1801)["list"]["fields"].get(field)
    try:
        added = ask.data(
            "emailmarketing/addcontact", listid=1801, status=1, fields={field: "mapped@example.com"}
        )["id"]
    except Refused:
        return label, "", "refused"
    with pytest.raises(Refused, match="Email Address is required"):
        ask.data("emailmarketing/addcontact", listid=1801, status=1)
    contact = next(one for one in ask.contacts(1801) if one["id"] == added)
    return label, contact["email"], contact[field]


@case(
    "campaign-groups",
    groups=["Sent", "Scheduled", "Draft", "Automation"],
    list=False,
    numbered=["1", "2", "3", "4"],
    observed=True,
)
def campaign_groups(ask: Asking) -> Any:
    """Names of groups or entries (row 39), or whether a list tells of the sending (row 40)."""
    items = ask.data("emailmarketing/campaigns", filter="all", limit=1000)["campaigns"]["items"]
    return list(items)[:4] if isinstance(items, dict) else "sent_date" in items[0]


@case(
    "rating",
    php=r'a:1:{s:6:"rating";s:1:"\d";}',
    json=r'{"rating": \d}',
    number=r"\d",
    list=r"a:2:{i:0;i:\d;i:1;i:5;}",
)
def rating(ask: Asking) -> Any:
    items = ask.data("reputation/online")["reviews"]["items"]
    text = next(one["data"][0]["rating"] for one in items.values() if "data" in one)
    return re.sub(r'(^|"rating";s:1:"|: |i:0;i:)[1-5]', r"\1\\d", text)


@case("ids", text=str, number=int)
def ids(ask: Asking) -> Any:
    lists = ask.data("emailmarketing/getlists")["lists"]["items"]
    kinds = {type(one["id"]) for one in [_first(ask), *lists, *ask.data("goal/lists")["goals"]["items"]]}
    assert len(kinds) == 1
    return kinds.pop()


@case(
    "business-names",
    camel=["businessName", "contactName", "serviceName"],
    lower=["businessname", "contactName", "serviceName"],
    observed=["businessName", "contactName", "sandboxName"],
)
def business_names(ask: Asking) -> Any:
    """Row 47."""
    business = ask.data("app/me")["business"]
    assert ("limits" in business) is ("serviceName" not in business)
    return [name for name in business if name.lower().endswith("name")]


@case("envelope", always="response", writes="business")
def envelope(ask: Asking) -> Any:
    return next(iter(ask.whole("app/me")))


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


@case("coupon-missing", empty={0, 1}, error={1003, 1}, all={1003})
def coupon_missing(ask: Asking) -> Any:
    """What addresses are answered: how many coupons (1: some), or an error code."""
    found: set[int | None] = set()
    for contact in ask.contacts(1801)[:40]:
        try:
            found.add(min(len(ask.data("emailmarketing/getcoupon", email=contact["email"])["coupons"]), 1))
        except Refused as refused:
            found.add(refused.code)
    return found


@case("timeline-cut", n_0=True, n_3=False)
def timeline_cut(ask: Asking) -> Any:
    told = _timeline(ask)["timeline"]
    assert told["count"] == len(told["data"])
    return told["count"] == told["total"]


def _views(ask: Asking) -> list[str]:
    shown = ask.data("reputation/stats", from_="2026-11-01", to="2026-11-10", filter="all")["stats"][
        "FeedbackHub"
    ]
    return [entry["periode"][-2:] for entry in shown]


@case("series-cut", n_0=10, n_3=3)
def series_cut(ask: Asking) -> Any:
    return len(_views(ask))


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


@case("tags", hidden=(False, False), contact=(True, False), timeline=(False, True))
def tags(ask: Asking) -> Any:
    wanted = _first(ask)["id"]
    ask.data("emailmarketing/addtag", id=wanted, tagname="vip")
    told = _timeline(ask, wanted)["timeline"]["data"]
    in_timeline = any(entry["key"] == "tag-added" for entry in told)
    return "tags" in ask.data("emailmarketing/getcontact", id=wanted)["contact"], in_timeline


@case("sync-lists", all=2, first=1, refuse=1004)
def sync_lists(ask: Asking) -> Any:
    try:
        ask.data("emailmarketing/synccontact", email="two@example.com", listid="1801,1814")
    except Refused as refused:
        return refused.code
    return len(ask.control("written")["contacts"])


@case("unknown-ids", refuse=[1003] * 6, accept=[None] * 6)
def unknown_ids(ask: Asking) -> Any:
    """A custom field, a domain, a channel, an audience, a list and a group that nobody has."""
    known = params_for(ask)
    writes = {
        "emailmarketing/addcontact": {"fields": {"77": "x"}},
        "goal/add": {"domainid": 77},
        "socialmedia/addpost": {"channelid": 77},
        "emailmarketing/addcampaign": {"audiences": 77},
        "webhook/add": {"list_id": 77},
        "user/add": {"group": 77},
    }
    codes: list[int | None] = []
    for name, wrong in writes.items():
        try:
            ask.data(name, **(known[name] | wrong))
            codes.append(None)
        except Refused as refused:
            codes.append(refused.code)
    return codes


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


def test_every_switch_has_its_case() -> None:
    assert [name for name, _, _ in CASES] == list(SWITCHES)


def test_unknown_switch_or_value_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no switch"):
        asking(switches={"colour": "red"})
    with pytest.raises(ValueError, match="choose any, query"):
        asking(switches={"key-place": "header"})
