"""Nothing that was recorded is lost to a full disk, nor to one that does not keep what it was given."""

import contextlib
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warehouse.exchanges import exchange, files, question, rows
from warehouse.archive.archive import Archive
from warehouse.archive.sealed import digests_of
from warehouse.errors import ArchiveFull

PROJECT = Path(__file__).parents[3]


def test_what_was_recorded_survives_a_power_loss(root: Path) -> None:
    """SQLite syncs its log before a commit returns, and finds in it what a copy of both files has."""
    with Archive(root) as archive:
        assert archive.ledger.run_read(lambda db: db.execute("pragma synchronous").fetchone()) == (2,)
        archive.record_exchange(one := exchange(b"x"))
        there = root.parent / "there"
        shutil.copytree(root, there)
    with Archive(there) as archive:
        assert set(rows(archive)) == {one.request_id}


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system refuses to let files grow beyond `size` bytes, amid a write, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def noise(seed: int, size: int = 60_000) -> bytes:
    return random.Random(seed).randbytes(size)


def test_a_full_disk_is_said_and_nothing_recorded_before_is_lost(root: Path) -> None:
    with Archive(root) as archive:
        archive.record_exchange(one := exchange(noise(1)))
        size = (root / "ledger.sqlite-wal").stat().st_size
        with largest_file(size + 1_000), pytest.raises(ArchiveFull, match="free some space and run again"):
            archive.record_exchange(lost := exchange(noise(2)))
        archive.record_exchange(two := exchange(noise(3)))
        assert [answer.body for answer in archive.responses([one.request_id, two.request_id])] == [
            one.body,
            two.body,
        ]
    with Archive(root) as archive:
        assert set(rows(archive)) == {one.request_id, two.request_id}
        assert lost.request_id not in rows(archive)


def test_what_cannot_be_sealed_on_a_full_disk_stays_readable(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    archive = Archive(root)
    made = [exchange(noise(n), question(n)) for n in range(1, 4)]
    for one in made:
        archive.record_exchange(one)
    with largest_file(150_000):
        with pytest.raises(ArchiveFull):
            archive.seal_requests()
        with Archive(root) as other:
            assert [answer.body for answer in other.responses([one.request_id for one in made])] == [
                one.body for one in made
            ]
        with pytest.raises(ArchiveFull):
            archive.close()
        caplog.clear()
        with Archive(root) as other:
            assert [answer.body for answer in other.responses([one.request_id for one in made])] == [
                one.body for one in made
            ]
    assert "requests are not sealed for now" in caplog.text
    with Archive(root) as other:
        assert set(rows(other)) == {one.request_id for one in made}
    assert len(files(root)) == 1


def test_a_large_body_without_room_leaves_nothing_behind(root: Path, tmp_path: Path) -> None:
    spool = tmp_path / "spool.json"
    spool.write_bytes(noise(1, 200_000))
    with Archive(root) as archive:
        with largest_file(100_000), pytest.raises(ArchiveFull):
            archive.record_exchange(exchange(spool))
        assert files(root) == []
        archive.record_exchange(one := exchange(spool))
        archive.seal_requests()
        assert next(archive.responses([one.request_id])).body.read_bytes() == spool.read_bytes()  # type: ignore[union-attr]


def test_a_load_that_could_not_be_logged_leaves_the_log_as_it_was(root: Path) -> None:
    with Archive(root) as archive:
        archive.ledger.log_loads({"n": 1})
        with largest_file(50_000), pytest.raises(ArchiveFull):
            archive.ledger.log_loads({"long": "x" * 100_000})
        archive.ledger.log_loads({"n": 2})
        assert list(archive.ledger.list_loads()) == [{"n": 1}, {"n": 2}]


@pytest.mark.slow
def test_memory_stays_flat_with_a_large_body(root: Path, tmp_path: Path) -> None:
    """In its own process; anonymous memory only: the system drops pages of mapped files when it wants."""
    spool = tmp_path / "spool.json"
    with spool.open("wb") as file:
        file.write(b'{"response":{"data":{"items":[0')
        for _ in range(30):
            file.write(b',{"id":123,"email":"someone@example.com"}' * 25_000)
        file.write(b"]}}}")
    assert digests_of(spool).content != digests_of(spool).body
    code = f"""
import resource
from pathlib import Path
from tests.warehouse.exchanges import *
archive = Archive(Path({str(root)!r}))
archive.record_exchange(exchange(b"x"))
archive.seal_requests()
held = lambda: int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
before = held()
archive.record_exchange(one := exchange(Path({str(spool)!r})))
for answer in archive.responses([one.request_id]):
    assert answer.body.stat().st_size == {spool.stat().st_size}
archive.close()
print(held() - before)
"""
    grown = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout
    assert int(grown) < 12_000, f"{grown} kB for a body of {spool.stat().st_size} bytes"
