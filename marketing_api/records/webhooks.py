"""Records of behavioural webhooks, and the operations that return them."""

from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import AsWorded, MaybeInt, MaybeText, Record, Rows, field, key
from marketing_api.records.shapes import (
    Entry,
    Params,
    items_of,
    lift_members,
    read_single,
    shape_entries,
)
from marketing_api.records.values import is_nothing, read_int


class Webhook(Record):
    """One behavioural webhook: what visitors of a site see, and when."""

    webhook_id: int = key("The service's id of the webhook.", "id")
    name: MaybeText = field("Name of the webhook.")
    type: AsWorded = field("What triggers it, e.g. On Page Exit.")
    domain_id: MaybeInt = field("Tracked domain that it runs on.", "domainid")
    url_filter: AsWorded = field("How the page's address is compared, e.g. Matches Exactly.")
    url_link: MaybeText = field("Address that it is compared with.", link=True)
    action_type: AsWorded = field("What is shown or done, e.g. HTML Message.")
    execute_for: AsWorded = field("Visitors who see it.")
    device_filter: AsWorded = field("Devices that show it.")
    repeat_interval: MaybeText = field("How often it repeats.")
    delay_seconds: MaybeInt = field("Delay before it appears, in seconds.")
    action_style: AsWorded = field("How it is shown, e.g. Popup.", "action_stype")


def read_webhooks(payload: Any, params: Params) -> Rows:
    """`read_webhooks`: {count, items}."""
    return shape_entries(Webhook, items_of(payload), _shape_webhook)


_RULES = {
    "execute_for": "execute_for",
    "device_filter": "device_filter",
    "interval": "repeat_interval",
    "delay": "delay_seconds",
}
_SECONDS = {
    "hours": 3600,
    "minutes": 60,
    "seconds": 1,
}


def _shape_webhook(entry: Entry) -> Entry:
    raw = lift_members(dict(entry), "url", {"filter": "url_filter", "link": "url_link"})
    raw = lift_members(raw, "action_rules", _RULES)
    if "delay_seconds" in raw:
        try:
            raw["delay_seconds"] = _delay_seconds(raw["delay_seconds"])
        except ValueError:
            # no number, so that the record refuses it
            raw["delay_seconds"] = {"delay": raw["delay_seconds"]}
    return raw


def _delay_seconds(delay: Any) -> int | None:
    """{hours, minutes, seconds} → seconds; None if none of them is given. A plain number has no
    unit, so only 0 is accepted."""
    if is_nothing(delay):
        return None
    if not isinstance(delay, dict):
        if read_int(delay) != 0:
            raise ValueError("a delay without its unit")
        return 0
    parts = {name: value for name, value in delay.items() if not is_nothing(value)}
    if not parts.keys() <= _SECONDS.keys():
        raise ValueError("a delay in other units")
    if not parts:
        return None
    return sum(_SECONDS[unit] * read_int(value) for unit, value in parts.items())


AREA = Area("webhooks")
LISTS = AREA.declare_rows("webhook/lists", read_webhooks, Webhook)
SHOW = AREA.declare_rows("webhook/show", read_single(read_webhooks), Webhook)
