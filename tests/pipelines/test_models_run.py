"""The models in runs: behind the reads, of a selection, and although a read failed."""

from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from assets.materialize import READ_STEP
from assets.published import REPORT
from home.settings import Settings
from marketing_api.client import Connection, Secret
from pipelines.definitions import build_definitions
from pipelines.publishing import MODELS_STEP
from tests.fixtures import Command, no_report
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query
from tests.pipelines.test_nightly import live, nightly_job
from warehouse.models import ModelSettings
from warehouse.publish import published_path

pytestmark = pytest.mark.filterwarnings("ignore")

_SUCCESS = dg.DagsterEventType.STEP_SUCCESS.value


@pytest.mark.slow
def test_a_table_that_cannot_be_read_costs_the_night_no_models(
    command: Command,
    sandbox: Sandbox,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The same run builds and publishes, and ends as failed; from there the UI repeats the step, and what is
    behind it. One model, chosen in the UI, is built alone, and all again where nothing changed."""
    monkeypatch.setattr("marketing_api.retry.TRIES", 1)
    monkeypatch.setattr("assets.reader.RETRY_AFTER_S", 0)
    sandbox.control("faults", **{"500-before": "1@user/lists"})
    with no_report():
        ran = command("sync", sandbox=sandbox)
    sandbox.control("faults", off=1)
    assert ran.code == 1
    assert "users, account main: user/lists: HTTP 500" in ran.out
    assert "models: " in ran.out
    assert query(home, "select count(*) from marts.contact_engagement") != [(0,)]
    monkeypatch.setenv("DAGSTER_HOME", str(home / "dagster"))
    with dg.DagsterInstance.get() as instance:
        of_the_ui = dg.RunsFilter(tags={".dagster/repository": "__repository__@marketing-sync"})
        runs = {
            run.job_name: run for run in instance.get_runs(of_the_ui)
        }  # as the UI looks for the runs of a job
        assert runs.keys() == {"nightly_sync"}
        failed = runs["nightly_sync"]
        assert failed.status is dg.DagsterRunStatus.FAILURE
        assert _ended(instance, failed.run_id)[READ_STEP] == dg.DagsterEventType.STEP_FAILURE.value
        behind = dict.fromkeys(("models", "published", "report"), _SUCCESS)
        assert behind.items() < _ended(instance, failed.run_id).items()
        order = list(_ended(instance, failed.run_id))
        assert order.index(READ_STEP) < order.index("models"), "what is behind waits for the second try"
        since = sandbox.count
        live(monkeypatch, Settings(home, (Connection("main", sandbox.url, Secret(KEY)),)))
        options = dg.ReexecutionOptions.from_failure(failed.run_id, instance)
        with (
            no_report(),
            dg.execute_job(dg.reconstructable(nightly_job), instance, reexecution_options=options) as again,
        ):
            assert again.success
        assert _ended(instance, again.run_id) == behind | {READ_STEP: _SUCCESS}
        assert {entry["operation"] for entry in sandbox.asked(since)} == {"app/me", "user/lists"}
        _one_model_alone(Settings(home), instance)
        caplog.clear()
        with no_report():
            _all_unchanged(Settings(home), instance)
        assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []


def _ended(instance: dg.DagsterInstance, run_id: str) -> dict[str, str]:
    """How each step of a run ended."""
    kinds = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.STEP_SUCCESS}
    events = [entry.get_dagster_event() for entry in instance.all_logs(run_id, of_type=kinds)]
    return {str(event.step_key): event.event_type_value for event in events}


@pytest.mark.slow
def test_a_custom_table_that_fails_costs_the_night_nothing_else(
    command: Command, known_night: Sandbox, home: Path
) -> None:
    folder = home / "models"
    folder.mkdir(exist_ok=True)
    (folder / "people.sql").write_text("select count(*) as n from marts.contact_engagement")
    (folder / "wrong.sql").write_text("select no_such_column from marts.contact_engagement")
    with no_report():
        ran = command("sync", sandbox=known_night)
    assert ran.code == 1
    assert "custom.wrong was not made: the query cannot be run: Binder Error" in ran.out
    assert "published: " in ran.out
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        assert connection.execute("select n > 0 from custom.people").fetchall() == [(True,)]
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        newest = next(run for run in instance.get_runs() if run.job_name == "nightly_sync")
        assert newest.status is dg.DagsterRunStatus.SUCCESS
    assert "NO  custom      custom.wrong was not made" in command("doctor", sandbox=known_night).out
    published = command("publish", sandbox=known_night)
    assert (published.code, "custom.wrong was not made" in published.err) == (1, True)
    (folder / "wrong.sql").unlink()
    assert command("publish", sandbox=known_night).code == 0


def _one_model_alone(settings: Settings, instance: dg.DagsterInstance) -> None:
    job = build_definitions(settings).resolve_job_def("refresh_models")
    key = dg.AssetKey(["marts", "signup_cohorts"])
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = job.execute_in_process(instance=instance, asset_selection=[key], run_config=quiet)
    assert [event.asset_key for event in result.get_asset_materialization_events()] == [key]
    (materialization,) = result.asset_materializations_for_node(MODELS_STEP)
    ((count,),) = query(settings.home, "select count(*) from marts.signup_cohorts")
    assert materialization.metadata["dagster/row_count"].value == count
    checks = {check.check_name for check in result.get_asset_check_evaluations() if check.passed}
    assert "parts_fit" in checks


def _all_unchanged(settings: Settings, instance: dg.DagsterInstance) -> None:
    """Every model and test is shown all the same."""
    job = build_definitions(settings).resolve_job_def("refresh_models")
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = job.execute_in_process(instance=instance, run_config=quiet)
    materializations = result.asset_materializations_for_node(MODELS_STEP)
    assert len(materializations) == len({node.relation for node in ModelSettings().list_nodes()})
    assert all("unchanged" in materialization.metadata for materialization in materializations)
    schemas: list[Any] = [
        materialization.metadata["dagster/column_schema"].value for materialization in materializations
    ]
    assert {"DOUBLE", "BIGINT", "DATE"} <= {column.type for schema in schemas for column in schema.columns}
    checks = [
        check
        for check in result.get_asset_check_evaluations()
        if check.asset_key.path[0] in ("staging", "history", "marts")
    ]
    assert len(checks) == sum(node.is_test for node in ModelSettings().list_nodes())
    assert all(check.passed and "unchanged" in check.metadata for check in checks)


def test_lineage_leads_from_the_tables_of_the_service_to_the_marts(home: Path) -> None:
    graph = build_definitions(Settings(home)).resolve_asset_graph()
    mart = dg.AssetKey(["marts", "contact_campaign"])
    above = {key.to_user_string() for key in graph.get_ancestor_asset_keys(mart)}
    assert {
        "source/timeline_events",
        "source/campaigns",
        "history/campaigns",
        "staging/stg_timeline_events",
    } <= above
    spec = graph.get(mart)
    assert (spec.group_name, spec.kinds) == ("marts/contacts", {"dbt", "duckdb"})
    assert str(spec.description).startswith("What each contact was sent")
    assert "```sql\n" in str(spec.description)  # a question and its query
    assert graph.get(dg.AssetKey(["source", "contacts"])).is_materializable


def test_data_flows_one_way_through_the_groups_and_every_table_says_what_it_is(home: Path) -> None:
    graph = build_definitions(Settings(home)).resolve_asset_graph()
    floors = ["source", "sync", "staging", "history", "marts", "published"]
    for node in graph.asset_nodes:
        floor = floors.index(str(node.group_name).split("/")[0])
        above = [floors.index(str(graph.get(key).group_name).split("/")[0]) for key in node.parent_keys]
        assert max(above, default=0) <= floor, node.key
        assert node.description
        assert node.kinds


def test_every_check_has_a_name_that_says_what_it_holds_to(home: Path) -> None:
    graph = build_definitions(Settings(home)).resolve_asset_graph()
    for key in graph.asset_check_keys:
        assert graph.get(key).description, key
        assert key.asset_key.path[-1] not in key.name, "dbt's names repeat the model"
    assert str(home / "report" / "index.html") in str(graph.get(REPORT).description)
    daily = graph.get(dg.AssetKey(["source", "feedback_views"])).description
    assert "source.review_stats" in str(daily)
    assert "*materialized*" in str(daily)


def test_columns_of_models_name_what_they_are_made_of(home: Path) -> None:
    graph = build_definitions(Settings(home)).resolve_asset_graph()
    specs: dict[dg.AssetKey, Any] = {
        node.key: node.metadata for node in graph.asset_nodes if "dagster/column_schema" in node.metadata
    }
    mart = dg.AssetKey(["marts", "campaign_performance"])
    described = {column.name: column.description for column in specs[mart]["dagster/column_schema"].columns}
    assert described["unsubscribed_count"].endswith("From staging.stg_campaign_stats.unsubscribed_count.")
