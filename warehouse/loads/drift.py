"""Schema drift: what is new in the service's responses, and what is missing from them.

The facts about a load's responses (`shapes`) are compared with `sync.known_shapes`, in the load's
transaction. A difference is listed once in `sync.schema_changes`. The first whole read of an asset
is learned and not listed, except fields without a column. Everything follows from the loads in
their order, so that a rebuild lists the same. Not here: the published file (`publish`)."""

import itertools
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
    first.run_sql(_SQL["masked"].format(masked=MASKED.format("text")))
    first.run_sql(_SQL["listed"])
    known = set(first.run_sql(_SQL["known_of"].format(tables=names)))
    differing = (_find_differences(target, shapes[target.table.name], known) for target in targets)
    found: dict[Fact, Seen] = {}
    for fact, seen in itertools.chain.from_iterable(differing):
        found.setdefault(fact, seen)
    if not found:
        return
    facts = [dict(zip(_FACTS.names, (*fact, *seen), strict=True)) for fact, seen in found.items()]
    first.run_sql(
        _SQL["drifted"].format(most_words=MOST_WORDS),
        arrow_facts=pa.Table.from_pylist(facts, _FACTS),
    )
    reports = {target.table.name: target.report for target in targets}
    for name, line in first.run_sql(_SQL["changes"].format(line=IN_WORDS)):
        reports[name].drift.append(line)
    first.run_sql(_SQL["known"])
    first.run_sql(_SQL["gone"])


def _find_differences(
    target: Target, shapes: Shapes, known: Collection[Fact]
) -> Iterator[tuple[Fact, Seen]]:
    """New facts, known facts that no longer hold, and fields without a column."""
    table = target.table.name
    for key, seen in shapes.facts.items():
        if (table, *key) not in known:
            yield (table, *key), seen
    for operation in {operation for operation, *_ in shapes.names}:
        yield from _of_names(table, operation, shapes, known)
    if target.has_extra:
        yield from _without_column(target)


def _of_names(
    table: str, operation: str, shapes: Shapes, known: Collection[Fact]
) -> Iterator[tuple[Fact, Seen]]:
    """Fields that every response of an operation has: learned from the first ones, then checked in
    each batch."""
    batches = [
        (every, ever, request)
        for (of, every, ever), request in shapes.names.items()
        if of == operation
    ]
    always = {
        name for of, name, kind, what in known if (of, kind, what) == (table, ALWAYS, operation)
    }
    for every, ever, request in batches:
        for name in always - every:
            yield (table, name, NOT_ALWAYS if name in ever else MISSING, operation), (request, None)
    if not always:
        for name in frozenset.intersection(*(every for every, *_ in batches)):
            yield (table, name, ALWAYS, operation), (batches[0][2], None)


def _without_column(target: Target) -> Iterator[tuple[Fact, Seen]]:
    table = target.table.name
    for name, response, raw in target.run_sql(
        _SQL["extras"].format(table=table, source=target.source)
    ):
        value = json.loads(raw)
        seen = (target.responses[response].request_id, sample_of(type_of(value), value))
        yield (table, name, EXTRA_FIELD, ""), seen
