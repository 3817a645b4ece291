"""Schema drift: what is new in the service's responses, and what is missing from them.

The facts about a load's responses (`shapes`) are compared with `sync.known_shapes`, in the load's
transaction. A difference is listed once in `sync.schema_changes`. The first whole read of an asset
is learned and not listed, except fields without a column. Everything follows from the loads in
their order, so that a rebuild lists the same. Not here: the published file (`publish`)."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from warehouse.loads.shapes import ALWAYS, MOST_WORDS, Shapes, sample_of, type_of
from warehouse.loads.target import Target
from warehouse.sql import MASKED, load_statements, quote_text
from warehouse.tables import IN_WORDS

_SQL = load_statements(Path(__file__).with_suffix(".sql"))
#: Kinds in addition to those of `shapes`: a field without a column; and a field that was always
#: there, and is missing from all or some entries of a batch.
EXTRA_FIELD = "extra"
MISSING = "missing"
NOT_ALWAYS = "not always"

#: Table, field, kind, what; the first request that showed it, and a sample.
Fact = tuple[str, str, str, str]
Seen = tuple[int, str | None]
_FACTS = pa.schema(
    [
        *((name, pa.string()) for name in ("table_name", "field", "kind", "what")),
        ("request_id", pa.int64()),
        ("sample", pa.string()),
    ]
)


def note_drift(targets: Sequence[Target], shapes: Mapping[str, Shapes]) -> None:
    """Compare the staged facts with the known ones, list the differences, and learn them."""
    if not targets or not shapes or not targets[0].responses:
        return
    first = targets[0]
    names = ", ".join(quote_text(target.table.name) for target in targets)
    masked = MASKED.format("text")
    first.run_sql(_SQL["masked"].format(masked=masked))
    first.run_sql(_SQL["listed"])
    known = set(first.run_sql(_SQL["known_of"].format(tables=names)))
    found: dict[Fact, Seen] = {}
    for target in targets:
        table_shapes = shapes[target.table.name]
        for fact, seen in _find_differences(target, table_shapes, known):
            found.setdefault(fact, seen)
    if not found:
        return
    facts = []
    for fact, seen in found.items():
        values = (*fact, *seen)
        facts.append(dict(zip(_FACTS.names, values, strict=True)))
    arrow_facts = pa.Table.from_pylist(facts, _FACTS)
    drifted = _SQL["drifted"].format(most_words=MOST_WORDS)
    first.run_sql(drifted, arrow_facts=arrow_facts)
    reports = {target.table.name: target.report for target in targets}
    changes = _SQL["changes"].format(line=IN_WORDS)
    for name, line in first.run_sql(changes):
        reports[name].drift.append(line)
    first.run_sql(_SQL["known"])
    first.run_sql(_SQL["gone"])


def _find_differences(
    target: Target, shapes: Shapes, known: Collection[Fact]
) -> Iterator[tuple[Fact, Seen]]:
    """New facts, known facts that no longer hold, and fields without a column."""
    table = target.table.name
    for key, seen in shapes.facts.items():
        fact = (table, *key)
        if fact not in known:
            yield fact, seen
    operations = {operation for operation, *_ in shapes.names}
    for operation in operations:
        yield from _of_names(table, operation, shapes, known)
    if target.has_extra:
        yield from _without_column(target)


def _of_names(
    table: str, operation: str, shapes: Shapes, known: Collection[Fact]
) -> Iterator[tuple[Fact, Seen]]:
    """Fields that every response of an operation has: learned from the first ones, then checked in
    each batch."""
    batches = []
    for (of, every, ever), request_id in shapes.names.items():
        if of == operation:
            batches.append((every, ever, request_id))
    always = set()
    for of, name, kind, what in known:
        if (of, kind, what) == (table, ALWAYS, operation):
            always.add(name)
    for every, ever, request_id in batches:
        for name in always - every:
            kind = NOT_ALWAYS if name in ever else MISSING
            yield (table, name, kind, operation), (request_id, None)
    if not always:
        first_request_id = batches[0][2]
        in_all_batches = frozenset.intersection(*(every for every, *_ in batches))
        for name in in_all_batches:
            yield (table, name, ALWAYS, operation), (first_request_id, None)


def _without_column(target: Target) -> Iterator[tuple[Fact, Seen]]:
    table = target.table.name
    extras = _SQL["extras"].format(table=table, source=target.source)
    for name, response, raw in target.run_sql(extras):
        value = json.loads(raw)
        sample = sample_of(type_of(value), value)
        request_id = target.responses[response].request_id
        yield (table, name, EXTRA_FIELD, ""), (request_id, sample)
