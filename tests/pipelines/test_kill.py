"""A run that is killed at any moment loses nothing and asks little again; the archive alone makes the warehouse anew."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from marketing_api.sandbox.cli import spawn
from tests.pipelines.conftest import NOW
from tests.pipelines.running import finish, start
from tests.pipelines.sandboxes import Sandbox

KILLS = 6
IN_FLIGHT = 32  # the client's workers
RATE = 60  # so that a run takes long enough to be killed in the middle


@dataclass(frozen=True)
class Nights:
    """One night that nobody disturbed and one that was killed again and again, of the same account."""

    calm: Path
    killed: Path
    calm_requests: int
    killed_requests: int


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    folder = tmp_path_factory.mktemp("kill")
    moments = random.Random(20261121)
    options = ("--contacts", "100", "--now", NOW, "--rate-limit", str(RATE))
    with spawn(*options) as calm_url, spawn(*options) as killed_url:
        calm, killed = Sandbox(calm_url), Sandbox(killed_url)
        assert finish(start(folder / "calm", calm, "sync")).code == 0
        for _ in range(KILLS):
            process = start(folder / "killed", killed, "sync")
            time.sleep(moments.uniform(2.0, 6.0))
            process.kill()
            process.communicate()
        ended = finish(start(folder / "killed", killed, "sync"))
        assert ended.code == 0, ended.text[-1500:]
        yield Nights(folder / "calm", folder / "killed", calm.count, killed.count)


def rows(home: Path, schema: str, *left_out: str) -> dict[str, list[Any]]:
    """Every row of every table of a schema, without the columns that tell when we asked."""
    found = {}
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        tables = connection.execute(
            "select table_name, list(column_name order by column_index) from duckdb_columns() where schema_name = ? group by 1", [schema]
        ).fetchall()
        for table, columns in tables:
            shown = ", ".join(f'"{column}"' for column in columns if column not in left_out)
            found[table] = connection.execute(f'select {shown} from {schema}."{table}" order by all').fetchall()
    return found


def test_nothing_is_lost(nights: Nights) -> None:
    when = ("_first_seen_at", "_changed_at", "_deleted_at")
    calm, killed = rows(nights.calm, "source", *when), rows(nights.killed, "source", *when)
    calm.pop("sentiment_totals"), killed.pop("sentiment_totals")  # keyed by the days asked for, which differ
    assert sum(map(len, calm.values())) > 5000
    assert {table for table in calm if calm[table] != killed[table]} == set()


def test_little_is_asked_again(nights: Nights) -> None:
    assert nights.killed_requests <= nights.calm_requests * 1.05 + KILLS * (IN_FLIGHT + RATE)


def test_the_archive_alone_makes_the_warehouse_anew(nights: Nights) -> None:
    schemas = {"source": (), "sync": ("applied_at",)}
    before = {schema: rows(nights.killed, schema, *left_out) for schema, left_out in schemas.items()}
    assert finish(start(nights.killed, None, "rebuild")).code == 0
    after = {schema: rows(nights.killed, schema, *left_out) for schema, left_out in schemas.items()}
    for schema, tables in before.items():
        differing = {table: (set(map(str, tables[table])) ^ set(map(str, after[schema][table]))) for table in tables}
        assert {table: rows for table, rows in differing.items() if rows} == {}
