"""Without a key the sandbox is used only where somebody chose it, or sees that it is used: a scheduled command
that lost its folder would succeed in it forever."""

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from home.accounts import open_connections
from home.folder import prepare_home
from home.identity import identity_of
from home.settings import SettingsError, load_settings
from marketing_api.sandbox import server
from marketing_sync.push_terminal import PushCommand
from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from warehouse.connection import open_database
from warehouse.schema import ensure_schema

NOTICE = "no key is configured: this is the sandbox"
REMEDIES = ("`.env`", "MARKETING_API_KEY", "--sandbox", "MARKETING_SANDBOX_URL")
COMMANDS = [
    ("sync", "--quiet"),
    ("push", "tags", "--sql", "select 1", "--apply"),
    ("push", "activations", "--apply"),
    ("call", "app/me"),
    ("doctor",),
]
LOOKING = [
    ("status",),
    ("report",),
    ("query", "select 1"),
    ("publish",),
    ("backup",),
    ("forget", "ann@example.com", "--apply"),
]


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


@pytest.mark.parametrize("words", [*COMMANDS, *LOOKING], ids=" ".join)
def test_lost_folder_is_refused_and_left_empty(
    command: Command, folder: Path, words: tuple[str, ...]
) -> None:
    ran = command(*words, MARKETING_HOME="")
    assert (ran.code, ran.out) == (2, "")
    assert [remedy for remedy in REMEDIES if remedy not in ran.err] == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_lost_key_of_a_named_home_is_refused(command: Command, words: tuple[str, ...]) -> None:
    ran = command(*words)
    assert ran.code == 2
    assert [remedy for remedy in REMEDIES if remedy not in ran.text] == []


def test_key_that_is_configured_is_not_replaced_by_the_sandbox(command: Command, sandbox: Sandbox) -> None:
    before = sandbox.count
    ran = command("sync", "--sandbox", sandbox=sandbox)
    assert ran.code == 2
    assert "an account is configured here" in ran.err
    assert sandbox.count == before


def test_terminal_shows_the_notice(command: Command, on_terminal: None) -> None:
    ran = command("status")
    assert ran.code == 0
    assert NOTICE in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("level", [(), ("--quiet",), ("--json",)])
def test_chosen_sandbox_is_named_on_every_output_level(command: Command, level: tuple[str, ...]) -> None:
    ran = command("sync", "--sandbox", "--only", "lists", *level, MARKETING_SANDBOX_CONTACTS="20")
    assert ran.code == 0, ran.text
    assert ran.err.count(NOTICE) == 1


def test_a_command_to_be_pasted_keeps_the_chosen_sandbox() -> None:
    command = PushCommand("tags", [], {}, applies=False, is_sandbox=True)
    assert command.make_lines("then:")[-1] == "  marketing-sync push tags --apply --sandbox"


def test_address_of_a_sandbox_is_a_choice(command: Command, sandbox: Sandbox) -> None:
    ran = command("call", "app/me", MARKETING_SANDBOX_URL=sandbox.url)
    assert (ran.code, ran.err) == (0, "")


def test_home_of_a_live_account_is_looked_at_without_a_key(command: Command, home: Path) -> None:
    (prepare_home(home) / "identity.json").write_text('{"home_id": "x", "kind": "live"}')
    with open_database(home / "warehouse.duckdb") as connection:
        ensure_schema(connection)
    ran = command("status")
    assert (ran.code, ran.err) == (0, "")


def test_rebuilding_an_empty_home_does_not_make_it_a_live_one(command: Command, home: Path) -> None:
    ran = command("rebuild")
    assert (ran.code, "no stored responses" in ran.err) == (1, True), ran.text
    assert identity_of(home).kind == ""


def test_process_of_dagster_refuses_too(folder: Path) -> None:
    settings = load_settings(folder, {})
    with pytest.raises(SettingsError, match="no key is configured"), open_connections(settings):
        pass


@pytest.mark.parametrize(("file", "option"), [("", " --sandbox"), (".env", ""), ("accounts.toml", "")])
def test_make_sync_chooses_the_sandbox_in_a_clone_without_settings(
    folder: Path, file: str, option: str
) -> None:
    shutil.copy(Path(__file__).parents[2] / "Makefile", folder)
    for name in filter(None, ("requirements.lock", "pyproject.toml", file)):
        (folder / name).touch()
    ours = ("MARKETING_", "MAKE", "MFLAGS")  # make tells a make that it runs where it is
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    ran = subprocess.run(["make", "--dry-run", "sync"], capture_output=True, text=True, check=True, env=clean)
    assert ran.stdout.splitlines()[-1].strip() == f".venv/bin/marketing-sync sync{option}"


@pytest.mark.slow
def test_the_first_sync_reads_the_sandbox_as_of_the_day_before(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the second one has a day of changes to show."""
    moment = dt.datetime(2026, 3, 5, 10, 30, 20, tzinfo=dt.UTC)
    monkeypatch.setattr("marketing_api.clock.unix_now", moment.timestamp)
    started: list[tuple[str, ...]] = []
    spawn = server.spawn
    monkeypatch.setattr(server, "spawn", lambda *options: (started.append(options), spawn(*options))[1])
    for _ in range(2):
        assert command("sync", "--sandbox", "--only", "lists", MARKETING_SANDBOX_CONTACTS="5").code == 0
    assert [[option for option in options if "now" in option] for options in started] == [
        ["--now=2026-03-04T10:30"],
        [],
    ]
    begun = json.loads((home / "sandbox.jsonl").read_text().splitlines()[0])["origin"]["base"]
    assert begun == dt.datetime(2026, 3, 4, 10, 30, tzinfo=dt.UTC).timestamp()
