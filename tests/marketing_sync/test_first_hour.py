"""A new user's first commands: the name alone, `init`, `doctor`; a key from a file, a dead address."""

import datetime as dt
import io
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from home.settings import SettingsError, load_settings
from marketing_api.clock import utc_now
from marketing_api.redaction import Secret
from marketing_api.retry import Silence
from tests.fixtures import Command
from tests.pipelines.running import start_cold
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.waiting import HANGS_S
from upkeep.backup import Snapshot
from warehouse.connection import open_database
from warehouse.status_file import AccountStatus, HomeStatus

NOWHERE = {"MARKETING_API_URL": "http://127.0.0.1:9/1", "MARKETING_API_KEY": "k-123456"}


def test_the_name_alone_shows_what_people_do(command: Command) -> None:
    ran = command()
    assert ran.code == 0
    assert [
        name
        for name in ("init", "sync", "status", "ui", "push contacts")
        if f"marketing-sync {name} " not in ran.out
    ] == []


# -- init


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_init_connects_an_account(
    command: Command, sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env").write_text(
        "MARKETING_TIMEZONE=Europe/Berlin\nMARKETING_API_KEY=old\nMARKETING_API_URL=http://127.0.0.1:9/1\n"
    )
    typed(monkeypatch, f"{KEY}\n")
    ran = command("init", "--url", sandbox.url)
    assert ran.code == 0, ran.text
    assert "connected as" in ran.out
    assert "marketing-sync sync --quiet\n" in ran.out.split("every night")[1]
    assert KEY not in ran.text
    assert (folder / ".env").stat().st_mode & 0o777 == 0o600
    settings = load_settings(folder, {})
    assert (settings.timezone, settings.accounts[0].url, settings.accounts[0].key) == (
        "Europe/Berlin",
        sandbox.url,
        Secret(KEY),
    )


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("{sandbox}", "wrong-key", "wrong or revoked"),
        ("http://127.0.0.1:9/1", KEY, "the connection was refused"),
        ("not an address", KEY, "https://HOST/1"),
        ("{sandbox}", "", "standard input has no key"),
        (None, KEY, "--url"),
    ],
)
def test_init_writes_nothing_that_does_not_work(
    command: Command,
    sandbox: Sandbox,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str | None,
    key: str,
    said: str,
) -> None:
    typed(monkeypatch, f"{key}\n")
    ran = command("init", *(["--url", url.format(sandbox=sandbox.url)] if url else []))
    assert ran.code == 2
    assert said in ran.text
    assert not (folder / ".env").exists()


def test_the_end_of_input_at_a_prompt_changes_nothing(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    ran = command("init")
    assert (ran.code, ran.err.strip()) == (130, "stopped; nothing was changed")
    assert not (folder / ".env").exists()


def test_init_leaves_accounts_toml_and_the_environment_alone(
    command: Command, sandbox: Sandbox, folder: Path
) -> None:
    assert "overrides .env" in command("init", "--url", sandbox.url, sandbox=sandbox).err
    (folder / "accounts.toml").write_text('[accounts.a]\nurl = "https://x/1"\nkey_env = "A_KEY"\n')
    ran = command("init", "--url", sandbox.url, A_KEY="k")
    assert ran.code == 2
    assert "accounts.toml" in ran.err


def test_a_key_with_odd_letters_is_read_as_it_was_typed(folder: Path) -> None:
    from marketing_sync.commands.init import _write_values

    key = "a'b\\c #d$e\"f"
    _write_values(folder / ".env", {"MARKETING_API_URL": "https://h/1", "MARKETING_API_KEY": key})
    assert load_settings(folder, {}).accounts[0].key == Secret(key)


# -- a key in a file


def test_a_key_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k-123456\n")
    given = {"MARKETING_API_URL": "https://h/1", "MARKETING_API_KEY_FILE": str(tmp_path / "key")}
    assert load_settings(tmp_path, given).accounts[0].key == Secret("k-123456")


@pytest.mark.parametrize(
    ("content", "said"), [(None, "No such file"), ("", "nothing"), ("k-1 k-2", "more than one word")]
)
def test_a_file_without_a_key_is_named_and_not_shown(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "key").write_text(content)
    with pytest.raises(SettingsError, match=f"MARKETING_API_KEY_FILE: .*{said}") as caught:
        load_settings(
            tmp_path, {"MARKETING_API_URL": "https://h/1", "MARKETING_API_KEY_FILE": str(tmp_path / "key")}
        )
    assert "k-1" not in str(caught.value)
    with pytest.raises(SettingsError, match="set the service's address"):
        load_settings(tmp_path, {"MARKETING_API_KEY": "k", "MARKETING_API_KEY_FILE": str(tmp_path / "key")})


# -- nobody listens


@pytest.mark.parametrize(("words", "code"), [(["call", "app/me"], 1), (["doctor"], 1)])
def test_a_closed_port_is_said_at_once(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    waits, is_outage = list[bool](), Silence.is_outage
    monkeypatch.setattr(Silence, "is_outage", lambda *given: waits.append(is_outage(*given)))
    ran = command(*words, **NOWHERE)
    assert ran.code == code
    assert "is http://127.0.0.1:9/1 the right address, and is the service up?" in ran.text
    assert "k-123456" not in ran.text
    assert waits, "it was not tried until then"
    assert not any(waits), "it was waited for"


def test_a_sync_says_it_before_it_tries_again(
    command: Command, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("marketing_api.client.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("marketing_api.retry.LONGEST_PAUSE", 0.01)
    ran = command("sync", "--only", "lists", **NOWHERE)
    assert ran.code == 1
    assert [
        (record.levelname, "no response yet" in record.message)
        for record in caplog.records
        if record.levelname != "INFO"
    ] == [("WARNING", True)]


# -- doctor


def test_doctor_says_what_to_do(command: Command, service: Sandbox, folder: Path, home: Path) -> None:
    (folder / ".env").write_text("MARKETING_TIMEZONE=Europe/Berlin\n")
    (folder / ".env").chmod(0o644)
    with open_database(home / "warehouse.duckdb") as connection:
        connection.execute("update sync.runs set started_at = started_at - interval 3 day, ended_at = null")
    read_at = utc_now() - dt.timedelta(days=5)
    (home / "status.json").write_bytes(msgspec.json.encode(HomeStatus([AccountStatus("main", read_at)])))
    ran = command("doctor", sandbox=service, MARKETING_BACKUP_DIR=str(home.parent / "backup"))
    assert ran.code == 1
    wrong = [line for line in ran.out.splitlines() if line.startswith("NO")]
    for said in (
        f"chmod 600 {folder / '.env'}",
        "nothing was read since",
        "ended without being recorded",
        "nothing yet; `marketing-sync sync` publishes",
        "there is none: run `marketing-sync backup` to see why",
    ):
        assert any(said in line for line in wrong), (said, ran.out)
    assert len(wrong) == 5


@pytest.mark.parametrize(("mode", "is_well"), [(0o640, True), (0o644, False)])
def test_settings_of_the_administrator_may_be_read_by_their_group(
    command: Command,
    sandbox: Sandbox,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: int,
    is_well: bool,
) -> None:
    (folder / ".env").touch()
    (folder / ".env").chmod(mode)
    own = os.getuid()
    monkeypatch.setattr("marketing_sync.commands.doctor.os.getuid", lambda: own + 1)
    ran = command("doctor", sandbox=sandbox)
    assert f"{folder / '.env'} is read" in ran.out if is_well else "chmod 640" in ran.out


def test_doctor_names_moments_in_utc(home: Path, service: Sandbox) -> None:
    with open_database(home / "warehouse.duckdb") as connection:
        connection.execute(
            "update sync.runs set started_at = timestamptz '2026-01-02 03:04:00+00', ended_at = null"
        )
    began = start_cold(home, service, "doctor", TZ="America/New_York")
    assert (
        "the run of 2026-01-02 03:04 UTC ended without being recorded"
        in began.communicate(timeout=HANGS_S)[0]
    )


def test_doctor_of_a_new_folder_is_content(command: Command, sandbox: Sandbox) -> None:
    ran = command("doctor", sandbox=sandbox)
    assert ran.code == 0, ran.text
    assert "nothing has been synced yet" in ran.out
    assert "ok  backup      none: MARKETING_BACKUP_DIR is not set" in ran.out


def test_doctor_goes_on_when_the_system_refuses_one_look(
    command: Command, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> NoReturn:
        raise PermissionError(13, "Permission denied", "tmp/runs")

    monkeypatch.setattr("marketing_sync.commands.doctor.shutil.disk_usage", refuse)
    ran = command("doctor", sandbox=sandbox)
    assert ran.code == 1
    assert (
        "NO  home        tmp/runs can't be used (Permission denied): run the command as its owner" in ran.out
    )
    assert "ok  account" in ran.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[activations.vip\n", "cannot be read"),
        (None, "there is no activations.toml"),
        ("", "has no activation"),
    ],
)
def test_doctor_names_activations_that_no_night_can_push(
    command: Command, folder: Path, sandbox: Sandbox, content: str | None, said: str
) -> None:
    if content is not None:
        (folder / "activations.toml").write_text(content)
    ran = command("doctor", sandbox=sandbox, MARKETING_ACTIVATIONS="on")
    assert ran.code == 1
    (line,) = (line for line in ran.out.splitlines() if " activations " in line)
    assert line.startswith("NO")
    assert said in line


def test_doctor_counts_activations(command: Command, folder: Path, sandbox: Sandbox) -> None:
    (folder / "activations.toml").write_text('[activations.vip]\nquery = "select 1"\ntag = "vip"\n')
    ran = command("doctor", sandbox=sandbox, MARKETING_ACTIVATIONS="on")
    assert ran.code == 0
    assert "1 activation of activations.toml, pushed every night" in ran.out


@pytest.mark.parametrize(
    ("days", "home_id", "said"),
    [(400, "", "made dated in the future"), (0, "other", "contains the backup of another home")],
)
def test_doctor_does_not_take_every_snapshot_for_this_nights_backup(
    command: Command, sandbox: Sandbox, tmp_path: Path, days: int, home_id: str, said: str
) -> None:
    place = tmp_path / "backup" / "main"
    place.mkdir(parents=True)
    made_at = utc_now() + dt.timedelta(days=days)
    (place / "snapshot.json").write_bytes(msgspec.json.encode(Snapshot(made_at, home_id, {}, 0)))
    ran = command("doctor", sandbox=sandbox, MARKETING_BACKUP_DIR=str(tmp_path / "backup"))
    assert ran.code == 1
    (line,) = (line for line in ran.out.splitlines() if line.startswith("NO  backup"))
    assert said in line


def test_doctor_names_a_home_that_cannot_be_written(
    command: Command, sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ran = command("doctor", sandbox=sandbox, MARKETING_HOME=str(tmp_path / "file"))
    assert ran.code
    assert "MARKETING_HOME" in ran.text or os.fspath(tmp_path / "file") in ran.text


# -- for cron and for programs


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.slow
def test_a_quiet_sync_prints_nothing_unless_something_lacks(command: Command, service: Sandbox) -> None:
    assert command("sync", "--quiet", "--only", "lists", sandbox=service).text == ""
    ran = command("sync", "--quiet", "--only", "lists", **NOWHERE)
    assert ran.code == 1
    assert "connection was refused" in ran.text


@pytest.mark.slow
def test_log_lines_may_be_json(home: Path) -> None:
    began = start_cold(home, None, "call", "app/me", **NOWHERE, MARKETING_LOG_FORMAT="json")
    _, err = began.communicate(timeout=HANGS_S)
    line = json.loads(err.splitlines()[0])
    assert (line["level"], line["logger"]) == ("WARNING", "marketing_api.retry")
    assert "no response yet" in line["message"]
    assert line["time"].endswith("+00:00")
