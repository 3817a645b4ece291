"""Finding the entries of a response in the shapes that collections come in (observation 16).

Belongs here: lists that may be objects, objects that may be lists, nested members that become
columns, keys that deduplicate entries without an id. Not here: what an area's entries are
(`records/AREA.py`), single values (`values`)."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeGuard, TypeVar

import msgspec

from marketing_api.records.values import is_nothing, read_int, read_or_none

RecordType = TypeVar("RecordType")
Pairs = TypeVar("Pairs")
#: An entry that is about to become a record; one that is no object is passed on as it came, to be
#: set aside with a reason.
Raw = Any
Entry = dict[str, Any]
#: What was requested.
Params = Mapping[str, str]


#: The only member of what stands in the place of an archived entry about somebody who asked to be
#: forgotten.
FORGOTTEN = "_forgotten"


@dataclass(frozen=True)
class CutEntry:
    """An entry that is not archived, since it is about somebody who asked to be forgotten."""

    fingerprint: str


def list_entries(items: Any) -> Iterator[Any]:
    """The entries of a collection in any of its shapes: list, object keyed by number, `[]` or null
    for empty (row 16).

    An object with an id of its own is the only entry. What is no collection is passed on as it
    came, to be set aside without losing the others. What stands for a cut entry becomes a
    CutEntry."""
    if isinstance(items, dict) and is_scalar(items.get("id")):
        yield items
    elif isinstance(items, (dict, list)):
        for entry in items.values() if isinstance(items, dict) else items:
            is_cut = isinstance(entry, dict) and FORGOTTEN in entry
            yield CutEntry(str(entry[FORGOTTEN])) if is_cut else entry
    elif items is not None and items != "":
        yield items


def is_collection(value: Any) -> bool:
    return value is None or value == "" or isinstance(value, (dict, list))


def is_whole(wrapper: Any, collection: Any) -> bool:
    """Whether a nested collection is one, and holds no less than the count beside it in `wrapper`.
    Missing, null and "" tell nothing, nor does one whose count is a collection itself, nor an
    object that stands for no list: it may be anything."""
    count = first_member(wrapper, "count")
    if isinstance(count, (dict, list)):
        return False
    counted = read_or_none(read_int, count)
    if collection is None or collection == "":
        return counted == 0
    is_entry = isinstance(collection, dict) and is_scalar(
        collection.get("id")
    )  # an only entry stands for a list of one
    is_list = (
        isinstance(collection, list) or collection == {} or is_numbered(collection) or is_entry
    )
    return is_list and sum(1 for _ in list_entries(collection)) >= (counted or 0)


def is_scalar(value: Any) -> bool:
    """Whether it is one value, and there."""
    return value is not None and not isinstance(value, (dict, list))


def is_full(value: Any) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


def is_numbered(value: Any) -> TypeGuard[Entry]:
    """Whether it is an object that stands for a list: entries keyed by number (row 16)."""
    return isinstance(value, dict) and bool(value) and all(name.isdecimal() for name in value)


def as_object(value: Any) -> Entry:
    """An object; `[]` and null stand for an empty one, a list for an object keyed by position (row
    16)."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(value)}
    if value is None or value == "":
        return {}
    raise ValueError(f"not an object: {type(value).__name__}")


def first_member(value: Any, *names: str) -> Any:
    """The first of these members that an object has, case aside (samples disagree on it); None
    without one."""
    if not isinstance(value, dict):
        return None
    for name in names:
        if name in value:
            return value[name]
    folded = {str(name).lower(): item for name, item in value.items()}
    return next((folded[name.lower()] for name in names if name.lower() in folded), None)


def items_of(payload: Any) -> Any:
    """The collection inside a `{count, items}` wrapper; a bare list is its own collection, `[]` and
    null an empty one."""
    return first_member(payload, "items") if isinstance(payload, dict) else payload


def as_objects(payload: Any) -> list[Any]:
    """A single fetch as a list: the object itself, or the array that some operations wrap it in
    (observation 4)."""
    if isinstance(payload, dict):
        return [payload] if payload else []
    return list(list_entries(payload))


def shape_entries(
    record: RecordType,
    items: Any,
    shape: Callable[[Entry], Entry] = dict,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[tuple[RecordType, Raw]]:
    """Every entry of a collection as (record, shaped entry with the columns that are `known` of
    all); what is no object is passed on as it came."""
    for entry in list_entries(items):
        yield record, {**shape(entry), **known} if isinstance(entry, dict) else entry


def read_listing(record: RecordType) -> Callable[[Any, Params], Iterator[tuple[RecordType, Raw]]]:
    """The `rows` of an operation whose payload is {count, items} of one record as it comes."""
    return lambda payload, params: shape_entries(record, items_of(payload))


def read_single(rows: Callable[[Any, Params], Pairs]) -> Callable[[Any, Params], Pairs]:
    """The `rows` of a single fetch, from those of the listing of the same entries."""
    return lambda payload, params: rows(as_objects(payload), params)


def lift_members(raw: Entry, name: str, columns: Params) -> Entry:
    """Turn members of a nested object into columns: `url: {filter, link}` with {"filter":
    "url_filter"} → `url_filter`, `url: {link}`.

    What is not named stays where it was and so ends in `extra`. An object that came empty makes its
    columns known to be empty; one that did not come, or came without a member, leaves them unknown.
    `raw` is changed and returned."""
    if name not in raw:
        return raw
    nested = raw[name]
    if is_nothing(nested):
        nested = dict.fromkeys(columns)
    if not isinstance(nested, dict):
        return raw
    del raw[name]
    left = {wire: value for wire, value in nested.items() if wire not in columns}
    if left:
        raw[name] = left
    raw |= {column: nested[wire] for wire, column in columns.items() if wire in nested}
    return raw


def add_keys(
    raws: Iterable[Raw], name: str, identity: Callable[[Entry], Iterable[Any]]
) -> Iterator[Raw]:
    """Give entries without an id a stable key: hash of what identifies them plus an occurrence
    number.

    True duplicates get occurrence 0, 1, … in response order and so survive; reading the same
    response again gives the same keys. Numbers count as the text that other responses send for
    them."""
    seen: Counter[str] = Counter()
    for raw in raws:
        if not isinstance(raw, dict):
            yield raw
            continue
        digest = content_hash(identity(raw))
        yield {**raw, name: f"{digest}-{seen[digest]}"}
        seen[digest] += 1


_encode = msgspec.json.Encoder(order="sorted").encode


def content_hash(parts: Iterable[Any]) -> str:
    """24 hex digits, equal for values that differ only in being number or text."""
    plain = [
        part if part is None or isinstance(part, (dict, list)) else str(part) for part in parts
    ]
    try:
        content = _encode(plain)
    except RecursionError:  # as deep as can be decoded: told apart by the occurrence number
        return content_hash(
            "nested too deeply" if isinstance(part, (dict, list)) else part for part in plain
        )
    except (ValueError, OverflowError):  # half surrogate pairs, numbers beyond 64 bits
        content = json.dumps(plain, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
    return hashlib.blake2b(content, digest_size=12).hexdigest()
