"""Asking a sandbox, in process or over HTTP, in as few words as tests like."""

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from marketing_api.operations import ALL
from marketing_api.sandbox.control import respond_to_control
from marketing_api.sandbox.options import DEFAULT_KEY
from marketing_api.sandbox.responses import Request, Response
from tests.dialects.app import RoughApp
from tests.dialects.server import Options
from tests.waiting import HANGS_S

#: 2026-11-20 15:00 UTC: most tests let the clock stand still here.
NOW = 1_795_186_800
DAY = 86_400


class Refused(Exception):
    """The envelope's error."""

    def __init__(self, data: dict[str, Any], status: int) -> None:
        super().__init__(data)
        self.code, self.data, self.status = data["errorCode"], data, status


class Asking:
    """A sandbox without sockets."""

    def __init__(self, app: RoughApp, key: str = DEFAULT_KEY) -> None:
        self.app, self.key, self.clock = app, key, 1000.0

    def reply(self, operation: str, as_verb: str = "GET", **params: Any) -> Response:
        """Arrivals are seconds apart unless a test sets the clock."""
        self.clock += 1
        named = {name.rstrip("_"): value for name, value in params.items()}
        query = urllib.parse.urlencode({"key": self.key, **_flat(named)})
        return self.app.respond(Request(as_verb, f"/1/{operation}.json", query), self.clock)

    def whole(self, operation: str, **params: Any) -> Any:
        """The parsed answer."""
        return json.loads(content(self.reply(operation, **params)))

    def data(self, operation: str, **params: Any) -> Any:
        """The payload; Refused when the header says error."""
        reply = self.reply(operation, **params)
        return read(content(reply), reply.status)

    def control(self, path: str, **params: Any) -> Any:
        query = urllib.parse.urlencode(params)
        reply = respond_to_control(self.app, Request("POST", f"/sandbox/{path}", query), self.clock)
        found = json.loads(content(reply))
        assert reply.status == 200, found
        return found

    def switch(self, name: str, value: object) -> None:
        self.control("switches", **{name: value})

    def contacts(self, list_id: int | str) -> list[dict[str, Any]]:
        items = self.data("emailmarketing/getcontacts", listid=list_id)["contacts"]["items"]
        return list(items)

    def all_contacts(self) -> list[dict[str, Any]]:
        lists = self.data("emailmarketing/getlists")["lists"]["items"]
        return [contact for one in lists for contact in self.contacts(one["id"])]


def asking(**options: Any) -> Asking:
    """A sandbox whose clock stands still and that has no limit, unless told otherwise."""
    return Asking(RoughApp(Options(**{"now": NOW, "rate_limit": 0, "contacts": 100, **options})))


def content(reply: Response) -> bytes:
    return reply.body


def read(body: bytes, status: int = 200) -> Any:
    whole = json.loads(body)
    response = whole["response"]
    if response["header"]["status"] != "ok":
        raise Refused(response["data"], status)
    return response["data"]


def _flat(params: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in params.items():
        if isinstance(value, dict):
            found.update({f"{name}[{key}]": str(item) for key, item in value.items()})
        else:
            found[name] = str(value)
    return found


def fetch(url: str, operation: str, verb: str = "GET", **params: Any) -> tuple[int, bytes, Mapping[str, str]]:
    """(status, body, headers) over HTTP."""
    query = urllib.parse.urlencode(
        {"key": DEFAULT_KEY, **_flat({name.rstrip("_"): value for name, value in params.items()})}
    )
    request = urllib.request.Request(f"{url}/{operation}.json?{query}", method=verb)
    try:
        with urllib.request.urlopen(request, timeout=HANGS_S) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read(), dict(problem.headers)


def params_for(ask: Asking) -> dict[str, dict[str, Any]]:
    """Parameters with which each operation succeeds on a fresh sandbox."""
    lists = ask.data("emailmarketing/getlists")["lists"]["items"]
    first, second = lists[0]["id"], lists[1]["id"]
    contacts = ask.contacts(first)
    contact = contacts[5]
    sent = ask.data("emailmarketing/campaigns", filter="sent")["campaigns"]["items"]["Sent"]
    campaign = sent["data"][0]["id"]
    review = ask.data("reputation/direct")["reviews"]["items"][0]["id"]
    year = {"from_": "2026-01-01", "to": "2027-01-01", "includeposted": "true"}
    posts = ask.data("socialmedia/calendar", **year)["calendar"]["items"]
    post = next(iter(next(iter(posts.values())).values()))["id"]
    names = "name email_subject reply_to from_name notify success_email success_message error_message"
    texts = dict.fromkeys(names.split(), "x")
    a_list = {**texts, "fromemail": "a@example.com", "doubleOptin": "1", "notify_email": "b@example.com"}
    mail = {"name": "n", "subject": "s", "from_name": "f", "body": "<p>b</p>"}
    mail |= {"fromemail": "a@example.com", "reply_to": "r@example.com"}
    user = {"fullname": "U Ser", "username": "user@example.com", "password": "secret"}
    user |= {"type": "user", "group": 801}
    goal = {"name": "g", "type": "event", "event_type": "links"}
    goal["event_links"] = "https://example.com/a,https://example.com/b"
    hook = {"name": "w", "type": "page_exit", "action_type": "html_msg", "domainid": 21}
    known = {
        "reputation/getfeedback": {"id": review},
        "reputation/deletefeedback": {"id": review},
        "reputation/stats": {"from": "2026-01-01", "to": "2026-11-20"},
        "socialmedia/calendar": {"from": "2026-01-01", "to": "2026-12-31", "includeposted": "true"},
        "socialmedia/getpost": {"id": post, "channel": "facebook"},
        "socialmedia/addpost": {"message": "hello", "channel": "facebook", "channelid": "104233551"},
        "socialmedia/editpost": {"id": post, "channel": "facebook", "message": "changed"},
        "socialmedia/deletepost": {"id": post},
        "emailmarketing/campaigns": {"filter": "all"},
        "emailmarketing/getcampaign": {"id": campaign, "type": "standard"},
        "emailmarketing/stats": {"id": campaign, "type": "standard"},
        "emailmarketing/addcampaign": {**mail, "type": "standard", "isdraft": "true"},
        "emailmarketing/editcampaign": {**mail, "id": campaign, "type": "standard"},
        "emailmarketing/deletecampaign": {"id": campaign, "type": "standard"},
        "emailmarketing/getcontacts": {"listid": first},
        "emailmarketing/getcontactbyemail": {"email": contact["email"]},
        "emailmarketing/getcontactsbyphonenumber": {"phone": "+15550000024"},
        "emailmarketing/getcontact": {"id": contact["id"]},
        "emailmarketing/addcontact": {"status": "Active", "listid": first, "email": "new@example.com"},
        "emailmarketing/editcontact": {"id": contact["id"], "email": "edited@example.com"},
        "emailmarketing/synccontact": {"email": "synced@example.com", "listid": first, "status": "Active"},
        "emailmarketing/movecontact": {"id": contacts[7]["id"], "listid": second, "sourceid": first},
        "emailmarketing/deletecontact": {"id": contact["id"], "listid": first},
        "emailmarketing/getcontacttimeline": {"id": contact["id"], "include": "utm,automated"},
        "emailmarketing/getcontacttimelinebyemailaddress": {"email": contact["email"]},
        "emailmarketing/addactivity": {"id": contact["id"], "description": "called", "datetime": "2026-11-20 10:00:00"},
        "emailmarketing/addtag": {"email": contacts[9]["email"], "tagname": "vip"},
        "emailmarketing/removetag": {"id": contacts[9]["id"], "email": contacts[9]["email"], "tagname": "vip"},
        "emailmarketing/getcoupon": {"email": contact["email"]},
        "emailmarketing/getlist": {"id": first},
        "emailmarketing/addlist": a_list,
        "emailmarketing/editlist": {**a_list, "id": second},
        "emailmarketing/deletelist": {"id": second},
        "user/status": {"id": 601, "type": "user", "status": "disable"},
        "user/add": user,
        "user/edit": {**user, "id": 601},
        "user/delete": {"id": 604, "type": "user"},
        "user/groupdelete": {"id": 804},
        "user/groupstatus": {"id": 802, "status": "disable"},
        "goal/listbydomain": {"domainid": 21},
        "goal/show": {"id": 301},
        "goal/add": {**goal, "domainid": 21},
        "goal/edit": {**goal, "id": 301},
        "goal/delete": {"id": 303},
        "webhook/show": {"id": 501},
        "webhook/add": hook,
        "webhook/edit": {**hook, "id": 501},
        "webhook/delete": {"id": 503},
        "register/createaccount": {
            "contact_name": "C", "business_name": "B", "business_email": "c@example.com", "business_phone": "1", "plan_id": 3,
            "business_service_name": "b",
        },
        "account/getsubaccountautologin": {"id": int(ask.data("app/me")["business"]["id"]) + 501, "expire": 60},
    }  # fmt: skip
    return {name: known.get(name, {}) for name in ALL}
