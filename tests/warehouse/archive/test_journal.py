"""A torn, damaged or half sealed journal keeps every whole request."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from marketing_api.exchange import Exchange
from tests.warehouse.exchanges import envelope, exchange, files, question, rows
from warehouse.archive import Archive, disk
from warehouse.archive.journal import HEADER, Journal, JournalView, frame_of
from warehouse.archive.row import Digests, row_of


def frame(one: Exchange) -> bytes:
    assert isinstance(one.body, bytes)
    return frame_of(row_of(one, Digests.of(one.body), None), one.body)


def leave_journal(root: Path, data: bytes, name: str = "20261120T120000000000Z-dead") -> Path:
    """A journal as a dead process leaves it."""
    path = disk.make_folder(root / "journals") / f"{name}.journal"
    path.write_bytes(data)
    return path


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
        assert view.unread > 0, "the damage would go unnoticed"
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
        assert [answer.body for answer in archive.responses([one.request_id for one in kept])] == [
            one.body for one in kept
        ]


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


def test_a_folder_in_the_place_of_a_journal_is_in_nobodys_way(root: Path) -> None:
    made = exchange(envelope({"n": 1}))
    (disk.make_folder(root / "journals") / "20261120T120000000000Z-dead.journal").mkdir()
    with Archive(root) as archive:
        archive.record(made)
        assert [answer.body for answer in archive.responses([made.request_id])] == [made.body]
    with Archive(root) as archive:
        assert list(rows(archive)) == [made.request_id]


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
        answers = archive.responses(ids)
        assert [next(answers).body, next(answers).body] == [first.body, made[1].body]
        assert next(answers).body.read_bytes() == spool.read_bytes()  # type: ignore[union-attr]
        answers.close()  # type: ignore[attr-defined]
    assert [path for path in files(root) if not path.startswith("requests")] == [
        f"bodies/date=2026-11-20/{large.request_id}.json.zst"
    ]


def test_who_waits_for_durability_shares_a_sync_that_began_after_its_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end, syncs = threading.Event(), threading.Event(), []

    def slow(descriptor: int) -> None:
        syncs.append(os.fstat(descriptor).st_size)
        begun.set()
        may_end.wait(5)

    monkeypatch.setattr(os, "fdatasync", slow)
    journal = Journal(tmp_path)
    threads = [threading.Thread(target=journal.sync)]
    threads[0].start()
    begun.wait(5)
    for number in range(5):
        journal.append(frame(exchange(envelope({"n": number}))))
        threads.append(threading.Thread(target=journal.sync))
        threads[-1].start()
    time.sleep(0.05)
    may_end.set()
    for thread in threads:
        thread.join(5)
    journal.close()
    assert syncs == [len(HEADER), journal.size]
