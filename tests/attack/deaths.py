"""Kills each program of a deployment in each stage of a night and of a push, and starts it again: no run is
stuck, no night is lost, no row is lost or doubled.

Prints a row for each kill: how the shard's runs ended, how many seconds after the kill, what the alert address
was told. Takes PostgreSQL's and Redis's programs of this machine, and about an hour."""

import contextlib
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from http.server import HTTPServer
from pathlib import Path

from tests.fixtures import NOW, Alerts
from tests.pipelines.sandboxes import Sandbox, spawned
from tests.pipelines.tables import WHEN, Tables, differing, query, rows
from tests.services.conftest import Redis
from tests.services.deployment import Deployment, Postgres, own_postgres, processes_in
from tests.waiting import wait_until

PROGRAMS = ("code", "daemon", "web", "host", "worker", "postgres", "redis")
#: A stage, and the step whose beginning is its beginning, by shard: each has a first night that is killed, and
#: the last one a push behind it.
STAGES = {"reading": "", "loading": "", "models": "models", "publishing": "published", "push": "send_push"}
SHARDS = {stage: "publishing" if stage == "push" else stage for stage in STAGES}
CALM = "calm"
TAGGED = 30
_WRONG_TOTALS = """
    select from_on, to_on, positive_count, negative_count from source.sentiment_totals as totals
    where (positive_count, negative_count) is distinct from (
        select (count(*) filter (polarity = 'positive'), count(*) filter (polarity = 'negative'))
        from source.sentiment_mentions where reviewed_on between totals.from_on and totals.to_on
    )
"""
_TAGS = "select distinct contact_id, 'killed' as tag from source.contacts where _deleted_at is null"
_CONFIG = {"sql": f"{_TAGS} order by contact_id limit {TAGGED}", "dry_run": False, "confirm": "send"}
_PUSH = {"ops": {"plan_tags": {"config": _CONFIG}}}


class Stand:
    """A deployment with a shard of one account for each night, and one in which nothing is killed."""

    def __init__(self, folder: Path, stack: ExitStack, seed: int) -> None:
        alerts = stack.enter_context(HTTPServer(("127.0.0.1", 0), Alerts))
        threading.Thread(target=alerts.serve_forever, daemon=True).start()
        stack.callback(alerts.shutdown)
        self.postgres: Postgres = stack.enter_context(own_postgres())
        self.redis = Redis(folder)
        self.redis.start()
        stack.callback(self.redis.kill)
        self.services: dict[str, Sandbox] = {}
        tables = []
        for shard in (CALM, *dict.fromkeys(SHARDS.values())):
            options = ("--contacts", "40", "--rate-limit", "50", "--seed", str(seed), "--now", NOW)
            url = stack.enter_context(spawned(*options, "--key", f"key-{shard}"))
            self.services[shard] = Sandbox(url)
            tables.append(
                f'[accounts.one_{shard}]\nurl = "{url}"\nkey_env = "{shard.upper()}_KEY"\nshard = "{shard}"\n'
            )
        (folder / "accounts.toml").write_text("\n".join(tables))
        keys = {f"{shard.upper()}_KEY": f"key-{shard}" for shard in self.services}
        settings = {"MARKETING_BUDGET_URL": self.redis.url, "MARKETING_SCHEDULE_CRON": "0 0 1 1 *"}
        settings["MARKETING_ALERT_URL"] = f"http://127.0.0.1:{alerts.server_port}/"
        self.dagster = Deployment(folder, self.postgres.port, "postgres", variables=keys | settings)
        stack.callback(self.dagster.stop)

    def begin(self, stage: str) -> str:
        """A run of the stage's shard that has come to it."""
        job, config = ("push_tags", _PUSH) if stage == "push" else ("nightly_sync", {})
        run = self.dagster.launch(job, SHARDS[stage], config)
        reached: dict[str, Callable[[], object]] = {
            "reading": lambda: self.services[stage].count > 30,
            "loading": lambda: self.dagster.has_event(run, "ASSET_MATERIALIZATION", "read"),
        }
        begins = lambda: self.dagster.has_event(run, "STEP_START", STAGES[stage])  # noqa: E731
        wait_until(reached.get(stage, begins), f"{stage} did not begin")
        return run

    def night(self, shard: str) -> None:
        self.dagster.launch("nightly_sync", shard)
        self.wait(shard)

    def wait(self, shard: str) -> None:
        wait_until(lambda: self.dagster.is_over(shard), f"a run of {shard} is stuck")

    def strike(self, program: str, shard: str) -> None:
        """Kill it and start it again."""
        if program == "postgres":
            self.postgres.kill()
            self.postgres.start()
        elif program == "redis":
            self.redis.kill()
            self.redis.start()
        elif program == "worker":
            for process in processes_in(self.dagster.homes / shard):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        else:
            programs = list(self.dagster.programs) if program == "host" else [program]
            for name in programs:
                self.dagster.kill(name)
            for name in programs:
                self.dagster.start(name)


@contextlib.contextmanager
def stand(seed: int) -> Iterator[Stand]:
    with tempfile.TemporaryDirectory(prefix="deaths-") as folder, ExitStack() as stack:
        yield Stand(Path(folder), stack, seed)


def kill(stand: Stand, program: str, stage: str, truth: Tables) -> str:
    """A row of the table. Raises AssertionError when something is stuck, lost or doubled."""
    shard = SHARDS[stage]
    told, began = len(Alerts.bodies), time.monotonic()
    run = stand.begin(stage)
    struck = time.monotonic()
    stand.strike(program, shard)
    stand.wait(shard)
    ended = time.monotonic()
    runs = stand.dagster.statuses(shard)
    of_kill = list(runs.values())[list(runs).index(run) :]
    assert of_kill[-1] == "SUCCESS", f"{program}, {stage}: {of_kill}"
    if stage == "push":
        written = [each for each in stand.services[shard].asked() if "tag" in each["operation"]]
        sent = [each["params"] for each in written if each["outcome"] == "ok"]
        assert len(sent) == len({json.dumps(each, sort_keys=True) for each in sent}), f"{program}: sent twice"
        assert len(sent) == TAGGED, f"{program}: {len(sent)} of {TAGGED} were sent"
    else:
        different = differing(tables(stand.dagster.homes / shard), truth)
        assert not different, f"{program}, {stage}: {sorted(different)}"
    alerts = len(Alerts.bodies) - told
    cells = (program, stage, ", then ".join(of_kill).lower(), f"{ended - struck:.0f}", f"{alerts}")
    return f"| {' | '.join(cells)} | {struck - began:.0f} |"


def tables(home: Path) -> Tables:
    """Without the account, whose name is the shard's. Totals are kept for the days that were asked for together,
    and a run that follows a failed one asks for the last days again: each must be what its days' mentions say."""
    found = rows(home, "source", "account", *WHEN)
    found["sentiment_totals"] = query(home, _WRONG_TOTALS)
    return found


def table(programs: Sequence[str], seed: int) -> Iterator[str]:
    yield "| killed | during | its run, and what followed | seconds until over | alerts | before |"
    yield "|---|---|---|---|---|---|"
    truth: Tables = {}
    for program in programs:
        with stand(seed) as found:
            if not truth:
                found.night(CALM)
                truth = tables(found.dagster.homes / CALM)
            for stage in STAGES:
                try:
                    yield kill(found, program, stage, truth)
                except AssertionError as problem:
                    yield f"| {program} | {stage} | FAILED: {problem} | | | |"


def attack(minutes: float, seed: int, *only: str) -> str:
    """`only`: of `PROGRAMS`."""
    del minutes  # it has as many cases as it has
    lines = list(table(only or PROGRAMS, seed))
    text = "\n".join(lines)
    assert "FAILED" not in text, text
    return text
