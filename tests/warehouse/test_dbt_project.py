"""dbt compiles the project and does nothing else."""

import re

from warehouse.dbt_project import PROJECT
from warehouse.models import ModelSettings


def test_every_model_stands_behind_what_it_is_made_from_and_every_test_behind_what_it_looks_at() -> None:
    nodes = ModelSettings().list_nodes()
    made = {node.relation for node in nodes if not node.is_test}
    seen: set[str] = set()
    for node in nodes:
        assert made.intersection(node.needs) <= seen, node.name
        if not node.is_test:
            seen.add(node.relation)


def test_tests_and_models_say_no_more_than_the_runner_obeys() -> None:
    """Of dbt: `severity` and `where` for tests, generic tests in a model's yml, three materializations."""
    texts = [path.read_text(encoding="utf-8") for path in (PROJECT / "models").rglob("*.yml")]
    assert not re.findall(r"\b(warn_if|error_if|fail_calc|limit|store_failures)\s*:", "\n".join(texts))
    assert {path.parent.name for path in (PROJECT / "tests").rglob("*.sql")} == {"generic"}
    kinds = {node.kind for node in ModelSettings().list_nodes()}
    assert kinds == {"table", "view", "incremental", "test"}


def test_only_a_view_looks_at_the_clock() -> None:
    """What is a table would be as old as its last building, which may be skipped."""
    clocked = {
        node.relation
        for node in ModelSettings().list_nodes()
        if re.search(r"now\(\)|current_(date|time)", node.sql + node.later_sql)
    }
    assert clocked == {"marts.data_freshness"}
    assert (
        next(node.kind for node in ModelSettings().list_nodes() if node.relation == "marts.data_freshness")
        == "view"
    )


def test_values_of_settings_are_filled_into_what_was_compiled() -> None:
    sql = "".join(
        node.sql
        for node in ModelSettings(
            attribution_hours=77, timezone="Asia/Tokyo", zones={"o'neill": "UTC"}
        ).list_nodes()
    )
    assert "string_split('77', ',')" in sql
    assert "'Asia/Tokyo'" in sql
    assert """'{"o''neill": "UTC"}'::json""" in sql
    assert "<MARKETING" not in sql
