"""What a switch makes of the payload of a response; each is given the call, the payload, and the switches."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from marketing_api.sandbox import seed
from marketing_api.sandbox.lists import find_fields
from marketing_api.sandbox.rules import CheckedCall, missing
from tests.dialects.switches import Switches

Thing = dict[str, Any]
Translate = Callable[[CheckedCall, Any, Switches], Any]
#: By switch, in the order in which they apply.
TRANSLATIONS: dict[str, Translate] = {}
_FORMS = {
    "24h": "%m/%d/%Y %H:%M",
    "24h-pm": "%m/%d/%Y %H:%M %p",
    "12h": "%m/%d/%Y %I:%M %p",
    "iso-12h": "%Y-%m-%d %I:%M %p",
    "dmy-12h": "%d-%m-%Y %I:%M %p",
    "iso-12h-tight": "%Y-%m-%d %I:%M%p",
}
_RATINGS = {
    "json": '{{"rating": {}}}',
    "number": "{}",
    "list": "a:2:{{i:0;i:{};i:1;i:5;}}",
}
_STATUSES = ("Unconfirmed", "Active", "Unsubscribed", "Bounced")


class Moments(seed.Moments):
    """Date-times in one form everywhere, or in all forms (observation 21)."""

    def __init__(self, zone: str, form: str) -> None:
        super().__init__(zone)
        self.form = form

    def text(self, moment: int, form: str = "24h") -> str:
        if form == "day":
            return super().text(moment, form)
        if self.form == "mixed":
            form = tuple(_FORMS)[moment % len(_FORMS)]
        elif self.form != "specified":
            form = self.form
        return dt.datetime.fromtimestamp(moment, self.zone).strftime(_FORMS[form])


def translation(*names: str) -> Callable[[Translate], Translate]:
    def note(translate: Translate) -> Translate:
        TRANSLATIONS.update(dict.fromkeys(names, translate))
        return translate

    return note


def _name(call: CheckedCall) -> str:
    return call.operation.name.partition("/")[2]


def _contacts(call: CheckedCall, data: Any) -> list[Thing]:
    """The contacts of a payload."""
    if _name(call) in ("getcontacts", "getcontactsbyphonenumber"):
        return list(data["items"])
    if _name(call) in ("getcontact", "getcontactbyemail"):
        return data if isinstance(data, list) else [data]
    return []


def _is_timeline(call: CheckedCall) -> bool:
    return _name(call).startswith("getcontacttimeline")


@translation("coupon-missing")
def coupons(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if _name(call) == "getcoupon" and (switches["coupon-missing"] == "all" or not data):
        raise missing("coupon")
    return data


@translation("email-found")
def found(call: CheckedCall, data: Any, switches: Switches) -> Any:
    is_meant = switches["email-found"] == "by-list" and _name(call) == "getcontactbyemail" and call["listid"]
    if is_meant and isinstance(data, list):
        return {name: value for name, value in data[0].items() if name not in ("listid", "list_name")}
    return data


@translation("contact-status")
def words(call: CheckedCall, data: Any, switches: Switches) -> Any:
    for contact in _contacts(call, data):
        if "status" in contact:
            contact["status"] = _STATUSES[int(contact["status"])]
    return data


@translation("contact-fields")
def custom_fields(call: CheckedCall, data: Any, switches: Switches) -> Any:
    names = {field: name for one in call.things("list") for field, name in find_fields(call, one).items()}
    for contact in _contacts(call, data):
        values = {field: contact.pop(field) for field in list(contact) if field.isdecimal()}
        if switches["contact-fields"] == "label":
            contact |= {names.get(field, field): value for field, value in values.items()}
        elif switches["contact-fields"] == "nested" and "id" in contact:
            contact["fields"] = values
    return data


@translation("tags")
def tags(call: CheckedCall, data: Any, switches: Switches) -> Any:
    contacts = call.subscribers.contacts
    if switches["tags"] == "contact" and _name(call) != "getcontacts":
        for contact in _contacts(call, data):
            if "id" in contact:
                contact["tags"] = list(contacts[int(contact["id"])].tags)
    if switches["tags"] == "timeline" and _is_timeline(call):
        told = data["timeline"]
        for tag, at in contacts[data["id"]].tags.items():
            shown = {"timestamp": at, "datetime": call.moments.text(at, "iso-12h")}
            told["data"].append({"key": "tag-added", "snippet": f"Tag added: {tag}", "details": []} | shown)
        told["data"].sort(key=lambda entry: -int(entry["timestamp"]))
        told["count"] = told["total"] = len(told["data"])
    return data


@translation("timeline-cut", "timestamps", "nothing", "detail-values", "sent-key", "activity")
def timeline(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if not _is_timeline(call):
        return data
    told = data["timeline"]
    if cut := switches.number("timeline-cut"):
        told["data"] = told["data"][:cut]
        told["count"] = len(told["data"])
    nothing = {"dash": "-", "empty": ""}.get(switches["nothing"], "N/A")
    for entry in [
        *told["data"],
        *(one for part in ("utm", "automated") for one in data.get(part, {}).get("data", ())),
    ]:
        if switches["timestamps"] == "text":
            entry["timestamp"] = str(entry["timestamp"])
        for detail in entry.get("details", ()):
            if detail["value"] == "N/A":
                detail["value"] = nothing
            if switches["detail-values"] == "number" and detail["key"] in ("steps", "links-clicked"):
                detail["value"] = int(detail["value"])
        if entry.get("key") == "email-campaign-sent":
            entry["key"] = switches["sent-key"]
        if entry.get("key") == "activity" and switches["activity"] == "other-key":
            entry["key"] = "custom-activity"
        elif entry.get("key") == "activity" and switches["activity"] == "detail" and not entry["details"]:
            detail = {"key": "description", "label": "Description", "value": entry["snippet"]}
            entry |= {"snippet": "Activity added", "details": [detail]}
    return data


@translation("confirmation")
def confirmation(call: CheckedCall, data: Any, switches: Switches) -> Any:
    found = {"getlists": lambda: data["items"], "getlist": lambda: [data]}.get(_name(call), list)()
    for one in found:
        for name in ("confimation_email", "confimation_message"):
            one[name.replace("confim", "confirm")] = one[name]
            if switches["confirmation"] == "confirmation":
                del one[name]
    return data


@translation("channels")
def companies(call: CheckedCall, data: Any, switches: Switches) -> Any:
    """Observation 46."""
    if switches["channels"] == "company-id" and _name(call) == "channels":
        linkedin = data["Linkedin"]
        linkedin["companies"] = [
            {"companyId": one["id"], "companyName": one["name"]} for one in linkedin["companies"]
        ]
    return data


@translation("clickers", "over-100-percent")
def statistics(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if call.operation.name != "emailmarketing/stats":
        return data
    for link in data["clicks"]:
        if switches["clickers"] == "always":
            link.setdefault("clickers", [])
        elif switches["clickers"] == "never":
            link.pop("clickers", None)
    if switches.is_on("over-100-percent"):
        counts = {name: int(text.split()[0]) for name, text in data["stats"].items()}
        whole = max(1, sum(counts[name] for name in ("open", "unopened", "bounced")) // 10)
        data["stats"] = {
            name: f"{value} ({round(100 * value / whole, 2):g}%)" for name, value in counts.items()
        }
    return data


@translation("action-deleted", "goal-decimals")
def goals(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if call.operation.area != "goal" or not call.operation.is_read:
        return data
    first = str(min(call.things("goal")))
    for goal in data.get("items", [data]):
        if switches.is_on("action-deleted") and goal["id"] == first:
            goal |= {"has_action": "Yes", "action": {"id": "99", "name": "Action is deleted!"}}
        value = goal["goal_value"]
        value["value"] = f"{float(value['value']):.{switches.number('goal-decimals')}f}"
    return data


@translation("rating")
def ratings(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if call.operation.name == "reputation/online":
        for channel in data["items"].values():
            for review in channel.get("data", ()):
                stars = re.search(r'"(\d)"', review["rating"])
                assert stars
                review["rating"] = _RATINGS[switches["rating"]].format(stars[1])
    return data


@translation("series-cut", "series-kept")
def series(call: CheckedCall, data: Any, switches: Switches) -> Any:
    most = switches.number("series-cut")
    if most and call.operation.name == "reputation/stats":
        for name in ("Reviews", "SocialMedia", "FeedbackHub"):
            data[name] = data[name][:most] if switches["series-kept"] == "first" else data[name][-most:]
    return data


@translation("business-names")
def business(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if _name(call) == "me" and switches["business-names"] == "lower":
        return {name.replace("businessName", "businessname"): value for name, value in data.items()}
    return data


@translation("campaign-groups")
def groups(call: CheckedCall, data: Any, switches: Switches) -> Any:
    form = switches["campaign-groups"]
    if _name(call) == "campaigns" and form in ("list", "numbered"):
        every = [one for group in data["items"].values() for one in group["data"]]
        is_numbered = form == "numbered" and every
        data["items"] = {str(place): one for place, one in enumerate(every, 1)} if is_numbered else every
    return data


@translation("count")
def counts(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if _name(call) in ("campaigns", "calendar") or (
        _name(call) in ("getcontacts", "getlists") and call.observes("contact-paging")
    ):
        data["count"] = _entries(data["items"])
    return data


def _entries(value: Any) -> int:
    if isinstance(value, dict) and "id" in value:
        return 1
    return sum(
        map(_entries, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    )


@translation("items")
def numbered(call: CheckedCall, data: Any, switches: Switches) -> Any:
    """Listings, coupons, clicks and the campaigns of a group."""

    def number(entries: Any) -> Any:
        is_listing = isinstance(entries, list) and entries
        return {str(place): one for place, one in enumerate(entries, 1)} if is_listing else entries

    if _name(call) == "getcoupon":
        return number(data)
    if call.operation.name == "reputation/stats" or not call.operation.is_read or not isinstance(data, dict):
        return data
    for name in ("items", "clicks"):
        if name in data and not (
            name == "items" and call.observes("campaign-groups") and _name(call) == "campaigns"
        ):
            data[name] = number(data[name])
    if _name(call) == "campaigns" and isinstance(data["items"], dict):
        for group in data["items"].values():
            if "data" in group:
                group["data"] = number(group["data"])
    return data


@translation("ids")
def numbers(call: CheckedCall, data: Any, switches: Switches) -> Any:
    names = ("id", "listid", "domain_id", "companyId", "post_id")
    if isinstance(data, list):
        return [numbers(call, one, switches) for one in data]
    if isinstance(data, dict):
        return {
            name: int(value)
            if name in names and isinstance(value, str) and value.isdecimal()
            else numbers(call, value, switches)
            for name, value in data.items()
        }
    return data


@translation("empty-object")
def empty(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if isinstance(data, list):
        return [empty(call, one, switches) for one in data]
    if isinstance(data, dict):
        return {name: empty(call, one, switches) for name, one in data.items()} or []
    return data
