"""Files dropped into a folder: each is pushed once, when it is complete, by the sensor's run or the command,
and lies in `done` or `failed` with its result."""

from __future__ import annotations

import datetime as dt
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest

from home.folder import prepare_home
from home.settings import SHARD_TAG, Settings, SettingsError, load_settings
from marketing_api.client import Connection, Secret
from pipelines.dagster_internals import OURS
from pipelines.definitions import build_definitions
from tests.conftest import BEGAN_AT
from tests.fixtures import Alerts, Command
from tests.pipelines.alerting import Sensor
from tests.pipelines.running import environment
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query
from tests.pipelines.test_nightly import failures
from tests.pipelines.test_push_command import ACTIVE, sent
from write_back.input.rows import InputError
from write_back.outbox.outbox import open_outbox
from write_back.outbox.store import sender_lock
from write_back.watched_folder import dropped, push_files

pytestmark = pytest.mark.filterwarnings("ignore")

BEGAN = dt.datetime.fromtimestamp(BEGAN_AT, dt.UTC)
SHARDS = ("hill", "dale", "moor")
KINDS = ["activities", "contacts", "moves", "tags"]


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """The folder itself; those in it are made when somebody looks."""
    folder = tmp_path / "drop"
    folder.mkdir()
    folder.chmod(0o750)  # whatever the umask
    return folder


@pytest.fixture
def settings(home: Path, drop: Path) -> Settings:
    """Files are complete at once; nothing is requested."""
    connection = Connection("main", "http://127.0.0.1:9/1", Secret(KEY))
    return Settings(home, (connection,), drop_folder=drop, drop_seconds=0)


def put(drop: Path, *lines: str, name: str = "vip.csv", kind: str = "tags") -> Path:
    path = drop / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def left(drop: Path, kind: str = "tags") -> dict[str, list[str]]:
    """Names of what is where, without the time in front and what was never made."""
    places = {"": drop / kind} | {name: drop / kind / name for name in ("working", "done", "failed")}
    return {
        where: names
        for where, place in places.items()
        if place.exists()
        and (names := sorted(each.name[23 if where else 0 :] for each in place.iterdir() if each.is_file()))
    }


def result(drop: Path, where: str, name: str = "vip.csv") -> str:
    paths = sorted((drop / "tags" / where).glob(f"*-{name}.result.txt"))
    return paths[-1].read_text(encoding="utf-8")


PUSHED = ["vip.csv", "vip.csv.result.txt"]


# -- what waits


def test_folders_are_made_for_whoever_may_use_the_one_they_are_in(settings: Settings, drop: Path) -> None:
    umask = os.umask(0o077)
    assert dropped(settings) == []
    os.umask(umask)
    assert sorted(path.name for path in drop.iterdir()) == KINDS, "nothing is deleted by itself"
    assert {stat.S_IMODE(path.stat().st_mode) for path in drop.iterdir()} == {0o750}


def test_several_accounts_have_folders_of_their_own(settings: Settings, drop: Path) -> None:
    (main,) = settings.accounts
    several = replace(settings, accounts=(main, replace(main, account="hill")))
    path = put(drop / "hill", "email,tag")
    assert [(each.path, each.account, each.kind) for each in dropped(several)] == [(path, "hill", "tags")]
    assert dropped(replace(settings, shard="north")) == []
    assert sorted(path.name for path in drop.iterdir()) == ["hill", "main"]


def test_a_file_waits_until_it_has_not_changed_for_a_while(settings: Settings, drop: Path) -> None:
    path = put(drop, "email,tag")
    os.utime(path, (0, 0))  # as a copy does that keeps the times
    assert dropped(replace(settings, drop_seconds=3600)) == []
    assert [each.path for each in dropped(settings)] == [path]


def test_what_was_begun_goes_first_then_the_oldest(settings: Settings, drop: Path) -> None:
    paths = [put(drop, "email,tag", name=name) for name in ("b.csv", "a.csv", "working/c.csv")]
    found = dropped(settings)
    assert found[0].path == paths[2]
    assert [each.changed_at for each in found[1:]] == sorted(path.stat().st_ctime for path in paths[:2])


def _socket(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as made:
        patch.chdir(path.parent)  # the name of a socket may not be long
        made.bind(path.name)


def _written(path: Path) -> None:
    path.write_text("email,tag\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        (".vip.csv", _written),
        ("~$vip.xlsx", _written),
        ("vip.csv.part", _written),
        ("vip.csv.filepart", _written),
        ("VIP.CSV.CRDOWNLOAD", _written),
        ("Thumbs.db", _written),
        ("link.csv", lambda path: path.symlink_to("/etc/hostname")),
        ("dangling.csv", lambda path: path.symlink_to("/nowhere")),
        ("pipe.csv", os.mkfifo),
        ("socket.csv", _socket),
        ("folder.csv", Path.mkdir),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_not_meant_is_left(
    settings: Settings, drop: Path, name: str, make: Callable[[Path], object]
) -> None:
    path = put(drop, "email,tag")
    make(path.parent / name)
    assert [each.path for each in dropped(settings)] == [path]


def _missing(drop: Path) -> None:
    drop.rmdir()


def _in_the_way(drop: Path) -> None:
    (drop / "tags").write_text("no folder", encoding="utf-8")


def _leads_elsewhere(drop: Path) -> None:
    (drop.parent / "elsewhere").mkdir()
    (drop / "tags").symlink_to(drop.parent / "elsewhere")


@pytest.mark.parametrize(
    "break_it", [_missing, _in_the_way, _leads_elsewhere], ids=lambda each: each.__name__
)
def test_a_folder_that_cannot_be_used_is_named(
    command: Command, drop: Path, break_it: Callable[[Path], None]
) -> None:
    break_it(drop)
    ran = command("push", "folder", MARKETING_DROP_FOLDER=str(drop))
    assert ran.code == 2
    assert f"marketing-sync: MARKETING_DROP_FOLDER: {drop}" in ran.err
    assert f"see that {drop} is there, and that this user may write" in ran.err


def test_without_the_setting_the_command_says_what_to_set(command: Command) -> None:
    ran = command("push", "folder", "--apply")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("marketing-sync: MARKETING_DROP_FOLDER is not set: set it")


# -- the command


@dataclass
class Cron:
    """The command, as cron runs it."""

    command: Command
    service: Sandbox
    drop: Path

    def __call__(self, *words: str, code: int = 0, **more: str) -> str:
        given = {"MARKETING_DROP_FOLDER": str(self.drop), "MARKETING_DROP_SECONDS": "0"} | more
        ran = self.command("push", "folder", *words, sandbox=self.service, **given)
        assert ran.code == code, ran.text
        return ran.text


@pytest.fixture
def cron(command: Command, service: Sandbox, drop: Path) -> Cron:
    return Cron(command, service, drop)


@pytest.fixture
def tags(service: Sandbox, home: Path) -> list[str]:
    """Lines of a file that tags twelve people."""
    return ["email,tag", *(f"{email},vip" for (email,) in query(home, ACTIVE))]


def test_the_command_says_what_waits_and_moves_and_sends_nothing(
    cron: Cron, drop: Path, tags: list[str]
) -> None:
    assert cron() == "no file waits\n"
    path = put(drop, *tags)
    assert cron() == (
        f"tags of account main: {path}\n\nnothing was sent; to send it:\n  marketing-sync push folder --apply\n"
    )
    for words in ((), ("--apply",)):
        young = f"{path} changed less than 3600 s ago: it waits, since it may not be whole\n"
        assert cron(*words, MARKETING_DROP_SECONDS="3600") == young
    assert left(drop) == {"": ["vip.csv"]}
    assert cron.service.count == 0


def test_a_file_is_pushed_once_and_put_away_with_its_result(cron: Cron, drop: Path, tags: list[str]) -> None:
    put(drop, *tags)
    text = cron("--apply")
    assert left(drop) == {"done": PUSHED}
    assert "done; 13 requests sent" in text
    assert result(drop, "done").strip() in text
    assert "sent         12" in result(drop, "done")
    assert cron("--apply") == ""
    put(drop, *tags, name="once more.csv")
    put(drop, *tags, f"{tags[1].split(',')[0]},new", name="vip.csv")
    cron("--apply")
    assert sent(cron.service).count("addtag") == 13, "the same name with one more row, the same rows twice"
    assert left(drop) == {"done": sorted([*PUSHED, *PUSHED, "once more.csv", "once more.csv.result.txt"])}


def test_what_is_wrong_with_a_file_is_its_result_and_one_alert_and_others_go_on(
    cron: Cron, drop: Path, tags: list[str], alerts: type[Alerts]
) -> None:
    put(drop, "email,tag", "nobody,vip", name="ann@example.com.csv")
    put(drop, "", name="empty.csv")
    put(drop, "<html>", name="page.xls")
    put(
        drop,
        *(f"{line},{'action' if line == tags[0] else 'add'}" for line in tags),
        "gone@example.com,vip,remove",
    )
    put(drop, *tags, name="z.csv")
    cron("--apply", code=1, MARKETING_ALERT_URL=alerts.url)
    bad = ["ann@example.com.csv", "empty.csv", "page.xls", "vip.csv"]
    assert left(drop)["failed"] == sorted([*bad, *(f"{name}.result.txt" for name in bad)])
    assert left(drop)["done"] == ["z.csv", "z.csv.result.txt"]
    assert "nothing was sent: 100.0 % of the rows are not valid" in result(drop, "failed", bad[0])
    assert "row 2: " in result(drop, "failed", bad[0]), "who dropped it sees what to correct"
    assert "1 row not done" in result(drop, "failed")
    (again,) = (drop / "tags" / "failed").glob("*-empty.csv")
    again.rename(drop / "tags" / again.name)
    cron("--apply", code=1, MARKETING_ALERT_URL=alerts.url)
    assert left(drop)["failed"].count("empty.csv") == 1, "with the time of this one in front"
    bad.append("empty.csv")
    texts = [body["text"] for body in alerts.bodies]
    assert len(texts) == len(bad), texts
    assert not [text for text in texts if "@" in text]
    assert sum("was not pushed: " in text for text in texts) == 4


@pytest.mark.parametrize(
    "name",
    ["x" * 251 + ".csv", "é" * 120 + ".csv", "two\nlines.csv", b"odd\xff\xfe.csv", "VIP.CSV"],
    ids=repr,
)
def test_a_file_of_any_name_is_put_away(cron: Cron, drop: Path, tags: list[str], name: str | bytes) -> None:
    put(drop, *tags[:3]).rename(drop / "tags" / os.fsdecode(name))
    cron("--apply")
    first, second = left(drop)["done"]
    assert second == f"{first}.result.txt"
    assert first.isprintable()


def test_what_stops_a_push_leaves_its_file_and_those_behind_it_to_the_next_time(
    cron: Cron, drop: Path, tags: list[str]
) -> None:
    put(drop, *tags)
    cron.service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    text = cron("--apply", code=1)
    assert "sending stopped: " in text
    put(drop, *tags[:2], name="later.csv")
    assert left(drop) == {"": ["later.csv"], "working": ["vip.csv"]}
    cron.service.control("faults", off=1)
    since = cron.service.count
    cron("--apply")
    assert sent(cron.service, since).count("addtag") == 12
    assert "sent" in result(drop, "done")
    assert left(drop) == {"done": ["later.csv", "later.csv.result.txt", *PUSHED]}


def test_before_the_first_sync_files_wait(settings: Settings, home: Path, drop: Path) -> None:
    prepare_home(home)
    put(drop, "email,tag", "ann@example.com,vip")
    with pytest.raises(InputError, match="nothing is known about the account main yet: run"):
        list(push_files(settings))
    assert left(drop) == {"": ["vip.csv"]}


def test_two_at_once_take_a_file_once(cron: Cron, home: Path, drop: Path, tags: list[str]) -> None:
    put(drop, *tags)
    with sender_lock(home, ".folder"):
        assert cron("--apply") == ""
    assert left(drop) == {"": ["vip.csv"]}


def test_a_file_that_is_taken_away_or_replaced_meanwhile_is_as_it_is_then(
    settings: Settings, service: Sandbox, drop: Path, tags: list[str]
) -> None:
    (main,) = settings.accounts
    live = replace(settings, accounts=(replace(main, url=service.url),))
    put(drop, *tags[:2], name="a.csv")
    gone, replaced = put(drop, *tags[:2], name="gone.csv"), put(drop, *tags[:2], name="replaced.csv")
    files = push_files(live)
    assert next(files).problem == ""
    gone.unlink()
    replaced.unlink()
    replaced.symlink_to("/etc/hostname")
    assert [each.path.name[23:] for each in files if not each.problem] == []
    assert sent(service).count("addtag") == 1


#: The command, which says how far it is, and then goes no further.
KILLED = """
import sys, time
from pipelines import cli
from write_back import push_service, watched_folder
def stop(*_, **__):
    print("here", flush=True)
    time.sleep(600)
{place} = stop
cli.main(["push", "folder", "--apply"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "tagged"),
    [("watched_folder.enqueue", 0), ("push_service.PushRun.send_open", 0), ("watched_folder._put_away", 12)],
)
def test_a_kill_loses_nothing_and_sends_nothing_twice(
    cron: Cron, home: Path, folder: Path, drop: Path, tags: list[str], place: str, tagged: int
) -> None:
    put(drop, *tags)
    given = {"MARKETING_DROP_FOLDER": str(drop), "MARKETING_DROP_SECONDS": "0"}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED.format(place=place)],
        cwd=folder,
        env=environment(home, cron.service, **given),
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert "here\n" in child.stdout
        child.send_signal(signal.SIGKILL)
    assert left(drop) == {"working": ["vip.csv"]}
    assert sent(cron.service).count("addtag") == tagged
    cron("--apply")
    assert sent(cron.service).count("addtag") == 12
    assert left(drop) == {"done": PUSHED}
    with open_outbox(home) as outbox:
        assert not outbox.has_left("main")


# -- in Dagster


@dataclass
class Daemon:
    """Dagster's daemon by hand: `look` evaluates the sensor, `run` executes what it asked for."""

    settings: Settings
    instance: dg.DagsterInstance
    cursor: str | None = None
    hour: int = 0

    @property
    def definitions(self) -> dg.Definitions:
        return build_definitions(self.settings, now=lambda: BEGAN + dt.timedelta(hours=self.hour))

    def look(self) -> list[dg.RunRequest] | str:
        """Or why it skipped."""
        with dg.build_sensor_context(self.instance, cursor=self.cursor) as context:
            found = self.definitions.get_sensor_def("watched_folder").evaluate_tick(context)
        self.cursor = found.cursor
        return list(found.run_requests or []) or str(found.skip_message)

    def alerts(self, url: str) -> Sensor:
        """The sensor that posts there, from now on."""
        self.settings = replace(self.settings, alert_url=url)
        sensor = Sensor(self.instance, self.settings)
        assert sensor() == []
        return sensor

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        return self.definitions.resolve_job_def(str(request.job_name or "push_folder")).execute_in_process(
            instance=self.instance,
            run_config={**request.run_config, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            tags={**request.tags, **OURS},
            raise_on_error=False,
        )


@pytest.fixture
def daemon(
    settings: Settings, home: Path, service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Daemon]:
    monkeypatch.setenv("DAGSTER_HOME", str(prepare_home(home) / "dagster"))
    (main,) = settings.accounts
    with dg.DagsterInstance.get() as instance:
        yield Daemon(replace(settings, accounts=(replace(main, url=service.url),)), instance)


def test_the_sensor_runs_where_the_folder_is_set(daemon: Daemon) -> None:
    status = daemon.definitions.get_sensor_def("watched_folder").default_status
    assert status is dg.DefaultSensorStatus.RUNNING
    daemon.settings = replace(daemon.settings, drop_folder=None)
    status = daemon.definitions.get_sensor_def("watched_folder").default_status
    assert status is dg.DefaultSensorStatus.STOPPED
    with pytest.raises(SettingsError, match="MARKETING_DROP_FOLDER is not set: set it"):
        daemon.look()


def test_a_tick_asks_for_a_run_that_pushes_what_waits(
    daemon: Daemon, service: Sandbox, drop: Path, tags: list[str]
) -> None:
    assert daemon.look() == "no file waits"
    path = put(drop, *tags)
    (request,) = daemon.look()
    assert path.exists()
    ran = daemon.run(request)  # type: ignore[arg-type]
    assert ran.success, failures(ran)
    assert left(drop) == {"done": PUSHED}
    assert sent(service).count("addtag") == 12
    shown = "\n".join(map(str, ran.all_events)) + str(request) + str(daemon.cursor)
    assert tags[1].split(",")[0] not in shown
    assert daemon.look() == "no file waits"


def test_one_run_at_a_time_takes_all_that_waits_and_what_comes_meanwhile_is_the_next_one_s(
    daemon: Daemon, drop: Path
) -> None:
    for number in range(1000):
        put(drop, "email,tag", name=f"{number}.csv")
    (request,) = daemon.look()
    run = daemon.instance.create_run_for_job(
        daemon.definitions.resolve_job_def("push_folder"),
        run_config=request.run_config,  # type: ignore[union-attr]
    )
    put(drop, "email,tag", name="later.csv")
    assert daemon.look() == f"run {run.run_id} has not ended"
    daemon.instance.report_run_canceled(run)
    assert len(daemon.look()) == 1


@pytest.mark.slow
def test_what_no_run_can_push_is_tried_again_at_the_full_hour(
    daemon: Daemon, service: Sandbox, drop: Path, tags: list[str], alerts: type[Alerts]
) -> None:
    """The file waits, and the failed run is told like any other."""
    told = daemon.alerts(alerts.url)
    service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    put(drop, *tags)
    (request,) = daemon.look()
    ran = daemon.run(request)  # type: ignore[arg-type]
    assert failures(ran).keys() == {"push_dropped_files"}
    (body,) = told()
    assert list(body["problems"]) == [f"push_folder (run {ran.run_id})"]
    assert left(drop) == {"working": ["vip.csv"]}
    assert len(daemon.look()) == 1, "it was moved since"
    assert daemon.look() == "the last run could not push what waits: the next one does at the full hour"
    service.control("faults", off=1)
    daemon.hour = 1
    (request,) = daemon.look()
    ran = daemon.run(request)  # type: ignore[arg-type]
    assert ran.success, failures(ran)
    assert left(drop) == {"done": PUSHED}


@pytest.mark.slow
def test_a_file_that_fails_is_told_once_and_fails_the_run(
    daemon: Daemon, drop: Path, tags: list[str], alerts: type[Alerts]
) -> None:
    told = daemon.alerts(alerts.url)
    put(drop, "email,tag", "nobody,vip", name="ann@example.com.csv")
    put(drop, *tags)
    (request,) = daemon.look()
    ran = daemon.run(request)  # type: ignore[arg-type]
    assert failures(ran).keys() == {"report_files"}
    assert "•••: nothing was sent: 100.0 % of the rows" in failures(ran)["report_files"]
    assert len(alerts.bodies) == 1
    assert "ann@example.com" not in "\n".join(map(str, [*ran.all_events, *alerts.bodies]))
    assert told() == []
    assert left(drop) == {"done": PUSHED, "failed": ["ann@example.com.csv", "ann@example.com.csv.result.txt"]}
    assert daemon.look() == "no file waits"


def test_launched_by_hand_it_needs_the_word(
    daemon: Daemon, service: Sandbox, drop: Path, tags: list[str]
) -> None:
    put(drop, *tags)
    ran = daemon.run(dg.RunRequest())
    assert "add `confirm: send`" in failures(ran)["push_dropped_files"]
    assert left(drop) == {"": ["vip.csv"]}
    assert service.count == 0


def test_each_shard_with_files_has_its_run(
    daemon: Daemon, drop: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKETING_DROP_FOLDER", str(drop))
    monkeypatch.setenv("MARKETING_DROP_SECONDS", "0")
    for name in SHARDS:
        monkeypatch.setenv(name.upper(), f"key-of-{name}")
    tables = [
        f'[accounts.{name}]\nshard = "{name}"\nurl = "http://127.0.0.1:9/1"\nkey_env = "{name.upper()}"\n'
        for name in SHARDS
    ]
    (folder / "accounts.toml").write_text("".join(tables), encoding="utf-8")
    daemon.settings = load_settings(folder)
    put(drop / "hill", "email,tag"), put(drop / "moor", "email,tag")
    assert [each.tags[SHARD_TAG] for each in daemon.look()] == ["hill", "moor"]  # type: ignore[union-attr]
