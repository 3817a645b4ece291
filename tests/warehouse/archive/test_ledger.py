"""The ledger keeps what no file has, whatever is damaged, interrupted or done by others."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.exchanges import envelope, exchange, files, question, record, rows
from warehouse.archive import Archive, sealed
from warehouse.archive.file_store import Files
from warehouse.archive.ledger import LOADS, NAME, UNFINISHED, Ledger
from warehouse.errors import ArchiveDamaged, WarehouseTooNew
from warehouse.loads.load import Load


def leave(root: Path, count: int = 3) -> list[int]:
    """What a process leaves that is killed before it has sealed."""
    archive = Archive(root)
    ids = record(archive, *(exchange(envelope({"n": n}), question(n)) for n in range(1, count + 1)))
    archive.ledger.close()
    return ids


def test_opening_seals_what_a_dead_process_left(root: Path) -> None:
    ids = leave(root)
    with Archive(root) as archive:
        assert len(files(root)) == 1
        assert list(rows(archive)) == ids
        assert archive.ledger.recorded() == {}


def test_what_others_recorded_is_sealed_with_the_own(root: Path) -> None:
    with Archive(root) as theirs, Archive(root) as ours:
        ids = record(theirs, exchange(envelope({"n": 1})))
        ids += record(ours, exchange(envelope({"n": 2})))
        ours.seal()
        assert list(rows(theirs)) == ids
        theirs.seal()
        assert len(files(root)) == 1


@pytest.mark.parametrize("reached", ["nothing", "a file", "a file that is damaged"])
def test_sealing_that_was_interrupted_is_finished_by_the_next(
    root: Path, monkeypatch: pytest.MonkeyPatch, reached: str
) -> None:
    """Whatever step was reached: every row once."""
    ids = leave(root)

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(*((sealed, "put") if reached == "nothing" else (Ledger, "take_in")), die)
        with pytest.raises(Killed):
            Archive(root)
    if reached == "a file that is damaged":
        (root / files(root)[0]).write_bytes(b"PAR1")
    with Archive(root) as archive:
        assert list(rows(archive)) == ids
        assert [response.request_id for response in archive.responses(ids)] == ids


@pytest.mark.slow
@given(st.data())
def test_damage_anywhere_costs_the_rows_that_it_meets_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    """Of 60 requests and 60 loads, on some fifty pages."""
    root = tmp_path_factory.mktemp("archive") / "archive"
    ids = leave(root, 60)
    events = [{"number": number, "filling": "x" * 1000} for number in range(60)]
    with contextlib.closing(Ledger(root, Files(root))) as ledger:
        ledger.log_loads(*events)
    with contextlib.closing(sqlite3.connect(root / NAME)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    content = bytearray((root / NAME).read_bytes())
    assert len(content) > 20 * 4096
    start = data.draw(st.integers(4096 * 6, len(content) - 100))  # behind the pages that hold it together
    for at in range(start, start + data.draw(st.integers(1, 100))):
        content[at] ^= data.draw(st.integers(1, 255)) if at < start + 10 else 0x5A
    (root / NAME).write_bytes(content)
    with Archive(root) as archive:
        left = list(rows(archive))
        assert set(left) <= set(ids)
        kept = list(archive.ledger.loads())
        assert [event for event in events if event in kept] == kept
        assert (60 - len(left)) + (60 - len(kept)) <= 12  # three pages of small rows at most
        assert [response.request_id for response in archive.responses(left)] == left
    with Archive(root) as archive:
        assert list(rows(archive)) == left
        assert archive.ledger.damaged_loads() + len(list(archive.ledger.loads())) >= len(kept)


def test_a_damaged_ledger_is_not_replaced_while_another_process_records(root: Path) -> None:
    with Archive(root) as theirs, Archive(root) as ours:
        record(theirs, exchange(b"x"))
        with pytest.raises(ArchiveDamaged, match="end that one"):
            ours.ledger.run(lambda db: (_ for _ in ()).throw(sqlite3.DatabaseError("malformed")))
        assert not list(root.glob("*.damaged-*"))


def test_a_ledger_of_a_newer_version_is_left_alone(root: Path) -> None:
    with Archive(root) as archive:
        record(archive, exchange(b"x"))
    with contextlib.closing(sqlite3.connect(root / NAME)) as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(WarehouseTooNew, match="newer"):
        Archive(root)


def test_loads_are_logged_in_their_order(root: Path) -> None:
    first, *others = ({"table": "contacts", "n": n, "note": "line\nbreak ü"} for n in range(1200))
    with Archive(root) as archive:
        assert list(archive.ledger.loads()) == []
        archive.ledger.log_loads(first)
        archive.ledger.log_loads(*others)
    with Archive(root) as archive:
        assert list(archive.ledger.loads()) == [first, *others]
        assert list(archive.ledger.loads(newest_first=True)) == [*reversed(others), first]


def test_a_log_is_rewritten_of_itself(root: Path) -> None:
    with Archive(root) as archive:
        archive.ledger.log_loads(*({"n": n} for n in range(5)))
        archive.ledger.rewrite_loads(event | {"again": True} for event in archive.ledger.loads())
        assert list(archive.ledger.loads()) == [{"n": n, "again": True} for n in range(5)]


def test_a_load_that_is_damaged_is_counted_and_passed_over(root: Path) -> None:
    with Archive(root) as archive:
        archive.ledger.log_loads(*({"n": n} for n in range(3)))
        archive.ledger.run(
            lambda db: db.execute("update loads set event = ? where number = 2", [b'{"n": 7}'])
        )
        assert list(archive.ledger.loads()) == [{"n": 0}, {"n": 2}]
        assert archive.ledger.damaged_loads() == 1


def test_the_log_of_a_backup_is_taken_in_once(root: Path) -> None:
    load = Load("main", "a", ("contacts",), (1, 2), "UTC").event()
    root.mkdir()
    lines = [msgspec.json.encode(load), b"[1, 2]", b"\xff", b"", b'{"torn']
    (root / LOADS).write_bytes(b"\n".join(lines))
    with Archive(root) as archive:
        assert list(archive.ledger.loads()) == [load]
    assert not (root / LOADS).exists()
    (root / LOADS).write_bytes(msgspec.json.encode(load))  # who took it in did not live to remove it
    with Archive(root) as archive:
        assert list(archive.ledger.loads()) == [load]
    assert not (root / LOADS).exists()


def test_what_a_backup_says_is_unfinished_is_taken_in(root: Path) -> None:
    root.mkdir()
    (root / UNFINISHED).write_bytes(msgspec.json.encode([("gone", 7, ["lists", "contacts"])]))
    with Archive(root) as archive:
        assert archive.ledger.unfinished() == {"gone": (7, frozenset({"lists", "contacts"}))}
    for damaged in (b"", b"[", b'[["gone", "7", []]]'):
        (root / UNFINISHED).write_bytes(damaged)
        with Archive(root) as archive:
            assert archive.ledger.unfinished().keys() == {"gone"}
        assert not (root / UNFINISHED).exists()


def test_who_rewrites_files_is_alone(root: Path) -> None:
    with Archive(root) as reader, Archive(root) as other:
        with reader.ledger.alone() as is_alone:
            assert is_alone
            waiting = threading.Thread(target=record, args=(other, exchange(b"x")))
            waiting.start()
            waiting.join(0.1)
            assert waiting.is_alive()
        waiting.join()
        with reader.ledger.alone() as is_alone:
            assert not is_alone


def test_of_what_was_sealed_nothing_is_left_in_the_ledger(root: Path) -> None:
    """Where people are forgotten, files are all that has to be rewritten."""
    with Archive(root) as archive:
        record(archive, exchange(envelope({"email": "ann.lee@example.com"}), question(77777)))
    held = b"".join(path.read_bytes() for path in root.glob("ledger*"))
    assert b"77777" not in held
