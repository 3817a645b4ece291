"""`marketing-sync mcp` as an assistant's client sees it: what it can read of the published copy, what it
cannot, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client

from marketing_api.redaction import Secret
from pipelines.commands.mcp import PublishedCopy
from tests.fixtures import Command
from tests.pipelines.running import environment
from warehouse.connection import connect
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import publish, published_path
from warehouse.published_query import ROW_LIMIT, TEXT_LIMIT, NoAnswer

#: A question to the server: its tool with arguments → whether it failed, and the text that came.
Ask = Callable[..., tuple[bool, str]]
KEEP, HASH = Masking(PersonalData.KEEP), Masking(PersonalData.HASH, Secret("a key of the tests alone"))
_FILL = (
    "insert into source.lists by name select 'main' account, 7 list_id, 'News' as name",
    "insert into source.contacts by name select 'main' account, 7 list_id, n contact_id, 'ann' || n || "
    "'@example.com' email, "
    "timestamptz '2026-01-01 10:00+00' registered_at from range(1500) as t(n)",
    "insert into sync.coverage by name select 'main' account, 'contacts' table_name, 'list_id=' || n scope, "
    "timestamptz '2026-03-02 08:00+00' as_of, n = 7 is_complete, 3 as rows, if(n = 7, null, 'the service "
    "left pages out') reason "
    "from range(7, 9) t(n)",
    "create schema if not exists marts",
    "create table marts.campaign_performance as select 'main' account, 'Spring menu' subject, 0.4 open_rate",
    "comment on table marts.campaign_performance is 'How each campaign did.'",
    "comment on column marts.campaign_performance.open_rate is 'Of the messages that arrived.'",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, empty_tables: Path) -> Path:
    """Its published copy has personal data hashed."""
    home = tmp_path_factory.mktemp("assistant") / "home"
    home.mkdir()
    shutil.copy(empty_tables, home)
    with connect(home / "warehouse.duckdb") as connection:
        for statement in _FILL:
            connection.execute(statement)
    publish(home, HASH)
    return home


@pytest.fixture(scope="module")
def ask(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """`ask("query", sql="…")` over standard input and output of the command; it must have printed nothing to
    standard error."""
    errors = tmp_path_factory.mktemp("errors") / "stderr"
    server = StdioServerParameters(
        command=sys.executable, args=_WORDS, env=environment(home), cwd=errors.parent
    )
    with (
        errors.open("w") as log,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(server, errlog=log))) as client,
    ):

        def ask_client(tool: str, **arguments: Any) -> tuple[bool, str]:
            result: Any = portal.call(client.call_tool, tool, arguments)
            return bool(result.is_error), result.content[0].text

        yield ask_client
    assert errors.read_text() == ""


_WORDS = ["-m", "marketing_sync", "mcp"]


def answered(reply: tuple[bool, str]) -> Any:
    is_error, text = reply
    assert not is_error, text
    return json.loads(text)


def test_marts_are_listed_first_with_the_questions_that_they_answer(ask: Ask) -> None:
    tables = answered(ask("list_tables"))
    assert tables[0]["table"] == "marts.campaign_performance"
    assert (tables[0]["rows"], tables[0]["comment"]) == (1, "How each campaign did.")
    assert "Which subjects lose people?" in tables[0]["questions"]
    assert {"source.contacts": 1500, "sync.published": 1}.items() <= {
        each["table"]: each["rows"] for each in tables
    }.items()


def test_a_table_is_described_with_or_without_its_schema(ask: Ask) -> None:
    described = answered(ask("describe_table", table="Campaign_Performance"))
    assert described == answered(ask("describe_table", table="marts.campaign_performance"))
    assert described["columns"][2] == {
        "name": "open_rate",
        "type": "DECIMAL(2,1)",
        "comment": "Of the messages that arrived.",
    }
    assert "from marts.campaign_performance" in described["examples"][0]["sql"]
    is_error, text = ask("describe_table", table="contract")
    assert is_error
    assert "there is no table 'contract'" in text


def test_a_query_has_columns_rows_and_whether_there_is_more(ask: Ask) -> None:
    whole = answered(
        ask(
            "query",
            sql="select contact_id, registered_at, 'nan'::float as x from source.contacts order by all",
            limit=1,
        )
    )
    assert [column["type"] for column in whole["columns"]] == ["BIGINT", "TIMESTAMP WITH TIME ZONE", "FLOAT"]
    assert whole["rows"] == [[0, "2026-01-01T10:00:00Z", None]]
    assert (whole["is_cut_off"], whole["reason"]) == (True, "there are more than 1 rows")
    assert (
        answered(ask("query", sql="select subject from marts.campaign_performance;"))["is_cut_off"] is False
    )
    assert len(answered(ask("query", sql="select contact_id from source.contacts"))["rows"]) == 100
    assert (
        len(answered(ask("query", sql="select contact_id from source.contacts", limit=10**9))["rows"])
        == ROW_LIMIT
    )


def test_long_texts_are_cut_off(ask: Ask) -> None:
    cut = answered(ask("query", sql=f"select repeat('é', {TEXT_LIMIT // 10}) from range(50)"))
    assert 0 < len(cut["rows"]) < 50
    assert (cut["is_cut_off"], cut["reason"]) == (True, "the text would be longer than 60,000 bytes")
    is_error, text = ask("query", sql=f"select repeat('x', {TEXT_LIMIT})")
    assert is_error
    assert "the first row alone takes more than 60,000 bytes" in text


def test_personal_data_is_as_it_was_published(ask: Ask) -> None:
    assert "@example.com" not in ask("query", sql="from source.contacts")[1]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("insert into source.lists (account) values ('x')", "has to be a SELECT, and this is INSERT"),
        ("copy source.lists to 'lists.csv'", "this is COPY"),
        ("attach '{home}/warehouse.duckdb' as w", "this is ATTACH"),
        ("install httpfs", "this is LOAD"),
        ("pragma database_size", "this is PRAGMA"),
        ("set enable_external_access = true", "this is SET"),
        ("select 1; select 2", "one SELECT, and this is 2 statements"),
        ("", "no statements"),
        ("select ?", "parameters"),
        ("from read_csv('/etc/passwd')", "no files, extensions or settings"),
        (
            "from read_duckdb('{home}/warehouse.duckdb', table_name = 'meta')",
            "no files, extensions or settings",
        ),
        ("from '{home}/warehouse.duckdb'", "no files, extensions or settings"),
        ("from 'https://example.com/x.csv'", "no files, extensions or settings"),
        ("from duckdb_secrets()", "no files, extensions or settings"),
        ("from sync.meta", "Table with name meta does not exist"),
        ("select nope from source.lists", 'column "nope"'),
        ("select 'Harbor Ann'::int", "Could not convert string 'Harbor Ann'"),
        ("select sum(n) from (select unnest(range(1000000000)) n)", "more than 500MB of memory"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(ask: Ask, home: Path, sql: str, reason: str) -> None:
    is_error, text = ask("query", sql=sql.format(home=home))
    assert is_error
    assert reason in text
    assert text.startswith("Error executing tool query: the query ")
    assert "\n" not in text


def test_what_is_asked_is_not_logged(ask: Ask, home: Path) -> None:
    ask("query", sql="select 'Harbor Bob'::int")
    logged = "".join(path.read_text() for path in (home / "logs").glob("*-mcp-*"))
    assert "mcp begins" in logged
    assert "Harbor" not in logged


@pytest.mark.slow
def test_a_query_that_takes_too_long_is_ended_and_the_next_is_answered(home: Path) -> None:
    with closing(PublishedCopy(published_path(home), seconds=3)) as copy:
        with pytest.raises(NoAnswer, match=r"cannot be run: it takes longer than 3 s"):
            copy.query(
                "select count(*) from range(100000) a, range(100000) b, range(100000) c where a.range + "
                "b.range <> c.range"
            )
        assert json.loads(bytes(copy.query("select 1")))["rows"] == [[1]]


def peak_kb(pid: int) -> int:
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])  # type: ignore[index]


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is limited on Linux alone"
)
@pytest.mark.parametrize(
    "sql",
    ["select length(repeat('x', 2000000000))", "select repeat('x', 2000000000)", "select range(1000000000)"],
)
def test_a_query_takes_no_more_memory_than_it_may(home: Path, sql: str) -> None:
    """Whether or not DuckDB counts it, and can be interrupted meanwhile."""
    with closing(PublishedCopy(published_path(home), seconds=120)) as copy:
        copy.query("select 1")
        child = copy._queries._child
        assert child is not None
        before = peak_kb(child.pid)
        with pytest.raises(NoAnswer, match="takes more than 500MB of memory"):
            copy.query(sql)
        assert peak_kb(child.pid) < before + 600_000
        assert json.loads(bytes(copy.query("select 1")))["rows"] == [[1]]


def test_the_status_names_what_is_incomplete(ask: Ask) -> None:
    status = answered(ask("status"))
    assert status["summary"].endswith("personal data hashed")
    assert status["data_as_of"] == "2026-03-02T08:00:00Z"
    (incomplete,) = status["incomplete_tables"]
    assert (incomplete["table_name"], incomplete["parts"], incomplete["incomplete_parts"]) == (
        "contacts",
        2,
        1,
    )
    assert incomplete["reason"] == "the service left pages out"


@pytest.mark.slow
def test_a_newer_copy_is_seen_unless_it_begins_to_keep_personal_data(ask: Ask, home: Path) -> None:
    def publish_list(name: str, masking: Masking) -> tuple[bool, str]:
        with connect(home / "warehouse.duckdb") as connection:
            connection.execute("update source.lists set name = ?", [name])
        publish(home, masking)
        return ask("query", sql="select name from source.lists")

    assert answered(publish_list("Weekly", HASH))["rows"] == [["Weekly"]]
    is_error, text = publish_list("Daily", KEEP)
    assert is_error
    assert "the published copy holds personal data as it is" in text
    assert answered(publish_list("News", HASH))["rows"] == [["News"]]


# -- how it begins and ends


@pytest.fixture
def kept(home: Path, tmp_path: Path) -> Path:
    """A home whose published copy keeps personal data."""
    kept = tmp_path / "kept"
    kept.mkdir()
    shutil.copy(home / "warehouse.duckdb", kept)
    publish(kept, KEEP)
    return kept


@pytest.mark.slow
def test_kept_personal_data_is_served_only_when_that_is_wanted(command: Command, kept: Path) -> None:
    ran = command("mcp", MARKETING_HOME=str(kept), MARKETING_PERSONAL_DATA="hash")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "marketing-sync: the published copy holds personal data as it is, and what an assistant reads "
        "leaves this machine: set "
        "MARKETING_PERSONAL_DATA to hash or drop and run `marketing-sync publish`, or start `marketing-sync "
        "mcp --personal-data` to "
        "serve it all the same\n"
    )
    words = [sys.executable, *_WORDS, "--personal-data"]
    ended = subprocess.run(
        words,
        cwd=kept,
        env=environment(kept),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), (
        "closed standard input ends it quietly"
    )
    with closing(PublishedCopy(published_path(kept), allows_personal=True)) as copy:
        found = copy.query("select count(*) from source.contacts where email like '%@example.com'")
    assert json.loads(bytes(found))["rows"] == [[1500]]


def test_nothing_is_served_before_something_is_published(command: Command, tmp_path: Path) -> None:
    ran = command("mcp", MARKETING_HOME=str(tmp_path))
    assert (ran.code, ran.out) == (1, "")
    assert (
        ran.err
        == f"marketing-sync: there is no {published_path(tmp_path)} yet: a whole `marketing-sync sync` publishes it\n"
    )


def test_a_copy_that_is_open_for_writing_elsewhere_is_named(command: Command, kept: Path) -> None:
    held = (
        f"import duckdb; c = duckdb.connect({str(published_path(kept))!r}); print('held', "
        "flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        ran = command("mcp", "--personal-data", MARKETING_HOME=str(kept))
        holder.communicate("\n")
    assert ran.code == 1
    assert "open it read-only there" in ran.err


def test_without_its_package_the_command_names_it(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    ran = command("mcp", MARKETING_HOME=str(home))
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err
        == "marketing-sync: the protocol's package is not installed: run `make extras` in the clone, or `pip "
        "install 'marketing-sync[mcp]'`\n"
    )


def test_other_commands_do_not_import_it() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import pipelines.commands.mcp, sys; sys.exit('mcp' in sys.modules)"],
        check=False,
    )
    assert ended.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_ends_it_quietly(home: Path, tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, *_WORDS],
        cwd=tmp_path,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        process.send_signal(number)
        assert process.wait(20) == 130
        assert process.communicate()[1] == ""
