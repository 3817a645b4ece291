"""Homes that versions so far made (`homes/__main__.py`) open, are upgraded once, go on, and go back; newer ones are refused."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from _pytest.mark import ParameterSet

from marketing_api.address import normal_form
from marketing_api.sandbox.app import App
from marketing_api.sandbox.options import Options
from marketing_api.sandbox.server import serve
from pipelines.home import prepare_home
from pipelines.upgrade import VERSIONS, upgrade_copies
from pipelines.write_back.outbox import store
from tests.pipelines.conftest import Command
from tests.pipelines.homes.__main__ import CONTACTS, FOLDER
from tests.pipelines.sandboxes import Dated, Sandbox
from warehouse import schema
from warehouse.connection import connect
from warehouse.schema import SCHEMA_VERSION, schema_version, stamp_version
from warehouse.sql import quoted

HOMES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))
#: The first of those that an upgrade changes.
OLDEST = HOMES[0]
#: Those whose warehouse has an earlier version.
OUTDATED = {"2026-11-21T12": 1, "2026-11-22T09": 2, "2026-11-22T15": 3, "2026-11-23T18": 3, "2026-11-24T16": 4}
#: One was not made like the others.
_CONTACTS = {"2026-11-22T15": 600}
Unpack = Callable[[str], Path]


@pytest.fixture
def unpack(home: Path) -> Unpack:
    def unpack(name: str) -> Path:
        with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
            archive.extractall(home, filter="data")
        return home

    return unpack


def marked(name: str, usual: str) -> ParameterSet:
    """Only the `usual` home is proved with every change of the program."""
    return pytest.param(name, marks=[] if name == usual else pytest.mark.attack)


@pytest.fixture
def service(unpack: Unpack, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """The account of the home a day later, with the writes that it had received; it is a day later for who asks, too."""
    monkeypatch.setattr(App, "respond", Dated.dated)
    made, home = dt.datetime.fromisoformat(f"{name}:00+00:00"), unpack(name)
    contacts, now = _CONTACTS.get(name, CONTACTS), int(made.timestamp()) + 86_400
    with serve(Options(contacts=contacts, rate_limit=0, now=now, state=home / "sandbox.jsonl")) as url:
        yield Sandbox(url)


Contents = dict[str, tuple[list[str], list[tuple[object, ...]]]]


def contents(home: Path, like: Contents | None = None) -> Contents:
    """Every row of `source`, by table with its columns: those that it has, or had in `like`."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        connection.execute("set timezone = 'UTC'")
        sql = "select table_name, list(column_name order by column_index) from duckdb_columns() where schema_name = 'source' group by all"
        columns = {table: like[table][0] if like else names for table, names in connection.sql(sql).fetchall()}
        return {
            table: (names, connection.sql(f"select {', '.join(map(quoted, names))} from source.{table} order by all").fetchall())
            for table, names in columns.items()
        }


def files(home: Path) -> dict[str, bytes]:
    """Every file but the log of the command itself, and what says that a process uses the home."""
    found = {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not name.startswith(("logs/", ".machine"))}


def pushed(home: Path, operation: str) -> list[str]:
    """Addresses that were pushed with the operation."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        found = connection.execute("select email from sync.writebacks where operation = ? order by item_id", [operation]).fetchall()
    return [email for (email,) in found]


def other_normal_forms(home: Path) -> list[str]:
    """Tables with an address that has another normal form beside it than its own, or none; and all of them if no address has one."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        of_addresses = "select schema_name || '.' || table_name from duckdb_columns() where column_name = 'email_normalized'"
        tables = [name for (name,) in connection.execute(of_addresses).fetchall() if name.startswith(("source.", "history.", "sync."))]
        assert {"source.contacts", "source.coupons", "history.contacts", "sync.contact_coverage", "sync.writebacks"} <= {*tables}
        pairs = {name: connection.execute(f"select email, email_normalized from {name}").fetchall() for name in tables}
    assert sum(len(found) for found in pairs.values()) > 100
    return [name for name, found in pairs.items() if any((normal_form(email or "") or None) != form for email, form in found)]


def version_of(home: Path) -> int | None:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return schema_version(connection)


# ---- upgrading and going back


@pytest.mark.parametrize("name", HOMES)
@pytest.mark.slow
def test_it_is_tried_upgraded_once_and_put_back(
    command: Command, home: Path, unpack: Unpack, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = files(unpack(name))
    rows, version = contents(home), version_of(home)
    assert version == OUTDATED.get(name, SCHEMA_VERSION)
    assert sum(len(found) for _, found in rows.values()) > 500
    tried = command("upgrade", "--dry-run")
    assert tried.code == 0, tried.text
    assert files(home) == before
    assert ("new column" in tried.out) == (name in OUTDATED)

    done, again = command("upgrade"), command("upgrade")
    assert (done.code, again.code) == (0, 0), done.text + again.text
    assert caplog.text.count("it is upgraded, and the files as they were are in") == (name in OUTDATED)
    assert version_of(home) == SCHEMA_VERSION
    assert contents(home, like=rows) == rows
    assert other_normal_forms(home) == []

    back = command("upgrade", "--rollback")
    if tried.out.startswith("nothing has to be upgraded"):
        assert (back.code, upgrade_copies(home)) == (2, [])
        assert "nothing to go back to" in back.err
    else:
        assert back.code == 0, back.text
        after = files(home)
        assert {each: after[each] for each in before} == before
        assert after.keys() - before <= {"dagster/dagster.yaml"}  # one home had none
    status = command("status")
    assert status.code == 0, status.text
    assert version_of(home) == SCHEMA_VERSION


@pytest.mark.parametrize("name", [marked(each, "2026-11-22T15") for each in HOMES])
@pytest.mark.slow
def test_it_rebuilds_to_the_same_rows(command: Command, home: Path, service: Sandbox) -> None:
    before = contents(home)
    ran = command("rebuild", sandbox=service)
    assert ran.code == 0, ran.text
    assert contents(home, like=before) == before
    assert service.count == 0


@pytest.mark.parametrize("name", [marked(each, OLDEST) for each in HOMES])
@pytest.mark.slow
def test_it_syncs_and_remembers_what_was_pushed(command: Command, home: Path, service: Sandbox, tmp_path: Path) -> None:
    ran = command("sync", "--reads-only", sandbox=service)
    assert ran.code == 0, ran.text
    asked = service.count
    assert asked < 150  # a first sync takes 179 or more; a campaign was sent to most of the contacts meanwhile
    rows = tmp_path / "again.csv"
    rows.write_text("email,tag\n" + "".join(f"{email},vip\n" for email in pushed(home, "emailmarketing/addtag")))
    again = command("push", "tags", "--from", str(rows), "--apply", sandbox=service)
    assert (again.code, service.count) == (0, asked), again.text
    assert len(rows.read_text().splitlines()) == 6
    rows.write_text(rows.read_text().replace(",vip", ",regular"))
    new = command("push", "tags", "--from", str(rows), "--apply", sandbox=service)
    assert new.code == 0, new.text
    assert service.count >= asked + 5


_KILLED = """
import os, signal, sys
from pathlib import Path
from unittest.mock import patch
from pipelines.home import prepare_home
with patch(sys.argv[1], lambda *words, **named: os.kill(os.getpid(), signal.SIGKILL)):
    prepare_home(Path(sys.argv[2]))
"""


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("pipelines.upgrade.copy_locked", marks=pytest.mark.attack),
        pytest.param("pipelines.upgrade.ensure_schema", marks=pytest.mark.attack),
        "warehouse.schema.stamp_version",
        pytest.param("pipelines.upgrade.note_versions", marks=pytest.mark.attack),
    ],
)
@pytest.mark.slow
def test_a_killed_upgrade_goes_on_or_is_as_before(command: Command, home: Path, unpack: Unpack, moment: str) -> None:
    before = files(unpack(OLDEST))
    rows = contents(home)
    assert subprocess.run([sys.executable, "-c", _KILLED, moment, str(home)], check=False).returncode == -signal.SIGKILL
    assert version_of(home) == (SCHEMA_VERSION if "note" in moment else 1)
    assert contents(home, like=rows) == rows
    assert command("upgrade").code == 0
    assert version_of(home) == SCHEMA_VERSION
    (copies,) = upgrade_copies(home)
    assert copies.name.endswith("-warehouse-1-dagster-1")
    assert command("upgrade", "--rollback").code == 0
    assert files(home) == before


@pytest.mark.attack
def test_what_was_loaded_since_comes_again_from_the_archive(command: Command, home: Path, unpack: Unpack) -> None:
    unpack(OLDEST)
    (home / "version").write_text(json.dumps(VERSIONS | {"warehouse": 1}))
    with serve(Options(contacts=CONTACTS, rate_limit=0, now=1_795_500_000, state=home / "sandbox.jsonl")) as url:
        assert command("sync", "--only", "lists", sandbox=Sandbox(url)).code == 0
        loaded = contents(home)
        assert command("upgrade", "--rollback").code == 0
        assert version_of(home) == 1
        assert json.loads((home / "version").read_text())["warehouse"] == 1
        asked = Sandbox(url).count
        assert command("sync", "--only", "users", sandbox=Sandbox(url)).code == 0
        assert [each["operation"] for each in Sandbox(url).asked(asked)].count("emailmarketing/getlists") == 0
    assert contents(home)["lists"] == loaded["lists"]


def test_going_back_is_refused_where_something_would_be_lost(command: Command, home: Path, unpack: Unpack) -> None:
    unpack(OLDEST)
    assert command("upgrade").code == 0
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        ((table,),) = connection.sql("select min(table_name) from duckdb_tables() where schema_name = 'history'").fetchall()
        connection.execute(f"delete from history.{table}")
        connection.execute("insert into sync.loads (load_id, outcome) values ('later', 'applied')")
    before = files(home)
    ran = command("upgrade", "--rollback")
    assert ran.code == 2
    assert "1 loads, which the earlier version cannot read in the archive" in ran.err
    assert f"changes in history.{table}" in ran.err
    assert {name for name, content in files(home).items() if before.get(name) != content} <= {"warehouse.duckdb"}
    assert version_of(home) == SCHEMA_VERSION
    assert command("upgrade", "--rollback", "--accept-loss").code == 0
    assert version_of(home) == 1


def migrate_by(monkeypatch: pytest.MonkeyPatch, *statements: str) -> int:
    """This program has another version of the tables, made by these statements."""
    version = SCHEMA_VERSION + 1
    monkeypatch.setattr(schema, "SCHEMA_VERSION", version)
    monkeypatch.setattr(schema, "MIGRATIONS", {1: ["drop table source.lists"], version: statements})
    monkeypatch.setitem(VERSIONS, "warehouse", version)
    return version


def lists(home: Path) -> list[str]:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return [name for (name,) in connection.sql("select name from source.lists order by list_id").fetchall()]


def test_a_migration_of_rows_alone_is_carried_out_once(home: Path, unpack: Unpack, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_home(unpack(HOMES[-1]))
    before = lists(home)
    version = migrate_by(monkeypatch, "update source.lists set name = name || '.'")
    prepare_home(home)
    prepare_home(home)
    assert lists(home) == [f"{name}." for name in before]
    assert version_of(home) == version


@pytest.mark.slow
def test_a_migration_that_fails_changes_nothing(command: Command, home: Path, unpack: Unpack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what it did first; the way back is there, and the mended program begins anew."""
    prepare_home(unpack(HOMES[-1]))
    rows = contents(home)
    version = migrate_by(
        monkeypatch, "delete from source.lists", "alter table source.lists alter column name set data type integer using 'x'"
    )
    for words in (("upgrade", "--dry-run"), ("upgrade",)):
        ran = command(*words)
        assert (ran.code, "run `marketing-sync rebuild`" in ran.err) == (1, True), ran.text
        assert (version_of(home), contents(home)) == (SCHEMA_VERSION, rows)
    migrate_by(monkeypatch, "alter table source.lists rename name to title")
    tried = command("upgrade", "--dry-run")
    assert "source.lists.title: new column" in tried.out
    prepare_home(home)
    assert version_of(home) == version


@pytest.fixture
def newer_outbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """This program has another version of the outbox."""
    monkeypatch.setattr(store, "VERSION", 2)
    monkeypatch.setattr(store, "MIGRATIONS", {2: "alter table push add column note text;\nupdate push set note = kind"})
    monkeypatch.setitem(VERSIONS, "outbox", 2)


def notes(home: Path) -> list[str]:
    connection = sqlite3.connect(home / "outbox.sqlite")
    try:
        return [note for (note,) in connection.execute("select note from push order by push_id")]
    finally:
        connection.close()


@pytest.mark.usefixtures("newer_outbox")
def test_the_outbox_is_upgraded_and_goes_back_unless_something_was_sent_since(command: Command, home: Path, unpack: Unpack) -> None:
    unpack(HOMES[-1])
    assert command("upgrade").code == 0
    assert notes(home) == ["tags", "activities"]
    ran = command("upgrade", "--rollback")
    assert ran.code == 0, ran.text
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        notes(home)
    assert command("upgrade").code == 0
    with sqlite3.connect(home / "outbox.sqlite") as connection:
        connection.execute("update revision set value = value + 1")
    connection.close()
    ran = command("upgrade", "--rollback")
    assert ran.code == 2
    assert "would be sent twice" in ran.err
    assert notes(home) == ["tags", "activities"]


def test_the_copies_of_two_upgrades_are_kept(home: Path, unpack: Unpack) -> None:
    unpack(OLDEST)
    for age in (3, 2, 1):
        (home / "upgrades" / f"2026010{3 - age}T000000Z-warehouse-0").mkdir(parents=True)
    prepare_home(home)
    newest, earlier = upgrade_copies(home)
    assert newest.name.endswith("-warehouse-1-dagster-1")
    assert earlier.name == "20260102T000000Z-warehouse-0"
    assert {path.stat().st_mode & 0o077 for path in newest.rglob("*")} == {0}


# ---- newer homes

COMMANDS = (
    ("status",),
    ("sync",),
    ("push", "tags", "--sql", "select 'a@example.org' as email, 'vip' as tag", "--apply"),
    ("push", "status"),
    ("ui", "--port", "3999"),
    ("rebuild",),
    ("publish",),
    ("plan",),
    ("upgrade",),
    ("upgrade", "--rollback"),
)


@pytest.mark.parametrize("part", [*VERSIONS, "shelf"])
def test_a_newer_home_is_refused_and_left_alone(command: Command, home: Path, sandbox: Sandbox, unpack: Unpack, part: str) -> None:
    prepare_home(unpack(HOMES[-1]))
    (home / "version").write_text(json.dumps(VERSIONS | {part: VERSIONS.get(part, 0) + 1}))
    before, asked = files(home), sandbox.count
    for words in COMMANDS:
        ran = command(*words, sandbox=sandbox)
        assert ran.code == 2, f"{words}: {ran.text}"
        assert "of a newer version of marketing-sync" in ran.err
        assert "upgrade this installation" in ran.err
    assert files(home) == before
    assert sandbox.count == asked


def test_a_newer_file_in_a_home_that_does_not_say_so_is_refused(command: Command, home: Path, sandbox: Sandbox, unpack: Unpack) -> None:
    unpack(HOMES[-1])
    (home / "version").unlink()
    with connect(home / "warehouse.duckdb") as connection:
        stamp_version(connection, SCHEMA_VERSION + 1)
    before = files(home)
    for words in COMMANDS:
        ran = command(*words, sandbox=sandbox)
        assert ran.code == 2, f"{words}: {ran.text}"
        assert "nothing to go back to" in ran.err or f"has schema version {SCHEMA_VERSION + 1}" in ran.err, f"{words}: {ran.text}"
    assert files(home) == before


def test_a_newer_outbox_sends_nothing(command: Command, home: Path, sandbox: Sandbox, unpack: Unpack) -> None:
    unpack(HOMES[-1])
    connection = sqlite3.connect(home / "outbox.sqlite")
    connection.execute(f"pragma user_version = {store.VERSION + 1}")
    connection.close()
    asked = sandbox.count
    ran = command(*COMMANDS[2], sandbox=sandbox)
    assert (ran.code, sandbox.count) == (2, asked), ran.text
    assert "newer version" in ran.err


def test_an_index_of_another_version_is_built_again(command: Command, home: Path, unpack: Unpack) -> None:
    """It is derived: no reason to refuse anything."""
    unpack(HOMES[-1])
    shutil.copyfile(home / "archive" / "index.sqlite", home / "before")
    connection = sqlite3.connect(home / "archive" / "index.sqlite")
    connection.execute("pragma user_version = 99")
    connection.close()
    assert command("plan").code == 0
    with sqlite3.connect(home / "archive" / "index.sqlite") as connection:
        assert connection.execute("pragma user_version").fetchone() == (2,)
    connection.close()
