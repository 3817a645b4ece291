"""From a request's raw parts to checked parameters: merging query, form and JSON, folding names
(observations 9 to 13)."""

import email.parser
import email.policy
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from marketing_api.errors import InvalidCall
from marketing_api.operation import Kind, Operation, Parameter
from marketing_api.sandbox.rules import NOT_VALID, Params, Refusal, invalid
from marketing_api.sandbox.seed import WORDS

#: Whether an account behaves as observed in something (`Tenant.observes`).
Observes = Callable[[str], bool]


def merge(query: str, content_type: str, body: bytes) -> tuple[Params, Params]:
    """(parameters of the query, parameters of the body), names trimmed and folded; a Refusal when the body
    cannot be read."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        pairs: Iterable[tuple[str, str]] = _multipart(content_type, body)
    elif kind == "application/json" or body.lstrip()[:1] == b"{":
        pairs = _json(body)
    else:
        pairs = urllib.parse.parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    return _merged(urllib.parse.parse_qsl(query, keep_blank_values=True)), _merged(pairs) if body else {}


def _json(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Refusal(NOT_VALID, "The request body is not valid JSON") from None
    for name, value in content.items() if isinstance(content, dict) else ():
        yield from _flat(name, value)


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Nested JSON as forms write it: `fields[12]` for a map, `tagname[]` for a list; null is as if it had not
    been sent."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else (("", item) for item in value):
            yield from _flat(f"{name}[{key}]", item)
    elif value is not None:
        yield name, ("true" if value else "false") if isinstance(value, bool) else str(value)


def _multipart(content_type: str, body: bytes) -> Iterator[tuple[str, str]]:
    head = f"content-type: {content_type}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            is_file = part.get_filename() is not None
            picture = f"https://images.example.com/{len(content)}.jpg"
            yield name, picture if is_file else content.decode("utf-8", "replace")


def _merged(pairs: Iterable[tuple[str, str]]) -> Params:
    """`tagname[]` repeats, as does `fields[12][]`; `fields[12]` keeps its key; everything else is folded
    (observation 10)."""
    found: Params = {}
    for name, value in pairs:
        head, *keys = name.strip().replace("]", "").split("[")
        folded = head.strip().lower()
        place = f"{folded}[{keys[0]}]" if keys and keys[0] else folded
        repeats = len(keys) > 1 or (bool(keys) and not keys[0])
        found[place] = f"{found[place]},{value}" if repeats and place in found else value
    return found


#: `9100:Ann,9103:Rome`, the form of a public plugin description (observation 33); a comma may stand
#: within a value.
_FIELD = re.compile(r"(?:^|,)\s*(\d+):")


def _fields(text: str) -> Params:
    if not text:
        return {}
    before, *pairs = _FIELD.split(text)
    if before.strip() or not pairs:
        raise invalid("fields")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


#: Days that stand for an open end of the calendar, and the years that a clock can tell.
_OPEN_ENDS = {"from": "1971-01-01", "to": "2999-12-31"}


def _calendar_day(text: str, end: str) -> str:
    """A day out of a day with a time, a far year or the word `none` (observation 37)."""
    word = text.strip().partition("T")[0].partition(" ")[0]
    year = re.search(r"\d{4}", word)
    return end if word.lower() == "none" or (year and not 1971 <= int(year[0]) <= 2999) else word


def _as_specified(operation: Operation, given: Params, observes: Observes) -> Params:
    """What clients write otherwise: lists of a campaign as `recipients` (observation 42), and days of
    the calendar."""
    if operation.name.endswith("campaign"):
        return {re.sub("^recipients", "lists", name): value for name, value in given.items()}
    if operation.name != "socialmedia/calendar" or not observes("calendar-words"):
        return given
    return given | {
        name: _calendar_day(given[name], end) for name, end in _OPEN_ENDS.items() if name in given
    }


def _required(operation: Operation, observes: Observes) -> set[str]:
    required = {parameter.name for parameter in operation.parameters if parameter.required}
    if operation.name == "emailmarketing/deletecontact" and observes("delete-everywhere"):
        required.discard("listid")  # observation 35
    return required - set(WORDS["required_by_a_variant"].get(operation.name, ()))


def _given(name: str, given: Params) -> tuple[str, Params]:
    """(what was sent for a parameter, its entries by key): `name[0]`, `name[1]`, … as some libraries number
    the entries of a list, or ids of custom fields."""
    head = f"{name.lower()}["
    keyed = {place[len(head) : -1]: value for place, value in given.items() if place.startswith(head)}
    return given.get(name.lower(), "").strip(), keyed


def _encoded(parameter: Parameter, value: str, operation: str) -> Params:
    if parameter.name == "scheduleddate" and value.isdecimal():  # unix seconds (observation 46)
        return {parameter.name: value}
    return parameter.encode(value, operation)


def check(operation: Operation, given: Params, observes: Observes) -> tuple[Params, Params]:
    """(parameters under their declared names in wire form, custom-field values); a Refusal naming every bad
    one."""
    required, given = _required(operation, observes), _as_specified(operation, given, observes)
    checked, fields, bad = Params(), Params(), Params()
    for parameter in operation.parameters:
        name = parameter.name
        text, keyed = _given(name, given)
        if parameter.kind is Kind.FIELDS:
            fields = _fields(text) | keyed
        elif value := text or ",".join(keyed.values()).strip():
            try:
                checked |= _encoded(parameter, value, operation.name)
            except InvalidCall:
                bad[name] = "is not valid"
        elif name in required:
            bad[name] = "is required"
    if not bad and operation.needs_one and checked.keys().isdisjoint(operation.needs_one):
        bad[operation.needs_one[0]] = "is required"
    if bad:
        raise Refusal(NOT_VALID, "; ".join(f"{name} {what}" for name, what in bad.items()), tuple(bad))
    return checked, fields
