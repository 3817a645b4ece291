"""The jobs as Dagster runs them: days and assets that are asked, failures, reruns, schedule and alert."""

import datetime as dt
import os
import shutil
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from assets import sources
from assets.account_session import _MOST_WORKERS
from assets.materialize import READ_STEP, asset_key, failures_in, failures_of
from assets.sources import SOURCE_ASSETS, SourceAsset
from home.folder import prepare_home
from home.settings import Settings, load_settings
from marketing_api.client import Connection, Secret
from pipelines.dagster_internals import PROJECT_TAGS
from pipelines.definitions import build_definitions, defs
from tests.dialects.server import serve
from tests.fixtures import NOON, STANDING, Alerts, Command, StartSandbox
from tests.pipelines.alerting import Sensor
from tests.pipelines.sandboxes import KEY, Sandbox, put_in
from tests.pipelines.tables import query
from warehouse.tables import BUSINESS

pytestmark = pytest.mark.filterwarnings("ignore")

RunJob = Callable[..., dg.ExecuteInProcessResult]
USERS, MANAGERS = SOURCE_ASSETS["users"], SOURCE_ASSETS["managers"]


@pytest.fixture
def instance(
    home: Path, dagster_history: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """Dagster's history in the home, as the UI has it."""
    history = shutil.copytree(dagster_history, prepare_home(home) / "dagster", dirs_exist_ok=True)
    monkeypatch.setenv("DAGSTER_HOME", str(history))
    with dg.DagsterInstance.get() as instance:
        yield instance


@pytest.fixture
def service() -> Iterator[Sandbox]:
    """A sandbox of this test alone."""
    with serve(STANDING) as url:
        yield Sandbox(url)


@pytest.fixture
def settings(home: Path, service: Sandbox) -> Settings:
    return Settings(home, (Connection("main", service.url, Secret(KEY)),))


@pytest.fixture
def run_job(settings: Settings, instance: dg.DagsterInstance) -> RunJob:
    """`run_job(sources.lists, tags=…)`: the nightly job over some assets, as the UI starts it."""

    def run(*chosen: SourceAsset, settings: Settings = settings, **options: Any) -> dg.ExecuteInProcessResult:
        job = build_definitions(settings).resolve_job_def("nightly_sync")
        selection = [asset_key(table) for asset in chosen for table in asset.tables]
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        return job.execute_in_process(
            instance=instance, asset_selection=selection, run_config=quiet, raise_on_error=False, **options
        )

    return run


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries of requests and steps without the waiting."""
    monkeypatch.setattr("marketing_api.retry.TRIES", 2)
    monkeypatch.setattr("assets.reader.RETRY_AFTER_S", 0)


def operations(service: Sandbox, since: int = 0) -> Counter[str]:
    return Counter(entry["operation"] for entry in service.asked(since))


def failures(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """Asset or step → reason."""
    return failures_in(event for event in result.all_events if event.is_step_failure)


# -- what is asked


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        pytest.param({"tags": {"dagster/partition": "2026-03-05"}}, "2026-03-05", "2026-03-05", id="one day"),
        pytest.param(
            {
                "tags": {
                    "dagster/asset_partition_range_start": "2026-03-05",
                    "dagster/asset_partition_range_end": "2026-03-20",
                }
            },
            "2026-03-05",
            "2026-03-20",
            id="a range",
        ),
        pytest.param({"partition_key": "2026-03-05"}, "2026-03-05", "2026-03-05", id="by key"),
        pytest.param({}, "2015-01-01", None, id="all of history when none is chosen"),
        pytest.param(
            {"tags": {"dagster/partition": "2026-03-05", "marketing-sync/days": "all that are due"}},
            "2015-01-01",
            None,
            id="all of history for the schedule",
        ),
    ],
)
@pytest.mark.slow
@pytest.mark.usefixtures("at_noon")
def test_the_partitions_of_a_run_are_the_days_that_are_asked(
    run_job: RunJob, service: Sandbox, options: dict[str, Any], first: str, last: str | None
) -> None:
    """The selection has an unpartitioned asset in front: which step comes first must not matter."""
    result = run_job(MANAGERS, sources.direct_reviews, **options)
    assert result.success, failures(result)
    (asked,) = [entry["params"] for entry in service.asked() if entry["operation"] == "reputation/direct"]
    today = dt.datetime.fromtimestamp(NOON, dt.UTC).date()
    assert (asked["from"], asked["to"]) == (first, last or today.isoformat())


@pytest.mark.slow
def test_a_run_of_one_asset_asks_for_nothing_else(run_job: RunJob, service: Sandbox) -> None:
    assert run_job(sources.lists).success
    assert operations(service) == {"app/me": 1, "emailmarketing/getlists": 2, "emailmarketing/getlist": 5}


@pytest.mark.slow
def test_what_the_chosen_table_needs_is_read_first_and_noted(run_job: RunJob, service: Sandbox) -> None:
    result = run_job(sources.contacts)
    assert result.success, failures(result)
    made = {event.asset_key: event.materialization for event in result.get_asset_materialization_events()}
    assert made[asset_key(sources.contacts.tables[0])].metadata["dagster/row_count"].value == 100
    assert made[asset_key(sources.lists.tables[0])].description == "read by the same run"
    since = service.count
    assert run_job(sources.contacts).success
    assert "emailmarketing/getlists" not in operations(service, since), "it was read before"


@pytest.mark.attack
def test_a_person_may_ask_for_everybody_or_for_little_in_the_launchpad(
    settings: Settings, service: Sandbox
) -> None:
    job = build_definitions(settings).resolve_job_def("refresh_contacts")

    def run(**limits: Any) -> Counter[str]:
        since = service.count
        config = {
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            "resources": {"reader": {"config": limits}},
        }
        job.execute_in_process(run_config=config, raise_on_error=False)
        return operations(service, since)

    timeline = "emailmarketing/getcontacttimeline"
    assert 0 < run(max_requests=40)[timeline] < 40
    assert 0 < run()[timeline] < 100, "the rest of the first night"
    assert run()[timeline] < 10
    assert run(all=True)[timeline] == 100


def test_a_materialization_tells_what_a_person_looks_for(run_job: RunJob) -> None:
    result = run_job(sources.lists)
    found = {
        str(event.asset_key and event.asset_key.path[-1]): event
        for event in result.get_asset_materialization_events()
    }
    metadata = {name: value.value for name, value in found["lists"].materialization.metadata.items()}
    expected = {
        "dagster/row_count": 5,
        "rows added": 5,
        "rows changed": 0,
        "rows deleted": 0,
        "records rejected": 0,
    }
    assert expected.items() <= metadata.items()
    assert metadata["requests used"] == 7
    assert metadata["coverage %"] == 100
    assert {check.check_name for check in result.get_asset_check_evaluations()} == {
        "unique_keys",
        "complete",
        "shrink",
        "readable",
        "same_schema",
    }


@pytest.mark.slow
def test_one_table_of_a_shared_request_can_be_materialized_and_the_others_are_noted(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    chosen, *others = map(asset_key, sources.lists.tables)
    assert others
    others.append(asset_key(BUSINESS))
    job = build_definitions(settings).resolve_job_def("nightly_sync")
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = job.execute_in_process(instance=instance, asset_selection=[chosen], run_config=quiet)
    found = {event.asset_key: event.materialization for event in result.get_asset_materialization_events()}
    assert found.keys() == {chosen, *others}
    assert {materialization.description for key, materialization in found.items() if key != chosen} == {
        "read by the same run"
    }
    assert {check.asset_key for check in result.get_asset_check_evaluations()} == {chosen, *others}
    assert query(settings.home, "select count(*) from source.lists") == [
        (found[asset_key(sources.lists.tables[0])].metadata["dagster/row_count"].value,)
    ]


# -- what fails


@pytest.mark.slow
def test_a_failed_step_says_why_and_its_rerun_asks_only_what_is_missing(
    run_job: RunJob,
    settings: Settings,
    instance: dg.DagsterInstance,
    service: Sandbox,
    impatient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.control("faults", **{"500-before": "1@user/managers"})
    result = run_job(USERS, MANAGERS, sources.lists)
    assert not result.success
    (reason,) = failures(result).values()
    assert failures(result).keys() == {"managers"}
    assert "account main: user/managers: HTTP 500" in reason
    (check,) = [check for check in result.get_asset_check_evaluations() if not check.passed][:1]
    assert (check.check_name, check.asset_key.path[-1]) == ("complete", "managers")
    assert operations(service)["user/managers"] == 4, "two tries of the table, each of two of the request"

    service.control("faults", off=1)
    since = service.count
    live(monkeypatch, settings)
    options = dg.ReexecutionOptions.from_failure(result.run_id, instance)
    with dg.execute_job(dg.reconstructable(nightly_job), instance, reexecution_options=options) as again:
        assert again.success
    assert operations(service, since) == {"app/me": 1, "user/managers": 1}


def nightly_job() -> dg.JobDefinition:
    """The job as another process would load it, from the environment."""
    return build_definitions().resolve_job_def("nightly_sync")


def live(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    (connection,) = settings.accounts
    for name, value in {"URL": connection.url, "KEY": connection.key.reveal()}.items():
        monkeypatch.setenv(f"MARKETING_API_{name}", value)
    monkeypatch.setenv("MARKETING_HOME", str(settings.home))
    monkeypatch.chdir(settings.home)


@pytest.mark.parametrize("code", ["1000", "1002"])
@pytest.mark.slow
def test_what_an_account_lacks_fails_no_step_and_is_asked_no_further(
    run_job: RunJob, service: Sandbox, code: str
) -> None:
    """The service says 1000 to one operation of a key that it accepts (observation 41)."""
    service.control("faults", **{code: "1@user/managers,emailmarketing/getcontacttimeline"})
    result = run_job(USERS, MANAGERS, sources.lists, sources.contacts, sources.timelines, sources.coupons)
    assert result.success
    checks = {
        check.asset_key.path[-1]: check
        for check in result.get_asset_check_evaluations()
        if check.check_name == "complete"
    }
    assert {name.partition("_")[0] for name, check in checks.items() if not check.passed} == {
        "managers",
        "timeline",
    }
    reason = str(checks["managers"].description)
    assert "not available to this account" in reason
    assert "key is missing" not in reason
    asked = operations(service)
    assert asked["user/managers"] == 1
    under_way = asked["emailmarketing/getcontacttimeline"]
    assert under_way <= _MOST_WORKERS, "of 100 contacts, those that were under way"
    assert asked["emailmarketing/getcoupon"] > 50
    assert asked["app/me"] == 3, "once more for each of the two"


def test_a_wrong_key_fails_the_reading_with_one_request(
    run_job: RunJob, service: Sandbox, settings: Settings
) -> None:
    wrong = replace(settings, accounts=(replace(settings.accounts[0], key=Secret("wr0ng")),))
    result = run_job(USERS, MANAGERS, sources.lists, settings=wrong)
    assert failures(result).keys() == {READ_STEP}
    assert "the key is missing, wrong or revoked" in failures(result)[READ_STEP]
    assert service.count == 1


@pytest.mark.slow
def test_an_account_with_a_wrong_key_does_not_keep_the_others_out(
    command: Command, start_sandbox: StartSandbox, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start_sandbox("--account", "harbor=k1:1:100", "--account", "hill=k2:2:100")
    entries = [
        f'[accounts.{name}]\nurl = "{service.url}"\nkey_env = "{name.upper()}"\n'
        for name in ("harbor", "hill")
    ]
    (folder / "accounts.toml").write_text("".join(entries))
    words = ("sync", "--only", "lists", "contacts")
    ran = command(*words, HARBOR="k1", HILL="wr0ng")
    assert ran.code == 1, ran.text
    assert "contacts, account hill: app/me: the service refused" in ran.out
    assert query(home, "select account, count(*) from source.contacts group by 1") == [("harbor", 100)]
    monkeypatch.setenv("DAGSTER_HOME", str(home / "dagster"))
    with dg.DagsterInstance.get() as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.FAILURE
        reasons = failures_of(instance, run.run_id)
        assert reasons.keys() == {"business", "lists", "contacts"}
        assert all(reason.startswith("account hill: app/me") for reason in reasons.values())

    asked = service.count
    assert command(*words, HARBOR="k1", HILL="k2").code == 0
    assert query(home, "select account, count(*) from source.contacts group by 1 order by 1") == [
        ("harbor", 100),
        ("hill", 100),
    ]
    assert service.count > asked
    assert command(*words, HARBOR="x", HILL="y").code == 2, "nobody could be asked"


@pytest.mark.slow
def test_a_run_that_somebody_stops_ends_and_the_next_goes_on(
    run_job: RunJob, settings: Settings, service: Sandbox, instance: dg.DagsterInstance
) -> None:
    """Dagster turns the signal into an error of the step; a retry policy would start the step again."""
    service.control("faults", **{"rate-limit": 2})
    signals = iter([0, 0, 0, signal.SIGINT])
    with pytest.MonkeyPatch.context() as patch:
        put_in(patch, lambda call, rule: os.kill(os.getpid(), next(signals, 0)) or rule(call))
        result = run_job(sources.lists, USERS)
    assert not result.success
    restarts = {dg.DagsterEventType.STEP_UP_FOR_RETRY, dg.DagsterEventType.STEP_RESTARTED}
    assert not instance.all_logs(result.run_id, of_type=restarts), "it took the step up again"
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert [row[0] for row in query(settings.home, "select outcome from sync.runs")] == ["partial"]
    service.control("faults", **{"rate-limit": 0})
    since = service.count
    assert run_job(sources.lists, USERS).success
    before = {
        (entry["operation"], str(entry["params"]))
        for entry in service.asked()[:since]
        if entry["outcome"] == "ok"
    }
    again = {
        entry["operation"]
        for entry in service.asked(since)
        if (entry["operation"], str(entry["params"])) in before
    }
    assert again <= {"app/me"}, "who the account is, is asked again"


# -- schedule, alert, rebuild, loading


def test_the_schedule_reads_what_is_due_and_names_no_days(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    """Days would be a choice of these; what is due is all of history the first time."""
    definitions = build_definitions(replace(settings, schedule_timezone="Asia/Tokyo"))
    schedule = definitions.get_schedule_def("nightly")
    moment = dt.datetime(2026, 11, 20, 13, 0, tzinfo=dt.UTC)
    context = dg.build_schedule_context(
        instance, scheduled_execution_time=moment, repository_def=definitions.get_repository_def()
    )
    (request,) = schedule.evaluate_tick(context).run_requests or []
    assert request.tags["marketing-sync/days"] == "all that are due"
    assert not [tag for tag in request.tags if "partition" in tag]
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 2 * * *", "Asia/Tokyo")


def test_the_schedule_is_off_only_where_the_sandbox_is_chosen(settings: Settings) -> None:
    def status(settings: Settings) -> dg.DefaultScheduleStatus:
        return build_definitions(settings).get_schedule_def("nightly").default_status

    assert status(settings) is dg.DefaultScheduleStatus.RUNNING
    without_key = Settings(settings.home)
    assert (
        status(replace(without_key, sandbox_url="http://127.0.0.1:9/1")) is dg.DefaultScheduleStatus.STOPPED
    )
    assert status(without_key) is dg.DefaultScheduleStatus.RUNNING, (
        "a lost key fails every night, and says why"
    )


@pytest.mark.parametrize("is_on", [True, False])
def test_the_schedule_may_send_without_a_person_once_activations_are_switched_on(
    settings: Settings, instance: dg.DagsterInstance, is_on: bool
) -> None:
    definitions = build_definitions(replace(settings, activations=is_on))
    context = dg.build_schedule_context(
        instance,
        scheduled_execution_time=dt.datetime(2026, 11, 20, 2, tzinfo=dt.UTC),
        repository_def=definitions.get_repository_def(),
    )
    (request,) = definitions.get_schedule_def("nightly").evaluate_tick(context).run_requests or []
    assert request.run_config == ({"ops": {"activations": {"config": {"confirm": "send"}}}} if is_on else {})
    for job in ("nightly_sync", "refresh_models"):
        assert dg.validate_run_config(definitions.resolve_job_def(job), request.run_config)


@pytest.mark.slow
def test_a_failed_run_is_told_to_the_alert_address(
    run_job: RunJob,
    settings: Settings,
    instance: dg.DagsterInstance,
    service: Sandbox,
    impatient: None,
    alerts: type[Alerts],
) -> None:
    look = Sensor(instance, replace(settings, alert_url=alerts.url))
    assert look() == []
    service.control("faults", **{"500-before": "1@user/managers"})
    result = run_job(MANAGERS, tags=PROJECT_TAGS)
    (body,) = look()
    ((name, text),) = body["problems"].items()
    assert name == f"nightly_sync (run {result.run_id})"
    assert text.startswith("failed\nmanagers: account main: user/managers: HTTP 500")


@pytest.mark.slow
def test_the_job_rebuild_makes_the_same_tables_without_a_request(
    run_job: RunJob, settings: Settings, instance: dg.DagsterInstance, service: Sandbox
) -> None:
    assert run_job(sources.lists).success
    before, asked = query(settings.home, "from source.lists order by all"), service.count
    with duckdb.connect(str(settings.warehouse_path)) as connection:
        connection.execute("delete from source.lists")
    result = build_definitions(settings).resolve_job_def("rebuild").execute_in_process(instance=instance)
    assert result.success
    assert query(settings.home, "from source.lists order by all") == before != []
    assert service.count == asked


def test_definitions_can_be_loaded_with_and_without_an_account(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        dg.Definitions.validate_loadable(build_definitions(settings))
    dg.Definitions.validate_loadable(build_definitions(Settings(settings.home)))
    settings.home.mkdir()
    live(monkeypatch, settings)
    dg.Definitions.validate_loadable(defs())
    assert load_settings(Path.cwd()).accounts == settings.accounts
