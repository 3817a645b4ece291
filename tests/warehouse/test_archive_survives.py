"""Nothing that was recorded is lost: not to a kill, a torn write, a full disk, nor to another process."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from marketing_api.exchange import Exchange
from tests.warehouse.exchanges import NOON, envelope, exchange, files, question, rows
from warehouse.archive import Archive, disk
from warehouse.archive.bodies import digests_of
from warehouse.archive.journal import HEADER, Journal, JournalView, frame_of
from warehouse.archive.row import Digests, row_of
from warehouse.errors import ArchiveError, ArchiveFull

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "spool.json"
    path.write_bytes(envelope({"items": list(range(20_000))}))
    return path


def frame(one: Exchange) -> bytes:
    assert isinstance(one.body, bytes)
    return frame_of(row_of(one, Digests.of(one.body), None), one.body)


def leave_journal(root: Path, data: bytes, name: str = "20261120T120000000000Z-dead") -> Path:
    """A journal as a dead process leaves it."""
    path = disk.make_folder(root / "journals") / f"{name}.journal"
    path.write_bytes(data)
    return path


# -- torn journals


def test_a_journal_cut_anywhere_keeps_every_whole_frame(tmp_path: Path) -> None:
    made = [exchange(envelope({"n": n})) for n in range(3)]
    frames = [frame(one) for one in made]
    whole = HEADER + b"".join(frames)
    ends = [len(HEADER) + sum(map(len, frames[: n + 1])) for n in range(3)]
    path = tmp_path / "x.journal"
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        view = JournalView(path)
        view.refresh()
        kept = [one for one, end in zip(made, ends, strict=True) if end <= length]
        assert [view.body(entry) for entry in view.entries.values()] == [one.body for one in kept]
        with path.open("ab") as file:  # the writer goes on
            file.write(whole[length:])
        view.refresh()
        assert list(view.entries) == [one.request_id for one in made]


def test_a_journal_damaged_anywhere_loses_one_frame_at_most(tmp_path: Path) -> None:
    made = [exchange(envelope({"n": n})) for n in range(3)]
    whole = HEADER + b"".join(frame(one) for one in made)
    path = tmp_path / "x.journal"
    for offset in range(len(HEADER), len(whole), 3):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0xFF]) + whole[offset + 1 :])
        view = JournalView(path)
        view.refresh()
        assert len(view.entries) == 2
        assert all(view.body(entry) in {one.body for one in made} for entry in view.entries.values())


@pytest.mark.parametrize("cut", [0, 1, 30, 300])
def test_opening_seals_what_a_dead_process_left_torn(root: Path, cut: int) -> None:
    made = [exchange(envelope({"n": n}), question(n)) for n in range(1, 4)]
    data = HEADER + b"".join(frame(one) for one in made)
    leave_journal(root, data[: len(data) - cut])
    kept = made if cut == 0 else made[:2]
    with Archive(root) as archive:
        assert len(files(root)) == 1
        assert list(rows(archive)) == [one.request_id for one in kept]
        assert [answer.body for answer in archive.answers([one.request_id for one in kept])] == [one.body for one in kept]


@pytest.mark.parametrize("begun", [b"", HEADER[:3], HEADER])
def test_a_journal_without_requests_is_cleared_away(root: Path, begun: bytes) -> None:
    leave_journal(root, begun)
    with Archive(root) as archive:
        assert list(archive.exchanges()) == []
    assert files(root) == []


def test_a_journal_of_another_version_is_left_alone(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = leave_journal(root, b"MSJRNL9\nsomething")
    with Archive(root):
        pass
    assert path.read_bytes() == b"MSJRNL9\nsomething"
    assert path.name in caplog.text


@pytest.mark.parametrize("reached", ["written", "published", "published damaged", "indexed"])
def test_sealing_that_was_interrupted_is_finished_by_the_next(root: Path, spool: Path, reached: str) -> None:
    """Whatever step was reached: every row once, equal answers by reference, and no body lost."""
    with Archive(root) as archive:
        archive.record(first := exchange(envelope({"n": 1})))
        archive.record(large := exchange(spool, question(2)))
    with Archive(root) as archive:
        made = [exchange(envelope({"n": 1}, 3)), exchange(envelope({"n": 2})), exchange(spool, question(2))]
        for one in made:
            archive.record(one)
        ids = [one.request_id for one in made]
        before = (root / "index.sqlite").read_bytes()
        (journal,) = (root / "journals").iterdir()
        content = journal.read_bytes()
        packed = {path: path.read_bytes() for path in (root / "bodies").rglob("*.zst")}
    (sealed,) = [path for path in (root / "requests").rglob("*.parquet") if path.stem == journal.stem]
    journal.write_bytes(content)
    for path, body in packed.items():
        path.write_bytes(body)
    if reached != "indexed":
        (root / "index.sqlite").write_bytes(before)
    if reached == "published damaged":
        sealed.write_bytes(b"PAR1")
    if reached == "written":
        sealed.rename(disk.make_folder(root / "tmp" / "dead") / sealed.name)
    with Archive(root) as archive:
        assert set(rows(archive)) == {first.request_id, large.request_id, *ids}
        assert [rows(archive)[id_]["body_ref"] for id_ in ids] == [first.request_id, None, large.request_id]
        answers = archive.answers(ids)
        assert [next(answers).body, next(answers).body] == [first.body, made[1].body]
        assert next(answers).body.read_bytes() == spool.read_bytes()  # type: ignore[union-attr]
        answers.close()  # type: ignore[attr-defined]
    assert [path for path in files(root) if not path.startswith("requests")] == [f"bodies/date=2026-11-20/{large.request_id}.json.zst"]


# -- kills and neighbours


def recorder(root: Path, spool: Path, count: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.warehouse.recording", str(root), str(spool), str(count)]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def ids_said(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    with process.stdout:
        return [int(line) for line in process.stdout.read().splitlines() if line.isdigit()]


def test_a_kill_at_any_moment_loses_nothing_that_was_recorded(root: Path, spool: Path) -> None:
    chance = random.Random(11)
    for _ in range(3):
        process = recorder(root, spool)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(chance.uniform(0.05, 0.6))
        process.send_signal(signal.SIGKILL)
        recorded = ids_said(process)
        process.wait()
        assert recorded
        with Archive(root) as archive:
            assert set(recorded) <= set(rows(archive))
            answers = list(archive.answers(recorded))
        assert [answer.request_id for answer in answers] == recorded
        assert all(isinstance(answer.body, bytes) == (int(answer.question.params["id"]) % 50 != 0) for answer in answers)
        assert {path.split("/")[0] for path in files(root)} <= {"requests", "bodies"}


def test_processes_record_and_read_side_by_side(root: Path, spool: Path) -> None:
    processes = [recorder(root, spool, 400) for _ in range(2)]
    with Archive(root) as archive:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
        for _ in range(5):
            with Archive(root):  # opening never touches the journals of those who live
                archive.record(exchange(envelope({"n": 1})))
            time.sleep(0.05)
        said = [int(process.stdout.readline()) for process in processes if process.stdout]
        assert [answer.request_id for answer in archive.answers(said)] == said
        every = said + [id_ for process in processes for id_ in ids_said(process)]
        assert [process.wait() for process in processes] == [0, 0]
        assert len(every) == 800
        assert [answer.request_id for answer in archive.answers(every)] == every
    with Archive(root) as archive:
        assert len(rows(archive)) == 805


def test_answers_in_the_journal_of_a_living_process_can_be_read_and_used(root: Path) -> None:
    with Archive(root) as theirs, Archive(root) as ours:
        theirs.record(one := exchange(envelope({"n": 1})))
        assert [answer.body for answer in ours.answers([one.request_id])] == [one.body]
        theirs.record(two := exchange(envelope({"n": 2}), question(2)))
        reusable = ours.reusable("main", NOON)
        assert reusable.get(question(2).key).body == two.body  # type: ignore[union-attr]
        theirs.seal()
        assert [answer.body for answer in ours.answers([one.request_id, two.request_id])] == [one.body, two.body]
        assert reusable.get(question(2).key).body == two.body  # type: ignore[union-attr]


def test_what_dead_processes_had_in_the_works_is_cleared_away_and_nothing_else(root: Path, spool: Path) -> None:
    dead = disk.make_folder(root / "tmp" / "dead")
    (dead / "1.json.zst").write_bytes(b"x")
    with Archive(root) as archive:
        archive.record(one := exchange(spool))
        answers = archive.answers([one.request_id])
        body = next(answers).body
        with Archive(root):
            assert not dead.exists()
            assert isinstance(body, Path)
            assert body.read_bytes() == spool.read_bytes()
        answers.close()  # type: ignore[attr-defined]


def test_reading_goes_on_while_journals_are_sealed(root: Path) -> None:
    """A row is always in a journal or in an indexed file, never in between."""
    failures: list[BaseException] = []
    done = threading.Event()
    with Archive(root, full_rows=20) as writer, Archive(root) as other:
        recorded: list[int] = []

        def read(archive: Archive) -> None:
            chance = random.Random(1)
            while not done.is_set() or not recorded:
                with contextlib.suppress(IndexError):
                    wanted = chance.choices(recorded, k=5)
                    try:
                        assert [answer.request_id for answer in archive.answers(wanted)] == wanted
                    except (ArchiveError, AssertionError, OSError) as problem:
                        failures.append(problem)
                        return

        threads = [threading.Thread(target=read, args=(archive,)) for archive in (writer, other)]
        for thread in threads:
            thread.start()
        for number in range(1, 400):
            writer.record(one := exchange(envelope({"n": number}), question(number)))
            recorded.append(one.request_id)
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []


# -- durability


def test_what_was_recorded_is_synced_within_a_second(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: dict[int, float] = {}
    real = os.fdatasync

    def note(descriptor: int) -> None:
        real(descriptor)
        synced[os.fstat(descriptor).st_size] = time.monotonic()

    monkeypatch.setattr(os, "fdatasync", note)
    with Archive(root) as archive:
        for _ in range(3):
            archive.record(exchange(b"x"))
            size = next((root / "journals").iterdir()).stat().st_size
            recorded = time.monotonic()
            while size not in synced and time.monotonic() < recorded + 10:
                time.sleep(0.05)
            assert synced[size] - recorded < 2  # half a second is aimed at; a loaded machine is given some more
            time.sleep(0.2)


def test_recording_stops_when_it_cannot_be_made_durable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Journal) -> None:
        raise OSError(5, "Input/output error")

    archive = Archive(root)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "sync", fail)
        archive.record(exchange(b"x"))
        time.sleep(0.2)
        with pytest.raises(ArchiveError, match="durable"):
            archive.record(exchange(b"y"))
    archive.close()


# -- no room


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system refuses to let files grow beyond `size` bytes, in the midst of a write, as on a full disk."""
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
        archive.record(one := exchange(noise(1)))
        (journal,) = (root / "journals").iterdir()
        size = journal.stat().st_size
        with largest_file(size + 1_000), pytest.raises(ArchiveFull, match="make room and run again"):
            archive.record(lost := exchange(noise(2)))
        assert journal.stat().st_size == size
        archive.record(two := exchange(noise(3)))
        assert [answer.body for answer in archive.answers([one.request_id, two.request_id])] == [one.body, two.body]
    with Archive(root) as archive:
        assert set(rows(archive)) == {one.request_id, two.request_id}
        assert lost.request_id not in rows(archive)


def test_sealing_on_a_full_disk_leaves_the_journal_readable(root: Path) -> None:
    archive = Archive(root)
    made = [exchange(noise(n), question(n)) for n in range(1, 4)]
    for one in made:
        archive.record(one)
    with largest_file(150_000):
        with pytest.raises(ArchiveFull):
            archive.seal()
        with Archive(root) as other:
            assert [answer.body for answer in other.answers([one.request_id for one in made])] == [one.body for one in made]
        with pytest.raises(ArchiveFull):
            archive.close()
        with Archive(root) as other:
            assert [answer.body for answer in other.answers([one.request_id for one in made])] == [one.body for one in made]
    with Archive(root) as other:
        assert set(rows(other)) == {one.request_id for one in made}
    assert len(files(root)) == 1


def test_a_large_body_without_room_leaves_nothing_behind(root: Path, tmp_path: Path) -> None:
    spool = tmp_path / "spool.json"
    spool.write_bytes(noise(1, 200_000))
    with Archive(root) as archive:
        with largest_file(100_000), pytest.raises(ArchiveFull):
            archive.record(exchange(spool))
        assert files(root) == []
        archive.record(one := exchange(spool))
        archive.seal()
        assert next(archive.answers([one.request_id])).body.read_bytes() == spool.read_bytes()  # type: ignore[union-attr]


def test_a_load_that_could_not_be_logged_leaves_the_log_as_it_was(root: Path) -> None:
    with Archive(root) as archive:
        archive.log_load({"n": 1})
        with largest_file(50_000), pytest.raises(ArchiveFull):
            archive.log_load({"long": "x" * 100_000})
        archive.log_load({"n": 2})
        assert list(archive.loads()) == [{"n": 1}, {"n": 2}]


def test_memory_stays_flat_with_a_large_body(root: Path, tmp_path: Path) -> None:
    """In a process of its own; anonymous memory only, since the pages of mapped files are the system's to drop."""
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
archive.record(exchange(b"x"))
archive.seal()
held = lambda: int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
before = held()
archive.record(one := exchange(Path({str(spool)!r})))
for answer in archive.answers([one.request_id]):
    assert answer.body.stat().st_size == {spool.stat().st_size}
archive.close()
print(held() - before)
"""
    grown = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert int(grown) < 12_000, f"{grown} kB for a body of {spool.stat().st_size} bytes"
