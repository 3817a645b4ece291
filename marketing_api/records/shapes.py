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
#: An entry that will become a record. If it is no object, it is passed on unchanged, and rejected
#: later with a reason.
Raw = Any
Entry = dict[str, Any]
#: What was requested.
Params = Mapping[str, str]


#: The only member of the marker that replaces an archived entry about a forgotten person.
FORGOTTEN = "_forgotten"


@dataclass(frozen=True)
class CutEntry:
    """An entry that is not archived, since it is about a person who asked to be forgotten."""

    fingerprint: str


def list_entries(items: Any) -> Iterator[Any]:
    """The entries of a collection in any of its shapes: list, object keyed by number, `[]` or null
    for empty (observation 16).

    An object with its own id is the only entry. A value that is no collection is passed on
    unchanged; it is rejected later without losing the others. The marker of a cut entry becomes a
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
    """Whether a nested collection proves to be complete: it is a collection, and has at least as
    many entries as the count beside it in `wrapper`. A missing one, null or "" proves nothing,
    except beside a count of 0. Neither does an object that is no list, or a count that is a
    collection itself."""
    count = first_member(wrapper, "count")
    if isinstance(count, (dict, list)):
        return False
    counted = read_or_none(read_int, count)
    if collection is None or collection == "":
        return counted == 0
    if isinstance(collection, dict):
        is_single = is_scalar(collection.get("id"))
        is_list = is_single or is_numbered(collection) or not collection
    else:
        is_list = isinstance(collection, list)
    return is_list and sum(1 for _ in list_entries(collection)) >= (counted or 0)


def is_scalar(value: Any) -> bool:
    """Whether it is a single value, and not None."""
    return value is not None and not isinstance(value, (dict, list))


def is_full(value: Any) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


def is_numbered(value: Any) -> TypeGuard[Entry]:
    """Whether it is an object instead of a list: entries keyed by number (observation 16)."""
    return isinstance(value, dict) and bool(value) and all(name.isdecimal() for name in value)


def as_object(value: Any) -> Entry:
    """The value as an object. `[]` and null mean an empty one; a list becomes an object keyed by
    position (observation 16)."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(value)}
    if value is None or value == "":
        return {}
    raise ValueError(f"not an object: {type(value).__name__}")


def first_member(value: Any, *names: str) -> Any:
    """The first of these members that an object has, ignoring case (samples differ in it); None
    without one."""
    if not isinstance(value, dict):
        return None
    for name in names:
        if name in value:
            return value[name]
    folded = {str(name).lower(): item for name, item in value.items()}
    for name in names:
        if name.lower() in folded:
            return folded[name.lower()]
    return None


def items_of(payload: Any) -> Any:
    """The collection inside a `{count, items}` wrapper. The payload may also be the collection
    itself; `[]` and null are empty ones."""
    if isinstance(payload, dict):
        return first_member(payload, "items")
    return payload


def as_objects(payload: Any) -> list[Any]:
    """A single fetch as a list: the object itself, or the array that some operations wrap it in
    (observation 4)."""
    if payload and isinstance(payload, dict):
        return [payload]
    return list(list_entries(payload))


def shape_entries(
    record: RecordType,
    items: Any,
    shape: Callable[[Entry], Entry] = dict,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[tuple[RecordType, Raw]]:
    """Every entry of a collection as (record, shaped entry with the columns that are `known` for
    all). An entry that is no object is passed on unchanged."""
    for entry in list_entries(items):
        if isinstance(entry, dict):
            yield record, {**shape(entry), **known}
        else:
            yield record, entry


def read_listing(record: RecordType) -> Callable[[Any, Params], Iterator[tuple[RecordType, Raw]]]:
    """The `rows` of an operation whose payload is {count, items} of one record as it comes."""
    return lambda payload, params: shape_entries(record, items_of(payload))


def read_single(rows: Callable[[Any, Params], Pairs]) -> Callable[[Any, Params], Pairs]:
    """The `rows` of a single fetch, from those of the listing of the same entries."""
    return lambda payload, params: rows(as_objects(payload), params)


def lift_members(raw: Entry, name: str, columns: Params) -> Entry:
    """Turn members of a nested object into columns: `url: {filter, link}` with {"filter":
    "url_filter"} → `url_filter`, `url: {link}`.

    Members that are not named stay where they were, and so end in `extra`. An empty object makes
    the columns null; a missing object or member leaves them unknown. `raw` is changed and
    returned."""
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
    """Give entries without an id a stable key: a hash of the values that identify them, and an
    occurrence number.

    Equal entries get occurrence 0, 1, … in response order, so all are kept. Reading the same
    response again gives the same keys. A number and its text give the same key."""
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
    """24 hex digits, equal for a number and its text."""
    plain = [str(part) if is_scalar(part) else part for part in parts]
    try:
        content = _encode(plain)
    except RecursionError:  # only the occurrence number distinguishes such entries
        return content_hash(
            "nested too deeply" if isinstance(part, (dict, list)) else part for part in plain
        )
    except (ValueError, OverflowError):  # half surrogate pairs, numbers beyond 64 bits
        content = json.dumps(plain, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
    return hashlib.blake2b(content, digest_size=12).hexdigest()
