"""What Dagster hears of nights: all of the first, then changes, and checks that fail or show nothing."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from assets.materialize import READINGS_KEY
from assets.published import PUBLISHED, REPORT
from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from pipelines.definitions import build_definitions
from pipelines.schedules import ALL_DUE, DAYS_TAG
from tests.dialects.server import serve
from tests.fixtures import STANDING, no_report

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
CHECKED = dg.AssetKey(["source", "lists"])
TABLES = {dg.AssetKey(["source", table.name]) for asset in SOURCE_ASSETS.values() for table in asset.tables}


class Nights:
    """Of one home, as Dagster has them on record."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        definitions = build_definitions(settings)
        self.graph = definitions.resolve_asset_graph()
        self.job = definitions.resolve_job_def("nightly_sync")

    def run(self) -> dg.ExecuteInProcessResult:
        with warnings.catch_warnings(), no_report():
            warnings.simplefilter("ignore")
            ran = self.job.execute_in_process(instance=self.instance, tags={DAYS_TAG: ALL_DUE})
        assert ran.success
        return ran


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    home = prepare_home(tmp_path_factory.mktemp("nights") / "home")
    with serve(replace(STANDING, contacts=40)) as url, dg.DagsterInstance.ephemeral() as instance:
        yield Nights(replace(Settings(home), sandbox_url=url), instance)


@pytest.fixture(scope="module")
def first(nights: Nights) -> dg.ExecuteInProcessResult:
    return nights.run()


@pytest.fixture(scope="module")
def told(nights: Nights, first: dg.ExecuteInProcessResult) -> dg.ExecuteInProcessResult:
    """A night after a check failed; it has what the first one learnt of the models' sizes and readings, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nights.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(CHECKED, "complete", passed=False, metadata={})
        )
    return nights.run()


@pytest.fixture(scope="module")
def unchanged(nights: Nights, told: dg.ExecuteInProcessResult) -> dg.ExecuteInProcessResult:
    return nights.run()


def made(ran: dg.ExecuteInProcessResult) -> list[dg.AssetKey]:
    return [event.asset_key for event in ran.get_asset_materialization_events() if event.asset_key]


def test_a_first_night_materializes_every_asset_once(
    nights: Nights, first: dg.ExecuteInProcessResult
) -> None:
    found = made(first)
    assert len(found) == len(set(found))
    assert set(found) == nights.job.asset_layer.selected_asset_keys | {READINGS_KEY}


def test_an_unchanged_night_materializes_what_is_about_the_night(
    unchanged: dg.ExecuteInProcessResult,
) -> None:
    found = set(made(unchanged))
    assert found >= {PUBLISHED, REPORT, READINGS_KEY}
    assert not found & TABLES
    assert len(found) < 20
    observed = {
        event.asset_observation_data.asset_observation.asset_key
        for event in unchanged.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    }
    assert observed == TABLES
    evaluated = {check.asset_key for check in unchanged.get_asset_check_evaluations()}
    assert evaluated <= found, "a check is about what was made"


def test_nothing_is_marked_as_behind_what_it_is_made_of(
    nights: Nights, unchanged: dg.ExecuteInProcessResult
) -> None:
    graph = nights.graph
    resolver = CachingStaleStatusResolver(nights.instance, graph, LoadingContextForTest(nights.instance))
    assert unchanged.success
    behind = {key for key in graph.materializable_asset_keys if resolver.get_stale_causes(key)}
    assert behind == set()


def test_a_failed_check_is_told_of_until_it_passes(
    told: dg.ExecuteInProcessResult, unchanged: dg.ExecuteInProcessResult
) -> None:
    totals = dg.AssetKey(["source", "sentiment_totals"])  # of the days that are asked for
    assert TABLES.intersection(made(told)) == {CHECKED, totals}
    checks = {
        check.check_name: check.passed
        for check in told.get_asset_check_evaluations()
        if check.asset_key == CHECKED
    }
    assert checks["complete"]
    assert len(checks) == 5
    assert CHECKED not in made(unchanged)


def test_no_check_of_the_first_night_is_older_than_its_table(
    nights: Nights, first: dg.ExecuteInProcessResult
) -> None:
    keys = [each.asset_check_key for each in first.get_asset_check_evaluations()]
    found = nights.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert found.keys() == set(keys)
    for key, checked in found.items():
        (newest,) = nights.instance.fetch_materializations(key.asset_key, limit=1).records
        assert checked.event.timestamp >= newest.timestamp, key
