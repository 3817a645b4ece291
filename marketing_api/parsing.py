"""From a whole response to typed records, in batches. Not here: whether the response is whole
(`validation`), how its entries are found (`records/AREA.py`), where the records land
(`warehouse`)."""

import contextlib
import datetime as dt
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from pydantic import TypeAdapter, ValidationError

from marketing_api.envelope import (
    UNDECODED,
    decode,
    find_member,
    first_letter,
    split_collection,
    split_object,
)
from marketing_api.exchange import Response
from marketing_api.records.account import Business
from marketing_api.records.fields import Record, Unread
from marketing_api.records.shapes import CutEntry, as_objects, content_hash
from marketing_api.records.values import read_int, read_or_none

log = logging.getLogger(__name__)

#: Records in one batch. 20,000 took a third more time (a million contacts), since Python's
#: collector walks what is alive.
BATCH = 1_000
#: A batch's sample: its first entries, its first rejected ones, and one entry in this many.
_FIRST = 3
_SAMPLE_STEP = 250


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of records of one type, the entries that could not become one, and collections of
    them that were missing.

    `flawed`: entries with an unreadable value; they are among the records, without that value.
    `sample`: some entries unchanged, including unreadable ones. `names`: the members that every
    entry had, and the members that any entry had. `cut`: how many entries were not archived because
    they are about people who asked to be forgotten."""

    record: type[Record]
    records: list[Record] = field(default_factory=list)
    rejected: list[Unread] = field(default_factory=list)
    flawed: list[Unread] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    sample: list[Any] = field(default_factory=list)
    names: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    cut: int = 0


def parse_rows(
    response: Response, zone: dt.tzinfo | None, observed_on: dt.date, *, batch: int = BATCH
) -> Iterator[Rows]:
    """The records of a response that `check_response` accepted, at most `batch` at a time; none for
    operations that fill no table.

    `zone` is that of the account's local date-times; `observed_on` the account's local date of the
    request, for daily tables. If a response cannot be read at all, each type has one rejected
    entry, so that no row counts as deleted."""
    waiting: dict[type[Record], list[Any]] = defaultdict(list)
    cut: Counter[type[Record]] = Counter()
    try:
        has_undecoded = response.envelope.has_undecoded
        validated = partial(
            _validate_batch, zone=zone, observed_on=observed_on, has_undecoded=has_undecoded
        )
        for record, raw in pair_entries(response):
            if isinstance(raw, CutEntry):
                cut[record] += 1
                continue
            waiting[record].append(raw)
            if len(waiting[record]) >= batch:
                yield validated(record, waiting.pop(record))
        for record, raws in waiting.items():
            yield validated(record, raws)
        for record, count in cut.items():
            yield Rows(record, cut=count)
    except (OSError, MemoryError):
        raise
    # a response from outside may make a parser raise anything: only this response is lost
    except Exception as error:
        operation = response.call.operation
        log.exception(
            "a response of %s (request %d) cannot be read", operation.name, response.request_id
        )
        reason = f"the rest of the response cannot be read ({type(error).__name__})"
        for record in operation.records:
            yield Rows(record, rejected=[Unread(None, reason)])


def pair_entries(response: Response) -> Iterator[tuple[type[Record], Any]]:
    """Each entry of a response with the record that it should become."""
    operation = response.call.operation
    params = response.call.params
    if operation.rows is None:
        return
    if not operation.is_streamed:
        yield from operation.rows(response.envelope.decode_payload(operation), params)
        return
    raws = iter(response.envelope.list_entries(operation))
    while some := list(islice(raws, BATCH)):
        items = list(map(_decode_entry, some))
        yield from operation.rows({"items": items}, params)


def _decode_entry(raw: msgspec.Raw) -> Any:
    """The entry; as text if it cannot be decoded, so that it is rejected later."""
    try:
        return decode(raw)
    except ValueError:
        return bytes(memoryview(raw)).decode("utf-8", "replace")


@cache
def _list_adapter(record: type[Record]) -> TypeAdapter[list[Record]]:
    return TypeAdapter(list[record])  # type: ignore[valid-type]


def _validate_batch(
    record: type[Record],
    raws: list[Any],
    *,
    zone: dt.tzinfo | None,
    observed_on: dt.date,
    has_undecoded: bool,
) -> Rows:
    """All entries together, which is fastest; one by one if one of them may be unreadable."""
    if "observed_on" in record.model_fields:
        raws = [
            {**raw, "observed_on": observed_on} if isinstance(raw, dict) else raw for raw in raws
        ]
    # only a few kinds: most entries have the same members
    members = {tuple(raw) for raw in raws if isinstance(raw, dict)} or {()}
    names_of_all = frozenset.intersection(*map(frozenset, members))
    names_of_any = frozenset[str]().union(*members)
    sample = raws[:_FIRST] + raws[_FIRST::_SAMPLE_STEP]
    rows = Rows(record, sample=sample, names=(names_of_all, names_of_any))
    context = {"zone": zone}
    if not has_undecoded:
        with contextlib.suppress(ValidationError):
            rows.records.extend(_list_adapter(record).validate_python(raws, context=context))
            return rows
    for raw in raws:
        _add_entry(rows, raw, context)
    unread = rows.rejected[:_FIRST] + rows.flawed[:_FIRST]
    rows.sample.extend(entry.raw for entry in unread)
    return rows


def _add_entry(rows: Rows, raw: Any, context: dict[str, Any]) -> None:
    """One entry: as a record, or as a record without its unreadable values. If one of those is part
    of its key, it is rejected."""
    if isinstance(raw, Unread):
        if raw.is_entry:
            rows.rejected.append(raw)
        else:
            rows.missing.append(raw.reason)
        return
    validate = partial(rows.record.model_validate, context=context)
    undecoded = list(_find_undecoded(raw))
    reasons = [f"{'.'.join(path)}: not UTF-8" for path in undecoded]
    readable = _drop_members(raw, undecoded)
    found: Record | None
    try:
        found = validate(readable)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        reasons += map(_describe_error, errors)
        if isinstance(raw, dict):
            flawed = {str(error["loc"][0]) for error in errors if error["loc"]}
            readable = readable | dict.fromkeys(flawed)
        found = read_or_none(validate, readable)
    if found is not None:
        rows.records.append(found)
    if reasons:
        unread = Unread(raw, "; ".join(reasons))
        entries = rows.rejected if found is None else rows.flawed
        entries.append(unread)


def _find_undecoded(raw: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the members of an entry that hold bytes which are not UTF-8."""
    if not isinstance(raw, dict):
        return
    for name, value in raw.items():
        if isinstance(value, dict):
            yield from _find_undecoded(value, (*path, name))
        elif UNDECODED in json.dumps(value, ensure_ascii=False, default=str):
            yield (*path, name)


def _drop_members(raw: Any, paths: Iterable[tuple[str, ...]]) -> Any:
    """The entry without the members at these paths."""
    for first, *rest in paths:
        raw = dict(raw)
        value = raw.pop(first)
        if rest:
            raw[first] = _drop_members(value, [tuple(rest)])
    return raw


def _describe_error(error: Mapping[str, Any]) -> str:
    """Field and fault. The value is left out, since reasons are displayed and logged; it is in the
    raw entry."""
    if not error["loc"]:
        return "not an object"
    path = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{path}: missing"
    fault = error["msg"].removeprefix("Value error, ")
    return f"{path}: {fault}"


def business_of(response: Response) -> Business | None:
    """The business that a response of `app/me` names."""
    for rows in parse_rows(response, dt.UTC, response.requested_at.date()):
        for record in rows.records:
            if isinstance(record, Business):
                return record
    return None


def service_count(response: Response) -> int | None:
    """The payload's own `count`, which may be the total or that of this page (observation 15); None
    without a readable one."""
    return read_or_none(_read_count, response)


def _read_count(response: Response) -> int | None:
    operation = response.call.operation
    if not operation.at:
        return None
    wrapper = response.envelope.open_member(operation.at)
    count = find_member(wrapper, "count")
    if count is None:
        return None
    return read_int(decode(count))


def find_shortage(response: Response) -> str:
    """How a listing contradicts its own count; "" if it does not. Of a paged listing, only an
    unreadable count is reported here.

    A count below the number of entries does not prove that any are missing.
    """
    operation = response.call.operation
    if not operation.is_listing:
        return ""
    try:
        count = _read_count(response) or 0
    except ValueError:
        return f"{operation.name}: its count is not a number"
    listed = count
    if not operation.is_paged:
        listed = len(set(item_keys(response)))
    counted = f"{operation.name}: the service counts {count:,} entries and lists {listed:,}"
    if listed < count:
        return counted
    return ""


def item_keys(response: Response) -> list[str]:
    """One key per entry served, in order. The same entry has the same key on another page: id (and
    network), else a hash and a number."""
    record = next(iter(response.call.operation.records), None)
    has_network = record is not None and "network" in record.model_fields
    seen: Counter[str] = Counter()
    keys = []
    for raw in _served_entries(response, record):
        entry = raw if isinstance(raw, dict) else {}
        raw_id = entry.get("id")
        if raw_id not in (None, ""):
            number = read_or_none(read_int, raw_id)
            key = str(raw_id if number is None else number)
            if has_network and "network" in entry:
                key += f"/{entry['network']}"
        else:
            digest = content_hash(sorted(entry.items()) or [raw])
            seen[digest] += 1  # equal entries of one page are two entries
            key = f"{digest}-{seen[digest]}"
        keys.append(key)
    return keys


def _served_entries(response: Response, first: type[Record] | None) -> Iterable[Any]:
    operation = response.call.operation
    if operation.is_streamed:
        return map(_decode_entry, response.envelope.list_entries(operation))
    if operation.rows is None:
        return as_objects(response.envelope.decode_payload(operation))
    pairs = pair_entries(response)
    return (raw for record, raw in pairs if record is first and not isinstance(raw, Unread))


def timeline_extent(response: Response) -> tuple[int, int]:
    """(served, total) events of a timeline's response: served < total means that the service cut
    it. Without `total` both are equal."""
    wrapper = response.envelope.open_member("timeline")
    if wrapper is None:
        entries = find_member(response.envelope.members, "timeline")
    else:
        entries = find_member(wrapper, "data")
    served = len(split_collection(entries))
    total = find_member(wrapper, "total")
    counted = None
    if total is not None:
        counted = read_or_none(read_int, decode(total))
    return served, max(served, counted or 0)


def parts_served(response: Response) -> dict[str, Any]:
    """The parts of a response around its entries: their paths in the body → their content, which
    stays undecoded. Nothing of a huge response."""
    if isinstance(response.body, Path):
        return {}
    found: dict[str, msgspec.Raw] = {}
    for name, raw in (response.envelope.members or {}).items():
        path = f"response.data.{name}"
        found[path] = raw
        wrapper = response.envelope.open_member(name) or {}
        if not {"items", "data"}.isdisjoint(map(str.lower, wrapper)):
            found |= {f"{path}.{member}": inner for member, inner in wrapper.items()}
    return {path: _split_outermost(raw) for path, raw in found.items()}


def _split_outermost(raw: msgspec.Raw) -> Any:
    if first_letter(raw) == b"{":
        return split_object(raw)
    if first_letter(raw) == b"[":
        return split_collection(raw)
    return decode(raw)
