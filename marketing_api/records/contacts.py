"""What comes back about contacts and their coupons, and the operations that bring it. Their timelines are in `timelines`."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from marketing_api.operation import Area
from marketing_api.records import timelines
from marketing_api.records.fields import Json, MaybeWord, Record, Rows, field, key
from marketing_api.records.shapes import each, entries, is_collection, items_of, mapping
from marketing_api.records.values import is_nothing, read_int, read_or_none


class Contact(Record):
    """One contact in one list; the same e-mail address may be in several lists."""

    list_id: int = key("The list that the contact is in.", "listid")
    contact_id: int = key("The service's id of the contact.", "id")
    email: str | None = field("E-mail address.", personal=True)
    status: MaybeWord = field("active, unconfirmed, unsubscribed or bounced; another word of the service in lower case.")
    status_code: int | None = field("The service's code: 0 unconfirmed, 1 active, 2 unsubscribed, 3 bounced.")
    registered_at: dt.datetime | None = field("When the contact was added, UTC.", "registration_date")
    custom_fields: Json = field("Values of the list's custom fields, by field id or name.", personal=True)


class Coupon(Record):
    """One coupon that an e-mail address was given."""

    coupon_id: int = key("The service's id of the coupon.", "id")
    email: str | None = field("E-mail address that it was given to.", personal=True)
    coupon_code: str | None = field("The code.", "couponcode")
    is_redeemed: bool | None = field("Whether it was redeemed.", "couponredeemed")
    redeemed_on: dt.date | None = field("When it was redeemed, in the account's time zone.", "couponredeemedon")


#: api-observed row 18.
STATUSES = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}
_STATUS = {known: (word, code) for code, word in STATUSES.items() for known in (str(code), word, word.capitalize())}
_NAMED = frozenset({"id", "email", "status", "registration_date", "fields", "listid", "list_id", "list_name"})


def contacts(payload: Any, params: Mapping[str, str]) -> Rows:
    """`contacts`: {count, items}; the list is the one requested. Look-ups (`contact`: an object by id, an array with one entry per list by
    e-mail, api-observed row 4) fill no table: an object looked up by id does not tell its list.
    """
    requested = {"list_id": params["listid"]} if "listid" in params else {}
    for entry in entries(items_of(payload)):
        yield Contact, _contact(entry, requested) if isinstance(entry, dict) else entry


def _contact(entry: dict[str, Any], requested: dict[str, str]) -> dict[str, Any]:
    """A million of these are read from one response, so the usual entry takes no loop of its own."""
    raw = {**entry, **requested}
    if "status" in raw:
        raw["status"], raw["status_code"] = _status(raw["status"])
    if requested and "listid" in raw:
        del raw["listid"]
    beside = {} if entry.keys() <= _NAMED else {name: raw.pop(name) for name in entry if name not in _NAMED}
    if "fields" in raw and (is_collection(raw["fields"]) or is_nothing(raw["fields"])):
        fields = raw.pop("fields")
        raw["custom_fields"] = beside | ({} if is_nothing(fields) else mapping(fields))
    elif beside:
        raw["custom_fields"] = beside
    return raw


def _status(value: Any) -> tuple[Any, Any]:
    """Word and code, whichever of them came; an unknown code has no word, an unknown word no code."""
    if isinstance(value, str) and (known := _STATUS.get(value) or _STATUS.get(value.strip().lower())) is not None:
        return known
    if is_nothing(value):
        return None, None
    code = read_or_none(read_int, value)
    return (value, None) if code is None else (STATUSES.get(code), code)  # a word, or to be set aside


def coupons(payload: Any, params: Mapping[str, str]) -> Rows:
    """`coupons`: […]."""
    for record, raw in each(Coupon, items_of(payload) if isinstance(payload, dict) and "items" in payload else payload):
        if isinstance(raw, dict) and "email" in params:
            raw.setdefault("email", params["email"])
        yield record, raw


AREA = Area("contacts")
GETCONTACTS = AREA.filling("emailmarketing/getcontacts", contacts, Contact)
GETCONTACTBYEMAIL = AREA["emailmarketing/getcontactbyemail"]
GETCONTACT = AREA["emailmarketing/getcontact"]
_TIMELINE = timelines.TimelineEvent, timelines.TimelineVisit, timelines.TimelineAutomation
TIMELINE = AREA.filling("emailmarketing/getcontacttimeline", timelines.timeline, *_TIMELINE)
GETCOUPON = AREA.filling("emailmarketing/getcoupon", coupons, Coupon)

EDITCONTACT = AREA["emailmarketing/editcontact"]
SYNCCONTACT = AREA["emailmarketing/synccontact"]
MOVECONTACT = AREA["emailmarketing/movecontact"]
DELETECONTACT = AREA["emailmarketing/deletecontact"]
ADDACTIVITY = AREA["emailmarketing/addactivity"]
ADDTAG = AREA["emailmarketing/addtag"]
REMOVETAG = AREA["emailmarketing/removetag"]
