"""What a switch makes of the payload of a response; each is given the call, the payload, and the switches."""

from collections.abc import Callable
from typing import Any

from marketing_api.sandbox.lists import find_fields
from marketing_api.sandbox.rules import CheckedCall, missing
from tests.dialects.switches import Switches

Thing = dict[str, Any]
Translate = Callable[[CheckedCall, Any, Switches], Any]
#: By switch, in the order in which they apply.
TRANSLATIONS: dict[str, Translate] = {}
_STATUSES = ("Unconfirmed", "Active", "Unsubscribed", "Bounced")


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
    for contact in _contacts(call, data) if _name(call) != "getcontacts" else ():
        if "id" in contact:
            contact["tags"] = list(call.subscribers.contacts[int(contact["id"])].tags)
    return data


@translation("timeline-cut", "activity")
def timeline(call: CheckedCall, data: Any, switches: Switches) -> Any:
    if not _name(call).startswith("getcontacttimeline"):
        return data
    told = data["timeline"]
    if cut := switches.number("timeline-cut"):
        told["data"] = told["data"][:cut]
        told["count"] = len(told["data"])
    for entry in told["data"]:
        if entry.get("key") == "activity" and switches["activity"] == "other-key":
            entry["key"] = "custom-activity"
        elif entry.get("key") == "activity" and switches["activity"] == "detail" and not entry["details"]:
            detail = {"key": "description", "label": "Description", "value": entry["snippet"]}
            entry |= {"snippet": "Activity added", "details": [detail]}
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


@translation("series-cut", "series-kept")
def series(call: CheckedCall, data: Any, switches: Switches) -> Any:
    most = switches.number("series-cut")
    if most and call.operation.name == "reputation/stats":
        for name in ("Reviews", "SocialMedia", "FeedbackHub"):
            data[name] = data[name][:most] if switches["series-kept"] == "first" else data[name][-most:]
    return data


@translation("campaign-groups")
def groups(call: CheckedCall, data: Any, switches: Switches) -> Any:
    form = switches["campaign-groups"]
    if _name(call) == "campaigns" and form in ("list", "numbered"):
        every = [one for group in data["items"].values() for one in group["data"]]
        is_numbered = form == "numbered" and every
        data["items"] = {str(place): one for place, one in enumerate(every, 1)} if is_numbered else every
    return data


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
