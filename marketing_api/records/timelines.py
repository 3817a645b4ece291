"""What comes back about what happened to a contact: events, visits and automations, all in one response."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from marketing_api.records.fields import AsWorded, Json, Record, Rows, field, key
from marketing_api.records.shapes import entries, is_full, is_numbered, is_scalar, keyed, lift, member
from marketing_api.records.values import is_no_moment


class TimelineEvent(Record):
    """One event in the timeline of one contact; its details grow later (opens, clicks)."""

    contact_id: int = key("The contact.")
    event_key: str = key("Hash of kind, text and time, and an occurrence number: the service gives no id.")
    key: AsWorded = field("Kind of event, e.g. email-campaign-sent; an open set.")
    snippet: str | None = field("The event in words.", personal=True)
    occurred_at: dt.datetime | None = field("When it happened, UTC.")
    details: Json = field("Details as the service lists them: key, label, value.", personal=True)


class TimelineVisit(Record):
    """One visit of one contact to a tracked page."""

    contact_id: int = key("The contact.")
    visit_key: str = key("Hash of link, campaign and time, and an occurrence number: the service gives no id.")
    link: str | None = field("The page visited.")
    utm_campaign: str | None = field("UTM campaign of the link.")
    utm_source: str | None = field("UTM source of the link.")
    utm_medium: str | None = field("UTM medium of the link.")
    utm_term: str | None = field("UTM term of the link.")
    utm_content: str | None = field("UTM content of the link.")
    visited_at: dt.datetime | None = field("When it was visited, UTC.")


class TimelineAutomation(Record):
    """One automation that one contact went through."""

    contact_id: int = key("The contact.")
    automation_key: str = key("Hash of name, type and time, and an occurrence number: the service gives no id.")
    name: str | None = field("Name of the automation.")
    type: AsWorded = field("What it sent, e.g. sms or email.")
    triggered_at: dt.datetime | None = field("When it was triggered, UTC.")
    details: Json = field("Details as the service lists them: key, value.", personal=True)


def timeline(payload: Any, params: Mapping[str, str]) -> Rows:
    """`data` itself: {id, email, timeline: {data, count, total}, utm?: {data, count}, automated?: {data, count}}."""
    contact = params.get("id", payload.get("id"))
    for record, name, key_column, moment_column, identity in _PARTS:
        for raw in keyed(entries(_data(member(payload, name))), key_column, identity):
            if isinstance(raw, dict):
                moment = _moment(raw)
                raw.pop("datetime", None)
                raw.pop("timestamp", None)
                raw |= {moment_column: moment, "contact_id": contact}
                if record is TimelineVisit:
                    lift(raw, "utm", _UTM)
                elif (
                    isinstance(details := raw.get("details"), dict)
                    and is_numbered(details)
                    and all(isinstance(item, dict) for item in details.values())
                ):
                    raw["details"] = list(details.values())  # a list that the service numbers
            yield record, raw


def _data(wrapper: Any) -> Any:
    """The entries of a part; a wrapper that holds something under a name that nobody knows is set aside as a whole."""
    if not isinstance(wrapper, dict) or is_numbered(wrapper):
        return wrapper
    found = member(wrapper, "data", "items")
    if found is None and is_scalar(wrapper.get("id")):
        return wrapper  # an entry, which is the only one
    return [[wrapper]] if found is None and any(map(is_full, wrapper.values())) else found


def _moment(raw: dict[str, Any]) -> Any:
    """The timestamp where one is given, since the text is in local time (api-observed row 21)."""
    timestamp = raw.get("timestamp")
    return raw.get("datetime") if is_no_moment(timestamp) else timestamp


def _visit_identity(raw: dict[str, Any]) -> tuple[Any, ...]:
    utm = raw.get("utm")
    return raw.get("link"), *((utm.get(name) for name in _UTM) if isinstance(utm, dict) else ()), _moment(raw)


_UTM = {name: f"utm_{name}" for name in ("campaign", "source", "medium", "term", "content")}
#: Of each part of the response: its record, its name, the columns of key and moment, and what tells its entries apart.
_PARTS: tuple[tuple[type[Record], str, str, str, Callable[[dict[str, Any]], Iterable[Any]]], ...] = (
    # without the details: these change when a message is opened, and must update the row instead of adding one
    (TimelineEvent, "timeline", "event_key", "occurred_at", lambda raw: (raw.get("key"), raw.get("snippet"), _moment(raw))),
    (TimelineVisit, "utm", "visit_key", "visited_at", _visit_identity),
    (TimelineAutomation, "automated", "automation_key", "triggered_at", lambda raw: (raw.get("name"), raw.get("type"), _moment(raw))),
)
