"""A backup is a whole copy of the home or the previous one, and a restored home is the one that was lost."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from home.settings import Settings, SettingsError
from home.versions import VERSIONS
from tests.fixtures import Alerts, Command
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import differing, query, rows
from tests.warehouse.answering import Home
from tests.warehouse.test_rebuild import fill
from upkeep import backup as module
from upkeep.backup import back_up, read_snapshot, restore_backup
from warehouse.archive.archive import Archive
from warehouse.connection import open_database
from warehouse.disk import RESTORING
from warehouse.errors import ForeignFolder, WarehouseError
from write_back.outbox.outbox import Outbox

ACTIVE = "select distinct email from source.contacts where status = 'active' order by email limit 4"
TAGS = ("push", "tags", "--sql", f"select email, 'vip' as tag from ({ACTIVE})", "--apply")
OTHERS = ("push", "tags", "--sql", f"select email, 'late' as tag from ({ACTIVE})", "--apply")
ACTIVITIES = (
    *("push", "activities", "--sql"),
    f"select email, 'Called' as description, '2026-01-02 10:00' as datetime from ({ACTIVE})",
    "--apply",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with everything that a backup has; `home` is a copy of it."""
    folder = tmp_path_factory.mktemp("made")
    made = Home(folder)
    with made.kept_open():
        fill(made, 1)
    with made.warehouse.open_for_writing() as connection:
        connection.execute("create table history.contacts as select 1 as contact_id")
        connection.execute("insert into sync.runs by name select 'r1' as run_id, now() as started_at")
    made.close()
    (folder / "personal.key").write_text("k" * 64)
    (folder / "models").mkdir()
    (folder / "models" / "mine.sql").write_text("select 1")
    Outbox(folder / "outbox.sqlite").close()
    with closing(sqlite3.connect(folder / "outbox.sqlite")) as outbox, outbox:
        outbox.execute("create table mine as select randomblob(400000)")
    return folder


@pytest.fixture
def settings(made: Path, tmp_path: Path) -> Settings:
    shutil.copytree(made, tmp_path / "home")
    return Settings(tmp_path / "home", backup_dir=str(tmp_path / "backup"))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def place_of(settings: Settings) -> Path:
    return Path(settings.backup_dir) / "main"


def test_a_restored_home_has_the_files_and_tables_of_the_lost_one(settings: Settings) -> None:
    before = rows(settings.home, "source")
    snapshot = back_up(settings)
    kept = {"models/mine.sql", "personal.key", "outbox.sqlite", "archive/ledger.sqlite", "warehouse.duckdb"}
    assert kept <= snapshot.files.keys()
    assert any(path.startswith("archive/requests/") for path in snapshot.files)
    shutil.rmtree(settings.home)
    assert restore_backup(settings) == snapshot
    assert differing(before, rows(settings.home, "source")) == set()
    assert query(settings.home, "from history.contacts") == [(1,)]
    with open_database(settings.home / "warehouse.duckdb", read_only=True) as connection:
        read = connection.execute("select count(timeline_asked_at), count(*) from sync.contact_coverage")
        assert read.fetchone() == (0, 6), "every timeline counts as unread"
    assert not (settings.home / RESTORING).exists()


def test_a_second_snapshot_takes_the_place_of_the_first_and_shares_its_sealed_files(
    settings: Settings,
) -> None:
    back_up(settings)
    (settings.home / "models" / "mine.sql").write_text("select 2")
    back_up(settings)
    place = place_of(settings)
    assert (place / "models" / "mine.sql").read_text() == "select 2"
    assert [path.name for path in place.parent.iterdir()] == ["main"]
    for path in place.glob("archive/requests/*/*"):
        assert path.samefile(settings.home / path.relative_to(place))


def overwritten(path: Path) -> None:
    """Other bytes in its middle, as a new file: the copy has the old one."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64) if any(content[middle : middle + 64]) else b"x" * 64
    path.unlink()
    path.write_bytes(content)


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 3])


@pytest.mark.parametrize("damage", [overwritten, cut, Path.unlink])
def test_a_damaged_sealed_file_fails_the_backup_by_name(
    settings: Settings, damage: Callable[[Path], object]
) -> None:
    back_up(settings)
    before = contents(place_of(settings))
    sealed = next(settings.home.glob("archive/requests/*/*.parquet"))
    damage(sealed)
    with pytest.raises(WarehouseError, match=sealed.name):
        back_up(settings)
    assert contents(place_of(settings)) == before


@pytest.mark.parametrize("name", ["warehouse.duckdb", "outbox.sqlite", "archive/ledger.sqlite"])
def test_a_damaged_database_fails_the_backup_by_name(settings: Settings, name: str) -> None:
    back_up(settings)
    before = contents(place_of(settings))
    cut(settings.home / name)
    with pytest.raises(WarehouseError, match=Path(name).name):
        back_up(settings)
    assert contents(place_of(settings)) == before
    assert [path.name for path in place_of(settings).parent.iterdir()] == ["main"], "it takes no space"


def test_wherever_a_backup_is_killed_a_whole_one_is_there(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(settings)
    (settings.home / "models" / "mine.sql").write_text("select 2")
    rename = Path.rename
    left: Iterator[int]

    def renamed(path: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return rename(path, target)

    for allowed in (0, 1):
        left = iter(range(allowed))
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", renamed)
            with pytest.raises(KeyboardInterrupt):
                back_up(settings)
        snapshot = read_snapshot(place_of(settings))
        assert snapshot
        assert restore_backup(replace(settings, home=tmp_path / f"restored {allowed}")) == snapshot
        assert snapshot.files.keys() | {module.MANIFEST} == contents(place_of(settings)).keys()
    back_up(settings)
    assert (place_of(settings) / "models" / "mine.sql").read_text() == "select 2"
    assert [path.name for path in place_of(settings).parent.iterdir()] == ["main"]


def test_what_others_write_meanwhile_is_in_it_whole_or_not_at_all(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive may have more than the tables, never less."""
    copy = module._copy_warehouse

    def copied(*arguments: Path | Settings) -> None:
        copy(*arguments)  # type: ignore[arg-type]
        with closing(sqlite3.connect(settings.home / "outbox.sqlite")) as outbox, outbox:
            outbox.execute("delete from mine")

    monkeypatch.setattr(module, "_copy_warehouse", copied)
    back_up(settings)
    with closing(sqlite3.connect(place_of(settings) / "outbox.sqlite")) as outbox:
        assert outbox.execute("select count(*) from mine").fetchone() == (0,)
    with Archive(place_of(settings) / "archive") as archive:
        assert list(archive.ledger.list_loads())


def test_another_homes_backup_and_other_files_are_not_replaced(settings: Settings, tmp_path: Path) -> None:
    back_up(settings)
    second = Settings(tmp_path / "second", backup_dir=settings.backup_dir)
    (second.home).mkdir()
    (second.home / "identity.json").write_text('{"home_id": "other"}')
    with pytest.raises(ForeignFolder, match="another home"):
        back_up(second)
    mine = tmp_path / "mine" / "main"
    mine.mkdir(parents=True)
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(ForeignFolder, match="no backup"):
        back_up(settings, str(tmp_path / "mine"))
    assert (mine / "thesis.txt").exists()


def test_a_restore_believes_no_path_that_leads_out(settings: Settings, tmp_path: Path) -> None:
    back_up(settings)
    place, secret = place_of(settings), tmp_path / "secret"
    secret.write_text("not yours")
    (place / "personal.key").unlink()
    (place / "personal.key").symlink_to(secret)
    shutil.rmtree(settings.home)
    with pytest.raises(WarehouseError, match=r"missing or damaged: personal\.key"):
        restore_backup(settings)
    assert (settings.home / RESTORING).exists()
    (place / "personal.key").unlink()
    (place / "personal.key").write_text("k" * 64)
    restore_backup(settings)


def test_an_interrupted_restore_is_not_resumed_with_another_backup(
    settings: Settings, tmp_path: Path
) -> None:
    back_up(settings)
    back_up(settings, str(tmp_path / "other"))
    shutil.rmtree(settings.home)
    (place_of(settings) / "personal.key").unlink()
    with pytest.raises(WarehouseError, match=r"personal\.key"):
        restore_backup(settings)
    with pytest.raises(ForeignFolder, match="into an empty home"):
        restore_backup(settings, str(tmp_path / "other"))


def test_without_a_folder_it_is_said_what_to_set(command: Command, home: Path) -> None:
    for name in ("backup", "restore"):
        ran = command(name)
        assert (ran.code, ran.out) == (2, "")
        assert "set MARKETING_BACKUP_DIR" in ran.err
    with pytest.raises(SettingsError, match="there is no backup in"):
        restore_backup(Settings(home), str(home.parent / "nothing"))


@pytest.mark.parametrize("word", ["s3://bucket/backup", "{home}/backup", "{home}/.."])
def test_a_folder_that_cannot_be_one_is_refused(command: Command, home: Path, word: str) -> None:
    for name in ("backup", "restore"):
        ran = command(name, word.format(home=home))
        assert (ran.code, ran.out, "folder" in ran.err) == (2, "", True), ran.text
    assert not list(home.parent.rglob("snapshot.json"))


# ---- the commands


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARKETING_BACKUP_DIR", str(tmp_path / "backup"))
    return tmp_path / "backup" / "main"


def test_damage_is_named_by_the_restore(command: Command, service: Sandbox, home: Path, place: Path) -> None:
    ran = command("backup")
    assert (ran.code, ran.err) == (0, "")
    assert f"{place}: " in ran.out
    shutil.rmtree(home)
    request = next(place.glob("archive/requests/*/*"))
    request.write_bytes(b"x" * request.stat().st_size)
    ran = command("restore")
    assert (ran.code, ran.out) == (1, "")
    assert str(request.relative_to(place)) in ran.err
    ran = command("sync", sandbox=service)
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
    assert "by a newer version of marketing-sync" in ran.err
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
    assert command(*OTHERS, sandbox=service, MARKETING_BACKUP_DIR="").code == 0
    shutil.rmtree(home)
    ran = command("restore", sandbox=service)
    assert "pushes wait" in ran.out
    count = service.count
    ran = command(*OTHERS, sandbox=service)
    assert ran.code == 1
    assert "lacks later pushes" in ran.err
    assert service.count == count
    command("restore", "--release")
    assert command(*OTHERS, sandbox=service).code == 0


@pytest.mark.slow
def test_an_activity_that_was_sent_after_the_backup_is_not_sent_again(
    command: Command, service: Sandbox, home: Path, place: Path
) -> None:
    assert command("backup").code == 0
    assert command(*ACTIVITIES, sandbox=service, MARKETING_BACKUP_DIR="").code == 0
    assert activities(service) == 4
    shutil.rmtree(home)
    for words in (("restore",), ("sync", "--reads-only"), ("restore", "--release"), ACTIVITIES):
        assert command(*words, sandbox=service).code == 0
    assert activities(service) == 4


def activities(service: Sandbox) -> int:
    """Requests so far that write one."""
    return sum(each["operation"] == "emailmarketing/addactivity" for each in service.asked())


@pytest.mark.slow
def test_a_run_counts_though_it_cannot_be_backed_up(
    command: Command,
    service: Sandbox,
    alerts: type[Alerts],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    told = f"the run is done, but not backed up: the backup in {tmp_path / 'file/main'} cannot be read"
    how = {"MARKETING_BACKUP_DIR": str(tmp_path / "file"), "MARKETING_ALERT_URL": alerts.url}
    ran = command(*TAGS, sandbox=service, **how)
    assert ran.code == 0
    assert told in ran.err + caplog.text
    ran = command("sync", "--reads-only", "--only", "lists", sandbox=service, **how)
    assert ran.code == 1
    assert ran.err.splitlines()[-1].startswith(f"marketing-sync: error: {told}")
    assert [body["text"].startswith(f"marketing-sync: {told}") for body in alerts.bodies] == [True] * 2
    assert f"NO  backup      the backup in {tmp_path}" in command("doctor", sandbox=service, **how).out
