"""Commands that show what is configured and what was done: `config show`, `status` with its options,
`report --open`. None of them sends a request."""

from __future__ import annotations

import shutil
import signal
import stat
from pathlib import Path

import msgspec
import pytest

from home import output
from tests.fixtures import Command
from tests.pipelines.running import run, start_cold
from tests.pipelines.sandboxes import Sandbox
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy

KEYS = {"MARKETING_API_URL": "https://host.example/1", "MARKETING_API_KEY": "k-123456"}


def test_a_setting_has_its_value_and_where_it_is_set(command: Command, folder: Path) -> None:
    (folder / ".env").write_text("MARKETING_MAX_AGE_DAYS=3\nMARKETING_LOOKBACK_DAYS=9\nMARKETING_MAX_RATE=\n")
    ran = command("config", "show", "--json", MARKETING_LOOKBACK_DAYS="5")
    found = msgspec.json.decode(ran.out, type=output.Config)
    settings = {each.name: (each.value, each.source) for each in found.settings}
    assert settings["MARKETING_MAX_AGE_DAYS"] == ("3", ".env")
    assert settings["MARKETING_LOOKBACK_DAYS"] == ("5", "environment"), "it overrides the file"
    assert settings["MARKETING_MAX_RATE"] == (None, "default"), "an empty one is not set"
    assert settings["MARKETING_HOME"][1] == "environment"
    assert settings["MARKETING_BODY_LIMIT"] == ("2GB", "default"), "as it is written"
    assert "MARKETING_MAX_AGE_DAYS" in command("config", "show").out


def test_no_secret_is_shown(command: Command, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("smtps://me:s-secret@host.example")
    secrets = {
        "MARKETING_PERSONAL_KEY": "s-secret-of-many-letters",
        "MARKETING_BUDGET_URL": "redis://:s-secret@host.example",
        "MARKETING_ALERT_URL": "https://host.example/hook/s-secret",
        "MARKETING_MAIL_URL_FILE": str(file),
    }
    mail = {"FROM": "me@mail.example", "TO": "ann@mail.example"}
    secrets |= {f"MARKETING_MAIL_{name}": value for name, value in mail.items()}
    for words in (["config", "show"], ["config", "show", "--json"]):
        ran = command(*words, **KEYS, **secrets)
        assert ran.code == 0, ran.text
        assert "s-secret" not in ran.text
        assert KEYS["MARKETING_API_KEY"] not in ran.text
        assert KEYS["MARKETING_API_URL"] in ran.text
    found = {each.name: each for each in msgspec.json.decode(ran.out, type=output.Config).settings}
    assert (found["MARKETING_MAIL_URL"].value, found["MARKETING_MAIL_URL"].source) == (
        "***",
        "environment",
    )


def test_what_is_set_for_nothing_is_named(command: Command) -> None:
    assert (
        "MARKETING_HOM is no setting (did you mean MARKETING_HOME?)"
        in command("config", "show", MARKETING_HOM="x").out
    )


def test_status_lists_the_accounts(command: Command, service: Sandbox, folder: Path) -> None:
    before = service.count
    ran = command("status", "--json", sandbox=service)
    (found,) = msgspec.json.decode(ran.out, type=output.Status).accounts
    assert (found.account, found.business, found.incomplete) == ("main", "Olive Grove Table", 0)
    assert found.read_at is not None
    assert service.count == before


def test_status_lists_accounts_that_were_never_read(command: Command, folder: Path) -> None:
    table = '[accounts.{0}]\nurl = "https://{0}.example/1"\nkey_env = "KEY_{0}"\n'
    (folder / "accounts.toml").write_text("".join(map(table.format, "ns")))
    found = msgspec.json.decode(command("status", "--json").out, type=output.Status).accounts
    assert [(each.account, each.url, each.read_at) for each in found] == [
        ("n", "https://n.example/1", None),
        ("s", "https://s.example/1", None),
    ]


def test_a_log_is_shown_by_the_command_that_wrote_it(command: Command, home: Path) -> None:
    home.mkdir()
    command("push", "status")
    assert "push ends with exit code 0" in command("status", "--log", "push").out
    ran = command("status", "--log", "sync")
    assert (ran.code, "there is no log of sync" in ran.err) == (2, True)


def test_status_shows_one_thing(command: Command) -> None:
    assert "choose one of --watch and --json" in command("status", "--watch", "--json").err


@pytest.mark.slow
def test_a_watched_status_is_shown_again_until_ctrl_c(home: Path) -> None:
    process = start_cold(home, None, "status", "--watch", **KEYS)
    assert process.stdout is not None
    seen = [process.stdout.readline() for _ in range(2)]
    assert [line.partition(":")[0] for line in seen] == ["nothing has been synced yet"] * 2
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [line for line in said.splitlines() if "no key is configured" not in line] == []


def test_a_report_is_opened(home: Path, empty_tables: Path, tmp_path: Path) -> None:
    shutil.copytree(empty_tables.parent, home)
    publish_copy(home, Masking(PersonalData.KEEP))
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(stat.S_IRWXU)
    ran = run(home, None, "report", "--open", BROWSER=str(browser))
    assert ran.code == 0, ran.text
    assert opened.read_text().strip() == (home / "report" / "index.html").as_uri()
    ran = run(home, None, "report", "--open", BROWSER="/bin/false", PATH="")
    assert (ran.code, "open the file yourself" in ran.err) == (1, True)
