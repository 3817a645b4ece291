"""Code server, daemon and web server on PostgreSQL: the schedule fires a run per shard, and one that is
killed is made up for."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import requests

from assets.account_session import _MOST_WORKERS
from tests.fixtures import NOW
from tests.pipelines.sandboxes import Sandbox, spawned
from tests.pipelines.tables import WHEN, query, rows
from tests.waiting import HANGS_S

ROOT = Path(__file__).parents[2]
SHARDS = ("north", "south")
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    name = f"dagster_{uuid.uuid4().hex[:8]}"
    host, _, port = postgres.partition(":")
    admin = psycopg2.connect(host=host, port=port, user="postgres", dbname="test")
    admin.autocommit = True
    admin.cursor().execute(f"create database {name}")
    yield name
    admin.cursor().execute(f"drop database {name} with (force)")
    admin.close()


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[dict[str, list[Sandbox]]]:
    """Three accounts in each of two shards; those of the shards are alike, so that one tells how the other
    should have ended."""
    tables = []
    with ExitStack() as stack:
        found: dict[str, list[Sandbox]] = {}
        for shard in SHARDS:
            for number in range(3):
                options = (
                    "--contacts",
                    "60",
                    "--rate-limit",
                    "0",
                    "--seed",
                    str(number),
                    "--now",
                    NOW,
                    "--key",
                    f"key-{shard}",
                )
                url = stack.enter_context(spawned(*options))
                found.setdefault(shard, []).append(Sandbox(url))
                tables.append(
                    f'[accounts.{shard}{number}]\nurl = "{url}"\nkey_env = "{shard.upper()}_KEY"\nshard '
                    f'= "{shard}"\n'
                )
        (tmp_path / "accounts.toml").write_text("\n".join(tables))
        yield found


class Deployment:
    """The three processes, as `deploy/` has them, in the folder of accounts.toml."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.homes = folder, folder / "homes"
        self._programs: list[subprocess.Popen[bytes]] = []
        own = folder / "own"
        own.mkdir()
        shutil.copy(ROOT / "deploy" / "dagster.yaml", own)
        code, self._web = _free_port(), _free_port()
        workspace = (
            f"load_from: [{{grpc_server: {{host: 127.0.0.1, port: {code}, location_name: "
            f"marketing-sync}}}}]\n"
        )
        (folder / "workspace.yaml").write_text(workspace)
        live = {
            "PYTHONPATH": str(ROOT),
            "DAGSTER_HOME": str(own),
            "DAGSTER_POSTGRES_HOST": "127.0.0.1",
            "DAGSTER_POSTGRES_PORT": "5432",
            "DAGSTER_POSTGRES_USER": "postgres",
            "DAGSTER_POSTGRES_PASSWORD": "trusted",
            "DAGSTER_POSTGRES_DB": database,
            "MARKETING_HOME": str(self.homes),
            "MARKETING_SCHEDULE_CRON": "* * * * *",
            **{f"{shard.upper()}_KEY": f"key-{shard}" for shard in SHARDS},
        }
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")
        } | live
        where = (
            "--module-name=marketing_sync.definitions",
            f"--working-directory={ROOT}",
            "--host=127.0.0.1",
            f"--port={code}",
        )
        self._start("code", "dagster", "code-server", "start", *where)
        self._start("daemon", "dagster._daemon", "run", f"--workspace={folder}/workspace.yaml")
        self._start(
            "web",
            "dagster_webserver",
            "-h",
            "127.0.0.1",
            "-p",
            str(self._web),
            f"--workspace={folder}/workspace.yaml",
        )

    def _start(self, name: str, module: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", module, *words]
            self._programs.append(
                subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=self._environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def stop(self) -> None:
        for program in self._programs:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()

    def ask(self, query: str) -> Any:
        reply = requests.post(f"http://127.0.0.1:{self._web}/graphql", json={"query": query}, timeout=HANGS_S)
        return reply.json()["data"]

    def runs(self) -> list[dict[str, Any]]:
        """Newest first, each with its shard."""
        found = self.ask("{runsOrError {... on Runs {results {runId status tags {key value}}}}}")[
            "runsOrError"
        ]["results"]
        return [run | {"tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]

    def stop_schedule(self) -> None:
        where = (
            'repositoryName: "__repository__", repositoryLocationName: "marketing-sync", '
            'scheduleName: "nightly"'
        )
        [state] = [
            self.ask(
                f"{{scheduleOrError(scheduleSelector: {{{where}}}) {{... on Schedule {{scheduleState "
                f"{{id}}}}}}}}"
            )
        ]
        number = state["scheduleOrError"]["scheduleState"]["id"]
        stopped = self.ask(
            f'mutation {{stopRunningSchedule(id: "{number}") {{... on ScheduleStateResult {{scheduleState '
            f"{{status}}}}}}}}"
        )
        assert stopped["stopRunningSchedule"]["scheduleState"]["status"] == "STOPPED"


@pytest.fixture
def deployment(tmp_path: Path, database: str, accounts: dict[str, list[Sandbox]]) -> Iterator[Deployment]:
    found = Deployment(tmp_path, database)
    yield found
    found.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until(look: Callable[[], Any], seconds: float = 1200) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := look():
                return found
        except requests.RequestException:  # the web server begins
            pass
        time.sleep(0.5)
    raise TimeoutError("it did not come to it")


@pytest.mark.timeout(3600)
def test_every_shard_is_synced_although_the_process_of_one_is_killed(
    deployment: Deployment, accounts: dict[str, list[Sandbox]]
) -> None:
    _until(lambda: {run["tags"]["marketing-sync/shard"] for run in deployment.runs()} == set(SHARDS))
    deployment.stop_schedule()
    [killed] = _until(
        lambda: [run["runId"] for run in deployment.runs() if run["status"] == "STARTED" and _is_north(run)][
            -1:
        ]
    )
    _until(lambda: accounts["north"][0].count > 30)
    for process in _until(lambda: _processes_in(deployment.homes / "north")):
        os.kill(process, signal.SIGKILL)
    _until(
        lambda: [run for run in deployment.runs() if run["tags"].get("dagster/parent_run_id") == killed], 200
    )
    ended = _until(
        lambda: all(run["status"] in ENDED for run in deployment.runs()) and deployment.runs(), 600
    )

    assert {run["status"] for run in ended if run["runId"] != killed} == {"SUCCESS"}
    assert {run["status"] for run in ended if run["runId"] == killed} == {"FAILURE"}
    north, south = (rows(deployment.homes / shard, "source", "account", *WHEN) for shard in SHARDS)
    assert north.keys() == south.keys()
    for table, content in north.items():
        assert content == south[table], table
    assert {row[0] for row in query(deployment.homes / "north", "select account from source.contacts")} == {
        "north0",
        "north1",
        "north2",
    }
    asked = {shard: sum(sandbox.count for sandbox in accounts[shard]) for shard in SHARDS}
    nights = {
        shard: sum(
            run["status"] == "SUCCESS" for run in ended if run["tags"]["marketing-sync/shard"] == shard
        )
        for shard in SHARDS
    }
    if nights["north"] == nights["south"]:
        # again: what was under way when it was killed, at most a request of each worker of each account
        assert asked["north"] - asked["south"] <= 3 * _MOST_WORKERS, asked


def _is_north(run: dict[str, Any]) -> bool:
    return bool(run["tags"]["marketing-sync/shard"] == "north")


def _processes_in(home: Path) -> list[int]:
    """Those that have a file of the home open: the run's own, as the code server starts it."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            if link.readlink().is_relative_to(home):
                found.add(int(link.parts[2]))
    return sorted(found)
