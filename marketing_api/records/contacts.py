"""What comes back about contacts and their coupons. Their timelines are in `timelines`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marketing_api.records.fields import AccountDate, AccountTime, ApiInt, Json, MaybeBool, MaybeInt, MaybeText, Record, Rows, field, key
from marketing_api.records.shapes import each, is_collection, items_of, mapping, objects
from marketing_api.records.values import is_nothing


class Contact(Record):
    """One contact in one list; the same e-mail address may be in several lists."""

    list_id: ApiInt = key("The list that the contact is in.", "listid")
    contact_id: ApiInt = key("The service's id of the contact.", "id")
    email: MaybeText = field("E-mail address.")
    status: MaybeText = field("active, unconfirmed, unsubscribed or bounced.")
    status_code: MaybeInt = field("The service's code: 0 unconfirmed, 1 active, 2 unsubscribed, 3 bounced.")
    registered_at: AccountTime = field("When the contact was added, UTC.", "registration_date")
    custom_fields: Json = field("Values of the list's custom fields, by field id or name.")


class Coupon(Record):
    """One coupon that an e-mail address was given."""

    coupon_id: ApiInt = key("The service's id of the coupon.", "id")
    email: MaybeText = field("E-mail address that it was given to.")
    coupon_code: MaybeText = field("The code.", "couponcode")
    is_redeemed: MaybeBool = field("Whether it was redeemed.", "couponredeemed")
    redeemed_on: AccountDate = field("When it was redeemed, in the account's time zone.", "couponredeemedon")


#: api-observed row 18.
STATUSES = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}
_BY_CODE = {str(code): (word, code) for code, word in STATUSES.items()}
_BY_WORD = {word: (word, code) for code, word in STATUSES.items()}
_NAMED = frozenset({"id", "email", "status", "registration_date", "fields", "listid", "list_id", "list_name"})


def contacts(payload: Any, asked: Mapping[str, str]) -> Rows:
    """`contacts`: {count, items}; the list is the one asked for."""
    yield from _contacts(items_of(payload), asked)


def found(payload: Any, asked: Mapping[str, str]) -> Rows:
    """`contact`: an object by id, an array with one entry per list by e-mail (api-observed row 4).

    Look-ups fill no table; an object looked up by id does not tell its list and so is set aside unless `asked` has a `listid`.
    """
    yield from _contacts(objects(payload), asked)


def _contacts(items: Any, asked: Mapping[str, str]) -> Rows:
    list_id = asked.get("listid")
    for record, entry in each(Contact, items, _contact):
        if list_id is not None and isinstance(entry, dict):
            entry["list_id"] = list_id
        yield record, entry


def _contact(entry: dict[str, Any]) -> dict[str, Any]:
    """A million of these are read in one answer: one pass, and a plain loop only over what is not named."""
    raw: dict[str, Any] = {}
    custom: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in _NAMED:
            custom[name] = value
        elif name == "status":
            raw["status"], raw["status_code"] = _status(value)
        elif name == "fields":
            if is_collection(value):
                custom |= mapping(value)
            else:
                raw[name] = value
        else:
            raw["list_id" if name == "listid" else name] = value
    if custom or "fields" in entry:
        raw["custom_fields"] = custom
    return raw


def _status(value: Any) -> tuple[Any, Any]:
    """Code and word, whichever of them came; an unknown code has no word, an unknown word no code."""
    text = str(value).strip().lower()
    if (known := _BY_CODE.get(text) or _BY_WORD.get(text)) is not None:
        return known
    if is_nothing(value):
        return None, None
    return (None, value) if text.lstrip("-").isdecimal() else (text, None)


def coupons(payload: Any, asked: Mapping[str, str]) -> Rows:
    """`coupons`: […]."""
    for record, raw in each(Coupon, items_of(payload) if isinstance(payload, dict) and "items" in payload else payload):
        if isinstance(raw, dict) and "email" in asked:
            raw.setdefault("email", asked["email"])
        yield record, raw
