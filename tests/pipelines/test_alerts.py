"""The sensor that tells a webhook address what failed or did not happen, and that commands show outside."""

import datetime as dt
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from traceback import format_exception
from typing import Any
from unittest.mock import Mock

import dagster as dg
import msgspec
import pytest
from requests import ReadTimeout
from sqlalchemy import text

from home.exits import Incomplete
from home.settings import SHARD_TAG, Settings
from marketing_api.clock import utc_now
from pipelines.dagster_internals import _CODE_LOCATION, PROJECT_TAGS
from tests.fixtures import Alerts, Command
from tests.pipelines.alerting import Sensor
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query
from warehouse.status_file import AccountStatus, HomeStatus, read_status

pytestmark = pytest.mark.filterwarnings("ignore")

HOUR = dt.timedelta(hours=1)
ACCOUNTS = """
[accounts.harbor]
url = "https://host.example/1"
key_env = "HARBOR_KEY"
shard = "north"

[accounts.meadow]
url = "https://host.example/1"
key_env = "MEADOW_KEY"
shard = "south"
"""


@dg.op
def read_lists() -> None:
    raise dg.Failure("the service refused the key")


@dg.op
def rest() -> None: ...


@dg.job(name="nightly_sync")
def failing() -> None:
    read_lists()


@dg.job(name="nightly_sync")
def working() -> None:
    rest()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def settings(folder: Path, alerts: type[Alerts]) -> Settings:
    """Two shards; the homes are elsewhere."""
    (folder / "accounts.toml").write_text(ACCOUNTS)
    return Settings(folder / "homes", folder=folder, shards=("north", "south"), alert_url=alerts.url)


@pytest.fixture
def look(instance: dg.DagsterInstance, settings: Settings) -> Sensor:
    """One that has begun."""
    sensor = Sensor(instance, settings)
    assert sensor() == []
    return sensor


def ended(instance: dg.DagsterInstance, job: dg.JobDefinition, shard: str, **tags: str) -> str:
    tags |= {SHARD_TAG: shard} | PROJECT_TAGS
    return job.execute_in_process(instance=instance, raise_on_error=False, tags=tags).run_id


def create(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> str:
    """A run in this state."""
    tags = {SHARD_TAG: "west"}
    origin = _CODE_LOCATION.get_job_origin("nightly_sync")
    status_before = status if status is dg.DagsterRunStatus.QUEUED else dg.DagsterRunStatus.STARTING
    run = instance.create_run_for_job(working, tags=tags, status=status_before, remote_job_origin=origin)
    kinds = {
        dg.DagsterRunStatus.STARTED: dg.DagsterEventType.PIPELINE_START,
    }
    if kind := kinds.get(status):
        instance.report_dagster_event(dg.DagsterEvent(kind.value, run.job_name), run.run_id)
    return run.run_id


def note(home: Path, *accounts: AccountStatus) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "status.json").write_bytes(msgspec.json.encode(HomeStatus(list(accounts))))


Doctor = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def doctor(command: Command, folder: Path, home: Path) -> Doctor:
    """`doctor()`: the exit code of `doctor --json`, and its document."""
    (folder / "accounts.toml").write_text(ACCOUNTS)

    def ask(**environment: str) -> tuple[int, dict[str, Any]]:
        ran = command("doctor", "--json", **environment)
        return ran.code, json.loads(ran.out)

    return ask


# -- runs


def test_a_failure_is_told_at_once_while_others_run_and_later_ones_together(
    look: Sensor, instance: dg.DagsterInstance
) -> None:
    create(instance, dg.DagsterRunStatus.STARTED)
    first = ended(instance, failing, "north")
    (body,) = look()
    assert body["problems"] == {
        f"nightly_sync of north (run {first})": "failed\nread_lists: the service refused the key"
    }
    assert "nightly_sync of north" in body["text"]
    ended(instance, failing, "south")
    ended(instance, failing, "east")
    assert look() == [], "a message at once, then one in 15 minutes"
    (digest,) = look(0.3)
    assert [name.split(" (")[0] for name in sorted(digest["problems"])] == [
        "nightly_sync of east",
        "nightly_sync of south",
    ]
    assert look(0.3) == [], "each once"


def test_many_failures_are_counted(look: Sensor, instance: dg.DagsterInstance) -> None:
    for number in range(24):
        ended(instance, failing, f"s{number}")
    (body,) = look()
    assert len(body["problems"]) == body["count"] == 24
    assert body["text"].startswith("marketing-sync: 24 problems, 0 over\n")


def test_what_failed_before_the_sensor_began_is_not_told(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    ended(instance, failing, "north")
    sensor = Sensor(instance, settings)
    assert (sensor(), sensor(1)) == ([], [])


def test_a_run_that_is_tried_again_is_told_by_its_last_attempt(
    look: Sensor, instance: dg.DagsterInstance
) -> None:
    ended(instance, failing, "north", **{"dagster/will_retry": "true"})
    assert look() == []
    last = ended(instance, failing, "north", **{"dagster/will_retry": "false"})
    (body,) = look()
    assert list(body["problems"]) == [f"nightly_sync of north (run {last})"]


def test_a_cancelled_run_is_told(look: Sensor, instance: dg.DagsterInstance) -> None:
    run = instance.get_run_by_id(create(instance, dg.DagsterRunStatus.STARTED))
    assert run
    instance.report_run_canceled(run)
    (body,) = look()
    assert body["problems"] == {f"nightly_sync of west (run {run.run_id})": "was cancelled"}


@pytest.mark.parametrize(
    ("status", "hours"),
    [
        (dg.DagsterRunStatus.STARTED, 25),
        (dg.DagsterRunStatus.QUEUED, 6),
    ],
    ids=["started", "queued"],
)
def test_a_stuck_run_is_told_once_and_when_it_is_over(
    look: Sensor, instance: dg.DagsterInstance, status: dg.DagsterRunStatus, hours: float
) -> None:
    run = instance.get_run_by_id(create(instance, status))
    assert run
    name = f"nightly_sync of west (run {run.run_id})"
    assert look(hours - 0.1) == []
    (body,) = look(0.2)
    assert body["problems"] == {name: f"has been {status.value} for {hours} hours"}
    assert look(1) == []
    instance.delete_run(run.run_id)
    (body,) = look()
    assert (body["problems"], body["over"]) == ({}, [name])
    assert f"over: {name}" in body["text"]


def test_what_could_not_be_posted_is_posted_later(
    look: Sensor, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(instance, failing, "north")
    Alerts.status = 500
    try:
        with pytest.raises(Incomplete, match="HTTP 500") as raised:
            look()
        assert "127.0.0.1" not in "".join(format_exception(raised.value)), "the address is a secret"
    finally:
        Alerts.status = 204
    assert len(look()) == 1
    ended(instance, failing, "south")
    with monkeypatch.context() as patched:
        patched.setattr("requests.post", Mock(side_effect=ReadTimeout))
        assert look(1) == []
    assert look(1) == [], "it has probably arrived"


# -- silence


def test_a_silent_account_is_told_once_and_when_it_is_read_again(look: Sensor) -> None:
    home, read = look.settings.home, utc_now()
    note(home / "north", AccountStatus("harbor", read))
    note(home / "south", AccountStatus("meadow", read - 31 * HOUR))
    (body,) = look()
    assert list(body["problems"]) == ["account meadow:"]
    assert "nothing was read since" in body["problems"]["account meadow:"]
    assert look(1) == []
    note(home / "south", AccountStatus("meadow", utc_now()))
    (body,) = look(1)
    assert body["over"] == ["account meadow:"]


def test_an_account_that_was_never_read_has_a_night_for_it(look: Sensor) -> None:
    for shard in ("north", "south"):
        note(look.settings.home / shard)
    assert look(29) == []
    (body,) = look(2)
    assert list(body["problems"]) == ["account harbor:", "account meadow:"]


def test_an_account_that_is_added_later_has_a_night_too(look: Sensor) -> None:
    look.passed = 100 * HOUR
    for shard, account in (("north", "harbor"), ("south", "meadow")):
        note(look.settings.home / shard, AccountStatus(account, utc_now() + look.passed))
    added = ACCOUNTS.partition("\n\n")[0].replace("harbor", "new").replace("HARBOR", "NEW")
    (look.settings.folder / "accounts.toml").write_text(ACCOUNTS + added)
    assert look() == []
    (body,) = look(31)
    assert "account new:" in body["problems"]


def test_of_a_home_that_is_elsewhere_runs_tell(look: Sensor, instance: dg.DagsterInstance) -> None:
    ended(instance, working, "north")
    assert look(29) == []
    (body,) = look(2)
    assert body["problems"] == dict.fromkeys(
        ("shard north:", "shard south:"), "no nightly_sync succeeded within 30 hours"
    )


# -- a clock that was ahead


AHEAD = dt.timedelta(days=400)


def test_a_message_that_is_dated_in_the_future_quiets_nothing(
    look: Sensor, instance: dg.DagsterInstance
) -> None:
    look.passed = AHEAD
    assert len(look()) == 1, "no shard was read for so long"
    look.passed = dt.timedelta()
    ended(instance, failing, "south")
    (body,) = look()
    assert [name.split(" (")[0] for name in body["problems"]] == ["nightly_sync of south"]
    assert body["over"] == ["shard north:", "shard south:"]


def test_a_sensor_that_began_in_the_future_has_begun(
    instance: dg.DagsterInstance, settings: Settings
) -> None:
    for shard in ("north", "south"):
        note(settings.home / shard)
    sensor = Sensor(instance, settings)
    sensor.passed = AHEAD
    sensor()
    sensor.passed = dt.timedelta()
    assert sensor() == []
    (body,) = sensor(31)
    assert list(body["problems"]) == ["account harbor:", "account meadow:"]


def test_a_reading_that_is_dated_in_the_future_is_not_fresh(look: Sensor, doctor: Doctor, home: Path) -> None:
    for shard, account in (("north", "harbor"), ("south", "meadow")):
        for place in (look.settings.home, home):
            note(place / shard, AccountStatus(account, utc_now() + AHEAD))
    (body,) = look()
    assert "in the future" in body["problems"]["account harbor:"]
    code, found = doctor()
    assert (code, [each["is_well"] for each in found["findings"]]) == (1, [False, False])


def test_a_success_that_is_dated_in_the_future_hides_no_missing_one(
    look: Sensor, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = ended(instance, working, "north")
    redate_run(instance, run_id, utc_now() + AHEAD)
    (body,) = look(31)
    assert list(body["problems"]) == ["shard north:", "shard south:"]


def redate_run(instance: dg.DagsterInstance, run_id: str, moment: dt.datetime) -> None:
    with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
        connection.execute(
            text("update runs set update_timestamp = :moment where run_id = :run"),
            {"moment": moment.replace(tzinfo=None), "run": run_id},
        )


def test_the_hours_are_a_setting(instance: dg.DagsterInstance, settings: Settings) -> None:
    note(settings.home / "north", AccountStatus("harbor", utc_now() - 31 * HOUR))
    note(settings.home / "south", AccountStatus("meadow", utc_now()))
    assert Sensor(instance, replace(settings, alert_after_hours=170))() == []


# -- from outside


def test_cron_is_told_of_shards_that_are_missing_or_late(doctor: Doctor, home: Path) -> None:
    note(home / "north", AccountStatus("harbor", utc_now() - 2 * HOUR))
    code, found = doctor()
    assert (code, [(each["what"], each["is_well"]) for each in found["findings"]]) == (
        1,
        [("north", True), ("south", False)],
    )
    assert found["findings"][0]["text"] == "1 account, read 2 hours ago"
    assert "its home is missing" in found["findings"][1]["text"]
    note(home / "south", AccountStatus("meadow", utc_now() - 40 * HOUR))
    code, found = doctor()
    assert (code, "account meadow: nothing was read since" in found["findings"][1]["text"]) == (1, True)
    note(home / "south")
    assert "account meadow: it was never read" in doctor()[1]["findings"][1]["text"]
    note(home / "south", AccountStatus("meadow", utc_now()))
    assert doctor()[0] == 0


def test_a_sync_notes_what_monitoring_reads(command: Command, service: Sandbox, home: Path) -> None:
    status = read_status(home)
    assert status is not None
    assert status.run is not None
    assert status.run.outcome == "done"
    (main,) = status.accounts
    counted = query(home, "select count(*), count(*) filter (http_status = 429) from sync.requests")
    contacts = query(home, "select count(distinct contact_id) from source.contacts where _deleted_at is null")
    assert [(main.requests_last_night, main.rate_limited_last_night)] == counted
    assert [(main.contacts,)] == contacts
    newest = "select date_trunc('second', max(as_of)) from sync.coverage where is_complete"
    assert [(main.read_at,)] == query(home, newest)
    assert "ok  readings    1 account, read" in command("doctor", sandbox=service).out
