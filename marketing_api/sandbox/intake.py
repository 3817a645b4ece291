"""From a request's raw parts to checked parameters: merging query, form and JSON, folding names
(observations 9 to 13)."""

import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from marketing_api.errors import InvalidCall
from marketing_api.operation import Operation
from marketing_api.sandbox.responses import Request
from marketing_api.sandbox.rules import NOT_VALID, Params, Refusal
from marketing_api.sandbox.seed import WORDS


def read_params(request: Request) -> Params:
    """Parameters of query and body, names trimmed and folded; a Refusal when the body cannot be
    read."""
    if "json" in request.content_type:
        pairs: Iterable[tuple[str, str]] = _read_json(request.body)
    else:
        pairs = _read_form(request.body.decode("utf-8", "replace"))
    return _merge(pairs) | _merge(_read_form(request.query))


def _read_form(text: str) -> list[tuple[str, str]]:
    return urllib.parse.parse_qsl(text, keep_blank_values=True)


def _read_json(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        content = msgspec.json.decode(body or b"{}", type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Refusal(NOT_VALID, "The request body is not valid JSON") from None
    for name, value in content.items():
        yield from _flatten(name, value)


def _flatten(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Nested JSON as forms write it: `fields[12]` for a map, `tagname[]` for a list; null is as if
    it had not been sent."""
    match value:
        case dict():
            for key, item in value.items():
                yield from _flatten(f"{name}[{key}]", item)
        case list():
            yield f"{name}[]", ",".join(map(str, value))
        case None:
            pass
        case _:
            yield name, str(value)


def _merge(pairs: Iterable[tuple[str, str]]) -> Params:
    """`tagname[]` repeats, `fields[12]` keeps its key, and everything else is folded (observation
    10)."""
    found: Params = {}
    for name, value in pairs:
        place = name.strip().lower().removesuffix("[]")
        is_repeated = name.endswith("[]") and place in found
        found[place] = f"{found[place]},{value}" if is_repeated else value
    return found


def check_params(operation: Operation, received: Params) -> tuple[Params, Params]:
    """(parameters under their declared names in wire form, custom-field values); a Refusal naming
    every bad one."""
    optional = WORDS["required_by_a_variant"].get(operation.name, ())
    checked = Params()
    reasons = Params()
    for parameter in operation.parameters:
        name = parameter.name
        value = received.get(name.lower(), "").strip()
        if value:
            try:
                checked |= parameter.encode_value(value, operation.name)
            except InvalidCall:
                reasons[name] = f"{name} is not valid"
        elif parameter.required and name not in optional:
            reasons[name] = f"{name} is required"
    if not reasons and operation.needs_one and checked.keys().isdisjoint(operation.needs_one):
        name = operation.needs_one[0]
        reasons[name] = f"{name} is required"
    if reasons:
        raise Refusal(NOT_VALID, "; ".join(reasons.values()), tuple(reasons))
    fields = {name[7:-1]: text for name, text in received.items() if name.startswith("fields[")}
    return checked, fields
