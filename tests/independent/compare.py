"""Compare the `source` tables of a warehouse file with the truth, table by table, as multisets of rows.
Read-only: the file is opened for the moment of reading."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from .schema import TABLES, TableSpec
from .shape import SURPRISE
from .truth import Case, Expected, OneOf, Row, expected

_TYPES = {
    "id": ("BIGINT",),
    "count": ("BIGINT",),
    "integer": ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UTINYINT", "USMALLINT"),
    "double": ("DOUBLE",),
    "decimal": ("DECIMAL",),
    "boolean": ("BOOLEAN",),
    "at": ("TIMESTAMP WITH TIME ZONE",),
    "on": ("DATE",),
    "observed": ("DATE",),
    "text": ("VARCHAR",),
    "word": ("VARCHAR",),
    "any_id": ("VARCHAR", "BIGINT"),
    "texts": ("VARCHAR[]",),
    "details": ("JSON",),
    "custom": ("JSON",),
}


@dataclass
class Difference:
    """What is wrong with one table. `differing` pairs rows of one key: (expected, actual, column names)."""

    table: str
    problems: list[str] = field(default_factory=list)
    missing: list[Row] = field(default_factory=list)
    surplus: list[Row] = field(default_factory=list)
    differing: list[tuple[Row, Row, list[str]]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.problems or self.missing or self.surplus or self.differing)

    def __str__(self) -> str:
        counts = (len(self.missing), len(self.surplus), len(self.differing))
        lines = ["{}: {} missing, {} surplus, {} differing".format(self.table, *counts)]
        lines += [f"    {problem}" for problem in self.problems]
        lines += [f"    missing {_short(row)}" for row in self.missing[:3]]
        lines += [f"    surplus {_short(row)}" for row in self.surplus[:3]]
        for wanted, actual, columns in self.differing[:3]:
            key = {name: wanted.get(name) for name in TABLES[self.table].natural_key}
            lines.append(f"    differs {_short(key)}:")
            for name in columns:
                lines.append(f"      {name}: {_short(actual.get(name))}, not {_short(wanted.get(name))}")
        return "\n".join(lines)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]}… ({len(text)} characters)"


def compare(warehouse: Path, case: Case) -> list[Difference]:
    """The tables that differ from the truth; an empty list is agreement."""
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return compare_tables(connection, case)


def compare_tables(connection: Any, case: Case, only: Iterable[str] = tuple(TABLES)) -> list[Difference]:
    """The same on an open connection, for some of the tables."""
    truth = expected(case)
    found = [_compare_table(connection, TABLES[name], truth[name], case) for name in only]
    return [difference for difference in found if difference]


def _compare_table(connection: Any, spec: TableSpec, wanted: Expected, case: Case) -> Difference:
    result = Difference(spec.name)
    types = _column_types(connection, spec.name)
    if not types:
        if wanted.rows:  # nothing to hold, no table needed
            result.problems.append(f"the table does not exist; {len(wanted.rows)} rows are due")
        return result
    absent = [name for name in ("account", "extra", *spec.key, *spec.columns) if name not in types]
    result.problems += [f"column {name} does not exist" for name in absent]
    result.problems += [
        f"column {name} is {types[name]}, expected {' or '.join(_TYPES[kind])}"
        for name, kind in spec.columns.items()
        if name in types and not types[name].startswith(_TYPES[kind])
    ]
    if not absent:
        actual = _read(connection, spec, types, case)
        result.problems += _structure(connection, spec, types)
        _match(spec, wanted, actual, result, case)
    return result


def _column_types(connection: Any, name: str) -> dict[str, str]:
    where = "table_schema = 'source' and table_name = ?"
    query = f"select column_name, data_type from information_schema.columns where {where}"
    return dict(connection.execute(query, [name]).fetchall())


def _current(types: dict[str, str]) -> str:
    return "where _deleted_at is null" if "_deleted_at" in types else ""


def _read(connection: Any, spec: TableSpec, types: dict[str, str], case: Case) -> list[Row]:
    # Moments as seconds since 1970, so that no session time zone has a say.
    shown = [
        f'epoch_us("{name}")' if types[name].startswith("TIMESTAMP") else f'"{name}"'
        for name in (*spec.columns, "extra")
    ]
    sql = f"select {', '.join(shown)} from source.{spec.name} {_current(types)}"
    rows = connection.execute(sql).fetchall()
    return [_row(spec, dict(zip((*spec.columns, "extra"), row, strict=True)), case) for row in rows]


def _structure(connection: Any, spec: TableSpec, types: dict[str, str]) -> list[str]:
    """Key columns unique and not null; every row belongs to the account."""
    where, problems = _current(types), []
    key = ", ".join(f'"{name}"' for name in ("account", *spec.key))
    sql = f"select {key}, count(*) from source.{spec.name} {where} group by all having count(*) > 1"
    if twice := connection.execute(sql).fetchall():
        problems.append(f"{len(twice)} keys stand more than once, e.g. {_short(twice[0])}")
    nulls = " or ".join(f'"{name}" is null' for name in ("account", *spec.key))
    holes = connection.execute(f"select count(*) from source.{spec.name} where {nulls}").fetchone()[0]
    if holes:
        problems.append(f"{holes} rows have a null in their key")
    sql = f"select count(*) from source.{spec.name} where account <> 'main'"
    others = connection.execute(sql).fetchone()[0]
    return problems + ([f"{others} rows of another account"] if others else [])


# --- values


def _row(spec: TableSpec, row: Row, case: Case) -> Row:
    """The row in comparable values; `extra` becomes whether the surprises are kept."""
    shown = {name: canonical(kind, row[name], case) for name, kind in spec.columns.items()}
    if spec.keeps_extra:
        shown["extra"] = _kept(row.get("extra"), row.get("custom_fields"))
    return shown


def _kept(*texts: Any) -> bool:
    """Contacts have own fields beside the named ones, so a surprise may also be in custom_fields."""
    kept: dict[str, Any] = {}
    for text in texts:
        value = json.loads(text) if isinstance(text, str) else text
        kept |= value if isinstance(value, dict) else {}
    return all(_plain(kept.get(name)) == _plain(value) for name, value in SURPRISE.items())


def canonical(kind: str, value: Any, case: Case) -> Any:
    """One comparable, hashable value per meaning."""
    if isinstance(value, OneOf):
        return OneOf(tuple(canonical(kind, each, case) for each in value.values))
    return _CANONICAL[kind](value, case) if value is not None and kind in _CANONICAL else value


def _moment(value: Any, case: Case) -> Any:
    seconds = value.timestamp() if isinstance(value, dt.datetime) else int(value) / 1e6
    return dt.datetime.fromtimestamp(round(seconds), dt.UTC)


def _plain(value: Any) -> Any:
    """JSON as nested tuples, numbers as their text; everything empty is None."""
    if isinstance(value, dict):
        return tuple(sorted((str(name), _plain(item)) for name, item in value.items())) or None
    if isinstance(value, list):
        return tuple(_plain(item) for item in value) or None
    return None if value is None else str(value)


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _custom(value: Any, case: Case) -> Any:
    fields = _parsed(value)
    if not isinstance(fields, dict):
        return _plain(fields)
    own = {name: item for name, item in fields.items() if name not in SURPRISE and item not in ("", None)}
    return _plain(own)


_CANONICAL: dict[str, Callable[[Any, Case], Any]] = {
    "at": _moment,
    "observed": lambda value, case: "asked" if value in case.asked_on() else value,
    "double": lambda value, _: round(float(value), 6),
    "decimal": lambda value, _: Decimal(value).normalize(),
    "text": lambda value, _: str(value) or None,
    "word": lambda value, _: str(value).casefold() or None,
    "any_id": lambda value, _: str(value),
    "texts": lambda value, _: tuple(value) or None,
    "details": lambda value, _: _plain(_parsed(value)),
    "custom": _custom,
}


# --- matching


def _match(spec: TableSpec, wanted: Expected, actual: list[Row], result: Difference, case: Case) -> None:
    optional = _prepared(spec, wanted.optional, case)
    due = _prepared(spec, wanted.derive(actual) if wanted.derive else wanted.rows, case)
    missing = _subtract(due, actual)
    surplus = _subtract(_subtract(actual, due), optional)
    result.differing, result.missing, result.surplus = _pair(spec, missing, surplus, optional)


def _prepared(spec: TableSpec, rows: list[Row], case: Case) -> list[Row]:
    """Rows of the truth in the order and the values of rows read from the table."""
    extra = {"extra": case.variants.extra_fields} if spec.keeps_extra else {}
    return [
        {name: canonical(kind, row[name], case) for name, kind in spec.columns.items()} | extra
        for row in rows
    ]


def _subtract(rows: list[Row], taken: list[Row]) -> list[Row]:
    """Multiset difference of rows with the same columns: exact first (cheap), then row by row."""
    counts = Counter(tuple(row.values()) for row in taken)
    left = []
    for row in rows:
        if counts[tuple(row.values())] > 0:
            counts[tuple(row.values())] -= 1
        else:
            left.append(row)
    names = list(left[0]) if left else []
    free = [dict(zip(names, values, strict=True)) for values in counts.elements()] if left else []
    return [row for row in left if not _take(free, row)]


def _take(free: list[Row], row: Row) -> bool:
    for index, candidate in enumerate(free):
        if all(_same(candidate[name], row[name]) for name in row):
            del free[index]
            return True
    return False


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, OneOf) or isinstance(right, OneOf):
        one, other = (left, right) if isinstance(left, OneOf) else (right, left)
        return other in one.values
    return bool(left == right)


Pairs = list[tuple[Row, Row, list[str]]]


def _pair(
    spec: TableSpec, missing: list[Row], surplus: list[Row], optional: list[Row]
) -> tuple[Pairs, list[Row], list[Row]]:
    """Pair leftovers of one key, nearest first: one row that differs, not one missing and one surplus."""
    pairs: Pairs = []
    left, candidates = [], missing + optional
    for row in surplus:
        near = [each for each in candidates if all(each[name] == row[name] for name in spec.natural_key)]
        best = min(near, key=partial(_distance, row)) if near else None
        # Where the key is generated, only rows that mostly agree are taken for the same entry.
        if best is None or (spec.natural_key != spec.key and _distance(row, best) > max(2, len(row) // 2)):
            left.append(row)
            continue
        pairs.append((best, row, _differing(best, row)))
        candidates = [each for each in candidates if each is not best]
    paired = {id(wanted) for wanted, _, _ in pairs}
    return pairs, [row for row in missing if id(row) not in paired], left


def _distance(actual: Row, wanted: Row) -> int:
    return len(_differing(wanted, actual))


def _differing(wanted: Row, actual: Row) -> list[str]:
    return [name for name in actual if not _same(wanted[name], actual[name])]
