"""Dagster takes deploy/dagster.yaml, with PostgreSQL, and means by it what the file says."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg2
import pytest

from home.settings import SHARD_TAG
from marketing_api.clock import utc_now
from pipelines.dagster_internals import open_run_instance, prune_runs

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def database(postgres: str) -> Iterator[dict[str, str]]:
    """A database of the test's own, as the environment of deploy/compose.yaml names it."""
    host, _, port = postgres.partition(":")
    name = f"deploy_{uuid.uuid4().hex[:8]}"
    connection = psycopg2.connect(host=host, port=port, user="postgres", dbname="test")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"create database {name}")
        yield {"HOST": host, "PORT": port, "USER": "postgres", "PASSWORD": "trusted", "DB": name}
        cursor.execute(f"drop database {name} with (force)")
    connection.close()


@pytest.fixture
def instance(
    database: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    for name, value in database.items():
        monkeypatch.setenv(f"DAGSTER_POSTGRES_{name}", value)
    shutil.copy(DEPLOY / "dagster.yaml", tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as opened:
        yield opened


def test_runs_are_kept_in_the_database(instance: dg.DagsterInstance) -> None:
    assert [instance.get_runs_count(), type(instance.run_storage).__name__] == [0, "PostgresRunStorage"]


def test_a_shard_has_one_run_at_a_time(instance: dg.DagsterInstance) -> None:
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.tag_concurrency_limits == [
        {"key": SHARD_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
    ]


def test_a_run_that_died_is_noticed_and_what_a_step_refused_is_not_retried(
    instance: dg.DagsterInstance,
) -> None:
    assert (instance.run_monitoring_enabled, instance.run_monitoring_start_timeout_seconds) == (True, 900)
    assert instance.run_monitoring_max_runtime_seconds == 86_400
    assert (instance.run_retries_max_retries, instance.run_retries_retry_on_asset_or_op_failure) == (1, False)


def test_old_runs_go(instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))

    @dg.op
    def nothing() -> None:
        """Nothing."""

    @dg.job
    def a_job() -> None:
        nothing()

    with open_run_instance(tmp_path) as ours:
        run_id = a_job.execute_in_process(instance=ours).run_id
    assert instance.all_logs(run_id)
    assert prune_runs(tmp_path, utc_now()) == 1
    assert (instance.get_runs_count(), instance.all_logs(run_id)) == (0, [])
