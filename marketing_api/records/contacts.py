"""Records of contacts, their coupons and their timelines, and the operations that return them."""

from collections.abc import Callable, Iterable
from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import (
    AsWorded,
    Json,
    MaybeBool,
    MaybeDate,
    MaybeInt,
    MaybeMoment,
    MaybeText,
    MaybeWord,
    Record,
    Rows,
    field,
    key,
)
from marketing_api.records.shapes import (
    Entry,
    Params,
    add_keys,
    as_object,
    first_member,
    is_full,
    is_numbered,
    is_scalar,
    items_of,
    lift_members,
    list_entries,
    shape_entries,
)
from marketing_api.records.values import is_no_moment, is_nothing, read_int, read_or_none


class Contact(Record):
    """One contact on one list. An e-mail address may be on several lists."""

    list_id: int = key("The list that the contact is on.", "listid")
    contact_id: int = key("The service's id of the contact.", "id")
    email: MaybeText = field("E-mail address.", personal=True)
    status: MaybeWord = field(
        "active, unconfirmed, unsubscribed, bounced, or another word of the service in lower case."
    )
    status_code: MaybeInt = field(
        "The service's code: 0 unconfirmed, 1 active, 2 unsubscribed, 3 bounced."
    )
    registered_at: MaybeMoment = field("When the contact was added, UTC.", "registration_date")
    custom_fields: Json = field(
        "Values of the list's custom fields, by field id or name.", personal=True
    )


class Coupon(Record):
    """One coupon of one e-mail address."""

    coupon_id: int = key("The service's id of the coupon.", "id")
    email: MaybeText = field("Address that it was given to.", personal=True)
    coupon_code: MaybeText = field("The code.", "couponcode")
    is_redeemed: MaybeBool = field("Whether it was redeemed.", "couponredeemed")
    redeemed_on: MaybeDate = field(
        "When it was redeemed, in the account's time zone.", "couponredeemedon"
    )


class TimelineEvent(Record):
    """One event in the timeline of one contact. Its details change later (opens, clicks)."""

    contact_id: int = key("The contact.")
    event_key: str = key("Hash of kind, text and time, and a number.")
    key: AsWorded = field("Kind of event, e.g. email-campaign-sent.")
    snippet: MaybeText = field("The event in words.", personal=True)
    occurred_at: MaybeMoment = field("When it happened, UTC.")
    details: Json = field("Details: key, label, value.", personal=True)


class TimelineVisit(Record):
    """One visit of one contact to a tracked page."""

    contact_id: int = key("The contact.")
    visit_key: str = key("Hash of link, UTM parameters and time, and a number.")
    link: MaybeText = field("Page that was visited.", link=True)
    utm_campaign: MaybeText = field("UTM parameter of the link.")
    utm_source: MaybeText = field("UTM parameter of the link.")
    utm_medium: MaybeText = field("UTM parameter of the link.")
    utm_term: MaybeText = field("UTM parameter of the link.")
    utm_content: MaybeText = field("UTM parameter of the link.")
    visited_at: MaybeMoment = field("When it was visited, UTC.")


class TimelineAutomation(Record):
    """One automation that one contact went through."""

    contact_id: int = key("The contact.")
    automation_key: str = key("Hash of name, type and time, and a number.")
    name: MaybeText = field("Name of the automation.")
    type: AsWorded = field("What it sent, e.g. sms or email.")
    triggered_at: MaybeMoment = field("When it was triggered, UTC.")
    details: Json = field("Details: key, value.", personal=True)


#: observation 18.
STATUSES = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}
_STATUS = {
    known: (word, code)
    for code, word in STATUSES.items()
    for known in (str(code), word, word.capitalize())
}
_NAMED = frozenset(
    {"id", "email", "status", "registration_date", "fields", "listid", "list_id", "list_name"}
)


def read_contacts(payload: Any, params: Params) -> Rows:
    """`read_contacts`: {count, items}; the list is the requested one. Look-ups (`contact`: an
    object by id, an array with one entry per list by e-mail, observation 4) fill no table, since an
    object that was looked up by id does not name its list."""
    requested = {}
    if "listid" in params:
        requested = {"list_id": params["listid"]}
    for entry in list_entries(items_of(payload)):
        yield Contact, _shape_contact(entry, requested) if isinstance(entry, dict) else entry


def _shape_contact(entry: Entry, requested: dict[str, str]) -> Entry:
    """One response may have a million of these, so a usual entry takes no loop."""
    raw = {**entry, **requested}
    if "status" in raw:
        raw["status"], raw["status_code"] = _read_status(raw["status"])
    if requested and "listid" in raw:
        del raw["listid"]
    beside = {}
    if not entry.keys() <= _NAMED:
        beside = {name: raw.pop(name) for name in entry if name not in _NAMED}
    fields = raw.get("fields")
    if "fields" in raw and is_nothing(fields):
        del raw["fields"]
        raw["custom_fields"] = beside
    elif isinstance(fields, (dict, list)):
        del raw["fields"]
        raw["custom_fields"] = beside | as_object(fields)
    elif beside:
        raw["custom_fields"] = beside
    return raw


def _read_status(value: Any) -> tuple[Any, Any]:
    """The word and the code of a status, from either. An unknown code has no word, and an unknown
    word has no code."""
    if isinstance(value, str):
        known = _STATUS.get(value) or _STATUS.get(value.strip().lower())
        if known is not None:
            return known
    if is_nothing(value):
        return None, None
    code = read_or_none(read_int, value)
    # a word, or a value that the record refuses
    if code is None:
        return (value, None)
    return (STATUSES.get(code), code)


def read_coupons(payload: Any, params: Params) -> Rows:
    """`read_coupons`: […]."""
    coupons = payload
    if isinstance(payload, dict) and "items" in payload:
        coupons = items_of(payload)
    for record, raw in shape_entries(Coupon, coupons):
        if isinstance(raw, dict) and "email" in params:
            raw.setdefault("email", params["email"])
        yield record, raw


def read_timeline(payload: Any, params: Params) -> Rows:
    """`data` itself: {id, email, timeline: {data, count, total}, utm?: {data, count}, automated?:
    {data, count}}."""
    contact = params.get("id", payload.get("id"))
    for record, name, key_column, moment_column, identity in _PARTS:
        entries = list_entries(_find_part_entries(first_member(payload, name)))
        for raw in add_keys(entries, key_column, identity):
            if isinstance(raw, dict):
                raw["contact_id"] = contact
                raw[moment_column] = _find_moment(raw)
                raw.pop("datetime", None)
                raw.pop("timestamp", None)
                _shape_details(record, raw)
            yield record, raw


def _shape_details(record: type[Record], raw: Entry) -> None:
    if record is TimelineVisit:
        lift_members(raw, "utm", _UTM)
        return
    details = raw.get("details")
    if is_numbered(details) and all(isinstance(item, dict) for item in details.values()):
        raw["details"] = list(details.values())  # a list that the service numbers


def _find_part_entries(wrapper: Any) -> Any:
    """The entries of a part. A wrapper that holds something under an unknown name is rejected as a
    whole."""
    if not isinstance(wrapper, dict) or is_numbered(wrapper):
        return wrapper
    found = first_member(wrapper, "data", "items")
    if found is None and is_scalar(wrapper.get("id")):
        return wrapper  # an entry, which is the only one
    if found is None and any(map(is_full, wrapper.values())):
        return [[wrapper]]
    return found


def _find_moment(raw: Entry) -> Any:
    """The timestamp where one is given, since the text is in local time (observation 21)."""
    timestamp = raw.get("timestamp")
    if is_no_moment(timestamp):
        return raw.get("datetime")
    return timestamp


def _visit_identity(raw: Entry) -> tuple[Any, ...]:
    utm = raw.get("utm")
    parts = [utm.get(name) for name in _UTM] if isinstance(utm, dict) else []
    return (raw.get("link"), *parts, _find_moment(raw))


_UTM = {name: f"utm_{name}" for name in ("campaign", "source", "medium", "term", "content")}
#: For each part of the response: its record, its name, the columns of key and moment, and the
#: values that identify an entry.
_PARTS: tuple[tuple[type[Record], str, str, str, Callable[[Entry], Iterable[Any]]], ...] = (
    # without the details: these change when a message is opened, and must update the row instead of
    # adding one
    (
        TimelineEvent,
        "timeline",
        "event_key",
        "occurred_at",
        lambda raw: (raw.get("key"), raw.get("snippet"), _find_moment(raw)),
    ),
    (TimelineVisit, "utm", "visit_key", "visited_at", _visit_identity),
    (
        TimelineAutomation,
        "automated",
        "automation_key",
        "triggered_at",
        lambda raw: (raw.get("name"), raw.get("type"), _find_moment(raw)),
    ),
)


AREA = Area("contacts")
GETCONTACTS = AREA.declare_rows("emailmarketing/getcontacts", read_contacts, Contact)
GETCONTACTBYEMAIL = AREA["emailmarketing/getcontactbyemail"]
GETCONTACT = AREA["emailmarketing/getcontact"]
TIMELINE = AREA.declare_rows(
    "emailmarketing/getcontacttimeline",
    read_timeline,
    TimelineEvent,
    TimelineVisit,
    TimelineAutomation,
)
GETCOUPON = AREA.declare_rows("emailmarketing/getcoupon", read_coupons, Coupon)

ADDCONTACT = AREA["emailmarketing/addcontact"]
EDITCONTACT = AREA["emailmarketing/editcontact"]
SYNCCONTACT = AREA["emailmarketing/synccontact"]
MOVECONTACT = AREA["emailmarketing/movecontact"]
DELETECONTACT = AREA["emailmarketing/deletecontact"]
ADDACTIVITY = AREA["emailmarketing/addactivity"]
ADDTAG = AREA["emailmarketing/addtag"]
REMOVETAG = AREA["emailmarketing/removetag"]

#: Operations whose `id` is the number of a contact, in parameters and in entries.
CONTACT_OPERATIONS = frozenset(name for name in AREA if name != GETCOUPON.name)
#: Spellings of that number, and of the address of the person that an entry is about. Other members
#: of the entry may name somebody else, like a sender.
CONTACT_ID_NAMES = ("id", "contactid", "contact_id")
ADDRESS_NAMES = ("email", "address", "emailaddress")
