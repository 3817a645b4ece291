"""From a request's raw parts to checked parameters: merging query, form and JSON, folding names
(observations 9 to 13)."""

import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from marketing_api.errors import InvalidCall
from marketing_api.operation import Kind, Operation
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
    if isinstance(value, list):
        value = {"": ",".join(map(str, value))}
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{name}[{key}]", item)
    elif value is not None:
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


def _find_required(operation: Operation, observes: Callable[[str], bool]) -> set[str]:
    required = {parameter.name for parameter in operation.parameters if parameter.required}
    if operation.name == "emailmarketing/deletecontact" and observes("delete-everywhere"):
        required.discard("listid")  # observation 35
    return required - set(WORDS["required_by_a_variant"].get(operation.name, ()))


def check_params(
    operation: Operation, given: Params, observes: Callable[[str], bool]
) -> tuple[Params, Params]:
    """(parameters under their declared names in wire form, custom-field values); a Refusal naming
    every bad one."""
    required, checked, bad = _find_required(operation, observes), Params(), Params()
    for parameter in operation.parameters:
        is_map = parameter.kind is Kind.FIELDS
        if value := "" if is_map else given.get(parameter.name.lower(), "").strip():
            try:
                checked |= parameter.encode_value(value, operation.name)
            except InvalidCall:
                bad[parameter.name] = "is not valid"
        elif parameter.name in required:
            bad[parameter.name] = "is required"
    if not bad and operation.needs_one and checked.keys().isdisjoint(operation.needs_one):
        bad[operation.needs_one[0]] = "is required"
    if bad:
        raise Refusal(
            NOT_VALID, "; ".join(f"{name} {what}" for name, what in bad.items()), tuple(bad)
        )
    return checked, _find_field_values(given)


def _find_field_values(given: Params) -> Params:
    return {name[7:-1]: value for name, value in given.items() if name.startswith("fields[")}
