"""`marketing-sync forget` leaves nothing of a person in any byte of a home, and everybody else as they were."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import duckdb
import pytest

from pipelines.home import in_use
from tests.pipelines.conftest import Command, Night, StartSandbox
from tests.pipelines.running import start
from tests.pipelines.searching import found_in, rows_of_others
from tests.pipelines.tables import differing, source
from tests.pipelines.test_person import ask, somebody
from warehouse.archive.suppression import load
from warehouse.publish import earlier, published_path

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(home: Path, nights: tuple[Night, Night]) -> Path:
    """A home of a whole night, which tests may change."""
    shutil.copytree(nights[1].home, home)
    return home


def values_of(home: Path, contacts: list[int]) -> set[str]:
    """What nobody else has: values of custom fields, texts of timelines and reviews."""
    theirs = f"list_contains({contacts}, contact_id)"
    found = ask(home, f"select unnest(json_extract_string(custom_fields, '$.*')), {theirs} from source.contacts")
    found += ask(home, f"select snippet, {theirs} from source.timeline_events")
    others = {text for text, is_theirs in found if not is_theirs}
    return {text for text, is_theirs in found if is_theirs and text and len(text) > 3 and text not in others}


def test_a_dry_run_says_what_would_go_and_changes_nothing(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    before = {path: path.stat().st_mtime_ns for path in filled.rglob("*.parquet")} | {
        filled: (filled / "warehouse.duckdb").stat().st_mtime_ns
    }
    ran = command("forget", address)
    assert ran.code == 0, ran.text
    lines = dict(line.rsplit(": ", 1) for line in ran.out.splitlines()[:-1])
    assert lines["source.contacts"] == str(len(contacts))
    assert "a dry run" in ran.out
    assert before == {path: path.stat().st_mtime_ns for path in filled.rglob("*.parquet")} | {
        filled: (filled / "warehouse.duckdb").stat().st_mtime_ns
    }
    assert found_in(filled, [address])


def test_nothing_is_found_of_them_and_everybody_else_is_as_before_also_when_it_was_killed(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    tokens = [address, *values_of(filled, contacts)]
    assert len(tokens) >= 3
    before = rows_of_others(filled, address, contacts)
    killed = start(filled, None, "forget", address, "--apply")
    while not (filled / "forgetting.json").exists():
        time.sleep(0.01)
    time.sleep(random.Random(1).uniform(0.1, 1.5))
    killed.kill()
    killed.communicate()
    assert "that has not ended" in command("status").out
    ran = command("forget", "--apply")
    assert ran.code == 0, ran.text
    assert found_in(filled, tokens) == []
    after = rows_of_others(filled, address, contacts)
    assert {name for name in before if before[name] != after.get(name)} == set()
    receipt = dict(ask(filled, "select place, rows from sync.erasures"))
    assert receipt["source.contacts"] == len(contacts)
    assert command("forget", address).out.startswith("0 rows")
    forgotten = source(filled)
    assert command("rebuild").code == 0
    rebuilt = source(filled)
    hashed = {"timeline_events", "timeline_visits"}  # by texts and links that are gone
    assert differing(forgotten, rebuilt) <= hashed
    assert {name: len(forgotten[name]) for name in hashed} == {name: len(rebuilt[name]) for name in hashed}


def test_they_are_deleted_at_the_service_first_when_that_is_asked_for(command: Command, filled: Path, start_sandbox: StartSandbox) -> None:
    address, contacts = somebody(filled)
    service = start_sandbox()
    ran = command("forget", address, "--apply", "--also-at-service", sandbox=service)
    assert ran.code == 0, ran.text
    assert {int(each["params"]["id"]) for each in service.asked() if each["operation"] == "emailmarketing/deletecontact"} == set(contacts)
    assert found_in(filled, [address, *values_of(filled, contacts)]) == []
    refused = command("forget", "somebody@example.com", "--also-at-service")
    assert (refused.code, "--apply" in refused.err) == (2, True)


def test_copies_with_hashes_lose_them_too(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    hashed = {"MARKETING_PERSONAL_DATA": "hash"}
    assert [command("publish", **hashed).code for _ in range(2)] == [0, 0]
    copies = [published_path(filled), *earlier(filled)]
    assert len(copies) == 2
    counted = "select count(*), count(*) filter (list_contains(?, contact_id)) from source.contacts"
    before = [duckdb.connect(str(path), read_only=True).execute(counted, [contacts]).fetchone() for path in copies]
    ran = command("forget", address, "--apply", **hashed)
    assert ran.code == 0, ran.text
    after = [duckdb.connect(str(path), read_only=True).execute(counted, [contacts]).fetchone() for path in copies]
    assert after == [(rows, 0) for rows, _ in before]
    assert before[0] == (before[0][0], len(contacts))


def test_tables_on_the_way_to_the_marts_lose_them_too(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    with duckdb.connect(str(filled / "warehouse.duckdb")) as connection:
        row = "select 'main' as account, ? as contact_id, ? as email, 'kept' as goal_key"
        connection.execute(f"insert into staging.int_goals_reached by name {row}", [contacts[0], address])
    ran = command("forget", address, "--apply")
    assert ran.code == 0, ran.text
    assert found_in(filled, [address]) == []
    assert ask(filled, "select contact_id < 0, goal_key from staging.int_goals_reached where goal_key = 'kept'") == [(True, "kept")]


def test_a_copy_that_cannot_be_reached_is_told_and_tried_again(command: Command, filled: Path, tmp_path: Path) -> None:
    address, _ = somebody(filled)
    backup = tmp_path / "backup"
    backup.write_text("a file, where a folder belongs")
    ran = command("forget", address, "--apply", MARKETING_BACKUP_URL=str(backup))
    assert ran.code == 1, ran.text
    assert "not reached" in ran.out
    assert "`marketing-sync forget --apply` tries again" in ran.err
    assert (filled / "forgetting.json").exists()
    backup.unlink()
    ran = command("forget", "--apply", MARKETING_BACKUP_URL=str(backup))
    assert ran.code == 0, ran.text
    assert not (filled / "forgetting.json").exists()
    assert any(backup.rglob("*.parquet"))
    assert found_in(backup, [address]) == []


def test_nobody_is_forgotten_when_their_deletion_at_the_service_cannot_be_planned(
    command: Command, filled: Path, start_sandbox: StartSandbox
) -> None:
    address, contacts = somebody(filled)
    with duckdb.connect(str(filled / "warehouse.duckdb")) as connection:
        connection.execute("update source.contacts set list_id = -1 where contact_id = ?", [contacts[0]])
    service = start_sandbox()
    ran = command("forget", address, "--apply", "--also-at-service", sandbox=service)
    assert ran.code in (1, 2), ran.text
    assert "--reject-limit" in ran.text
    assert not [each for each in service.asked() if each["operation"] == "emailmarketing/deletecontact"]
    assert not (filled / "forgetting.json").exists()
    assert found_in(filled, [address])


def test_who_is_not_known_is_kept_away_all_the_same(command: Command, filled: Path) -> None:
    assert command("forget", "--contact-id", "987654321", "--apply").code == 0
    assert command("forget", "nobody@example.com", "--apply").code == 0
    forgotten = load(filled / "archive")
    assert forgotten.is_contact("main", 987654321)
    assert forgotten.is_address("Nobody@example.com")


def test_nobody_is_forgotten_while_somebody_works_in_the_home(command: Command, filled: Path) -> None:
    address, _ = somebody(filled)
    with in_use(filled):
        ran = command("forget", address, "--apply", MARKETING_LOCK_SECONDS="0")
    assert ran.code in (1, 2)
    assert str(os.getpid()) in ran.text
    assert not (filled / "forgetting.json").exists()


@pytest.mark.parametrize(
    ("words", "text"), [((), "say who"), (("ann",), "not an e-mail address"), (("--from", "none.txt"), "cannot be read")]
)
def test_wrong_use_is_said(command: Command, home: Path, words: tuple[str, ...], text: str) -> None:
    ran = command("forget", *words)
    assert ran.code == 2
    assert text in ran.text
