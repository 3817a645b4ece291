"""What is published holds the run that published it: of the command, schedule, UI, or publishing alone."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from home.settings import Settings
from marketing_api.client import Connection, Secret
from pipelines.definitions import build_definitions
from tests.depth import DEEP
from tests.dialects.server import serve
from tests.fixtures import STANDING, Command, Night
from tests.pipelines.sandboxes import KEY, Sandbox, move_account
from warehouse.publish import published_path

pytestmark = pytest.mark.filterwarnings("ignore")

Row = dict[str, Any]


def rows(path: Path, sql: str) -> list[Row]:
    with duckdb.connect(str(path), read_only=True) as connection:
        result = connection.execute(sql)
        return [
            dict(zip([column[0] for column in result.description or ()], row, strict=True))
            for row in result.fetchall()
        ]


def runs(path: Path) -> list[Row]:
    return rows(path, "from sync.runs order by started_at")


def of_the_run(path: Path, run: Row) -> tuple[list[str], set[str]]:
    """Operations that were asked since the run began, and the questions that it had planned."""
    asked = rows(
        path,
        f"select operation from sync.requests where requested_at >= '{run['started_at']}' order "
        "by request_id",
    )
    planned = rows(path, f"select distinct question from sync.plans where run_id = '{run['run_id']}'")
    return [row["operation"] for row in asked], {row["question"] for row in planned}


def run_job(settings: Settings, job: str) -> dg.ExecuteInProcessResult:
    with warnings.catch_warnings(), dg.DagsterInstance.ephemeral() as instance:
        warnings.simplefilter("ignore")
        found = build_definitions(settings).resolve_job_def(job)
        last = found.partitions_def.get_last_partition_key() if found.partitions_def else None
        tags = (
            {"dagster/asset_partition_range_start": last, "dagster/asset_partition_range_end": last}
            if last
            else {}
        )
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        return found.execute_in_process(instance=instance, tags=tags, run_config=quiet, raise_on_error=False)


def check_noted(warehouse: Path, published: Path, job: str) -> None:
    """The copy has the run as running, the warehouse how it ended; both have what it planned."""
    *before, during = runs(published)
    *others, after = runs(warehouse)
    assert before == others, "earlier runs are shown as they ended"
    assert during["job"] == job
    assert (during["outcome"], during["ended_at"]) == ("publishing", None)
    assert (after["outcome"], after["run_id"], after["request_count"]) == (
        "done",
        during["run_id"],
        during["request_count"],
    )
    assert after["ended_at"] >= after["started_at"] == during["started_at"]
    assert of_the_run(published, during) == of_the_run(warehouse, after)


@pytest.mark.deep
@pytest.mark.slow
def test_the_copy_holds_the_run_that_wrote_it_night_after_night(
    rough_night: Night, command: Command, home: Path
) -> None:
    shutil.copytree(rough_night.home, home)
    warehouse, published = home / "warehouse.duckdb", published_path(home)
    check_noted(warehouse, published, "nightly_sync")
    assert of_the_run(published, runs(published)[-1])[1] == {"timelines", "coupons"}
    first = len(rough_night.asked)
    assert rows(published, "select count(*) as n from sync.requests") == [{"n": first}]
    assert runs(published)[-1]["request_count"] == first

    if DEEP:  # as the schedule and the UI run it: a whole night more
        with serve(STANDING) as url:
            move_account(home, url)
            assert run_job(Settings(home, (Connection("main", url, Secret(KEY)),)), "nightly_sync").success
            again = Sandbox(url).count
        check_noted(warehouse, published, "nightly_sync")
        assert rows(published, "select count(*) as n from sync.requests") == [{"n": first + again}]
        assert runs(published)[-1]["request_count"] == again > 10

    for publish_alone in (
        lambda: command("publish").code == 0,
        lambda: run_job(Settings(home), "publish").success,
    ):
        assert publish_alone()
        check_noted(warehouse, published, "publish")
        assert runs(published)[-1]["request_count"] == 0
    assert [row["outcome"] for row in runs(warehouse)] == ["done"] * (4 if DEEP else 3)


@pytest.mark.slow
def test_a_run_that_could_not_publish_says_so(sandbox: Sandbox, command: Command, home: Path) -> None:
    assert command("sync", "--only", "business", sandbox=sandbox).code == 0
    assert command("publish").code == 1, "there are no models yet"
    assert [(row["job"], row["outcome"], row["message"]) for row in runs(home / "warehouse.duckdb")][1:] == [
        ("publish", "failed", "nothing was published")
    ]


def test_publishing_without_a_warehouse_makes_none(command: Command, home: Path) -> None:
    assert command("publish").code == 1
    assert not (home / "warehouse.duckdb").exists()
