"""From a request's raw parts to checked parameters: merging query, form and JSON, folding names
(observations 9 to 13)."""

import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from marketing_api.errors import InvalidCall
from marketing_api.operation import Kind, Operation
from marketing_api.sandbox.rules import NOT_VALID, Params, Refusal
from marketing_api.sandbox.seed import WORDS

#: Whether an account behaves as observed in something (`Tenant.observes`).
Observes = Callable[[str], bool]


def merge(query: str, content_type: str, body: bytes) -> tuple[Params, Params]:
    """(parameters of the query, parameters of the body), names trimmed and folded; a Refusal when the body
    cannot be read."""
    if "json" in content_type:
        pairs: Iterable[tuple[str, str]] = _json(body)
    else:
        pairs = urllib.parse.parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    return _merged(urllib.parse.parse_qsl(query, keep_blank_values=True)), _merged(pairs)


def _json(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        content = msgspec.json.decode(body or b"{}")
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


def _merged(pairs: Iterable[tuple[str, str]]) -> Params:
    """`tagname[]` repeats, `fields[12]` keeps its key, and everything else is folded (observation 10)."""
    found: Params = {}
    for name, value in pairs:
        place = name.strip().lower().removesuffix("[]")
        is_repeated = name.endswith("[]") and place in found
        found[place] = f"{found[place]},{value}" if is_repeated else value
    return found


def _required(operation: Operation, observes: Observes) -> set[str]:
    required = {parameter.name for parameter in operation.parameters if parameter.required}
    if operation.name == "emailmarketing/deletecontact" and observes("delete-everywhere"):
        required.discard("listid")  # observation 35
    return required - set(WORDS["required_by_a_variant"].get(operation.name, ()))


def check(operation: Operation, given: Params, observes: Observes) -> tuple[Params, Params]:
    """(parameters under their declared names in wire form, custom-field values); a Refusal naming every bad
    one."""
    required = _required(operation, observes)
    checked, bad = Params(), Params()
    for parameter in filter(lambda each: each.kind is not Kind.FIELDS, operation.parameters):
        name = parameter.name
        if value := given.get(name.lower(), "").strip():
            try:
                checked |= parameter.encode(value, operation.name)
            except InvalidCall:
                bad[name] = "is not valid"
        elif name in required:
            bad[name] = "is required"
    if not bad and operation.needs_one and checked.keys().isdisjoint(operation.needs_one):
        bad[operation.needs_one[0]] = "is required"
    if bad:
        raise Refusal(NOT_VALID, "; ".join(f"{name} {what}" for name, what in bad.items()), tuple(bad))
    fields = {name[7:-1]: value for name, value in given.items() if name.startswith("fields[")}
    return checked, fields
