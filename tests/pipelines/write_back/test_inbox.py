"""Files dropped into the inbox: pushed once when they are complete, put away with a result, never lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest

from marketing_api.client import Connection, Secret
from pipelines.home import prepare_home
from pipelines.settings import Settings
from pipelines.write_back import inbox as inbox_module
from pipelines.write_back.inbox import CONTENT_TAG, inbox_sensor
from pipelines.write_back.kinds import Kind
from pipelines.write_back.push_jobs import push_jobs
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query
from tests.pipelines.test_push_command import ACTIVE

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass
class Daemon:
    """Dagster's daemon by hand: `look` evaluates the sensor, `run` executes what it asked for."""

    settings: Settings
    instance: dg.DagsterInstance
    cursor: str | None = None

    def look(self) -> list[dg.RunRequest]:
        jobs = {job.name: job for job in push_jobs()}
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor)
        result = inbox_sensor(self.settings, jobs)(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        return list(result.run_requests or [])

    def run(self, request: dg.RunRequest) -> bool:
        job = dg.Definitions(jobs=push_jobs(), resources={"settings": self.settings}).resolve_job_def(str(request.job_name))
        config = {**request.run_config, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        return job.execute_in_process(instance=self.instance, run_config=config, tags=dict(request.tags), raise_on_error=False).success

    def pick_up(self) -> dg.RunRequest:
        """Two looks, after which the file is known to be complete."""
        assert self.look() == []
        (request,) = self.look()
        return request


@pytest.fixture
def daemon(home: Path, service: Sandbox) -> Iterator[Daemon]:
    prepare_home(home)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Daemon(Settings(home, (Connection("main", service.url, Secret(KEY)),)), instance)


@pytest.fixture
def tags(home: Path) -> list[str]:
    """Lines of a file that tags twelve people."""
    return ["email,tag", *(f"{email},vip" for (email,) in query(home, ACTIVE))]


Drop = Callable[..., Path]


@pytest.fixture
def drop(home: Path) -> Drop:
    """Put a file into inbox/tags/, as if it had been finished a minute ago."""

    def put(lines: list[str], name: str = "vip.csv", *, age_s: float = 60) -> Path:
        path = home / "inbox" / "tags" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (time.time() - age_s, time.time() - age_s))
        return path

    return put


def test_it_is_off_until_somebody_turns_it_on(daemon: Daemon) -> None:
    sensor = inbox_sensor(daemon.settings, {job.name: job for job in push_jobs()})
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    assert daemon.look() == []
    assert sorted(path.name for path in (daemon.settings.home / "inbox").iterdir()) == ["activities", "contacts", "moves", "tags"]


def test_a_complete_file_is_pushed_once_and_put_away_with_its_result(daemon: Daemon, drop: Drop, tags: list[str], service: Sandbox) -> None:
    path = drop(tags)
    request = daemon.pick_up()
    assert daemon.run(request)
    assert path.exists(), "it stays until its run is judged"
    assert daemon.look() == []
    done = path.parent / "done" / "vip.csv"
    assert done.read_text().splitlines() == tags
    assert not path.exists()
    said = (done.parent / "vip.csv.result.txt").read_text()
    assert "sent         12" in said
    assert "@" not in said
    assert service.count == 12


def test_a_file_that_is_still_being_written_is_left_alone(daemon: Daemon, drop: Drop, tags: list[str]) -> None:
    drop(tags, age_s=0)
    assert [daemon.look(), daemon.look()] == [[], []]
    drop(tags[:5])
    assert daemon.look() == []
    drop(tags)
    assert daemon.look() == [], "it grew since the last look"
    drop(tags, ".hidden.csv"), drop(tags, "half.csv.part"), drop(tags, "~$open.xlsx")
    assert len(daemon.look()) == 1
    assert len(daemon.look()) == 1


def test_the_same_content_is_asked_for_under_the_same_key_and_not_twice(
    daemon: Daemon, drop: Drop, tags: list[str], service: Sandbox
) -> None:
    drop(tags)
    request = daemon.pick_up()
    (again,) = daemon.look()  # the daemon has not started it yet
    assert again.run_key == request.run_key
    daemon.run(request)
    daemon.look()
    path = drop(tags, "once more.csv", age_s=30)
    assert [daemon.look(), daemon.look()] == [[], []]
    assert "the same content was pushed before" in (path.parent / "done" / "once more.csv.result.txt").read_text()
    assert service.count == 12


def test_what_failed_lies_in_failed_with_its_rejected_rows_and_may_be_dropped_again(
    daemon: Daemon, drop: Drop, tags: list[str], service: Sandbox
) -> None:
    service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    path = drop([*tags, "nobody,vip"])
    request = daemon.pick_up()
    assert request.run_config["ops"]["plan_tags"]["config"]["dry_run"] is False
    assert not daemon.run(request)
    assert daemon.look() == []
    failed = path.parent / "failed"
    said = (failed / "vip.csv.result.txt").read_text()
    assert "failed: nothing was sent: 7.7 % of the rows are not valid" in said
    assert "| row | why |" in said, "whoever dropped it can see which rows to correct"
    path = drop(tags)
    assert not daemon.run(daemon.pick_up())
    daemon.look()
    assert "12 requests still open" in (failed / "vip-2.csv.result.txt").read_text()
    service.control("faults", off=1)
    (failed / "vip-2.csv").rename(path)
    os.utime(path, (time.time() - 30, time.time() - 30))
    request = daemon.pick_up()
    assert request.run_key is not None
    assert request.run_key.endswith("-1"), "a second try of the same content"
    assert daemon.run(request)
    daemon.look()
    assert (path.parent / "done" / "vip.csv").exists()
    tagged = [each for each in service.control("written")["contacts"].values() if each["tags"] == ["vip"]]
    assert len({each["email"] for each in tagged}) == 12


def test_rejected_rows_lie_beside_the_file(daemon: Daemon, drop: Drop, tags: list[str]) -> None:
    path = drop([f"{line},{'action' if line == 'email,tag' else 'add'}" for line in tags] + ["gone@example.com,vip,remove"])
    daemon.run(daemon.pick_up())
    daemon.look()
    rejected = path.parent / "failed" / "vip.csv.rejected.csv"
    assert "gone@example.com,vip,remove" in rejected.read_text()


def test_a_run_that_died_is_judged_by_its_status_at_a_later_look(daemon: Daemon, drop: Drop, tags: list[str], service: Sandbox) -> None:
    path = drop(tags)
    request = daemon.pick_up()
    job = push_jobs()[1]
    run = daemon.instance.create_run_for_job(job, tags=dict(request.tags), run_config=request.run_config)
    assert daemon.look() == [], "its run is under way"
    assert path.exists()
    daemon.instance.report_run_canceled(run)
    assert daemon.look() == []
    assert (path.parent / "failed" / "vip.csv").exists()
    assert "nothing was sent" in (path.parent / "failed" / "vip.csv.result.txt").read_text()
    assert service.count == 0


def test_a_file_that_cannot_be_read_does_not_keep_others_waiting(
    daemon: Daemon, drop: Drop, tags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(tags), drop(tags[:3], "locked.csv")
    read = inbox_module.content_of

    def locked(account: str, kind: Kind, path: Path) -> str:
        if path.name == "locked.csv":
            raise PermissionError(13, "Permission denied", str(path))
        return read(account, kind, path)

    monkeypatch.setattr(inbox_module, "content_of", locked)
    assert daemon.pick_up().run_config["ops"]["plan_tags"]["config"]["from"].endswith("vip.csv")


def test_with_several_accounts_each_has_folders_of_its_own(daemon: Daemon, home: Path, tags: list[str]) -> None:
    (main,) = daemon.settings.accounts
    daemon.settings = replace(daemon.settings, accounts=(main, replace(main, account="hill")))
    daemon.look()
    path = home / "inbox" / "hill" / "tags" / "vip.csv"
    path.write_text("\n".join(tags))
    os.utime(path, (0, 0))
    request = daemon.pick_up()
    assert request.run_config["ops"]["plan_tags"]["config"]["account"] == "hill"
    assert request.tags[CONTENT_TAG].startswith("hill-tags-")
