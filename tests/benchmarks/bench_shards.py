"""A fleet as its services run it, on one machine, and beside it what its model (`bench_fleet`) says.

    python -m tests.benchmarks.bench_shards [--shards 4 --accounts 10 --contacts 300 --pods 2 --nights 2]

Code server, daemon and web server with a PostgreSQL of their own; the service is another process on the same
machine. Nights are launched in all shards at once and queue for `--pods` places. Prints of each night its
seconds, requests, memory and processor of the runs, connections to PostgreSQL and the growth of Dagster's
history. Goals: every account is read to the end and stands in its own shard alone; requests, seconds, memory
and connections of the first night within 10 % of the model. Exit code 1 on a miss."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.benchmarks.bench_fleet import Fleet
from tests.dialects.server import spawn
from tests.pipelines.sandboxes import Sandbox
from tests.services.deployment import Deployment, own_postgres
from tests.waiting import wait_until

LIMIT = 15
#: The programs have the machine's clock: a service of another day leaves days out.
NOW = dt.datetime.now(dt.UTC).isoformat(timespec="minutes")
_CLOCK, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGESIZE")
_GOAL = 0.1


def configure(folder: Path, url: str, fleet: Fleet) -> dict[str, str]:
    """`accounts.toml` in the folder, and the environment with the keys."""
    table = '[accounts.a{0}]\nurl = "{1}"\nkey_env = "BENCH_KEY_{0}"\nshard = "s{2}"\n'
    every = range(fleet.shards * fleet.accounts)
    (folder / "accounts.toml").write_text(
        "".join(table.format(number, url, number % fleet.shards) for number in every)
    )
    return {f"BENCH_KEY_{number}": f"key-{number}" for number in every}


@dataclass
class Sampled(threading.Thread):
    """What runs take while a night goes on, each a process of the code server's."""

    dagster: Deployment
    memory: dict[int, float] = field(default_factory=dict)  # the largest of each run, in MB
    processor: dict[int, float] = field(default_factory=dict)  # seconds of each
    connections: int = 0

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._is_over = threading.Event()

    def __hash__(self) -> int:  # threads are kept in sets
        return id(self)

    def run(self) -> None:
        while not self._is_over.wait(2):
            ((found,),) = self.dagster.select(
                "select count(*) from pg_stat_activity where datname = 'postgres'"
            )
            self.connections = max(self.connections, found - 1)  # this one
            for process in Path("/proc").glob("[0-9]*"):
                self._sample(process)

    def _sample(self, process: Path) -> None:
        number = int(process.name)
        try:
            stat = (process / "stat").read_text().rpartition(")")[2].split()
            resident = int((process / "statm").read_text().split()[1]) * _PAGE / 1e6
        except OSError:  # it ended meanwhile
            return
        if int(stat[1]) == self.dagster.programs["code"].pid:
            self.memory[number] = max(self.memory.get(number, 0.0), resident)
            self.processor[number] = (int(stat[11]) + int(stat[12])) / _CLOCK

    def end(self) -> None:
        self._is_over.set()
        self.join()


@dataclass(frozen=True)
class Night:
    seconds: float
    requests: int
    memory: float
    processor: float
    connections: int
    history_mb: float  # of a shard
    events: float  # of a shard

    @classmethod
    def of(cls, dagster: Deployment, service: Sandbox, shards: int) -> Night:
        asked, size, events = service.count, _history(dagster), _events(dagster)
        sampled = Sampled(dagster)
        sampled.start()
        began = time.monotonic()
        waiting = [f"s{number}" for number in range(shards)]
        for shard in waiting:
            dagster.launch("nightly_sync", shard)
        while waiting := [shard for shard in waiting if not dagster.is_over(shard)]:
            time.sleep(1)
        seconds = time.monotonic() - began
        sampled.end()
        return cls(
            seconds,
            service.count - asked,
            max(sampled.memory.values()),
            sum(sampled.processor.values()) / shards,
            sampled.connections,
            (_history(dagster) - size) / shards / 1e6,
            (_events(dagster) - events) / shards,
        )

    def __str__(self) -> str:
        return (
            f"{self.seconds:,.0f} s, {self.requests:,} requests; a run at most {self.memory:,.0f} MB, "
            f"processor {self.processor:.1f} s in the mean; {self.connections} connections to PostgreSQL; history of a "
            f"shard {self.history_mb:.2f} MB, {self.events:,.0f} events"
        )


def _history(dagster: Deployment) -> int:
    return int(dagster.select("select pg_database_size('postgres')")[0][0])


def _events(dagster: Deployment) -> int:
    return int(dagster.select("select count(*) from event_logs")[0][0])


def measure(fleet: Fleet, nights: int, folder: Path) -> bool:
    """Whether every goal was met."""
    known = [
        word
        for number in range(fleet.shards * fleet.accounts)
        for word in ("--account", f"a{number}=key-{number}:{number}:{fleet.contacts}")
    ]
    with ExitStack() as stack:
        url = stack.enter_context(spawn(*known, "--rate-limit", str(LIMIT), "--now", NOW))
        postgres = stack.enter_context(own_postgres())
        keys = configure(folder, url, fleet)
        schedule = {"MARKETING_SCHEDULE_CRON": "0 0 1 1 *"}
        dagster = Deployment(folder, postgres.port, "postgres", variables=keys | schedule, at_once=fleet.pods)
        stack.callback(dagster.stop)
        tables = "select from pg_class where relname in ('event_logs', 'runs') having count(*) = 2"
        wait_until(lambda: dagster.select(tables), "Dagster did not start")
        print(
            f"{fleet.shards * fleet.accounts:,} accounts of {fleet.contacts:,} contacts in {fleet.shards:,} "
            f"shards, {fleet.pods} at a time, load {os.getloadavg()[0]:.1f} at the start",
            flush=True,
        )
        measured = []
        for number in range(nights):
            measured.append(Night.of(dagster, Sandbox(url), fleet.shards))
            print(f"night {number + 1}: {measured[-1]}", flush=True)
        failed = dagster.select("select count(*) from runs where status <> 'SUCCESS'")[0][0]
        print(f"runs that did not succeed: {failed}")
        homes = dagster.homes
        wrong = [number for number in range(fleet.shards) if not _is_whole(homes, number, fleet)]
    print(f"shards without all their accounts, or with others: {wrong or 'none'}")
    return _beside(fleet, measured[0]) and not wrong and not failed


def _is_whole(homes: Path, shard: int, fleet: Fleet) -> bool:
    with duckdb.connect(str(homes / f"s{shard}" / "warehouse.duckdb"), read_only=True) as connection:
        read = dict(
            connection.execute(
                "select account, count(timeline_asked_at) from sync.contact_coverage group by 1"
            ).fetchall()
        )
    return read == {f"a{shard + fleet.shards * number}": fleet.contacts for number in range(fleet.accounts)}


def _beside(fleet: Fleet, first: Night) -> bool:
    """Whether the model says what was measured."""
    pairs: Mapping[str, tuple[float, float]] = {
        "requests": (first.requests, fleet.requests()),
        "seconds": (first.seconds, fleet.hours() * 3600),
        "MB of a run": (first.memory, fleet.gb_of_a_run * 1000),
        "connections": (first.connections, fleet.connections),
    }
    for name, (measured, modelled) in pairs.items():
        print(f"{name}: {measured:,.0f} measured, {modelled:,.0f} modelled, {measured / modelled:.2f} times")
    return all(abs(measured / modelled - 1) <= _GOAL for measured, modelled in pairs.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("shards", 4), ("accounts", 10), ("contacts", 300), ("pods", 2), ("nights", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = vars(parser.parse_args())
    nights = chosen.pop("nights")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(Fleet(**chosen, pod_s=0), nights, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
