"""Requests of public clients that the sandbox once refused or took for something else, over HTTP and as these
clients write them (observations 40 to 53). Ids are those that the sandbox shows. Addresses and values
are invented."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.dialects.server import Options, serve
from tests.dialects.switches import AS_OBSERVED
from tests.marketing_api.sandbox.asking import NOW
from tests.waiting import HANGS_S

KEY = {"key": "sandbox-key"}
NEW = "new@example.com"
TEXTS = {
    "name": "News",
    "subject": "News",
    "fromemail": "a@example.com",
    "from_name": "A",
    "reply_to": "a@example.com",
    "body": "Hello",
}
#: Two hours after the sandbox's time, in every spelling that was seen.
LATER = ["11/20/2026 17:00", "2026-11-20 05:00 PM", "2026-11-20 17:00:00"]


class Caller:
    """Sends a request as it is written, and returns the payload of its response."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, verb: str, path: str, params: dict[str, Any] | None = None, **body: Any) -> Any:
        reply = requests.request(
            verb, f"{self.url}/{path}", params=KEY | (params or {}), timeout=HANGS_S, **body
        )
        document = reply.json()["response"]
        assert document["header"]["status"] == "ok", document
        return document["data"]

    def control(self, path: str) -> Any:
        return requests.get(f"{self.url.removesuffix('/1')}/sandbox/{path}", timeout=HANGS_S).json()

    def channels(self) -> Any:
        return self("GET", "socialmedia/channels.json")["channels"]

    def posted(self) -> dict[str, str]:
        """Post → type and id of its channel."""
        days = self(
            "GET",
            "socialmedia/calendar.json",
            {"from": "11/01/2026", "to": "12/31/2026", "includeposted": "true", "limit": 1000},
        )
        posts = (post for day in days["calendar"]["items"].values() for post in day.values())
        return {
            post["id"]: f"{post['channel']['type']} {post['channel']['id']} {post['channel']['date']}"
            for post in posts
        }

    def campaigns(self, group: str) -> list[str]:
        items = self("GET", "emailmarketing/campaigns.json", {"filter": group, "limit": 1000})["campaigns"][
            "items"
        ]
        found = [each for one in items.values() for each in one["data"]] if isinstance(items, dict) else items
        return [each["id"] for each in found]

    def contact(self, contact_id: str) -> Any:
        return self("GET", "emailmarketing/getcontact.json", {"id": contact_id})["contact"]


@pytest.fixture
def call() -> Iterator[Caller]:
    with serve(Options(contacts=100, rate_limit=0, now=NOW, switches=AS_OBSERVED)) as url:
        yield Caller(url)


def test_every_channel_that_is_shown_can_be_posted_to(call: Caller) -> None:
    """Rows 23, 24 and 46: pages, profiles, companies, boards, accounts."""
    wanted = []
    for network, lists in call.channels().items():
        for kind, entries in lists.items():
            for entry in entries if kind != "count" else ():
                word = "linkedin_company" if kind == "companies" else network.lower()
                form = {"message": "Hello", "channel": word, "channelid": entry["id"]}
                new = call("POST", "socialmedia/addpost.json", data=form)["post_id"]
                wanted.append(
                    (new, f"{kind.replace('ies', 'y').removesuffix('s')} {entry['id']} 11/20/2026 03:00 PM")
                )
    assert {kind.split()[0] for _, kind in wanted} == {"page", "profile", "company", "board", "account"}
    posted = call.posted()
    assert [(new, posted[new]) for new, _ in wanted] == wanted


def test_company_is_shown_and_taken_by_the_older_names(call: Caller) -> None:
    """Row 46."""
    call.control("switches?channels=company-id")
    (company,) = call.channels()["Linkedin"]["companies"]
    form = {
        "message": company["companyName"],
        "channel": "linkedin_company",
        "channelid": company["companyId"],
    }
    new = call("POST", "socialmedia/addpost.json", data=form)["post_id"]
    assert call.posted()[new].startswith("company ")


def test_post_is_scheduled_at_unix_seconds(call: Caller) -> None:
    """Row 46."""
    form = {
        "message": "Hello",
        "channel": "facebook",
        "channelid": "1",
        "isscheduled": "true",
        "scheduleddate": str(NOW + 7200),
    }
    new = call("POST", "socialmedia/addpost.json", data=form)["post_id"]
    assert call.posted()[new] == "page 1 11/20/2026 05:00 PM"


@pytest.mark.parametrize("moment", LATER)
def test_scheduled_campaign_stays_scheduled(call: Caller, moment: str) -> None:
    form = {
        **TEXTS,
        "type": "standard",
        "lists": "1801",
        "isscheduled": "true",
        "isdraft": "false",
        "scheduled_datetime": moment,
    }
    new = call("POST", "emailmarketing/addcampaign.json", data=form)["id"]
    assert [new in call.campaigns(group) for group in ("scheduled", "draft", "sent")] == [True, False, False]
    call.control("advance?days=0.1")
    assert new in call.campaigns("sent")


@pytest.mark.parametrize("name", ["audiences", "recipients", "recipients[]", "recipients[0]"])
def test_campaign_goes_to_lists_that_are_named_otherwise(call: Caller, name: str) -> None:
    """Row 42."""
    lists = call("GET", "emailmarketing/getlists.json")["lists"]["items"]
    form = {
        **TEXTS,
        "type": "standard",
        name: lists[0]["id"],
        "isscheduled": "true",
        "scheduled_datetime": LATER[0],
    }
    new = call("POST", "emailmarketing/addcampaign.json", data=form)["id"]
    call.control("advance?days=1")
    stats = call("GET", "emailmarketing/stats.json", {"id": new, "type": "standard"})["campaign"]["stats"]
    assert int(stats["unopened"].split()[0]) > 10


@pytest.mark.parametrize(
    "body",
    [
        {
            "data": {
                "fields[first_name]": "Ann",
                "fields[9103]": "Whitby",
                "firstname": "Ann",
                "cellphone": "+15550100100",
            }
        },
        {"json": {"fields": {"first_name": "Ann", "9103": "Whitby"}, "firstname": "Ann"}},
    ],
)
def test_custom_fields_by_name_are_taken_and_ignored(call: Caller, body: dict[str, Any]) -> None:
    """Row 44."""
    new = call(
        "POST", "emailmarketing/addcontact.json", {"email": NEW, "listid": "1801", "status": "Active"}, **body
    )["id"]
    contact = call.contact(new)
    assert (contact["9103"], contact["9100"], "first_name" in contact) == ("Whitby", "", False)


def test_field_without_s_is_dropped(call: Caller) -> None:
    """Row 45."""
    form = {"email": NEW, "listid": "1801", "status": "Active", "field[9103]": "Whitby"}
    assert call.contact(call("POST", "emailmarketing/addcontact.json", data=form)["id"])["9103"] == ""


@pytest.mark.parametrize("verb", ["POST", "DELETE"])
def test_contact_is_deleted_by_its_id_alone(call: Caller, verb: str) -> None:
    """Row 43."""
    new = call(
        "POST", "emailmarketing/addcontact.json", data={"email": NEW, "listid": "1801", "status": "Active"}
    )["id"]
    call(verb, "emailmarketing/deletecontact.json", {"id": new})
    found = call("GET", "emailmarketing/getcontactbyemail.json", {"email": NEW})["contact"]
    assert found["errorCode"]


@pytest.mark.parametrize("position", ["item", "error"])
def test_contact_that_exists_is_told_with_the_id_0(call: Caller, position: str) -> None:
    """Row 45."""
    call.control(f"switches?contact-exists={position}")
    form = {"email": NEW, "listid": "1801", "status": "Active"}
    assert call("POST", "emailmarketing/addcontact.json", data=form)["id"] != "0"
    assert call("POST", "emailmarketing/addcontact.json", data=form) == {
        "id": "0",
        position: "The contact already exists",
    }


def test_path_may_have_one_more_segment_and_name_the_format(call: Caller) -> None:
    """Row 53."""
    plain = call("GET", "emailmarketing/campaigns.json", {"filter": "all"})
    assert call("GET", "emailmarketing/campaigns/get.json", {"filter": "all", "format": "json"}) == plain


def test_look_up_in_one_list_may_be_an_object(call: Caller) -> None:
    """Row 48."""
    call.control("switches?email-found=by-list")
    call("POST", "emailmarketing/addcontact.json", data={"email": NEW, "listid": "1801", "status": "Active"})
    wheres: tuple[dict[str, str], ...] = ({}, {"listid": "1801"})
    found = [
        call("GET", "emailmarketing/getcontactbyemail.json", {"email": NEW, **where})["contact"]
        for where in wheres
    ]
    assert [type(each) for each in found] == [list, dict]


def test_short_name_stands_under_the_name_of_the_service(call: Caller) -> None:
    """Row 47."""
    business = call("GET", "app/me.json")["business"]
    assert business["sandboxName"]
    assert business["limits"]
    assert "serviceName" not in business


def test_every_sub_account_that_is_listed_can_be_logged_into(call: Caller) -> None:
    mine, *others = call("GET", "user/lists.json")["users"]["items"]
    assert call.control("state")["sub_accounts"].keys() == set(others)
    assert mine == call("GET", "app/me.json")["business"]["id"]
    for business in others:
        assert call("GET", "account/getsubaccountautologin.json", {"id": business})["login-url"]
