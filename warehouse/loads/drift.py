"""Schema drift: what the service's responses hold that none before them held, and what they no longer hold.

What a load's responses are like (`shapes`) is compared with `sync.known_shapes`, in its transaction; what
differs is listed once in `sync.schema_changes`. What an asset's first whole reading brings is learnt and not
listed, but for fields without a column. All of it follows from the loads in their order, so that a rebuild
lists the same. Not here: the published file (`publish`)."""

import datetime as dt
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from marketing_api.redaction import MASK
from warehouse.loads.arrow import PART, RESPONSE
from warehouse.loads.shapes import ALWAYS, MOST_WORDS, Shapes, sample_of, type_of
from warehouse.loads.target import Target
from warehouse.schema import UNDECLARED
from warehouse.sql import literal, quoted, statements
from warehouse.tables import EXTRA, IN_WORDS, TABLES, Table

_SQL = statements(Path(__file__).with_suffix(".sql"))
#: More members of an object are no fields but a map; and how long is learnt at most what was never read
#: whole, in request ids.
_LIMITS = {
    "most_words": MOST_WORDS,
    "most_members": 50,
    "learning": int(dt.timedelta(days=7).total_seconds()) * 1_000_000 * 1024,
}
_ADDRESS = r"\S+(@|%40)\S+"
_MASKING: dict[str, Any] = {"address": literal(_ADDRESS), "mask": literal(MASK)}
#: SQL of the name under which a field is listed. All whose names are addresses are one, and it is listed
#: once.
_MASKING["listed"] = "left(regexp_replace(field, {address}, {mask}, 'g'), 200)".format(**_MASKING)

#: Table, field, kind, what; the first request that showed it, and a sample.
Fact = tuple[str, str, str, str]
Seen = tuple[int, str | None]
#: Beside the kinds of `shapes`: what no column holds; and what was always there, and is in no entry of a
#: batch, or not in all.
EXTRA_FIELD, MISSING, NOT_ALWAYS = "extra", "missing", "not always"


def note(targets: Sequence[Target], shapes: Mapping[str, Shapes], asset: str) -> None:
    """Compare what was staged with what is known, list what differs, and learn it."""
    if not targets or not shapes or not targets[0].responses:
        return
    first, names = targets[0], ", ".join(literal(target.table.name) for target in targets)
    known = first.rows(
        f"select table_name, field, kind, what from sync.known_shapes where account = {first.account} and "
        f"table_name in ({names})"
    )
    found: dict[Fact, Seen] = {}
    for target in targets:
        for fact, seen in _differing(target, shapes[target.table.name], set(known)):
            found.setdefault(fact, seen)
    if not found:
        return
    columns = zip(*((*fact, *seen) for fact, seen in found.items()), strict=True)
    facts = pa.table(dict(zip(_COLUMNS, map(list, columns), strict=True)), _FACTS)
    terms: dict[str, Any] = {
        "account": first.account,
        "last": first.last_request,
        "as_of": first.as_of,
        "asset": literal(asset),
    }
    terms |= _MASKING | _LIMITS | {"line": IN_WORDS}
    first.run(_SQL["drifted"].format(**terms), arrow_facts=facts)
    reports = {target.table.name: target.report for target in targets}
    for name, line in first.rows(_SQL["changes"].format(**terms)):
        reports[name].drift.append(line)
    first.run(_SQL["known"].format(**terms))
    first.run(_SQL["gone"].format(**terms))
    for name, fields in first.rows(_SQL["fields"]):
        _make_view(first, TABLES[name], fields)


_COLUMNS = ("table_name", "field", "kind", "what", "request_id", "sample")
_FACTS = pa.schema([(name, pa.int64() if name == "request_id" else pa.string()) for name in _COLUMNS])


def _differing(target: Target, shapes: Shapes, known: Collection[Fact]) -> Iterator[tuple[Fact, Seen]]:
    """Facts that are not known, known ones that no longer hold, and fields that no column holds."""
    table = target.table.name
    for (name, kind, what), seen in shapes.facts.items():
        if (table, name, kind, what) not in known:
            yield (table, name, kind, what), seen
    for operation in {operation for operation, *_ in shapes.names}:
        batches = [
            (every, ever, request) for (of, every, ever), request in shapes.names.items() if of == operation
        ]
        always = {name for of, name, kind, what in known if (of, kind, what) == (table, ALWAYS, operation)}
        for name, (every, ever, request) in product(always, batches):
            if name not in every:
                yield (table, name, NOT_ALWAYS if name in ever else MISSING, operation), (request, None)
        for name in () if always else frozenset.intersection(*(every for every, *_ in batches)):
            yield (table, name, ALWAYS, operation), (batches[0][2], None)
    yield from _without_column(target) if target.has_extra else ()


def _without_column(target: Target) -> Iterator[tuple[Fact, Seen]]:
    table = target.table.name
    terms = {
        "account": target.account,
        "table": literal(table),
        "source": target.source,
        "part": PART,
        "response": RESPONSE,
        **_MASKING,
    }
    for name, response, raw in target.rows(_SQL["extras"].format(**terms)):
        value = json.loads(raw)
        yield (
            (table, name, EXTRA_FIELD, ""),
            (target.responses[response].request_id, sample_of(type_of(value), value)),
        )


def _make_view(target: Target, table: Table, fields: Sequence[str]) -> None:
    """A column for each field that has none of its own, as text; names that differ in nothing but case are
    one to SQL."""
    own = ["account", *table.key]
    free = {field.casefold(): field for field in reversed(fields) if field and field.casefold() not in own}
    pointers = {field: "/" + field.replace("~", "~0").replace("/", "~1") for field in reversed(free.values())}
    shown = [
        f"json_extract_string({EXTRA.name}, {literal(pointer)}) as {quoted(field)}"
        for field, pointer in pointers.items()
    ]
    rows = f"from {table.qualified} where {table.is_there} and {EXTRA.name} is not null"
    view = f"{UNDECLARED}.{table.name}"
    target.run(f"create or replace view {view} as select {', '.join([*map(quoted, own), *shown])} {rows}")
    target.run(f"comment on view {view} is {literal(_VIEW.format(table=table.qualified))}")


_VIEW = (
    "Fields that the service sends and {table} has no column for, as texts; one row per row "
    "there that has "
    "any of them."
)
