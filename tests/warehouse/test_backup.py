"""A backup holds what a home cannot make anew, is sent once, and is found whole or named as damaged."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marketing_api.clock import utc_now
from marketing_api.operations import lists
from tests.warehouse.answering import Home, contents
from tests.warehouse.counting_storage import CountingStorage
from tests.warehouse.test_rebuild import fill
from warehouse import tables
from warehouse.archive import Archive
from warehouse.backup import File, Manifest, back_up, finish_restore, kept_tables, read_manifest, restore
from warehouse.connection import connect
from warehouse.disk import RESTORING, make_folder
from warehouse.errors import ForeignFolder, StorageMisconfigured, StorageUnavailable, WarehouseError
from warehouse.rebuild import rebuild
from warehouse.storage import Storage


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with everything that has to be backed up; `home` is a copy of it."""
    folder = tmp_path_factory.mktemp("made")
    made = Home(folder)
    fill(made, 1)
    made.archive.seal()
    with made.warehouse.writing() as connection:
        connection.execute(
            "create table history.contacts as select 1 as contact_id, '{\"a\": 1}'::json as fields"
        )
        connection.execute("insert into sync.runs by name select 'r1' as run_id, now() as started_at")
    made.close()
    (folder / "personal.key").write_text("k" * 64)
    (folder / "models").mkdir()
    (folder / "models" / "mine.sql").write_text("select 1")
    with closing(sqlite3.connect(folder / "outbox.sqlite")) as outbox, outbox:
        outbox.execute("pragma journal_mode = wal")
        outbox.execute("create table item (n integer)")
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def storage(tmp_path: Path) -> CountingStorage:
    return CountingStorage(str(tmp_path / "backup"))


def all_of(home: Path) -> dict[str, list[tuple[object, ...]]]:
    with connect(home / "warehouse.duckdb", read_only=True) as connection:
        kept = {
            name: connection.execute(f"from {name}").fetchall() for name in ("history.contacts", "sync.runs")
        }
        return contents(connection) | kept


def brought_back(storage: Storage, home: Path) -> None:
    restore(home, storage)
    rebuild(home, kept=[kept_tables(home, home.parent / f"{home.name}.kept")])
    finish_restore(home)


def logged(home: Path) -> list[Any]:
    with Archive(home / "archive") as archive:
        return list(archive.ledger.loads())


def more(home: Path, night: int = 1) -> None:
    """Another night, sealed."""
    grown = Home(home)
    grown.load(
        [grown.answer(lists.GETLISTS, {"lists": {"items": [{"id": 9, "name": "new"}]}}, 9000 * night)],
        tables.LISTS,
    )
    grown.close()


@pytest.mark.slow
def test_a_lost_home_is_made_again_with_the_same_tables(home: Path, storage: Storage, tmp_path: Path) -> None:
    back_up(home, storage)
    before = all_of(home)
    brought_back(storage, tmp_path / "new")
    assert all_of(tmp_path / "new") == before
    for name in ("personal.key", "models/mine.sql"):
        assert (tmp_path / "new" / name).read_bytes() == (home / name).read_bytes()
    assert logged(tmp_path / "new") == logged(home)
    with closing(sqlite3.connect(tmp_path / "new" / "outbox.sqlite")) as outbox:
        assert outbox.execute("select count(*) from item").fetchone() == (0,)


def test_only_what_is_new_is_sent(home: Path, storage: CountingStorage) -> None:
    back_up(home, storage)
    storage.sent.clear()
    assert back_up(home, storage).sent == []
    more(home)
    report = back_up(home, storage)
    assert [file.stored for file in report.sent] == storage.sent
    assert sorted(name.split("/")[1].split(".")[0] for name in storage.sent) == ["loads", "requests"]


def test_the_load_log_goes_in_pieces_and_anew_when_it_was_mended(
    home: Path, storage: Storage, tmp_path: Path
) -> None:
    for night in (1, 2):
        back_up(home, storage)
        more(home, night)
    assert [file.path for file in back_up(home, storage).manifest.files].count("archive/loads.jsonl") == 3
    with Archive(home / "archive") as archive:
        archive.ledger.rewrite_loads(list(archive.ledger.loads())[1:])
    assert [file.path for file in back_up(home, storage).manifest.files].count("archive/loads.jsonl") == 1
    restore(tmp_path / "new", storage)
    assert logged(tmp_path / "new") == logged(home)


@pytest.mark.slow
def test_responses_that_are_not_sealed_yet_are_backed_up(
    home: Path, storage: Storage, tmp_path: Path
) -> None:
    running = Home(home)
    response = running.answer(lists.GETLISTS, {"lists": {"items": []}}, 9000)
    running.load([response], tables.LISTS)
    back_up(home, storage)
    running.close()
    brought_back(storage, tmp_path / "new")
    again = Home(tmp_path / "new")
    assert [each.request_id for each in again.archive.responses([response.request_id])] == [
        response.request_id
    ]
    again.close()


def test_a_backup_that_failed_resumes_and_the_one_before_holds(
    home: Path, storage: CountingStorage, tmp_path: Path
) -> None:
    back_up(home, storage)
    before = read_manifest(storage)
    more(home)
    (home / "models" / "other.sql").write_text("select 2")
    broken = CountingStorage(str(tmp_path / "backup"), most=1)
    with pytest.raises(StorageUnavailable):
        back_up(home, broken)
    assert read_manifest(storage) == before
    storage.sent.clear()
    back_up(home, storage)
    assert storage.sent
    assert not set(storage.sent) & set(broken.sent)


def test_what_a_home_lost_stays_in_its_backup(home: Path, storage: Storage) -> None:
    more(home)
    first = back_up(home, storage).manifest
    next(home.glob("archive/requests/*/*")).unlink()
    for name in ("warehouse.duckdb", "outbox.sqlite"):
        (home / name).unlink()
    (home / "personal.key").write_text("other" * 20)
    there = set(storage.names())
    second = back_up(home, storage).manifest
    assert {file.path for file in first.files} == {file.path for file in second.files}
    assert there < set(storage.names()), "nothing is deleted"


def bad(storage: Storage) -> list[str]:
    """Damages a file, and removes one."""
    names = sorted(name for name in storage.names() if name.startswith(("archive/requests", "personal.key")))
    storage.write(names[0], b"x" * storage.names()[names[0]])
    storage.delete(names[1:2])
    return names[:2]


def test_damaged_and_missing_files_are_named_and_the_rest_is_restored(
    home: Path, storage: Storage, tmp_path: Path
) -> None:
    manifest = back_up(home, storage).manifest
    names = bad(storage)
    with pytest.raises(WarehouseError, match="2 files of") as said:
        restore(tmp_path / "new", storage)
    assert all(name in str(said.value) for name in names)
    back_up(home, storage, verify=True)
    assert restore(tmp_path / "new", storage).files == manifest.files


def test_damage_is_found_and_mended_from_the_home(home: Path, storage: Storage) -> None:
    back_up(home, storage)
    damaged, missing = bad(storage)
    assert back_up(home, storage).mended == [missing]
    assert back_up(home, storage, verify=True).mended == [damaged]
    report = back_up(home, storage, verify=True)
    assert (report.mended, report.lost, report.sent) == ([], [], [])


def test_a_home_that_was_begun_anew_does_not_replace_what_was_lost(
    home: Path, storage: Storage, tmp_path: Path
) -> None:
    back_up(home, storage)
    before = read_manifest(storage)
    other = tmp_path / "other"
    other.mkdir()
    more(other)
    with pytest.raises(ForeignFolder, match="backup of another home"):
        back_up(other, storage)
    assert read_manifest(storage) == before


def test_two_homes_do_not_share_a_place_even_when_one_is_a_copy_of_the_other(
    home: Path, storage: Storage
) -> None:
    back_up(home, storage)
    back_up(home, storage, home_id="one")
    with pytest.raises(ForeignFolder, match="backup of another home"):
        back_up(home, storage, home_id="two")
    back_up(home, storage, home_id="one")


def test_a_home_in_use_is_not_restored_into(home: Path, storage: Storage) -> None:
    back_up(home, storage)
    with pytest.raises(ForeignFolder, match="is in use"):
        restore(home, storage)


def test_without_a_backup_nothing_is_restored(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(StorageMisconfigured, match="there is no backup"):
        restore(tmp_path / "new", storage)
    assert not (tmp_path / "new").exists()


_NAMES = st.lists(
    st.sampled_from(
        ["..", ".", "", "/", "models", "archive", "personal.key", "link", "dev", "warehouse.duckdb", "\0"]
    ),
    min_size=1,
)


@given(st.tuples(_NAMES, _NAMES).map(lambda two: ["/".join(each) for each in two]))
@example(["personal.key", "../secret"])
@example(["personal.key", "/etc/hostname"])
@example(["../stolen", "personal.key"])
@example(["models/link/stolen", "models/link/stolen"])
@example(["models/device", "models/device"])
@example(["warehouse.duckdb", "warehouse.duckdb"])
def test_no_name_of_a_manifest_is_believed(tmp_path: Path, names: list[str]) -> None:
    """Whatever stands in it, nothing comes from outside the place, and nothing goes out of the home."""
    place, new, outside = (make_folder(tmp_path / name) for name in ("place/models", "new/models", "outside"))
    content = b"secret"
    for path in (tmp_path / "secret", place / "mine.sql", tmp_path / "place" / "warehouse.duckdb"):
        path.write_bytes(content)
    for link, target in (
        (new / "link", outside),
        (place / "link", tmp_path),
        (place / "device", Path("/dev/zero")),
    ):
        if not link.is_symlink():
            link.symlink_to(target)
    (new.parent / RESTORING).touch()
    path, stored = names
    manifest = Manifest(utc_now(), [File(path, stored, len(content), hashlib.sha256(content).hexdigest())])
    storage = Storage(str(tmp_path / "place"))
    storage.write("manifest.json", msgspec.json.encode(manifest))
    with pytest.raises(WarehouseError, match="missing or damaged"):
        restore(new.parent, storage)
    assert not list(outside.iterdir())
    assert not (tmp_path / "stolen").exists()
    assert not [each for each in new.parent.rglob("*") if each.is_file() and each.name != RESTORING]


def test_a_manifest_that_names_nothing_is_no_backup(storage: Storage, tmp_path: Path) -> None:
    storage.write("manifest.json", msgspec.json.encode(Manifest(utc_now(), [])))
    with pytest.raises(StorageMisconfigured, match="there is no backup"):
        restore(tmp_path / "new", storage)


def test_what_sweeps_a_backup_leaves_what_it_did_not_write(home: Path, storage: Storage) -> None:
    back_up(home, storage)
    (home / "personal.key").write_text("other" * 20)
    theirs = [
        "warehouse.duckdb",
        "personal.key",
        "notes.txt",
        "live/archive/requests/x/y.parquet",
        "published/marketing.duckdb",
    ]
    old = [name for name in storage.names() if name.startswith("personal.key.")]
    for name in theirs:
        storage.write(name, b"of others")
    back_up(home, storage, is_only=True)
    assert set(theirs) <= set(storage.names())
    assert old
    assert not set(old) & set(storage.names()), "what it wrote goes"


_KILLED = """
import os, signal, sys
from pathlib import Path
from warehouse import backup
from warehouse.storage import Storage

class Killing(Storage):
    left = int(sys.argv[4])
    def _count(self):
        Killing.left -= 1
        if Killing.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def upload(self, source, name):
        super().upload(source, name)
        self._count()
    def download(self, name, target):
        super().download(name, target)
        self._count()

do = backup.back_up if sys.argv[1] == "backup" else backup.restore
do(Path(sys.argv[2]), Killing(sys.argv[3]))
"""


def killed(what: str, home: Path, storage: Storage, after: int) -> int:
    return subprocess.run(
        [sys.executable, "-c", _KILLED, what, str(home), storage.url, str(after)], check=False
    ).returncode


@pytest.mark.parametrize("after", [1, 3, 5])
@pytest.mark.slow
def test_a_kill_in_the_middle_of_either_is_made_good_by_the_next(
    home: Path, storage: Storage, tmp_path: Path, after: int
) -> None:
    before = all_of(home)
    assert killed("backup", home, storage, after) == -9
    assert read_manifest(storage) is None
    back_up(home, storage)
    new = tmp_path / "new"
    assert killed("restore", new, storage, after) == -9
    brought_back(storage, new)
    assert all_of(new) == before
    assert not list(new.rglob("*.part"))


def test_the_manifest_names_what_is_there(home: Path, storage: Storage) -> None:
    manifest: Manifest = back_up(home, storage).manifest
    assert {file.stored: file.bytes for file in manifest.files}.items() <= storage.names().items()
    assert all(storage.digest(file.stored) == file.sha256 for file in manifest.files)
    with duckdb.connect() as connection:
        kept = next(file.stored for file in manifest.files if file.path == "kept/history.contacts.parquet")
        assert connection.execute(
            f"select contact_id from read_parquet('{storage.url}/{kept}')"
        ).fetchall() == [(1,)]
