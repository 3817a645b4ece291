"""`marketing-sync forget` leaves nothing of a person in any byte of a home, and others untouched."""

import shutil
import signal
from itertools import chain
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from home.folder import dagster_home, in_use
from pipelines.dagster_internals import open_run_instance
from tests.fixtures import Command, Night, StartSandbox, no_report
from tests.pipelines.running import start
from tests.pipelines.sandboxes import Sandbox, move_account
from tests.pipelines.searching import found_in, rows_of_others
from tests.pipelines.tables import differing, source
from tests.upkeep.test_person import ABOUT, ask, somebody
from tests.waiting import wait_until
from upkeep.erasing import read_work_list
from warehouse.archive.suppression import load_forgotten
from warehouse.publish import published_path

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(home: Path, rough_night: Night) -> Path:
    """A home of a whole night, which tests may change."""
    shutil.copytree(rough_night.home, home)
    return home


def values_of(home: Path, address: str, contacts: list[int]) -> set[str]:
    """What nobody else has: values of custom fields, texts of timelines and reviews."""
    theirs = f"list_contains({contacts}, contact_id)"
    fields = "select unnest(json_extract_string(custom_fields, '$.*')) from source.contacts"
    found = ask(home, f"{fields} where {theirs}")
    found += ask(home, f"select snippet from source.timeline_events where {theirs}")
    others = "\n".join(chain.from_iterable(rows_of_others(home, [address], contacts).values())).lower()
    # dates are written in another way in responses than in tables
    texts = {text for (text,) in found if text and len(text) > 3 and not text[0].isdigit()}
    return {text for text in texts if text.lower() not in others}


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
    assert "deletes all logs and runs in Dagster, and all stored responses" in ran.out
    assert "nobody in the home" not in ran.out
    assert "nobody in the home has this address or id: check the spelling" in command("forget", "n@x.com").out
    (filled / "people.txt").write_text(f"{address}\nn@x.com\n")
    assert "no contact for 1 of 2 people" in command("forget", "--from", str(filled / "people.txt")).out
    assert before == {path: path.stat().st_mtime_ns for path in filled.rglob("*.parquet")} | {
        filled: (filled / "warehouse.duckdb").stat().st_mtime_ns
    }
    assert found_in(filled, [address])


def leave_behind(command: Command, home: Path, service: Sandbox, address: str, backup: str) -> None:
    """What pushes, publishing, a backup, and killed and failed runs leave, and what was set aside."""
    move_account(home, service.url)
    rows = home.parent / "tags.csv"
    rows.write_text(f"email,tag\n{address},vip\n{address},\nAnn <{address}>,vip\nbob@other.example,vip\n")
    push = ("push", "tags", "--from", str(rows), "--reject-limit", "90%", "--apply")
    assert command(*push, sandbox=service).code == 1
    rows.unlink()
    corrected = str(home / "pushes" / "rejected" / "tags.csv")
    assert command("push", "status", "--rejected", "--out", corrected, sandbox=service).code == 0
    for words in (("publish",), ("publish",), ("backup",)):
        assert command(*words, MARKETING_BACKUP_DIR=backup).code == 0
    spool = home / "tmp" / "spool" / "20260101T000000000000Z-00000000"
    spool.mkdir(parents=True)
    (spool / "body").write_text(text := f'{{"email": "{address}", "{address}": 1}}')
    with next((home / "logs").glob("*-sync-*.log")).open("a", encoding="utf-8") as log:
        log.write(f"ValueError: {text}\n")
    damaged = "damaged-20260101T000000000000Z-00000000"
    shutil.copy(home / "warehouse.duckdb", home / f"warehouse.duckdb.{damaged}")
    for name in ("outbox.sqlite", "archive/ledger.sqlite"):
        (home / f"{name}.{damaged}").write_bytes(b"SQLite format 3\0" + text.encode())
    (home / "published" / "marketing.duckdb.damaged-1").write_bytes(b"\0" * 8 + b"DUCK" + text.encode())

    @dg.op
    def fails() -> None:
        raise ValueError(text)

    @dg.job(tags={"who": address})
    def failing() -> None:
        fails()

    with dagster_home(home), open_run_instance(home) as instance:
        failing.execute_in_process(instance=instance, raise_on_error=False)


_EVERYWHERE = (
    *("archive", "published", "dagster", "logs", "pushes", "tmp", "outbox.sqlite", "outbox.copy.sqlite"),
    "warehouse.duckdb",
)


def test_nothing_is_found_of_them_and_everybody_else_is_as_before_also_when_it_was_killed(
    command: Command, filled: Path, start_sandbox: StartSandbox, tmp_path: Path
) -> None:
    address, contacts = somebody(filled)
    backup = str(tmp_path / "backup")
    leave_behind(command, filled, start_sandbox(), address, backup)
    tokens = [address, *values_of(filled, address, contacts)]
    assert len(tokens) > 1
    assert {*_EVERYWHERE} <= {name.split("/")[0] for name, _ in found_in(filled, tokens)}
    assert found_in(Path(backup), tokens)
    before = rows_of_others(filled, [address], contacts)
    killed = start(filled, None, "forget", address, "--apply", MARKETING_BACKUP_DIR=backup)
    with duckdb.connect(str(filled / "warehouse.duckdb"), read_only=True):  # so that something is left
        wait_until(lambda: killed.poll() is not None or getattr(read_work_list(filled), "places", None))
        killed.kill()
        killed.communicate()
    assert "is not finished" in command("status").out
    ran = command("forget", "--apply", MARKETING_BACKUP_DIR=backup)
    assert ran.code == 0, ran.text
    assert found_in(filled, tokens) + found_in(Path(backup), tokens) == []
    after = rows_of_others(filled, [address], contacts)
    assert {name for name in before if set(before[name]) - set(after[name])} == set()
    receipt = dict(ask(filled, "select place, rows from sync.erasures"))
    assert receipt["source.contacts"] == len(contacts)
    assert command("forget", address).out.startswith("0 rows")
    forgotten = source(filled)
    assert command("rebuild").code == 0
    assert differing(forgotten, source(filled)) == set()


def test_a_damaged_list_of_an_erasure_stops_others_and_wants_the_people_again(
    command: Command, filled: Path
) -> None:
    (filled / "forgetting.json").write_text("{")
    assert "`marketing-sync forget --apply` resumes it" in command("rebuild").text
    ran = command("forget", "--apply")
    assert (ran.code, "delete it, and forget the same people again" in ran.text) == (2, True)


@pytest.mark.usefixtures("unrecorded")
def test_nobody_comes_back_while_the_service_lists_them_and_a_lift_readmits(
    command: Command, filled: Path, start_sandbox: StartSandbox
) -> None:
    address, contacts = somebody(filled)
    tokens = [address, *values_of(filled, address, contacts)]
    service = start_sandbox()
    move_account(filled, service.url)
    ran = command("forget", address, "--apply", sandbox=service)
    assert ran.code == 0, ran.text
    before = source(filled)
    with no_report():
        ran = command("sync", "--reads-only", sandbox=service)
    assert ran.code == 0, ran.text
    assert found_in(filled, tokens) == []
    assert not differing(before, source(filled)) & {*ABOUT, "lists"}
    incomplete = "select table_name, scope, rows, service_count from sync.coverage where rows < service_count"
    assert ask(filled, incomplete) == []
    requested = [str(value) for each in service.asked() for value in each["params"].values()]
    assert address not in map(str.lower, requested)
    timelines = {each["params"]["id"] for each in service.asked() if each["operation"].endswith("timeline")}
    assert not timelines & set(map(str, contacts))

    assert command("forget", address, "--lift", sandbox=service).code == 0
    assert command("forget", address, "--lift", sandbox=service).code == 1
    with no_report():
        ran = command("sync", "--only", "lists", "contacts", sandbox=service)
    assert ran.code == 0, ran.text
    listed = "select distinct contact_id from source.contacts where lower(email) = ? order by 1"
    assert ask(filled, listed, address) == [(each,) for each in sorted(contacts)]


def test_custom_tables_are_made_without_them_or_go(command: Command, filled: Path) -> None:
    address, _ = somebody(filled)
    (filled / "models").mkdir()
    for name in ("people", "broken"):
        (filled / "models" / f"{name}.sql").write_text("select email from source.contacts")
    assert command("publish").code == 0
    (filled / "models" / "broken.sql").write_text("select nothing from source.contacts")
    ran = command("forget", address, "--apply", "--sandbox")
    assert ran.code == 0, ran.text
    with duckdb.connect(str(published_path(filled)), read_only=True) as connection:
        tables = "select table_name, built_at is null from sync.custom_tables order by all"
        assert connection.execute(tables).fetchall() == [("custom.broken", True), ("custom.people", False)]
        left = "select count(*) > 1, count(*) filter (email = ?) from custom.people"
        assert connection.execute(left, [address]).fetchall() == [(True, 0)]
    assert found_in(filled, [address]) == []


@pytest.mark.attack
def test_what_is_published_is_made_anew(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    hashed = {"MARKETING_PERSONAL_DATA": "hash"}
    assert command("publish", **hashed).code == 0
    path = published_path(filled)
    counted = "select count(*), count(*) filter (list_contains(?, contact_id)) from source.contacts"
    before = duckdb.connect(str(path), read_only=True).execute(counted, [contacts]).fetchone()
    ran = command("forget", address, "--apply", **hashed)
    assert ran.code == 0, ran.text
    after = duckdb.connect(str(path), read_only=True).execute(counted, [contacts]).fetchone()
    assert (before, after) == ((before[0], len(contacts)), (before[0] - len(contacts), 0))


@pytest.mark.attack
def test_a_copy_that_cannot_be_reached_is_told_and_tried_again(
    command: Command, filled: Path, tmp_path: Path
) -> None:
    address, _ = somebody(filled)
    backup = tmp_path / "backup"
    backup.write_text("a file, where a folder belongs")
    ran = command("forget", address, "--apply", MARKETING_BACKUP_DIR=str(backup))
    assert ran.code == 1, ran.text
    assert "not reached" in ran.out
    assert "run `marketing-sync forget --apply` to try again" in ran.err
    assert (filled / "forgetting.json").exists()
    backup.unlink()
    ran = command("forget", "--apply", MARKETING_BACKUP_DIR=str(backup))
    assert ran.code == 0, ran.text
    assert not (filled / "forgetting.json").exists()
    assert any(backup.rglob("*.parquet"))
    assert found_in(backup, [address]) == []


@pytest.mark.attack
def test_who_is_not_known_is_kept_away_all_the_same(command: Command, filled: Path) -> None:
    assert command("forget", "--contact-id", "987654321", "--apply").code == 0
    assert command("forget", "nobody@example.com", "--apply").code == 0
    forgotten = load_forgotten(filled / "archive")
    assert forgotten.is_contact("main", 987654321)
    assert forgotten.is_address("Nobody@example.com")


def test_nobody_is_forgotten_while_somebody_works_in_the_home(command: Command, filled: Path) -> None:
    address, _ = somebody(filled)
    with in_use(filled):
        ran = command("forget", address, "--apply", MARKETING_LOCK_SECONDS="0")
    assert ran.code in (1, 2)
    assert "another program is using the home" in ran.text
    assert not (filled / "forgetting.json").exists()


def called(home: Path, contact: int, address: str) -> None:
    """Give a contact another address wherever the warehouse has it."""
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        for table in ("source.contacts", "history.contacts", "sync.contact_coverage"):
            connection.execute(f"update {table} set email = ? where contact_id = ?", [address, contact])


@pytest.mark.attack
def test_whose_address_only_contains_theirs_is_somebody_else(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    others = ask(
        filled,
        "select distinct contact_id from source.contacts where not list_contains(?, contact_id) order "
        "by 1 limit 3",
        contacts,
    )
    for (contact,), form in zip(others, ("jo{}", "{}.example", "{}-x"), strict=True):
        called(filled, contact, form.format(address))
    rows = "select * from source.contacts where list_contains(?, contact_id) order by all"
    before = ask(filled, rows, [contact for (contact,) in others])
    ran = command("forget", address, "--apply")
    assert (ran.code, "source.contacts: 1 " in ran.out or len(contacts) != 1) == (0, True), ran.text
    assert ask(filled, rows, [contact for (contact,) in others]) == before
    assert not (filled / "forgetting.json").exists()


@pytest.mark.attack
@pytest.mark.parametrize(
    ("there", "typed"),
    [
        ("ΝΙΚΟΣ@παράδειγμα.example", "νικος@ΠΑΡΆΔΕΙΓΜΑ.example"),
        ("Ann.Tab@corner.example\t", "ann.tab@corner.example"),
    ],
)
def test_whatever_the_spelling_it_is_them(command: Command, filled: Path, there: str, typed: str) -> None:
    _, contacts = somebody(filled)
    called(filled, contacts[0], there)
    assert command("publish").code == 0
    ran = command("forget", typed, "--apply")
    assert ran.code == 0, ran.text
    assert "source.contacts: " in ran.out
    assert found_in(filled, [there.strip(), typed]) == []
    assert ask(filled, "select count(*) from source.timeline_events where contact_id = ?", contacts[0]) == [
        (0,)
    ]


@pytest.mark.attack
def test_a_signal_ends_it_with_130_and_it_goes_on(command: Command, filled: Path) -> None:
    address, _ = somebody(filled)
    stopped = start(filled, None, "forget", address, "--apply")
    with duckdb.connect(str(filled / "warehouse.duckdb"), read_only=True):  # so that something is left
        wait_until(lambda: stopped.poll() is not None or (filled / "forgetting.json").exists())
        stopped.send_signal(signal.SIGTERM)
        _, said = stopped.communicate()
    assert (stopped.returncode, "unexpected" in said) == (130, False), said
    assert command("forget", "--apply").code == 0
    assert found_in(filled, [address]) == []


def test_half_forgotten_nobody_works_in_the_home(
    command: Command, filled: Path, start_sandbox: StartSandbox
) -> None:
    address, _ = somebody(filled)
    service = start_sandbox()
    move_account(filled, service.url)
    (filled / "forgetting.json").write_text('{"erasure_id": "a number", "people": []}')
    tags = filled.parent / "tags.csv"
    tags.write_text(f"email,tag\n{address},vip\n")
    for line in (
        ("publish",),
        ("report",),
        ("person", address),
        ("forget", address),
        ("push", "tags", "--from", str(tags)),
        ("call", "app/me"),
    ):
        refused = command(*line, sandbox=service)
        assert (refused.code, "`marketing-sync forget --apply` resumes it" in refused.err) == (2, True), (
            refused.text
        )
    assert command("forget", "--apply").code == 0
    assert command("call", "app/me", sandbox=service).code == 0


@pytest.mark.attack
def test_twenty_erasures_in_a_row_leave_one_checkpoint_and_a_home_that_can_be_rebuilt(
    command: Command, filled: Path
) -> None:
    others = ask(filled, "select distinct lower(email) from source.contacts order by 1 limit 20")
    for (address,) in others:
        assert command("forget", address, "--apply").code == 0
    assert len(list(filled.glob("archive/checkpoints/*.duckdb"))) == 1
    assert found_in(filled, [address for (address,) in others]) == []
    forgotten = source(filled)
    assert command("rebuild").code == 0
    assert differing(forgotten, source(filled)) == set()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "no person is given"),
        (("--lift",), "no person is given"),
        (("ann@example.com", "--lift", "--apply"), "--lift and --apply exclude each other"),
        (("ann",), "not an e-mail address"),
        (("ann@example.com", "--account", "main"), "erased in all accounts"),
        (("--from", "none.txt"), "cannot be read"),
    ],
)
def test_wrong_use_is_said(command: Command, home: Path, words: tuple[str, ...], text: str) -> None:
    ran = command("forget", *words)
    assert ran.code == 2
    assert text in ran.text
