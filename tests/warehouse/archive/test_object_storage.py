"""The archive's files in object storage are one more class: through it an archive is written, compacted,
replayed, backed up and forgotten in, and nothing else has to know."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marketing_api.exchange import Exchange, Outcome, id_at
from marketing_api.operations import contacts
from tests.warehouse.answering import START, Home
from tests.warehouse.exchanges import envelope
from tests.warehouse.test_rebuild import fill
from warehouse.archive.file_store import BODIES, CHECKPOINTS, PATTERNS, SEALED, Files
from warehouse.archive.rewriting import forget_in_archive
from warehouse.archive.suppression import add
from warehouse.backup import back_up, finish_restore, kept_tables, restore
from warehouse.policies import Kept
from warehouse.rebuild import rebuild
from warehouse.retention import compact
from warehouse.storage import Storage


class Objects(Files):
    """Objects in memory, each written as a whole."""

    def __init__(self, root: Path) -> None:
        self._objects = fsspec.filesystem("memory")
        self._bucket = f"/archives{root}/"

    @classmethod
    def of(cls, root: Path) -> Objects:
        return cls(root)

    def names(self, pattern: str) -> list[str]:
        found = self._objects.glob(f"{self._bucket}{pattern}")
        return sorted(path.removeprefix(self._bucket) for path in found)

    def size(self, name: str) -> int:
        return int(self._objects.size(self.address(name)))

    def open(self, name: str) -> pa.NativeFile:
        return pa.BufferReader(self._objects.cat_file(self.address(name)))

    def put(self, made: Path, name: str) -> None:
        self._objects.pipe_file(self.address(name), made.read_bytes())

    def delete(self, *names: str) -> None:
        for name in names:
            if self._objects.exists(self.address(name)):
                self._objects.rm_file(self.address(name))

    def address(self, name: str) -> str:
        return f"{self._bucket}{name}"


@pytest.fixture
def home(tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Two nights, and a response too large for a row."""
    monkeypatch.setattr(Files, "of", Objects.of)
    home = Home(tmp_path / "home")
    fill(home, 2)
    people = [{"id": number, "email": f"c{number}@x.com"} for number in range(9)]
    spool.write_bytes(envelope({"contacts": {"count": len(people), "items": people}}))
    call = contacts.GETCONTACTS.bind(listid=3)
    moment = START + dt.timedelta(days=3)
    home.archive.record(Exchange(id_at(moment), "main", call, moment, 0, 1, 200, Outcome.OK, None, spool))
    home.archive.seal()
    yield home
    home.close()
    memory: Any = fsspec.filesystem("memory")
    memory.rm("/archives", recursive=True)


def names(root: Path) -> list[str]:
    return [name for pattern in PATTERNS for name in Objects(root).names(pattern)]


@pytest.mark.slow
def test_a_warehouse_is_made_of_objects_and_checkpoints_alone(home: Home) -> None:
    root, before = home.path / "archive", home.contents()
    assert Objects(root).names(SEALED)
    assert Objects(root).names(BODIES)
    assert [Files(root).names(pattern) for pattern in PATTERNS] == [[], [], []]
    assert rebuild(home.path).failed == 0
    assert home.contents() == before
    compact(home.path, Kept(requests=None), START + dt.timedelta(days=31 + 400))
    assert len(Objects(root).names(CHECKPOINTS)) == 1
    assert not Objects(root).names(BODIES), "its month is kept no longer"
    assert rebuild(home.path).since == dt.date(2026, 4, 1)
    assert home.contents() == before


@pytest.mark.attack
def test_a_backup_has_the_objects_and_brings_them_back(home: Home, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "backup"))
    back_up(home.path, storage)
    assert not back_up(home.path, storage).sent
    new = tmp_path / "new"
    restore(new, storage)
    rebuild(new, kept=[kept_tables(new, tmp_path / "kept")])
    finish_restore(new)
    assert names(new / "archive") == names(home.path / "archive")
    other = Home(new)
    assert other.contents() == home.contents()
    other.close()


@pytest.mark.attack
def test_who_is_forgotten_is_in_no_object(home: Home) -> None:
    root = home.path / "archive"
    home.close()

    def named() -> list[str]:
        files = Objects(root)
        return [name for name in names(root) if b"c3@x.com" in plain(files.open(name), name)]

    assert len(named()) >= 2
    forgotten = add(root, ["c3@x.com"], [("main", 3)])
    assert forget_in_archive(root, forgotten, apply=True)["bodies"] > 0
    assert named() == []
    assert rebuild(home.path, accept_loss=True).failed == 0


def plain(file: pa.NativeFile, name: str) -> bytes:
    if name.endswith(".zst"):
        return bytes(pa.CompressedInputStream(file, "zstd").read())
    return repr(pq.read_table(file).to_pylist()).encode()
