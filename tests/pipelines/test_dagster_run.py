"""A run as the UI makes it: the reader resource opens by itself, every table is materialized and checked."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import dagster as dg
import duckdb
import pytest

from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from pipelines.definitions import build_definitions
from pipelines.schedules import ALL_DUE, DAYS_TAG
from tests.dialects.server import Options, serve
from tests.fixtures import no_report

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    home = prepare_home(tmp_path_factory.mktemp("run") / "home")
    with serve(Options(contacts=100, rate_limit=0)) as url:
        yield replace(Settings(home), sandbox_url=url)


@pytest.fixture(scope="module")
def result(settings: Settings) -> dg.ExecuteInProcessResult:
    with warnings.catch_warnings(), dg.DagsterInstance.ephemeral() as instance, no_report():
        warnings.simplefilter("ignore")
        job = build_definitions(settings).resolve_job_def("nightly_sync")
        partitions = job.partitions_def
        assert partitions is not None
        last = partitions.get_last_partition_key()
        assert last is not None
        tags = {
            "dagster/asset_partition_range_start": last,
            "dagster/asset_partition_range_end": last,
            DAYS_TAG: ALL_DUE,
        }
        return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)


def materialized(result: dg.ExecuteInProcessResult, table: str) -> dg.AssetMaterialization:
    key = dg.AssetKey(["source", table])
    (event,) = [event for event in result.get_asset_materialization_events() if event.asset_key == key]
    return event.materialization


def test_every_table_is_materialized(result: dg.ExecuteInProcessResult) -> None:
    assert result.success
    keys = {
        event.asset_key.to_user_string()
        for event in result.get_asset_materialization_events()
        if event.asset_key
    }
    tables = {f"source/{table.name}" for asset in SOURCE_ASSETS.values() for table in asset.tables}
    assert {key for key in keys if key.startswith("source/")} == tables
    assert {"staging/stg_contacts", "history/contacts"} < keys - tables, "the models follow"


def test_every_check_passes(result: dg.ExecuteInProcessResult) -> None:
    evaluations = result.get_asset_check_evaluations()
    of_tables = [evaluation for evaluation in evaluations if evaluation.asset_key.path[0] == "source"]
    assert len(of_tables) == 5 * sum(len(asset.tables) for asset in SOURCE_ASSETS.values())
    assert len(evaluations) > len(of_tables), "the models' tests are checks"
    assert [evaluation.check_name for evaluation in evaluations if not evaluation.passed] == []


def test_a_check_is_one_event_and_comes_after_what_it_is_about(result: dg.ExecuteInProcessResult) -> None:
    """A planned check is three, and dated by the run's beginning."""
    made = set[dg.AssetKey | None]()
    for event in result.all_events:
        assert event.event_type is not dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            made.add(event.asset_key)
        elif event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            assert event.asset_check_evaluation_data.asset_key in made


def test_metadata_tells_rows_and_requests(result: dg.ExecuteInProcessResult) -> None:
    materialization = materialized(result, "contacts")
    metadata = {name: value.value for name, value in materialization.metadata.items()}
    assert metadata["dagster/row_count"] == metadata["rows added"] == 100
    assert metadata["requests used"] >= 4
    assert metadata["coverage %"] == 100


def test_the_log_and_the_metadata_tell_what_was_planned_and_which_days_are_read(
    result: dg.ExecuteInProcessResult,
) -> None:
    timelines = materialized(result, "timeline_events")
    assert timelines.metadata["planned because"].value == "100 never requested"
    reviews = materialized(result, "direct_reviews")
    days = str(reviews.metadata["days read so far"].value)
    assert days.startswith("main: 2015-01-01 to "), days
    assert days.count("to") == 1
    assert str(reviews.metadata["days read"].value).startswith("main: 2015-01-01 to ")


def test_the_run_is_noted_in_the_warehouse(result: dg.ExecuteInProcessResult, settings: Settings) -> None:
    with duckdb.connect(str(settings.warehouse_path), read_only=True) as connection:
        runs = connection.execute("select run_id, job, outcome from sync.runs").fetchall()
    assert runs == [(result.run_id, "nightly_sync", "done")]
