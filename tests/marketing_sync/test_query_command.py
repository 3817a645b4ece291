"""`marketing-sync query` and `tables`: what they show of what is published, how, and what they refuse."""

import csv
import datetime as dt
import io
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest

from tests.fixtures import Command
from tests.pipelines.running import environment
from tests.waiting import HANGS_S, wait_until
from warehouse.connection import open_database
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy

_FILL = (
    "insert into source.business by name select 'main' account, 'America/New_York' as timezone",
    "insert into source.lists by name select 'main' account, n list_id, 'News ' || n as name from range(7, 9) "
    "t(n)",
    "create schema if not exists marts",
    "create table marts.campaign_performance as select 'main' account, 7 campaign_id, ['News', 'a, b'] lists, "
    "timestamptz '2026-03-08 03:30+00' sent_at, 0.4 open_rate",
    "comment on table marts.campaign_performance is 'How each campaign did. One row per campaign.'",
    "comment on column marts.campaign_performance.open_rate is 'Of the messages that arrived.'",
)
_ALL = "from marts.campaign_performance"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, empty_tables: Path) -> Path:
    """A home that has published; nobody writes to it."""
    filled = tmp_path_factory.mktemp("query") / "home"
    filled.mkdir()
    shutil.copy(empty_tables, filled)
    with open_database(filled / "warehouse.duckdb") as connection:
        for statement in _FILL:
            connection.execute(statement)
    publish_copy(filled, Masking(PersonalData.KEEP))
    return filled


@pytest.fixture
def home(filled: Path) -> Path:
    return filled


@pytest.mark.parametrize("words", [("query", _ALL), ("tables",), ("report",), ("status",)], ids=str)
@pytest.mark.parametrize("key", ["key_env = 'NOT_SET'", "key_file = '/nonexistent/key'"])
def test_commands_that_send_nothing_need_no_key(
    command: Command, folder: Path, words: tuple[str, ...], key: str
) -> None:
    (folder / "accounts.toml").write_text(f"[accounts.main]\nurl = 'https://api.example/1'\n{key}\n")
    ran = command(*words)
    assert (ran.code, "NOT_SET" in ran.text, "/nonexistent" in ran.text) == (0, False, False), ran.text
    assert command("call", "app/me").code == 2


def test_address_alone_is_enough_for_a_query(command: Command) -> None:
    assert command("query", _ALL, MARKETING_API_URL="https://api.example/1").code == 0


def test_a_table_is_shown_with_times_of_the_account(command: Command) -> None:
    ran = command("query", _ALL)
    assert (ran.code, ran.err) == (0, "")
    assert "2026-03-07 22:30:00-05" in ran.out
    assert "[News, 'a, b']" in ran.out
    assert command("query", f"{_ALL}; -- all").out == ran.out


def test_the_zone_is_the_accounts_own_or_utc_of_several(
    command: Command, filled: Path, tmp_path: Path
) -> None:
    zone = ("query", "select current_setting('timezone') as zone", "--csv")
    assert command(*zone, MARKETING_TIMEZONE="Asia/Tokyo").out == "zone\nAmerica/New_York\n"
    two = tmp_path / "two"
    shutil.copytree(filled, two)
    with open_database(two / "warehouse.duckdb") as connection:
        connection.execute("insert into source.business (account) values ('south')")
    publish_copy(two, Masking(PersonalData.KEEP))
    assert command(*zone, MARKETING_HOME=str(two)).out == "zone\nUTC\n"
    same = {"MARKETING_HOME": str(two), "MARKETING_TIMEZONE": "America/New_York"}
    assert command(*zone, **same).out == "zone\nAmerica/New_York\n"


def test_rows_that_are_not_shown_are_counted(command: Command) -> None:
    assert "1234 rows (100 shown)" in " ".join(command("query", "from range(1234)").out.split())


def test_csv_can_be_read_again(command: Command) -> None:
    ran = command("query", f"select *, null as nothing, true as yes, {{'a': [1]}} as pair {_ALL}", "--csv")
    (row,) = csv.DictReader(io.StringIO(ran.out), strict=True)
    assert json.loads(row["lists"]) == ["News", "a, b"]
    assert dt.datetime.fromisoformat(row["sent_at"]) == dt.datetime(2026, 3, 8, 3, 30, tzinfo=dt.UTC)
    assert (row["nothing"], row["yes"], row["open_rate"], json.loads(row["pair"])) == (
        "",
        "true",
        "0.4",
        {"a": [1]},
    )


def test_json_is_an_array_of_rows(command: Command) -> None:
    ran = command("query", f"select lists, sent_at, open_rate, 'nan'::double as n {_ALL}", "--json")
    row = {"lists": ["News", "a, b"], "sent_at": "2026-03-07T22:30:00-05:00", "open_rate": 0.4, "n": None}
    assert json.loads(ran.out) == [row]
    assert json.loads(command("query", "select 1 as one where false", "--json").out) == []
    ran = command("query", "select 1 as one, 2 as one", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "two columns are called one" in ran.err


def test_a_workbook_has_what_excel_can_hold(command: Command, folder: Path) -> None:
    sql = (
        "select sent_at, date '1850-01-01' as old, 12345678901234567 as id, 1.5 as number, '=1+1' as formula, "
        "'#N/A' as error, '007' as agent, e'a\\x01b' as control, lists, repeat('x', 40000) as long, null as none "
        f"{_ALL}"
    )
    ran = command("query", sql, "--excel", "found.xlsx")
    assert ran.out == "found.xlsx: 1 row\n"
    headings, row = openpyxl.load_workbook(folder / "found.xlsx").active.iter_rows()  # type: ignore[union-attr]
    assert headings[0].value == "sent_at (America/New_York)"
    assert [cell.value for cell in row[:9]] == [
        dt.datetime(2026, 3, 7, 22, 30),
        "1850-01-01",
        "12345678901234567",
        1.5,
        "=1+1",
        "#N/A",
        "007",
        "ab",
        '["News","a, b"]',
    ]
    assert {cell.data_type for cell in row[4:9]} == {"s"}, "nothing is calculated"
    assert row[10].value is None


def test_the_query_may_come_from_a_file_or_standard_input(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "one.sql").write_text("\ufeff-- ours\nselect 1 as one;\n", encoding="utf-8")
    assert command("query", "one.sql", "--csv").out == "one\n1\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfselect 2 as two")))
    assert command("query", "-", "--csv").out == "two\n2\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"select '\xfc'")))
    for typed, place in (("none.sql", "none.sql"), ("-", "standard input")):
        ran = command("query", typed)
        assert ran.code == 2
        assert f"{place} cannot be read as a query" in ran.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["selct 1"], 'syntax error at or near "selct"'),
        (["select nope from source.lists"], 'column "nope"'),
        (["select name::int from source.lists"], "Could not convert string 'News 7'"),
        (["update source.lists set name = 'x'"], "has to be a SELECT, and this is UPDATE"),
        (["attach 'other.duckdb'"], "this is ATTACH"),
        (["pivot source.lists on name using count(*)"], "a PIVOT that names no values"),
        (["copy source.lists to 'lists.csv'"], "this is COPY"),
        (["from read_csv('/etc/passwd')"], "no files, extensions or settings"),
        (["select 1", "--csv", "--json"], "choose one of"),
        (["select 1", "--excel", "found.xls"], "use a name that ends in .xlsx"),
        (["select 1", "--excel", "no/folder.xlsx"], "no/folder.xlsx cannot be written (No such file"),
        ([], "write a query"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence(command: Command, words: list[str], reason: str) -> None:
    for form in ([], ["--csv"]) if len(words) == 1 else ([],):
        ran = command("query", *words, *form)
        assert ran.code == 2
        assert reason in ran.err
        assert "Traceback" not in ran.err


def test_without_a_published_copy_the_warehouse_is_read(
    command: Command, filled: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(filled / "warehouse.duckdb", bare)
    ran = command("query", "select count(*) as lists from source.lists", "--csv", MARKETING_HOME=str(bare))
    assert (ran.code, ran.out) == (0, "lists\n2\n")
    assert ran.err.startswith("marketing-sync: warning: nothing is published yet")
    assert "source.lists" in command("tables", MARKETING_HOME=str(bare)).out
    ran = command("query", "delete from source.lists", MARKETING_HOME=str(bare))
    assert (ran.code, ran.out) == (2, "")
    ran = command("query", "select 1", MARKETING_HOME=str(tmp_path / "nowhere"))
    assert (ran.code, ran.out) == (1, "")
    assert "nothing has been synced; run `marketing-sync sync`" in ran.err


@pytest.mark.slow
def test_ctrl_c_ends_a_query(filled: Path, tmp_path: Path) -> None:
    endless = "select count(*) from range(100000000) a, range(100000000) b where a.range <> b.range * 2"
    words = [sys.executable, "-m", "marketing_sync", "query", endless]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment(filled),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until(lambda: any((filled / "tmp" / "queries").glob("*")), "it did not begin")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANGS_S)
    assert (process.returncode, out, err) == (130, "", "")


def test_the_tables_are_listed_with_marts_first(command: Command) -> None:
    lines = [line.strip() for line in command("tables").out.splitlines() if line.strip()]
    assert lines[0] == "marts"
    assert lines[2].split(None, 2) == ["marts.campaign_performance", "1", "How each campaign did."]
    assert any(line.split()[:2] == ["source.lists", "2"] for line in lines)


def test_a_table_is_shown_with_its_columns_and_key(command: Command) -> None:
    lines = command("tables", "Campaign_Performance").out.splitlines()
    assert lines[0] == "marts.campaign_performance: How each campaign did. One row per campaign."
    cells = [line.split(None, 2) for line in lines]
    assert ["campaign_id", "INTEGER"] in [[part.strip() for part in line[:2]] for line in cells]
    assert any("open_rate" in line and "Of the messages that arrived." in line for line in lines)
    assert command("tables", "contacts").out.startswith("source.contacts: ")
    ran = command("tables", "contract")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no table 'contract' (did you mean source.contact" in ran.err
