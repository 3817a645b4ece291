"""`marketing-sync backup` and `restore`: what is printed, and what a restored outbox may do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from home.versions import VERSIONS
from tests.fixtures import Alerts, Command
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import differing, rows

ACTIVE = "select distinct email from source.contacts where status = 'active' order by email limit 4"
TAGS = ("push", "tags", "--sql", f"select email, 'vip' as tag from ({ACTIVE})", "--apply")
OTHERS = ("push", "tags", "--sql", f"select email, 'late' as tag from ({ACTIVE})", "--apply")


@pytest.fixture
def place(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARKETING_BACKUP_URL", str(tmp_path / "backup"))
    return tmp_path / "backup"


def test_without_an_address_it_is_said_what_to_set(command: Command, home: Path) -> None:
    for name in ("backup", "restore"):
        ran = command(name)
        assert (ran.code, ran.out) == (2, "")
        assert "set MARKETING_BACKUP_URL" in ran.err


def test_a_backup_by_hand_says_what_is_there_and_mends_it(
    command: Command, service: Sandbox, place: Path
) -> None:
    ran = command("backup")
    assert (ran.code, ran.err) == (0, "")
    assert "sent: 0 files" in command("backup").out
    request = next(place.glob("main/archive/requests/*/*"))
    request.unlink()
    ran = command("backup", "--verify")
    assert ran.code == 1
    assert (
        ran.err == f"{request.relative_to(place / 'main')} was missing or damaged there: it was sent again\n"
    )
    assert command("backup", "--verify").code == 0


def test_damage_is_named_by_the_restore(command: Command, service: Sandbox, home: Path, place: Path) -> None:
    command("backup")
    shutil.rmtree(home)
    request = next(place.glob("main/archive/requests/*/*"))
    request.write_bytes(b"x" * request.stat().st_size)
    ran = command("restore")
    assert (ran.code, ran.out) == (1, "")
    assert str(request.relative_to(place / "main")) in ran.err
    ran = command("sync")
    assert (ran.code, ran.out) == (2, ""), "the home is not used before it is whole"
    assert "run `marketing-sync restore` again" in ran.err


def test_a_backup_of_a_newer_version_is_not_made_a_home(
    command: Command, service: Sandbox, home: Path, place: Path
) -> None:
    (home / "version").write_text('{"archive": 99}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VERSIONS, "archive", 99)
        assert command("backup").code == 0
    shutil.rmtree(home)
    ran = command("restore")
    assert (ran.code, ran.out) == (2, "")
    assert "of a newer version of marketing-sync" in ran.err
    assert command("status").code == 2


def test_a_home_in_use_is_refused(command: Command, service: Sandbox, home: Path, place: Path) -> None:
    command("backup")
    ran = command("restore")
    assert ran.code == 2
    assert "is in use" in ran.err


@pytest.mark.slow
def test_a_push_is_backed_up_when_it_ends_and_not_sent_again_by_a_restored_outbox(
    command: Command, service: Sandbox, home: Path, place: Path
) -> None:
    assert command(*TAGS, sandbox=service).code == 0
    before = rows(home, "sync", "applied_at")["writebacks"]
    shutil.rmtree(home)
    assert command("restore", sandbox=service).code == 0
    assert rows(home, "sync", "applied_at")["writebacks"] == before
    assert command("restore", "--release").code == 0
    count = service.count
    assert command(*TAGS, sandbox=service).code == 0
    assert service.count == count


@pytest.mark.slow
def test_what_was_pushed_after_the_backup_waits_for_a_person(
    command: Command, service: Sandbox, home: Path, place: Path
) -> None:
    assert command(*TAGS, sandbox=service).code == 0
    assert command(*OTHERS, sandbox=service, MARKETING_BACKUP_URL="").code == 0
    shutil.rmtree(home)
    ran = command("restore", sandbox=service)
    assert "pushes are held" in ran.out
    count = service.count
    ran = command(*OTHERS, sandbox=service)
    assert ran.code == 1
    assert "what was pushed later is not known to it" in ran.err
    assert service.count == count
    command("restore", "--release")
    assert command(*OTHERS, sandbox=service).code == 0


@pytest.mark.slow
def test_a_run_counts_though_it_cannot_be_backed_up(
    command: Command, service: Sandbox, alerts: type[Alerts], caplog: pytest.LogCaptureFixture
) -> None:
    told = "the run is done, but not backed up: gs://bucket/backup/main cannot be used: install gcsfs"
    how = {"MARKETING_BACKUP_URL": "gs://bucket/backup", "MARKETING_ALERT_URL": alerts.url}
    ran = command(*TAGS, sandbox=service, **how)
    assert ran.code == 0
    assert told in ran.err + caplog.text
    ran = command("sync", "--reads-only", "--only", "lists", sandbox=service, **how)
    assert ran.code == 1
    assert ran.err.splitlines()[-1] == f"marketing-sync: {told}"
    assert [body["text"] for body in alerts.bodies] == [f"marketing-sync: {told}"] * 2


@pytest.mark.slow
def test_the_tables_of_a_restored_home_are_those_that_were_lost(
    command: Command, service: Sandbox, home: Path, place: Path
) -> None:
    assert command("sync", "--reads-only", "--only", "lists", "contacts", sandbox=service).code == 0
    before = rows(home, "source") | rows(home, "sync", "applied_at")
    shutil.rmtree(home)
    assert command("restore", sandbox=service).code == 0
    assert differing(before, rows(home, "source") | rows(home, "sync", "applied_at")) <= {
        "contact_coverage",
        "meta",
    }
