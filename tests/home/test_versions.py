"""A home of an earlier version is migrated once, in whole transactions; one of a newer version is refused."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import duckdb
import pytest

from home.folder import prepare_home
from home.versions import VERSIONS
from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from tests.ports import free_port
from warehouse import schema
from warehouse.archive.archive import Archive
from warehouse.connection import open_database
from warehouse.errors import WarehouseError
from warehouse.schema import SCHEMA_VERSION, ensure_schema, note_fact, schema_version, stamp_version
from write_back.outbox import store
from write_back.outbox.outbox import open_outbox

PUSH = ("push", "tags", "--sql", "select 'a@example.org' as email, 'vip' as tag", "--apply")


def commands() -> tuple[tuple[str, ...], ...]:
    ui = ("ui", "--port", str(free_port()))
    return ("status",), ("sync",), PUSH, ("push", "status"), ui, ("rebuild",), ("publish",)


@pytest.fixture
def made(home: Path, empty_tables: Path) -> Path:
    """With a list, an empty outbox and archive."""
    shutil.copy(empty_tables, prepare_home(home))
    with open_database(home / "warehouse.duckdb") as connection:
        connection.execute("insert into source.lists (account, list_id, name) values ('main', 1, 'Guests')")
    open_outbox(home).close()
    with Archive(home / "archive"):
        pass
    prepare_home(home)
    return home


def lists(home: Path) -> list[str]:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return [name for (name,) in connection.sql("select name from source.lists").fetchall()]


def version_of(home: Path) -> int | None:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return schema_version(connection)


def migrate_by(monkeypatch: pytest.MonkeyPatch, *statements: str) -> int:
    """From now on the program is of the next version, which has these statements."""
    version = SCHEMA_VERSION + 1
    monkeypatch.setattr(schema, "SCHEMA_VERSION", version)
    monkeypatch.setitem(VERSIONS, "warehouse", version)
    monkeypatch.setattr(schema, "MIGRATIONS", {version: statements})
    return version


def files(home: Path) -> dict[str, bytes]:
    """Every file but the log of the command itself, and what says that a process uses the home."""
    found = {
        path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()
    }
    return {name: content for name, content in found.items() if not name.startswith(("logs/", ".in-use"))}


def test_a_migration_is_carried_out_once(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = migrate_by(monkeypatch, "update source.lists set name = name || '.'")
    prepare_home(made)
    prepare_home(made)
    assert lists(made) == ["Guests."]
    assert version_of(made) == version


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [False, True], ids=["fails", "before the first release"])
def test_what_cannot_be_completed_is_as_it_was_and_says_to_rebuild(
    command: Command, made: Path, monkeypatch: pytest.MonkeyPatch, earlier: bool
) -> None:
    """Also what a migration did first; the mended program begins anew."""
    if earlier:
        with open_database(made / "warehouse.duckdb") as connection:
            stamp_version(connection, 4)
            note_fact(connection, "tables", "of then")
        (made / "version").unlink()
    else:
        migrate_by(
            monkeypatch,
            "delete from source.lists",
            "alter table source.lists alter column name set data type integer using 'x'",
        )
    version = version_of(made)
    for words in (("push", "status"), ("sync", "--sandbox")):
        ran = command(*words)
        assert (ran.code, "run `marketing-sync rebuild`" in ran.err) == (1, True), ran.text
        assert (version_of(made), lists(made)) == (version, ["Guests"])
    assert command("rebuild").code == 0
    assert version_of(made) == schema.SCHEMA_VERSION
    prepare_home(made)


@pytest.mark.parametrize("part", [*VERSIONS, "shelf"])
def test_a_newer_home_is_refused_and_left_alone(
    command: Command, made: Path, sandbox: Sandbox, part: str
) -> None:
    (made / "version").write_text(json.dumps(VERSIONS | {part: VERSIONS.get(part, 0) + 1}))
    before, asked = files(made), sandbox.count
    for words in commands():
        ran = command(*words, sandbox=sandbox)
        assert ran.code == 2, f"{words}: {ran.text}"
        assert "by a newer version of marketing-sync" in ran.err
        assert "upgrade this installation" in ran.err
    assert files(made) == before
    assert sandbox.count == asked


def test_a_newer_file_in_a_home_that_does_not_say_so_is_refused(
    command: Command, made: Path, sandbox: Sandbox
) -> None:
    (made / "version").unlink()
    with open_database(made / "warehouse.duckdb") as connection:
        stamp_version(connection, SCHEMA_VERSION + 1)
    before = files(made)
    for words in commands():
        ran = command(*words, sandbox=sandbox)
        assert ran.code == 2, f"{words}: {ran.text}"
        assert f"has schema version {SCHEMA_VERSION + 1}" in ran.err, f"{words}: {ran.text}"
    assert files(made) == before


def test_a_newer_outbox_sends_nothing(command: Command, made: Path, sandbox: Sandbox) -> None:
    connection = sqlite3.connect(made / "outbox.sqlite")
    connection.execute(f"pragma user_version = {store.VERSION + 1}")
    connection.close()
    asked = sandbox.count
    ran = command(*PUSH, sandbox=sandbox)
    assert (ran.code, sandbox.count) == (2, asked), ran.text
    assert "newer version" in ran.err


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(
    command: Command, made: Path, sandbox: Sandbox
) -> None:
    ledger = made / "archive" / "ledger.sqlite"
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        connection.execute("pragma user_version = 99")
    ran = command("sync", "--dry-run", sandbox=sandbox)
    assert (ran.code, "newer version" in ran.err) == (2, True), ran.text


def test_an_earlier_schema_is_never_completed_halfway(tmp_path: Path) -> None:
    with open_database(tmp_path / "warehouse.duckdb") as connection:
        stamp_version(connection, 4)
        with pytest.raises(WarehouseError, match="before the first release"):
            ensure_schema(connection)
        assert not schema.columns_of(connection).keys() - {"sync.meta"}
