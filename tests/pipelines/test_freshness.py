"""What is late, by the clock: nothing due is current, and everybody sees a pipeline that stands still."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from home.freshness import format_due
from tests.dialects.server import Options, serve
from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from tests.warehouse.selected import selected
from warehouse.connection import open_database
from warehouse.models import build_models
from warehouse.policies import FRESH_FOR, GRACE
from warehouse.schema import ensure_schema
from warehouse.tables import TABLES

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def service() -> Iterator[Sandbox]:
    with serve(Options(contacts=100, rate_limit=0)) as url:
        yield Sandbox(url)


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def pass_time(path: Path, hours: float) -> None:
    """As if everything in the file had happened so much earlier."""
    moved = ", ".join(f"{name} = {name} - to_minutes({hours * 60:.0f})" for name in ("as_of", "due_at"))
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"update sync.coverage set {moved}")


@pytest.mark.slow
def test_a_table_that_a_run_left_half_read_is_not_complete(
    service: Sandbox, command: Command, home: Path
) -> None:
    cut = command(
        "sync", "--only", "social_posts", "social_post_details", "--max-requests", "20", sandbox=service
    )
    assert cut.code == 1, cut.text
    line = next(line for line in command("status").out.splitlines() if " social_post_details " in line)
    assert line.split()[-1] == "no", line
    assert command("sync", "--only", "social_posts", "social_post_details", sandbox=service).code == 0
    line = next(line for line in command("status").out.splitlines() if " social_post_details " in line)
    assert line.split()[-1] == "yes", line


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.slow
def test_what_had_nothing_due_is_current_and_what_stands_still_is_late(
    service: Sandbox, command: Command, home: Path, folder: Path
) -> None:
    warehouse = home / "warehouse.duckdb"
    assert command("sync", "--reads-only", sandbox=service).code == 0
    assert "nothing was read since" not in command("status").out

    pass_time(warehouse, 24)
    late = command("sync", "--reads-only", sandbox=service)
    assert late.code == 0, late.text
    assert service.asked()[-1]["operation"] != "socialmedia/getpost", "nothing of it was due"
    unread = ask(
        warehouse,
        "select distinct table_name from sync.coverage where due_at <= now() and not contains(scope, '..')",
    )
    assert unread == [], "a table with nothing due is current"
    assert ask(
        warehouse, "select count(*) from source.social_post_details where _deleted_at is not null"
    ) == [(0,)]

    shown = {table["table"]: table["rows"] for table in json.loads(command("status", "--json").out)["tables"]}
    for name, rows in shown.items():  # two nights of ranges of days overlap
        assert ask(warehouse, f"select count(*) from source.{name} where {TABLES[name].is_there}") == [
            (rows,)
        ], name

    pass_time(warehouse, FRESH_FOR.total_seconds() / 3600 + 1)
    said = command("status").out
    assert said.startswith("account main: nothing was read since"), said
    assert "`marketing-sync sync` reads now" in said
    (folder / "accounts.toml").write_text("[accounts.other]\nurl = 'https://x/1'\nkey_env = 'KEY'\n")
    assert "account main: nothing" not in command("status").out, "no sync reads it any more"


@pytest.mark.parametrize("minutes", [-30, 30])
def test_status_and_the_mart_call_the_same_late(tmp_path: Path, minutes: int) -> None:
    path = tmp_path / "warehouse.duckdb"
    now = dt.datetime.now(dt.UTC)
    moment = now - GRACE - dt.timedelta(minutes=minutes)
    with open_database(path) as connection:
        ensure_schema(connection)
        row = {
            "account": "a",
            "table_name": "lists",
            "scope": "all",
            "as_of": moment,
            "due_at": moment,
            "is_complete": True,
        }
        connection.execute("insert into sync.coverage by name select unnest($row)", {"row": row})
    build_models(path, select=selected("+data_freshness"))
    is_late = minutes > 0
    assert ask(path, "select is_overdue from marts.data_freshness where subject = 'lists'") == [(is_late,)]
    assert (format_due(moment, now) == "late") is is_late


def test_a_reading_dated_in_the_future_is_of_unknown_age_and_overdue(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(days=400)
    with open_database(path) as connection:
        ensure_schema(connection)
        row = {"account": "a", "table_name": "lists", "scope": "all", "is_complete": True}
        row |= {"as_of": moment, "due_at": moment + dt.timedelta(days=1)}
        connection.execute("insert into sync.coverage by name select unnest($row)", {"row": row})
    build_models(path, select=selected("+data_freshness"))
    found = ask(path, "select age_hours, oldest_age_hours, is_overdue from marts.data_freshness")
    assert found == [(None, None, True)]


def test_today_is_of_the_newest_request_whatever_clocks_showed(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with open_database(path) as connection:
        ensure_schema(connection)
        for request, day in ((1, "2027-04-20"), (2, "2026-03-16")):
            row = {"account": "a", "table_name": "lists", "scope": f"list_id={request}", "is_complete": True}
            row |= {"as_of": f"{day} 02:00:00+00", "last_request": request}
            connection.execute("insert into sync.coverage by name select unnest($row)", {"row": row})
    build_models(path, select=selected("+int_accounts"))
    found = ask(path, "select today from staging.int_accounts")
    assert found == [(dt.date(2026, 3, 16),)]


@pytest.mark.slow
def test_what_is_dated_in_the_future_is_said(service: Sandbox, command: Command, home: Path) -> None:
    assert command("sync", "--reads-only", "--only", "lists", "users", sandbox=service).code == 0
    pass_time(home / "warehouse.duckdb", 48)
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute("update sync.coverage set as_of = as_of + to_days(12) where table_name = 'users'")
    said = command("status").out
    assert "account main: the last reading is dated" in said
    assert "dated in the future" in said
