"""Whatever type a column of a file or query has, its rows are planned, or rejected with a sentence."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from home.settings import INPUT_LIMIT
from tests.depth import DEEP
from tests.write_back.planner import Memory, check_every_row_has_one_fate
from warehouse.sealed_query import QueryFailed
from write_back.account_state import Known
from write_back.input.files import InputBudget, read_file, rows_of_batches
from write_back.input.query import fetch_result
from write_back.input.rows import Cell, InputError, Rows, rows_of_columns
from write_back.item import Options
from write_back.kinds import KINDS, make_plan
from write_back.rejected_rows import keep_rows

#: Columns of each kind, and what they hold where they are not the one in question.
COLUMNS: Mapping[str, Mapping[str, Cell]] = {
    "contacts": {"email": "ann@example.com", "list": "1", "status": "active", "City": "Rome"},
    "tags": {"email": "ann@example.com", "contact_id": 101, "tag": "vip", "action": "add"},
    "activities": {"email": "ann@example.com", "description": "Met", "datetime": "2026-02-03 14:05"},
}
#: A value of each type, of a whole number of 63 bits and one of 0 to 255.
VALUES = (
    "b = 0",
    "b::utinyint",
    "n",
    "n::hugeint * n",
    "(n & 9223372036854775807)::uhugeint * 9",
    "n::float / 0",
    "(b - 1)::double / (b - 1)",
    "n::double",
    "n::decimal(38, 10)",
    "(b / 7)::decimal(4, 2)",
    "to_microseconds(n)",
    "to_months(b)",
    "chr(b + 1)::blob",
    "'\\xFF\\x00'::blob",
    "n::bit",
    "n::varchar",
    "chr(b * 4000 + 1)",
    "md5(n::varchar)::uuid",
    "make_timestamp(n // 2)",
    "make_timestamp_ns(n)",
    "make_timestamp(n)::timestamptz",
    "make_timestamp_ms(n // 2000)::timestamp_s",
    "make_timestamp_ms(n // 2000)::timestamp_ms",
    "make_timestamp(n // 2)::date",
    "date '2000-01-01' + b * 20000",
    "date '2000-01-01' - b * 20000",
    "time '00:00' + to_seconds(b * 351)",
    "time '24:00'",
    "timetz '12:00+01'",
    "case when b > 9 then 'a' else 'b' end::enum ('a', 'b')",
    "[n, b]",
    "[[b]]",
    "['a,b', null, b::varchar]",
    "[n, b]::bigint[2]",
    "{'a': n, 'b': [b]}",
    "map {'a': b}",
    "union_value(number := b)",
    "json_object('a', b)",
    "'infinity'::timestamp",
    "'-infinity'::timestamptz",
    "'infinity'::date",
    "'290000-01-01'::timestamp",
    "'4000-01-01 (BC)'::date",
    "null",
    "null::integer[]",
)
EDGES = [(0, 0), (1, 1), (-1, 255), (2**63 - 1, 128), (1 - 2**63, 13), (1_767_614_400_000_000, 7)]
NUMBERS = st.tuples(st.integers(1 - 2**63, 2**63 - 1), st.integers(0, 255))


def inputs(value: str, numbers: Iterable[tuple[int, int]], folder: Path) -> Iterator[Rows]:
    """The values as a query has them, and as Parquet; nothing of what is refused in a sentence."""
    rows = ", ".join(f"({n}::bigint, {b}::integer)" for n, b in numbers)
    sql = f"select try({value}) as value from (values {rows}) as numbers (n, b)"
    file = folder / "rows.parquet"
    with contextlib.suppress(QueryFailed), duckdb.connect() as connection:  # it says to cast it to varchar
        found = fetch_result(connection, sql, INPUT_LIMIT)
        budget = InputBudget("query", INPUT_LIMIT)
        yield rows_of_batches("query", found.schema, found.to_batches(), budget)
    with contextlib.suppress(duckdb.IOException), duckdb.connect() as connection:  # no negative interval
        connection.execute(f"copy ({sql}) to '{file}' (format parquet)")
        with contextlib.suppress(InputError):  # it says to leave the column out
            yield read_file(file)


@pytest.mark.attack
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@settings(max_examples=50 if DEEP else 1)
@example(EDGES)
@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_every_value_of_every_type_is_planned_or_rejected(
    known: Known, tmp_path_factory: pytest.TempPathFactory, value: str, numbers: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for found in inputs(value, numbers, folder):
        for kind, usual in COLUMNS.items():
            for column in usual:
                cells = {name: [cell] * len(found) for name, cell in usual.items()}
                cells |= {column: list(found.cells["value"])}
                rows = rows_of_columns(found.source.name, list(cells), list(cells.values()), found.numbers)
                with contextlib.suppress(InputError):  # a sentence about the column
                    plan = make_plan(KINDS[kind], rows, known, Memory(), Options())  # type: ignore[arg-type]
                    check_every_row_has_one_fate(plan)
                    assert all(len(each.reason) > 10 for each in plan.bad)
        keep_rows(folder / "kept.parquet", found, found.numbers, "tags")
