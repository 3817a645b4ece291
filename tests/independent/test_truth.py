"""The comparison finds every kind of error."""

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pytest

from . import generate
from .compare import compare_tables
from .schema import TABLES
from .shape import SURPRISE
from .truth import Case, OneOf, Row, expected
from .variants import live_like

_TYPES = {
    "id": "bigint",
    "count": "bigint",
    "integer": "bigint",
    "double": "double",
    "decimal": "decimal(18, 4)",
    "boolean": "boolean",
    "at": "timestamptz",
    "on": "date",
    "observed": "date",
    "texts": "varchar[]",
    "details": "json",
    "custom": "json",
}


def _plain(kind: str, value: Any, case: Case) -> Any:
    value = value.values[0] if isinstance(value, OneOf) else value
    if kind in ("details", "custom"):
        return json.dumps(value)
    return case.account.today if kind == "observed" else value


@cache
def _memory() -> Any:
    """One for all: beginning a database takes longer than filling it."""
    return duckdb.connect()


@contextmanager
def holding(case: Case, tables: dict[str, list[Row]]) -> Iterator[Any]:
    """A connection to a warehouse in memory that holds exactly these rows."""
    extra = json.dumps(SURPRISE if case.variants.extra_fields else {})
    connection = _memory()
    connection.execute("drop schema if exists source cascade")
    connection.execute("create schema source")
    for name, found in tables.items():
        spec = TABLES[name]
        generated = [column for column in spec.key if column not in spec.columns]
        kinds = {column: _TYPES.get(kind, "varchar") for column, kind in spec.columns.items()}
        kinds |= {"account": "varchar", "extra": "json"} | dict.fromkeys(generated, "varchar")
        connection.execute(
            f"create table source.{name} ({', '.join(f'{column} {kind}' for column, kind in kinds.items())})"
        )
        values = [
            [_plain(kind, row[column], case) for column, kind in spec.columns.items()]
            + ["main", extra, *[f"key {index}"] * len(generated)]
            for index, row in enumerate(found)
        ]
        if values:
            connection.executemany(
                f"insert into source.{name} values ({', '.join('?' * len(kinds))})", values
            )
    yield connection


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(
        generate.account(11, generate.Sizes(contacts=16, campaigns=6, posts=8), wild=True, strange=True),
        live_like(),
    )


@pytest.fixture(scope="module")
def tables(case: Case) -> dict[str, list[Row]]:
    """Right rows for every table, totals for one range that covers everything."""
    found = {name: table.rows for name, table in expected(case).items()}
    ends = {"from_on": generate.HISTORY_START, "to_on": case.account.today}
    derive = expected(case)["sentiment_totals"].derive
    assert derive
    return found | {"sentiment_totals": derive([ends])}


def told(case: Case, tables: dict[str, list[Row]]) -> list[str]:
    """The names of the tables in which a difference is found."""
    with holding(case, tables) as connection:
        return [difference.table for difference in compare_tables(connection, case, only=tables)]


def test_the_truth_agrees_with_itself(case: Case, tables: dict[str, list[Row]]) -> None:
    assert told(case, tables) == []


def _other(value: Any) -> Any:
    """A value of the same type that is wrong."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, dt.datetime):
        return value + dt.timedelta(hours=1)
    if isinstance(value, dt.date):
        return value + dt.timedelta(days=1)
    if isinstance(value, int | float | Decimal):
        return value + 1
    if isinstance(value, list):
        return [*value, "surplus"] if not value or isinstance(value[0], str) else value[1:]
    return {**value, "1": "wrong"} if isinstance(value, dict) else f"{value} wrong"


@pytest.mark.parametrize("table", list(TABLES))
def test_a_wrong_value_in_any_column_is_found(case: Case, tables: dict[str, list[Row]], table: str) -> None:
    for column, kind in TABLES[table].columns.items():
        candidates = [
            row for row in tables[table] if row[column] is not None and not isinstance(row[column], OneOf)
        ]
        if not candidates or kind == "observed" or (table == "sentiment_totals" and column.endswith("_on")):
            continue  # free by design, or nothing to spoil
        wrong = [
            {**row, column: _other(row[column])} if row is candidates[0] else row for row in tables[table]
        ]
        assert told(case, {table: wrong}) == [table], column


@pytest.mark.parametrize("table", ["contacts", "timeline_events", "online_reviews", "campaign_links"])
def test_a_lost_or_doubled_row_is_found(case: Case, tables: dict[str, list[Row]], table: str) -> None:
    with holding(case, {table: tables[table][1:]}) as connection:
        (lost,) = compare_tables(connection, case, only=[table])
    assert (len(lost.missing), len(lost.surplus)) == (1, 0)
    with holding(case, {table: [*tables[table], tables[table][0]]}) as connection:
        (doubled,) = compare_tables(connection, case, only=[table])
    assert len(doubled.surplus) == 1


def test_lost_surprises_and_uncovered_ranges_are_found(case: Case, tables: dict[str, list[Row]]) -> None:
    late = {**tables["sentiment_totals"][0], "from_on": dt.date(2016, 1, 1)}
    assert told(case, {"sentiment_totals": [late]}) == ["sentiment_totals"]
    with holding(case, {"goals": tables["goals"]}) as connection:
        connection.execute("update source.goals set extra = '{}'")
        assert compare_tables(connection, case, only=["goals"])
