"""`docs/marts.md` is as the models say, the models say everything, and every question's query answers it."""

import re

import duckdb
import pytest

from docs import generate
from tests.warehouse.marts.described import described
from tests.warehouse.marts.test_against_pandas import MARTS
from tests.warehouse.marts.test_by_hand import BY_HAND
from warehouse.dbt_project import Node
from warehouse.models import ModelSettings

QUESTIONS = [
    (mart.table, question) for mart in described("marts") for question in mart.meta.get("questions", ())
]


@pytest.mark.parametrize("mart", described("marts"), ids=lambda mart: mart.table)
def test_a_mart_says_its_grain_its_key_and_what_it_answers(mart: Node) -> None:
    key = next(
        test.key
        for test in ModelSettings().list_nodes()
        if test.is_test and test.key and test.relation == mart.relation
    )
    assert generate.grain(mart)
    assert key[0] == "account" == next(iter(mart.columns))
    assert mart.meta["questions"]


def test_every_column_is_described_and_nothing_else(marts: duckdb.DuckDBPyConnection) -> None:
    rows = marts.execute(
        "select schema_name, table_name, column_name from duckdb_columns() order by column_index"
    ).fetchall()
    found: dict[tuple[str, str], list[str]] = {}
    for schema, table, column in rows:
        found.setdefault((schema, table), []).append(column)
    for schema in ("marts", "history"):
        said = {(schema, mart.table): sorted(mart.columns) for mart in described(schema)}
        assert said == {key: sorted(columns) for key, columns in found.items() if key[0] == schema}


def test_the_page_names_every_column() -> None:
    """Also the ones that share a line with a column over another time."""
    sections = generate.marts().split("\n### ")
    for mart in described("marts"):
        (section,) = [text for text in sections if text.startswith(f"{mart.relation}\n")]
        named = set(re.findall(r"\w+", " ".join(re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE))))
        assert set(mart.columns) - named == {"account"}


@pytest.mark.parametrize(
    ("name", "question"), QUESTIONS, ids=[f"{name}: {question['ask']}" for name, question in QUESTIONS]
)
def test_the_query_of_a_question_answers_it(
    name: str, question: dict[str, str], marts: duckdb.DuckDBPyConnection
) -> None:
    assert f"marts.{name}" in question["sql"]
    assert marts.execute(question["sql"]).fetchall()


def test_no_mart_goes_unchecked() -> None:
    assert (
        {mart.table for mart in described("marts")} == set(MARTS) == set(BY_HAND) | {"anomalies"}
    )  # test_anomalies.py


_COUNTED = re.compile(r"_(count|change|rate)(_|$)")


@pytest.mark.parametrize("schema", ["marts", "history"])
def test_a_count_is_null_only_where_its_description_says_when(
    schema: str, marts: duckdb.DuckDBPyConnection
) -> None:
    """NULL is "not known", 0 is "none": of every mart, over rows in which whatever may be missing is."""
    silent = [
        (mart.table, name)
        for mart in described(schema)
        for name, text in mart.columns.items()
        if _COUNTED.search(name) and "NULL" not in text
    ]
    assert len(silent) > 2
    has_null = 'select count(*) > count({}) from {}."{}"'
    assert [
        (mart, name)
        for mart, name in silent
        if marts.execute(has_null.format(name, schema, mart)).fetchall() != [(False,)]
    ] == []


def test_beside_every_open_rate_stands_what_it_can_mean() -> None:
    columns = [(mart.table, name, text) for mart in described("marts") for name, text in mart.columns.items()]
    rates = [column for column in columns if re.search(r"open.*_rate", column[1])]
    assert len(rates) >= 8
    said = "Includes machine opens: see “Gaps in the data”"
    assert [
        (mart, name) for mart, name, text in rates if said not in text and "over_median" not in name
    ] == []
    assert "## Gaps in the data" in generate.marts()
