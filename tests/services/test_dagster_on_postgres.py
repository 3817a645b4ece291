"""Code server, daemon and web server on PostgreSQL: a run per shard, and a killed one is made up for."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import requests

from tests.fixtures import NOW
from tests.pipelines.sandboxes import Sandbox, spawned
from tests.pipelines.tables import WHEN, query, rows
from tests.services.deployment import ENDED, Deployment, processes_in

SHARDS = ("north", "south")


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
    """Three accounts in each of two shards, which are alike: one tells how the other should have ended."""
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


@pytest.fixture
def deployment(
    tmp_path: Path, postgres: str, database: str, accounts: dict[str, list[Sandbox]]
) -> Iterator[Deployment]:
    keys = {f"{shard.upper()}_KEY": f"key-{shard}" for shard in SHARDS}
    every_minute = {"MARKETING_SCHEDULE_CRON": "* * * * *"}
    found = Deployment(tmp_path, int(postgres.partition(":")[2]), database, variables=keys | every_minute)
    yield found
    found.stop()


def _runs(deployment: Deployment) -> list[dict[str, Any]]:
    """Newest first, each with its shard."""
    query = "{runsOrError {... on Runs {results {runId status tags {key value}}}}}"
    found = deployment.ask(query)["runsOrError"]["results"]
    return [run | {"tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]


def _stop_schedule(deployment: Deployment) -> None:
    where = (
        'repositoryName: "__repository__", repositoryLocationName: "marketing-sync", scheduleName: "nightly"'
    )
    state = deployment.ask(
        f"{{scheduleOrError(scheduleSelector: {{{where}}}) {{... on Schedule {{scheduleState {{id}}}}}}}}"
    )
    number = state["scheduleOrError"]["scheduleState"]["id"]
    stopped = deployment.ask(
        f'mutation {{stopRunningSchedule(id: "{number}") {{... on ScheduleStateResult {{scheduleState '
        f"{{status}}}}}}}}"
    )
    assert stopped["stopRunningSchedule"]["scheduleState"]["status"] == "STOPPED"


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
    _until(lambda: {run["tags"]["marketing-sync/shard"] for run in _runs(deployment)} == set(SHARDS))
    _stop_schedule(deployment)
    [killed] = _until(
        lambda: [run["runId"] for run in _runs(deployment) if run["status"] == "STARTED" and _is_north(run)][
            -1:
        ]
    )
    _until(lambda: accounts["north"][0].count > 100)
    for process in _until(lambda: processes_in(deployment.homes / "north")):
        os.kill(process, signal.SIGKILL)
    before = sum(sandbox.count for sandbox in accounts["north"])
    _until(
        lambda: [run for run in _runs(deployment) if run["tags"].get("dagster/parent_run_id") == killed], 200
    )
    ended = _until(
        lambda: all(run["status"] in ENDED for run in _runs(deployment)) and _runs(deployment), 600
    )

    assert {run["status"] for run in ended if run["runId"] != killed} == {"SUCCESS"}
    assert {run["status"] for run in ended if run["runId"] == killed} == {"FAILURE"}
    north, south = (rows(deployment.homes / shard, "source", "account", *WHEN) for shard in SHARDS)
    assert north.keys() == south.keys()
    for table, content in north.items():
        # one row for each range that was requested: a shard with one more night has more
        assert content == south[table] or table == "sentiment_totals", table
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
        # resumed, not begun again: how little is requested twice is measured in tests/pipelines/test_kill.py
        assert asked["north"] - asked["south"] < before, (asked, before)


def _is_north(run: dict[str, Any]) -> bool:
    return bool(run["tags"]["marketing-sync/shard"] == "north")
