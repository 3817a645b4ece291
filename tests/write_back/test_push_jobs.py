"""Pushes as Dagster runs them: dry by default, resumable steps, counted failures, nothing personal."""

import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_shared.yaml_utils import dump_run_config_yaml

from home.folder import prepare_home
from home.settings import Settings, load_settings
from marketing_api.client import Connection, Secret
from pipelines.dagster_internals import PROJECT_TAGS
from pipelines.definitions import build_definitions
from pipelines.push_jobs import push_jobs
from tests.fixtures import Alerts
from tests.marketing_sync.test_push_command import ACTIVE
from tests.pipelines.alerting import Sensor
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query
from tests.pipelines.test_nightly import failures
from write_back import kinds
from write_back.kinds import CONTACTS, KINDS, Kind

pytestmark = pytest.mark.filterwarnings("ignore")

TAGS = f"select email, 'vip' as tag from ({ACTIVE})"
RunJob = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def instance(
    home: Path, dagster_history: Path, service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """Dagster's history in the home."""
    history = shutil.copytree(dagster_history, prepare_home(home) / "dagster", dirs_exist_ok=True)
    monkeypatch.setenv("DAGSTER_HOME", str(history))
    with dg.DagsterInstance.get() as instance:
        yield instance


@pytest.fixture
def settings(home: Path, service: Sandbox) -> Settings:
    return Settings(home, (Connection("main", service.url, Secret(KEY)),))


@pytest.fixture
def push(settings: Settings, instance: dg.DagsterInstance) -> RunJob:
    """`push(kinds.TAGS, sql=…, dry_run=False, confirm="send")`: the job as the UI starts it."""

    def run(kind: Kind, **config: Any) -> dg.ExecuteInProcessResult:
        run_config = {
            "ops": {f"plan_{kind}": {"config": config}},
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        }
        return job(kind, settings).execute_in_process(
            instance=instance, run_config=run_config, raise_on_error=False
        )

    return run


def job(kind: Kind, settings: Settings) -> dg.JobDefinition:
    return dg.Definitions(jobs=push_jobs(), resources={"settings": settings}).resolve_job_def(f"push_{kind}")


def metadata(result: dg.ExecuteInProcessResult, step: str) -> dict[str, Any]:
    """What the UI shows beside a step's outputs."""
    found = {}
    for event in result.all_events:
        if event.is_successful_output and event.step_key == step:
            found |= {name: value.value for name, value in event.step_output_data.metadata.items()}
    return found


def test_a_run_is_dry_unless_told_otherwise(push: RunJob, service: Sandbox, home: Path) -> None:
    result = push(kinds.TAGS, sql=TAGS)
    assert result.success, failures(result)
    told = metadata(result, "plan_tags")
    assert (told["rows"], told["new"], told["requests"]) == (12, 12, 13)
    assert "13 requests" in told["plan"]
    assert service.count == 0
    assert [event.step_key for event in result.all_events if event.is_step_skipped] == [
        "send_push",
        "report_push",
    ]


def test_a_push_is_sent_counted_and_shown_without_addresses(
    push: RunJob, service: Sandbox, home: Path
) -> None:
    result = push(kinds.TAGS, sql=TAGS, dry_run=False, confirm="send")
    assert result.success, failures(result)
    told = metadata(result, "report_push")
    assert (told["push"], told["requests"], told["rows applied"]) == (1, 13, 12)
    assert "done; 13 requests sent" in told["result"]
    (person,) = query(home, "select email from sync.writebacks limit 1")
    shown = "\n".join(str(event) for event in result.all_events)
    assert person[0] not in shown
    assert query(home, "select run_id, outcome from sync.runs where job = 'push_tags'") == [
        (result.run_id, "done")
    ]
    again = push(kinds.TAGS, sql=TAGS, dry_run=False, confirm="send")
    assert again.success
    assert service.count == 13


def test_contacts_from_a_file_are_read_back(push: RunJob, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Mail,list\nann@example.com,Newsletter\n")
    result = push(
        CONTACTS, **{"from": str(path)}, map=["email=Mail"], dry_run=False, confirm="send", verify="all"
    )
    assert result.success, failures(result)
    assert metadata(result, "report_push")["rows verified"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"dry_run": True}, "either --from or --sql (in the launchpad: from or sql)"),
        ({"sql": "select 1", "from": "x.csv"}, "either --from or --sql"),
        ({"from": "/nowhere.csv"}, "there is no file /nowhere.csv"),
        (
            {"sql": "select 'a@example.com' as email, '' as tag", "dry_run": False, "confirm": "send"},
            "nothing was sent: 1 row is invalid, and at most 0 may be invalid, 5 % of 1 row",
        ),
        ({"sql": TAGS, "account": "other"}, "choose one of these"),
    ],
)
def test_what_cannot_be_pushed_fails_the_first_step_in_a_sentence(
    push: RunJob, service: Sandbox, config: dict[str, Any], said: str
) -> None:
    result = push(kinds.TAGS, **config)
    assert not result.success
    assert said in failures(result)["plan_tags"]
    assert service.count == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("typed", [{}, {"confirm": ""}, {"confirm": "yes"}, {"confirm": "sent"}], ids=str)
def test_nothing_is_sent_unless_the_word_is_typed(
    push: RunJob, service: Sandbox, home: Path, kind: Kind, typed: dict[str, str]
) -> None:
    result = push(kind, sql=TAGS, dry_run=False, **typed)
    assert failures(result) == {
        f"plan_{kind}": "nothing was sent: to send from the UI, add `confirm: send` to the config "
        "of this step"
    }
    assert service.count == 0
    assert not (home / "outbox.sqlite").exists(), "no push was begun that a later one would send"


@pytest.mark.slow
def test_a_partly_failed_push_fails_its_last_step_and_says_how_many(push: RunJob, home: Path) -> None:
    sql = f"{TAGS} union all select 'gone@example.com', 'vip'"
    result = push(
        kinds.TAGS,
        sql=f"select *, case when email like 'gone%' then 'remove' else 'add' end as action from ({sql})",
        dry_run=False,
        confirm="send",
    )
    assert failures(result).keys() == {"report_push"}
    assert "1 of 13 rows not done (1 rejected)" in failures(result)["report_push"]
    assert "gone@example.com" not in "\n".join(map(str, result.all_events))
    (event,) = [event for event in result.all_events if event.is_step_failure]
    failure = event.step_failure_data.user_failure_data
    assert failure is not None
    assert failure.metadata["rows applied"].value == 12
    assert "no contact has this address" in str(failure.metadata["result"].value)
    assert (home / "pushes" / "1" / "rejected.csv").read_text().count("gone@example.com") == 1


@pytest.mark.slow
def test_no_log_and_no_event_quotes_a_cell_in_a_reason(push: RunJob, home: Path) -> None:
    """A telephone number has no form by which it could be known; the file of rejected rows has it."""
    sql = (
        f"select *, 'add' as action from ({TAGS}) union all select email, tag, '0170 “55” ' || action "
        f"from ({TAGS}) cross join (values ('12'), ('13')) as two (action)"
    )
    result = push(kinds.TAGS, sql=sql, dry_run=False, confirm="send", reject_limit=1.0)
    assert failures(result).keys() == {"report_push"}
    shown = "\n".join(map(str, result.all_events))
    assert "0170" not in shown
    assert shown.count("19 more: … is not an action: write add or remove") > 1
    assert "0170 “55” 12" in (home / "pushes" / "1" / "rejected.csv").read_text()


def test_a_rerun_from_failure_goes_on_and_repeats_nothing(
    settings: Settings,
    instance: dg.DagsterInstance,
    service: Sandbox,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"HOME": str(settings.home), "API_URL": service.url, "API_KEY": KEY}.items():
        monkeypatch.setenv(f"MARKETING_{name}", value)
    service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    run_config = {"ops": {"plan_tags": {"config": {"sql": TAGS, "dry_run": False, "confirm": "send"}}}}
    with dg.execute_job(dg.reconstructable(tags_job), instance, run_config=run_config) as result:
        (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert failure.step_key == "send_push"
    assert "12 open" in str(failure.step_failure_data.user_failure_data)
    service.control("faults", off=1)
    since = service.count
    options = dg.ReexecutionOptions.from_failure(result.run_id, instance)
    with dg.execute_job(dg.reconstructable(tags_job), instance, reexecution_options=options) as again:
        assert again.success, [event.event_specific_data for event in again.all_events if event.is_failure]
    assert [each["operation"] for each in service.asked(since)].count("emailmarketing/addtag") == 12
    assert query(home, "select state, count(*) from sync.writebacks group by 1") == [("applied", 12)]


def tags_job() -> dg.JobDefinition:
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    return job(kinds.TAGS, load_settings(Path.cwd()))


def test_every_field_of_the_launchpad_is_described(settings: Settings) -> None:
    for kind in KINDS.values():
        definition = job(kind, settings)
        fields = definition.get_node_named(f"plan_{kind}").definition.config_schema.config_type.fields  # type: ignore[attr-defined]
        assert [name for name, field in fields.items() if not field.description] == []
        assert "dry_run" in fields


@pytest.mark.attack
@pytest.mark.parametrize("kind", KINDS.values())
def test_the_launchpad_begins_with_an_example_that_runs(
    settings: Settings, push: RunJob, home: Path, service: Sandbox, kind: Kind
) -> None:
    example = job(kind, settings).run_config
    shown = dump_run_config_yaml(dict(example))
    assert "sql: /* change the address" in shown, "YAML shows it as it is, without quotes"
    assert dg.validate_run_config(job(kind, settings), example)
    config = example["ops"][f"plan_{kind}"]["config"]
    as_it_is = push(kind, **config)
    assert as_it_is.success, failures(as_it_is)
    assert metadata(as_it_is, f"plan_{kind}")["rows"] == (1 if kind == CONTACTS else 0), (
        "it is about nobody yet"
    )
    ((email, name, other),) = query(
        home,
        "select email, name, (select max(name) from source.lists as other where other.name <> lists.name) "
        "from source.contacts"
        " join source.lists using (account, list_id) where status = 'active' limit 1",
    )
    changed = (
        config["sql"].replace("ada@example.com", email).replace("Newsletter", name).replace("Events", other)
    )
    ran = push(kind, **config | {"sql": changed})
    assert ran.success, failures(ran)
    told = metadata(ran, f"plan_{kind}")
    assert (told["rows"], told["invalid"]) == (1, 0)
    assert service.count == 0


def test_a_value_that_is_none_of_the_choices_is_answered_with_them(settings: Settings) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match="all, sample or none"):
        dg.validate_run_config(
            job(kinds.TAGS, settings), {"ops": {"plan_tags": {"config": {"verify": "half"}}}}
        )


def test_they_load_beside_everything_else_and_start_as_dry_runs(settings: Settings) -> None:
    repository = build_definitions(replace(settings, activations=True)).get_repository_def()
    jobs = {job.name: job for job in repository.get_all_jobs()}
    assert {f"push_{kind}" for kind in KINDS.values()} < jobs.keys()
    assert [
        jobs[f"push_{kind}"].run_config["ops"][f"plan_{kind}"]["config"]["dry_run"] for kind in KINDS.values()
    ] == [True] * len(KINDS)
    assert dg.AssetKey("activations") in repository.asset_graph.get_all_asset_keys()


def test_what_is_rejected_is_told_to_the_alert_address_by_the_push_and_not_by_the_failed_run_again(
    settings: Settings, instance: dg.DagsterInstance, home: Path, alerts: type[Alerts]
) -> None:
    told = replace(settings, alert_url=alerts.url)
    look = Sensor(instance, told)
    assert look() == []
    config = {
        "sql": "select 'gone@example.com' as email, 'vip' as tag, 'remove' as action",
        "dry_run": False,
        "confirm": "send",
    }
    ops = {
        "ops": {"plan_tags": {"config": config}},
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }
    result = job(kinds.TAGS, told).execute_in_process(
        instance=instance, run_config=ops, raise_on_error=False, tags=PROJECT_TAGS
    )
    assert not result.success
    (body,) = alerts.bodies
    assert (body["job"], body["push"], body["needs_person"]) == ("push_tags", 1, {"rejected": 1})
    assert "there is no such contact; to do:" in body["text"]
    assert look() == []
