"""A home that the version of 2026-11-22 made (a sync, five tags, five activities) opens, syncs, pushes and rebuilds with this one."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from marketing_api.sandbox.options import Options
from marketing_api.sandbox.server import serve
from tests.pipelines.conftest import Command
from tests.pipelines.sandboxes import Sandbox

OLDER = Path(__file__).parent / "older_home.tar.xz"
#: When the home was made, unix seconds; its account goes on from there, a day later.
MADE = 1_795_357_799


@pytest.fixture
def service(home: Path) -> Iterator[Sandbox]:
    """The account of the home, with the writes that it had received."""
    with tarfile.open(OLDER) as archive:
        archive.extractall(home, filter="data")
    with serve(Options(rate_limit=0, now=MADE + 86_400, state=home / "sandbox.jsonl")) as url:
        yield Sandbox(url)


def contents(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of `source`, but for the ids of requests."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        connection.execute("set timezone = 'UTC'")
        tables = [name for (name,) in connection.sql("select table_name from duckdb_tables() where schema_name = 'source'").fetchall()]
        return {table: connection.sql(f"select * from source.{table} order by all").fetchall() for table in tables}


def pushed(home: Path, operation: str) -> list[str]:
    """Addresses that were pushed with the operation."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        found = connection.execute("select email from sync.writebacks where operation = ? order by item_id", [operation]).fetchall()
    return [email for (email,) in found]


def test_it_rebuilds_to_the_same_rows(command: Command, home: Path, service: Sandbox) -> None:
    before = contents(home)
    ran = command("rebuild", sandbox=service)
    assert ran.code == 0, ran.text
    assert contents(home) == before
    assert service.count == 0
    assert sum(map(len, before.values())) > 500


def test_it_syncs_and_remembers_what_was_pushed(command: Command, home: Path, service: Sandbox, tmp_path: Path) -> None:
    assert command("status", sandbox=service).code == 0
    ran = command("sync", "--reads-only", sandbox=service)
    assert ran.code == 0, ran.text
    asked = service.count
    assert asked < 130  # a first sync takes 179; this one completes history, and its turn has come for some contacts
    rows = tmp_path / "again.csv"
    rows.write_text("email,tag\n" + "".join(f"{email},vip\n" for email in pushed(home, "emailmarketing/addtag")))
    again = command("push", "tags", "--from", str(rows), "--apply", sandbox=service)
    assert (again.code, service.count) == (0, asked), again.text
    assert len(rows.read_text().splitlines()) == 6
    rows.write_text(rows.read_text().replace(",vip", ",regular"))
    new = command("push", "tags", "--from", str(rows), "--apply", sandbox=service)
    assert new.code == 0, new.text
    assert service.count >= asked + 5
