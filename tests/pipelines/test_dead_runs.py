"""A run without process is ended, and retried where Dagster launched it; `status` and `doctor` say so."""

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.dagster_run import DagsterRunStatus
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from assets.materialize import failures_of
from home.folder import dagster_home, list_running, note_running, prepare_home
from home.settings import Settings
from marketing_api.errors import LimitNotShared
from pipelines.dagster_internals import COMMAND_TAGS, end_dead_runs, open_run_instance, retry_after_outage
from pipelines.definitions import build_definitions
from pipelines.push_jobs import explain_failures
from tests.fixtures import Command
from tests.pipelines.running import start
from tests.pipelines.sandboxes import Sandbox, spawned
from tests.pipelines.tables import query
from tests.waiting import wait_until

#: Holds the note of a run until it is ended.
_EXECUTES = "import sys; from pathlib import Path; from home.folder import note_running\n"
_EXECUTES += "note_running(Path(sys.argv[1]), sys.argv[2]); print('noted', flush=True); sys.stdin.read()"


@dg.op
def nothing() -> None:
    """Nothing."""


@dg.job
def a_job() -> None:
    nothing()


@pytest.fixture
def instance(home: Path, dagster_history: Path) -> Iterator[dg.DagsterInstance]:
    shutil.copytree(dagster_history, prepare_home(home) / "dagster", dirs_exist_ok=True)
    with dagster_home(home), warnings.catch_warnings(), open_run_instance(home) as opened:
        warnings.simplefilter("ignore")
        yield opened


def started(instance: dg.DagsterInstance, *, age_s: float = 3600, **tags: str) -> str:
    """A run that began so long ago, and whose process said nothing more."""
    run = instance.create_run_for_job(a_job, tags=tags)
    instance.report_dagster_event(
        dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name), run_id=run.run_id
    )
    began = f"update runs set start_time = start_time - {age_s} where run_id = '{run.run_id}'"
    with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
        connection.execute(text(began))
    return str(run.run_id)


def status(instance: dg.DagsterInstance, run_id: str) -> DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def will_retry(instance: dg.DagsterInstance, run_id: str) -> str | None:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.tags.get("dagster/will_retry")


@pytest.fixture
def executed(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that executes the run `executed`."""
    command = [sys.executable, "-c", _EXECUTES, str(home), "executed"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_a_run_is_noted_until_its_process_is_killed(home: Path, executed: subprocess.Popen[str]) -> None:
    assert list_running(home) == ["executed"]
    prepare_home(home)  # which removes what dead processes left
    assert list_running(home) == ["executed"]
    executed.kill()
    executed.communicate()
    assert list_running(home) == []


def test_it_is_failed_and_tried_again(home: Path, instance: dg.DagsterInstance) -> None:
    dead = started(instance)
    assert end_dead_runs(instance, {"": home}) == 1
    assert status(instance, dead) is DagsterRunStatus.FAILURE
    assert will_retry(instance, dead) == "true"
    [ended] = instance.all_logs(dead, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert "was killed" in str(ended.get_dagster_event().message)
    assert end_dead_runs(instance, {"": home}) == 0


def test_that_of_a_command_is_failed_alone(home: Path, instance: dg.DagsterInstance) -> None:
    dead = started(instance, **COMMAND_TAGS)
    assert end_dead_runs(instance, {"": home}) == 1
    assert will_retry(instance, dead) == "false"


def test_one_that_is_executed_goes_on(home: Path, instance: dg.DagsterInstance) -> None:
    run = started(instance)
    note_running(home, run)
    assert end_dead_runs(instance, {"": home}) == 0
    assert status(instance, run) is DagsterRunStatus.STARTED


def test_one_that_began_in_the_future_is_failed(home: Path, instance: dg.DagsterInstance) -> None:
    dead = started(instance, age_s=-400 * 86_400)
    assert end_dead_runs(instance, {"": home}) == 1
    assert status(instance, dead) is DagsterRunStatus.FAILURE


def test_one_that_has_just_begun_is_left_alone(home: Path, instance: dg.DagsterInstance) -> None:
    started(instance, age_s=0)
    assert end_dead_runs(instance, {"": home}) == 0


@pytest.mark.parametrize(
    "homes", [{}, {"": "gone"}, {"north": ""}], ids=["none", "not here", "another shard"]
)
def test_one_of_a_home_that_is_not_here_is_left_alone(
    home: Path, instance: dg.DagsterInstance, homes: dict[str, str]
) -> None:
    started(instance)
    assert end_dead_runs(instance, {shard: home / name for shard, name in homes.items()}) == 0


def test_the_sensor_is_on_and_looks_into_every_home(home: Path, instance: dg.DagsterInstance) -> None:
    settings = Settings(home.parent, shards=("home", "other"))
    sensors = {sensor.name: sensor for sensor in build_definitions(settings, has_models=False).sensors or ()}
    sensor = sensors["dead_runs"]
    assert isinstance(sensor, dg.SensorDefinition)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    dead = started(instance, **{"marketing-sync/shard": "home"})
    sensor(dg.build_sensor_context(instance=instance))
    assert status(instance, dead) is DagsterRunStatus.FAILURE


@pytest.mark.parametrize("is_outage", [True, False], ids=["database", "service"])
def test_a_step_that_its_database_failed_is_tried_again(
    instance: dg.DagsterInstance, *, is_outage: bool
) -> None:
    @dg.op
    def fails() -> None:
        raise OperationalError("insert", {}, Exception("gone")) if is_outage else dg.Failure("refused")

    @dg.job(executor_def=dg.in_process_executor)
    def failing() -> None:
        fails()

    ran = failing.execute_in_process(instance=instance, raise_on_error=False)
    retry_after_outage(instance, ran.run_id)
    run = instance.get_run_by_id(ran.run_id)
    assert run is not None
    assert ("dagster/retry_on_asset_or_op_failure" in run.tags) == is_outage


@pytest.mark.parametrize("failures", [2, 99], ids=["until it is back", "not for ever"])
def test_without_the_redis_of_the_limit_a_step_waits(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    monkeypatch.setattr("pipelines.push_jobs._RETRY_AFTER_S", 0)
    attempts = []

    @dg.op
    def opens() -> None:
        attempts.append(1)
        with explain_failures():
            if len(attempts) <= failures:
                raise LimitNotShared("the Redis at budget:6379 cannot be used")

    @dg.job(executor_def=dg.in_process_executor)
    def opening() -> None:
        opens()

    ran = opening.execute_in_process(instance=instance, raise_on_error=False)
    assert ran.success == (failures == 2)
    expected = {} if ran.success else {"opens": "the Redis at budget:6379 cannot be used"}
    assert failures_of(instance, ran.run_id) == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_killed_sync_is_told_and_ended_by_the_next(command: Command, home: Path) -> None:
    stalled = ("--fault-stall", "1@emailmarketing/getcontacttimeline", "--stall-seconds", "600")
    with spawned("--contacts", "20", *stalled) as url:
        sandbox = Sandbox(url)
        process = start(home, sandbox, "sync", "--reads-only")
        wait_until(lambda: _has_run(home), "no run was recorded")
        process.kill()
        process.communicate()
        [(killed,)] = query(home, "select run_id from sync.runs")
        with dagster_home(home), dg.DagsterInstance.get() as instance:
            assert status(instance, killed) is DagsterRunStatus.STARTED
            with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
                connection.execute(text("update runs set start_time = start_time - 3600"))

        [shown] = json.loads(command("status", "--json", sandbox=sandbox).out)["runs"]
        assert shown["outcome"] == "failed"
        looked = command("doctor", sandbox=sandbox)
        assert "ended without being recorded" in looked.text, looked.text

        assert command("sync", "--only", "lists", sandbox=sandbox).code == 0
        outcomes = dict(query(home, "select run_id, outcome from sync.runs"))
        assert outcomes.pop(killed) == "failed"
        assert set(outcomes.values()) == {"done"}
        assert "ended without being recorded" not in command("doctor", sandbox=sandbox).text
        with dagster_home(home), dg.DagsterInstance.get() as instance:
            assert status(instance, killed) is DagsterRunStatus.FAILURE


def _has_run(home: Path) -> bool:
    """Noted in the tables: no other process has them open just then."""
    try:
        return bool(query(home, "select 1 from sync.runs"))
    except Exception:  # it is not there yet, or in use
        return False
