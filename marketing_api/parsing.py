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
#: A batch's sample: its first entries and first rejected ones, and one of so many.
_FIRST = 3
_SAMPLE_STEP = 250


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of records of one type, the entries that could not become one, and collections of
    them that were missing.

    `flawed`: entries with a value that could not be read; they are among the records, without it.
    `sample` are some of the entries as they came, those that could not be read included; `names`
    are those of the members that every entry had, and that any had. `cut` counts entries that are
    not archived, since they are about people who asked to be forgotten."""

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
    """The records of a response that `check` accepted, at most `batch` at a time; none for
    operations that fill no table.

    `zone` is that of the account's local date-times; `observed_on` the account's local date of the
    request, for daily tables. Of an response that no reader can make anything of, each type has one
    rejected entry, which protects what hangs on it."""
    waiting: dict[type[Record], list[Any]] = defaultdict(list)
    cut: Counter[type[Record]] = Counter()
    try:
        validated = partial(
            _validate_batch,
            zone=zone,
            observed_on=observed_on,
            has_undecoded=response.envelope.has_undecoded,
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
    # whatever a stranger's response makes of a parser, it costs this response and nothing beside it
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
        yield from operation.rows({"items": list(map(_decode_entry, some))}, params)


def _decode_entry(raw: msgspec.Raw) -> Any:
    """Set aside as text where it cannot be decoded."""
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
    """All at once, which is fastest; one by one when an entry among them may not be readable."""
    if "observed_on" in record.model_fields:
        raws = [
            {**raw, "observed_on": observed_on} if isinstance(raw, dict) else raw for raw in raws
        ]
    # a few kinds: most entries have the same members
    members = {tuple(raw) for raw in raws if isinstance(raw, dict)} or {()}
    names = frozenset.intersection(*map(frozenset, members)), frozenset[str]().union(*members)
    rows = Rows(record, sample=raws[:_FIRST] + raws[_FIRST::_SAMPLE_STEP], names=names)
    context = {"zone": zone}
    if not has_undecoded:
        with contextlib.suppress(ValidationError):
            rows.records.extend(_list_adapter(record).validate_python(raws, context=context))
            return rows
    for raw in raws:
        _add_entry(rows, raw, context)
    rows.sample.extend(entry.raw for entry in rows.rejected[:_FIRST] + rows.flawed[:_FIRST])
    return rows


def _add_entry(rows: Rows, raw: Any, context: dict[str, Any]) -> None:
    """One entry: as a record, as one without the values at fault, or, where one of these tells it
    apart, as rejected."""
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
        flawed = {str(error["loc"][0]) for error in errors if error["loc"]}
        reasons += map(_describe_error, errors)
        found = read_or_none(
            validate, readable | dict.fromkeys(flawed) if isinstance(raw, dict) else None
        )
    if reasons:
        (rows.rejected if found is None else rows.flawed).append(Unread(raw, "; ".join(reasons)))
    if found is not None:
        rows.records.append(found)


def _find_undecoded(raw: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the members of an entry that hold bytes which are not UTF-8."""
    for name, value in raw.items() if isinstance(raw, dict) else ():
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
    """Field and fault, without the value: it is in the raw entry, and reasons are shown and
    logged."""
    fault = "missing" if error["type"] == "missing" else error["msg"].removeprefix("Value error, ")
    return f"{'.'.join(map(str, error['loc']))}: {fault}" if error["loc"] else "not an object"


def business_of(response: Response) -> Business | None:
    """The business that a response of `app/me` names."""
    records = (
        record
        for rows in parse_rows(response, dt.UTC, response.requested_at.date())
        for record in rows.records
    )
    return next((record for record in records if isinstance(record, Business)), None)


def service_count(response: Response) -> int | None:
    """The payload's own `count`, which may be the total or that of this page (observation 15); None
    without a readable one."""
    return read_or_none(_read_count, response)


def _read_count(response: Response) -> int | None:
    operation = response.call.operation
    count = (
        find_member(response.envelope.open_member(operation.at), "count") if operation.at else None
    )
    return None if count is None else read_int(decode(count))


def find_shortage(response: Response) -> str:
    """How a listing contradicts its own count, those of one page by not being readable; "" when it
    does not.

    A count below the entries proves nothing lost.
    """
    operation = response.call.operation
    if not operation.is_listing:
        return ""
    try:
        count = _read_count(response) or 0
    except ValueError:
        return f"{operation.name}: its count is no number"
    listed = count if operation.is_paged else len(set(item_keys(response)))
    counted = f"{operation.name}: the service counts {count:,} entries and lists {listed:,}"
    return counted if listed < count else ""


def item_keys(response: Response) -> list[str]:
    """One identity per entry served, in order, equal for the same entry on another page: id (and
    network), else a hash and a number."""
    record = next(iter(response.call.operation.records), None)
    has_network = record is not None and "network" in record.model_fields
    seen: Counter[str] = Counter()
    keys = []
    for raw in _served_entries(response, record):
        if isinstance(raw, dict) and raw.get("id") not in (None, ""):
            number = read_or_none(read_int, raw["id"])
            id_ = str(raw["id"] if number is None else number)
            keys.append(f"{id_}/{raw['network']}" if has_network and "network" in raw else id_)
            continue
        digest = content_hash(sorted(raw.items()) if isinstance(raw, dict) else [raw])
        seen[digest] += 1  # equal entries of one page are two entries
        keys.append(f"{digest}-{seen[digest]}")
    return keys


def _served_entries(response: Response, first: type[Record] | None) -> Iterable[Any]:
    operation = response.call.operation
    if operation.is_streamed:
        return map(_decode_entry, response.envelope.list_entries(operation))
    if operation.rows is None:
        return as_objects(response.envelope.decode_payload(operation))
    return (
        raw
        for record, raw in pair_entries(response)
        if record is first and not isinstance(raw, Unread)
    )


def timeline_extent(response: Response) -> tuple[int, int]:
    """(served, total) events of a timeline's response: served < total means that the service cut
    it. Without `total` both are equal."""
    wrapper = response.envelope.open_member("timeline")
    timeline = find_member(response.envelope.members, "timeline")
    served = len(split_collection(timeline if wrapper is None else find_member(wrapper, "data")))
    total = find_member(wrapper, "total")
    counted = None if total is None else read_or_none(read_int, decode(total))
    return served, max(served, counted or 0)


def parts_served(response: Response) -> dict[str, Any]:
    """The parts of a response around its entries: their paths in the body → their content, with
    nothing in it decoded. None of a huge one."""
    found: dict[str, msgspec.Raw] = {}
    members = {} if isinstance(response.body, Path) else response.envelope.members or {}
    for name, raw in members.items():
        found[f"response.data.{name}"] = raw
        wrapper = response.envelope.open_member(name) or {}
        if not {"items", "data"}.isdisjoint(map(str.lower, wrapper)):
            found |= {f"response.data.{name}.{member}": inner for member, inner in wrapper.items()}
    return {path: _split_outermost(raw) for path, raw in found.items()}


def _split_outermost(raw: msgspec.Raw) -> Any:
    if first_letter(raw) == b"{":
        return split_object(raw)
    return split_collection(raw) if first_letter(raw) == b"[" else decode(raw)
