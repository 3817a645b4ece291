"""What others build on: columns of the marts, the metrics over them, and who is known to read them."""

import re
from typing import Any

import duckdb
import pytest
import yaml

from docs.generate import definitions
from docs.models import metrics
from warehouse.dbt_project import PROJECT

ROOT = PROJECT.parent


def contracts() -> dict[str, dict[str, str]]:
    """Mart → column → type, as the yml files promise them."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((PROJECT / "models" / "marts").glob("*.yml")):
        for model in yaml.safe_load(path.read_text(encoding="utf-8"))["models"]:
            found[model["name"]] = {column["name"]: column["data_type"] for column in model["columns"]}
    return found


def test_the_marts_are_as_their_contracts_say(marts: duckdb.DuckDBPyConnection) -> None:
    built: dict[str, dict[str, str]] = {}
    sql = (
        "select table_name, column_name, data_type from duckdb_columns() where schema_name = 'marts' and "
        "column_name[1] <> '_'"
    )
    for mart, column, sql_type in marts.execute(sql).fetchall():
        built.setdefault(mart, {})[column] = sql_type.lower().replace(
            "timestamp with time zone", "timestamptz"
        )
    promised = {
        mart: {name: kind for name, kind in columns.items() if name[0] != "_"}
        for mart, columns in contracts().items()
    }
    assert built == promised


def exposures() -> list[Any]:
    found: list[Any] = yaml.safe_load((PROJECT / "models" / "exposures.yml").read_text(encoding="utf-8"))[
        "exposures"
    ]
    return found


def test_exposures_name_what_report_and_notebooks_read() -> None:
    texts = {
        "report": "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "report/sql").glob("*.sql"))
    }
    notebooks = [
        path for path in (ROOT / "notebooks").glob("*.py") if path.stem != "published"
    ]  # which all of them import
    texts |= {f"notebook_{path.stem}": path.read_text(encoding="utf-8") for path in notebooks}
    read = {
        name: {
            f"ref('{table}')" if schema == "marts" else f"source('{schema}', '{table}')"
            for schema, table in _RELATION.findall(text)
        }
        for name, text in texts.items()
    }
    assert {each["name"]: set(each["depends_on"]) for each in exposures()} == {
        name: tables for name, tables in read.items() if tables
    }


_RELATION = re.compile(r"\b(marts|source|sync)\.(?!md\b)([a-z_]+)\b")


@pytest.mark.parametrize(
    "name", [name for name, metric in metrics().items() if not isinstance(metric.expression, str)]
)
def test_a_rate_is_defined_as_the_metric_of_its_name(name: str) -> None:
    part, whole = metrics()[name].expression
    whole = f"({whole})" if " " in whole else whole
    assert definitions()[name].startswith(f"`{part} / {whole}`")


@pytest.mark.parametrize("name", list(metrics()))
def test_a_metric_can_be_queried_over_any_grouping(name: str, marts: duckdb.DuckDBPyConnection) -> None:
    metric = metrics()[name]
    found = marts.execute(
        f"select account, {metric.sql} from marts.{metric.mart} group by account"
    ).fetchall()
    assert any(value is not None for _, value in found)


@pytest.mark.parametrize(
    ("clickers", "delivered", "rate"), [(4, 1, None), (0, 0, None), (1, 4, 0.25), (4, 4, 1), (-1, 4, None)]
)
def test_metric_that_contradicts_itself_is_unknown(clickers: int, delivered: int, rate: float | None) -> None:
    sql = f"select {metrics()['click_rate'].sql} from (select ? as clicker_count, ? as delivered_count)"
    assert duckdb.execute(sql, [clickers, delivered]).fetchone() == (rate,)


def test_no_query_for_readers_writes_a_rate_again() -> None:
    files = [*(ROOT / "report/sql").glob("*.sql"), *(ROOT / "notebooks").glob("*.py")]
    rates = [metric.expression for metric in metrics().values() if not isinstance(metric.expression, str)]
    again = [
        (file.name, part)
        for part, whole in rates
        for file in files
        if re.search(
            rf"\b{part}\W+/\W*(nullif\W+)?(sum\W+)?{re.escape(whole)}", file.read_text(encoding="utf-8")
        )
    ]
    assert not again
