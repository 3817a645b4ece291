"""What comes back about the business itself, and the operations that bring it."""

from collections.abc import Mapping
from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import Record, Rows, field, missing
from marketing_api.records.shapes import each, objects


class Business(Record):
    """The business that the key belongs to; one row per account."""

    business_id: int | None = field("The service's id of the business; not every response has it.", "id")
    business_name: str | None = field("Name of the business.", "businessName")
    contact_name: str | None = field("Name of the person to contact.", "contactName", personal=True)
    phone_number: str | None = field("Phone number of the business.", "phoneNumber", personal=True)
    service_name: str | None = field("Short name of the account on the service.", "serviceName")
    package: str | None = field("Package that the account has booked.")
    timezone: str | None = field(
        "Time zone of the account, a tz database name; local date-times of the service are in it."
    )


def business(payload: Any, params: Mapping[str, str]) -> Rows:
    """`business`: one object. No account is without its business: an empty one tells nothing."""
    yield from (
        each(Business, objects(payload), _with_short_name)
        if objects(payload)
        else [missing(Business, "business")]
    )


def _with_short_name(entry: dict[str, Any]) -> dict[str, Any]:
    """The short name's member may be named after the service, followed by `Name` (api-observed row 47)."""
    others = (name for name in entry if name.lower() not in ("businessname", "contactname"))
    names = [name for name in others if name.lower().endswith("name")]
    return {("serviceName" if [name] == names else name): value for name, value in entry.items()}


AREA = Area("account")
ME = AREA.filling("app/me", business, Business)
