"""The input of a push that is a query on the warehouse: what it may be, and where it ends."""

import contextlib
import datetime as dt
import os
import shutil
import signal
import time
from pathlib import Path

import duckdb
import pytest

from home import interrupts
from home.settings import Settings
from tests.pipelines.running import finish, start
from tests.pipelines.sandboxes import Sandbox
from tests.write_back.input.test_files import records
from warehouse.connection import open_database
from warehouse.errors import NoWarehouse
from warehouse.schema import stamp_version
from write_back.input.query import read_query
from write_back.input.rows import InputError, Rows

#: Types that a query has to cast.
LOSSY = ("uhugeint", "time_tz")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("query") / "warehouse.duckdb"
    with open_database(path) as connection:
        stamp_version(connection)
        connection.execute(
            "create schema source; create table source.people as select 'ann@example.com' as email, "
            "12::double as id; create table source.contacts as select unnest(['main', 'other']) as account"
        )
    return path


def asked(path: Path, sql: str, **limits: int) -> Rows:
    return read_query(Settings(path.parent, **limits), sql, "main")


def refusal(path: Path, sql: str) -> str:
    with pytest.raises(InputError) as refused:
        asked(path, sql)
    return str(refused.value)


def test_a_query_gives_rows(path: Path) -> None:
    rows = asked(
        path,
        "with p as (from source.people) select email, id, timestamptz '2026-01-01 00:00:00+01' as at from p;",
    )
    assert records(rows) == [
        {"email": "ann@example.com", "id": "12", "at": dt.datetime(2025, 12, 31, 23, tzinfo=dt.UTC)}
    ]
    assert (rows.numbers, rows.source.name) == ([1], "query")


def test_a_query_sees_what_belongs_to_its_account(path: Path) -> None:
    assert records(asked(path, "from source.contacts")) == [{"account": "main"}]


@pytest.mark.slow
def test_every_type_of_the_database_is_read_or_rejected(path: Path) -> None:
    with duckdb.connect() as connection:
        names = connection.sql("select column_name from (describe from test_all_types())").fetchall()
    for (name,) in names:
        sql = f"select 'a@b.co' as email, \"{name}\" as value from test_all_types()"
        with contextlib.suppress(InputError) if name in LOSSY else contextlib.nullcontext():
            assert asked(path, sql).numbers == [1, 2, 3]


def test_a_query_shows_the_clocks_of_its_zone(path: Path) -> None:
    sql = "select timestamptz '2026-11-20 14:00:00+00'::timestamp as at"
    rows = read_query(Settings(path.parent), sql, "main", "America/New_York")
    assert records(rows) == [{"at": dt.datetime(2026, 11, 20, 9)}]


def test_a_query_reads_custom_tables_that_are_made_for_it(tmp_path: Path, path: Path) -> None:
    shutil.copy(path, tmp_path)
    (tmp_path / "models").mkdir()
    files = {
        "vips": "select email, n from custom.numbers, source.people",
        "numbers": "select 7 as n",
        "broken": "select nothing from source.people",
    }
    for name, sql in files.items():
        (tmp_path / "models" / f"{name}.sql").write_text(sql)
    rows = asked(tmp_path / path.name, "select email, n from custom.vips")
    assert records(rows) == [{"email": "ann@example.com", "n": "7"}]
    for name, said in {"broken": 'column "nothing" not found', "gone": "no models/gone.sql"}.items():
        with pytest.raises(InputError, match=f"reads custom.{name}, which cannot be made: .*{said}"):
            asked(tmp_path / path.name, f"from custom.{name}")
    with open_database(tmp_path / path.name, read_only=True) as connection:
        assert connection.execute("from duckdb_schemas() where schema_name = 'custom'").fetchall() == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select * from read_csv('/etc/hostname')", "no files, extensions or settings"),
        ("from '/etc/hosts.csv'", "no files, extensions or settings"),
        ("from glob('/etc/*')", "no files, extensions or settings"),
        ("from read_text('/etc/hostname')", "no files, extensions or settings"),
        ("copy source.people to '/tmp/people.csv'", "this is COPY"),
        ("attach '/tmp/other.duckdb'", "this is ATTACH"),
        ("install httpfs", "this is LOAD"),
        ("load httpfs", "this is LOAD"),
        ("pragma database_list", "this is PRAGMA"),
        ("set enable_external_access = true", "this is SET"),
        ("insert into source.people values ('x', 1)", "this is INSERT"),
        ("with gone as (delete from source.people returning *) from gone", "Can only delete from base table"),
        ("select getenv('HOME')", "getenv does not exist"),
        ("from sql", "sql does not exist"),
        ("select 1; select 2", "2 statements"),
        ("-- nothing", "no statements"),
        ("select ?", "has parameters"),
        ("selec 1", "syntax error"),
        ("from source.peopel", "Did you mean"),
    ],
)
def test_a_query_that_is_not_one_select_on_the_warehouse_is_refused(path: Path, sql: str, said: str) -> None:
    reason = refusal(path, sql)
    assert said in reason
    assert "\n" not in reason


def test_an_error_of_a_query_shows_no_values_of_the_tables(path: Path) -> None:
    reason = refusal(path, "select email::int as id from source.people")
    assert "ann@" not in reason
    assert "Conversion Error" in reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "limits", "said"),
    [
        (
            "select count(*) as n from range(1000000) a, range(1000000) b where a.range * b.range < -1",
            {"query_seconds": 1},
            "longer than 1 s",
        ),
        ("select range as n from range(100000)", {"input_limit": 100_000}, "bytes; split it"),
        ("select true as n, n as m from range(30000)", {"input_limit": 1_000_000}, "more than 40,000 cells"),
        (
            "select sum(n) as n from (select unnest(range(1000000000)) as n)",
            {"input_limit": 1_000_000},
            "MB of memory",
        ),  # not counted by DuckDB
        (
            "select length(repeat('x', 2000000000)) as n",
            {},
            "takes more than 501MB of memory",
        ),  # nor interrupted: it took 47 s
        ("select id as email, id as email from source.people", {}, "two columns are called"),
    ],
)
def test_a_query_ends_at_its_limits(path: Path, sql: str, limits: dict[str, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked(path, sql, **limits)
    assert not list(path.parent.glob("tmp/*/*"))


@pytest.mark.slow
def test_an_endless_query_ends_with_the_command(home: Path, service: Sandbox) -> None:
    endless = (
        "select count(*) as contact_id, 'x' as tag from range(1000000000) a, "
        "range(1000000000) b where "
        "a.range * b.range < -1"
    )
    command = start(home, service, "push", "tags", "--sql", endless)
    descriptors, warehouse = Path(f"/proc/{command.pid}/fd"), home / "warehouse.duckdb"
    while not any(each.resolve() == warehouse.resolve() for each in descriptors.iterdir()):
        assert command.poll() is None
        time.sleep(0.05)
    os.kill(command.pid, signal.SIGINT)
    ended = finish(command)
    assert (ended.code, ended.err.strip()) == (130, interrupts.MESSAGE)


def test_without_a_warehouse_there_is_nothing_to_query(tmp_path: Path) -> None:
    with pytest.raises(NoWarehouse, match="nothing has been synced"):
        asked(tmp_path / "warehouse.duckdb", "select 1")
