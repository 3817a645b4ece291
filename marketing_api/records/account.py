"""The record of the business itself, and the operation that returns it."""

from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import (
    MaybeInt,
    MaybeText,
    MaybeZone,
    Record,
    Rows,
    field,
    mark_missing,
)
from marketing_api.records.shapes import Entry, Params, as_objects, shape_entries


class Business(Record):
    """The business that the key belongs to; one row per account."""

    business_id: MaybeInt = field("The service's id of the business; NULL if not reported.", "id")
    business_name: MaybeText = field("Name of the business.", "businessName")
    contact_name: MaybeText = field("Name of the person to contact.", "contactName", personal=True)
    phone_number: MaybeText = field("Phone number of the business.", "phoneNumber", personal=True)
    service_name: MaybeText = field("Short name of the account on the service.", "serviceName")
    package: MaybeText = field("Package that the account booked.")
    timezone: MaybeZone = field(
        "Time zone of the account, as in the tz database. The service's local times are in it."
    )


def read_business(payload: Any, params: Params) -> Rows:
    """`read_business`: one object. Every account has a business, so an empty object says
    nothing."""
    businesses = as_objects(payload)
    if not businesses:
        yield mark_missing(Business, "business")
    yield from shape_entries(Business, businesses, _rename_short_name)


def _rename_short_name(entry: Entry) -> Entry:
    """The short name's member may be named after the service, followed by `Name` (observation
    47)."""
    names = [name for name in entry if name.lower().endswith("name")]
    others = [name for name in names if name.lower() not in ("businessname", "contactname")]
    raw = dict(entry)
    if len(others) == 1:
        raw["serviceName"] = raw.pop(others[0])
    return raw


AREA = Area("account")
ME = AREA.declare_rows("app/me", read_business, Business)
