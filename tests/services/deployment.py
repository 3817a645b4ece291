"""Dagster as `deploy/` has it (code server, daemon, web server), with a PostgreSQL and a Redis that may be
killed, in processes of a test's own."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import requests

from tests.ports import free_port, is_served
from tests.waiting import HANGS_S, wait_until

ROOT = Path(__file__).parents[2]
#: What no later event changes; one that Dagster tries again has a successor.
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}
LOCATION = "marketing-sync"
SHARD, DAYS = "marketing-sync/shard", "marketing-sync/days"
_BIN = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/bin"))


class Postgres:
    """A server with a database `postgres`, for whoever connects as the user of that name."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._user = {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}  # it refuses root
        if self._user:
            shutil.chown(self._folder, **self._user)
        self._run("initdb", "--auth=trust", "--username=postgres", "--no-sync", "--no-instructions")
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", f"-o-p {self.port} -k {self._folder} -c fsync=off", "-l", "log")

    def kill(self) -> None:
        """As a machine does that loses its power."""
        self._run("pg_ctl", "stop", "-m", "immediate")

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def _run(self, program: str, *words: str) -> None:
        command = [str(_BIN / program), "-D", str(self._folder / "data"), *words]
        subprocess.run(command, cwd=self._folder, check=True, stdout=subprocess.DEVNULL, **self._user)  # type: ignore[call-overload]


class Deployment:
    """The three programs, in the folder of accounts.toml."""

    def __init__(
        self,
        folder: Path,
        port: int,
        database: str,
        *,
        variables: Mapping[str, str] = {},
        at_once: int = 10,
    ) -> None:
        self.folder, self.homes = folder, folder / "homes"
        self.port, self.database = port, database
        own = folder / "own"
        own.mkdir()
        settings = (ROOT / "deploy" / "dagster.yaml").read_text(encoding="utf-8")
        settings = settings.replace("poll_interval_seconds: 30", "poll_interval_seconds: 5")
        settings = settings.replace("max_concurrent_runs: 4", f"max_concurrent_runs: {at_once}")
        settings = settings.replace("/data/dagster", str(folder / "artifacts"))
        (own / "dagster.yaml").write_text(settings, encoding="utf-8")
        code, self.web = free_port(), free_port()
        workspace = folder / "workspace.yaml"
        server = f"{{host: 127.0.0.1, port: {code}, location_name: {LOCATION}}}"
        workspace.write_text(f"load_from: [{{grpc_server: {server}}}]\n", encoding="utf-8")
        postgres = {"HOST": "127.0.0.1", "PORT": str(port), "USER": "postgres", "DB": database}
        postgres["PASSWORD"] = "trusted"
        live = {f"DAGSTER_POSTGRES_{name}": value for name, value in postgres.items()}
        live |= {"PYTHONPATH": str(ROOT), "DAGSTER_HOME": str(own), "MARKETING_HOME": str(self.homes)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
        self.environment = kept | live | dict(variables)
        module = ("--module-name", "marketing_sync.definitions", "--working-directory", str(ROOT))
        listening = ("--host", "127.0.0.1", "--port", str(code), "--location-name", LOCATION)
        self._commands: dict[str, Sequence[str]] = {
            "code": ("dagster", "api", "grpc", *module, *listening),
            "daemon": ("dagster._daemon", "run", f"--workspace={workspace}"),
            "web": ("dagster_webserver", "-h", "127.0.0.1", "-p", str(self.web), f"--workspace={workspace}"),
        }
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        for name in self._commands:
            self.start(name)
            if name == "code":
                wait_until(lambda: is_served(code), "the code server does not listen")

    def start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.programs[name] = subprocess.Popen(
                [sys.executable, "-m", *self._commands[name]],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """With all that it started, as a container ends."""
        program = self.programs[name]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()

    def stop(self) -> None:
        for name in self.programs:
            self.kill(name)

    def ask(self, query: str, **variables: object) -> Any:
        asked = {"query": query, "variables": variables}
        reply = requests.post(f"http://127.0.0.1:{self.web}/graphql", json=asked, timeout=HANGS_S)
        return reply.json()["data"]

    def launch(self, job: str, shard: str, config: Mapping[str, object] = {}, **tags: str) -> str:
        """The run's id; waits for the web server and the code."""
        selector = {"repositoryLocationName": LOCATION, "repositoryName": "__repository__", "jobName": job}
        tagged = {SHARD: shard, DAYS: "all that are due"} | tags
        metadata = {"tags": [{"key": key, "value": tagged[key]} for key in tagged]}
        parameters = {"selector": selector, "runConfigData": config, "executionMetadata": metadata}
        mutation = (
            "mutation ($parameters: ExecutionParams!) {launchRun(executionParams: $parameters) "
            "{__typename ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}}}"
        )
        launched: list[str] = []
        replies: list[object] = []

        def launch() -> bool:
            with contextlib.suppress(requests.RequestException, ValueError):
                reply = self.ask(mutation, parameters=parameters)["launchRun"]
                replies.append(reply)
                launched.extend([reply["run"]["runId"]] if "run" in reply else [])
            return bool(launched)

        wait_until(launch, f"{job} could not be launched: {replies[-1:]}")
        return launched[0]

    # -- what the database says, whichever program is up

    def select(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        where = {"host": "127.0.0.1", "port": self.port, "user": "postgres", "dbname": self.database}
        with closing(psycopg2.connect(**where)) as connection, connection.cursor() as cursor:  # type: ignore[arg-type]
            cursor.execute(sql, parameters)
            return cursor.fetchall()

    def statuses(self, shard: str) -> dict[str, str]:
        """The shard's runs, oldest first, without those whose launch was reported as failed."""
        sql = "select run_id, status from runs join run_tags using (run_id) where key = %s and value = %s "
        sql += "and not (status = 'NOT_STARTED' and run_body not like %s) order by runs.id"
        return dict(self.select(sql, SHARD, shard, "%dagster/parent_run_id%"))

    def tags(self, run_id: str) -> dict[str, str]:
        return dict(self.select("select key, value from run_tags where run_id = %s", run_id))

    def has_event(self, run_id: str, kind: str, step: str = "%") -> bool:
        sql = "select 1 from event_logs where run_id = %s and dagster_event_type = %s and step_key like %s"
        return bool(self.select(sql + " limit 1", run_id, kind, step))

    def is_over(self, shard: str) -> bool:
        """No run of the shard goes on, and none is to be tried again."""
        runs = self.statuses(shard)
        waiting = [
            run
            for run, status in runs.items()
            if status == "FAILURE"
            and (tags := self.tags(run)).get("dagster/will_retry") != "false"  # said behind the status
            and "dagster/auto_retry_run_id" not in tags
        ]
        # once more after the tags: a next try begins before it is named in them
        statuses = {*runs.values(), *self.statuses(shard).values()}
        return not waiting and statuses <= ENDED


def processes_in(home: Path) -> list[int]:
    """Those that have a file of the home open: the run's own, as the code server starts it."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            if link.readlink().is_relative_to(home):
                found.add(int(link.parts[2]))
    return sorted(found)


@contextlib.contextmanager
def own_postgres() -> Iterator[Postgres]:
    server = Postgres()
    try:
        yield server
    finally:
        server.remove()
