"""The ledger keeps what no file has, whatever is damaged, interrupted or done by others."""

import contextlib
import sqlite3
import threading
from pathlib import Path

import pytest

from tests.warehouse.exchanges import envelope, exchange, files, question, record, rows
from warehouse.archive import sealed
from warehouse.archive.archive import Archive
from warehouse.archive.ledger import NAME, Ledger
from warehouse.errors import ArchiveDamaged, WarehouseTooNew


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
        assert archive.ledger.find_recorded() == {}


def test_what_others_recorded_is_sealed_with_the_own(root: Path) -> None:
    with Archive(root) as theirs, Archive(root) as ours:
        ids = record(theirs, exchange(envelope({"n": 1})))
        ids += record(ours, exchange(envelope({"n": 2})))
        ours.seal_requests()
        assert list(rows(theirs)) == ids
        theirs.seal_requests()
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
        patch.setattr(*((sealed, "write_sealed") if reached == "nothing" else (Ledger, "take_in")), die)
        with pytest.raises(Killed):
            Archive(root)
    if reached == "a file that is damaged":
        (root / files(root)[0]).write_bytes(b"PAR1")
    with Archive(root) as archive:
        assert list(rows(archive)) == ids
        assert [response.request_id for response in archive.responses(ids)] == ids


def test_a_damaged_ledger_is_refused_and_names_the_backup(root: Path) -> None:
    """Also where a single bit of a row is not as it was written."""
    leave(root)
    with contextlib.closing(sqlite3.connect(root / NAME)) as db, db:
        db.execute("update requests set size = size + 1")
    with pytest.raises(ArchiveDamaged, match="restore the last backup"):
        Archive(root)
    (root / NAME).write_bytes(b"garbage" * 1000)
    with pytest.raises(ArchiveDamaged, match="move the file away"):
        Archive(root)


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
        assert list(archive.ledger.list_loads()) == []
        archive.ledger.log_loads(first)
        archive.ledger.log_loads(*others)
    with Archive(root) as archive:
        assert list(archive.ledger.list_loads()) == [first, *others]
        assert list(archive.ledger.list_loads(newest_first=True)) == [*reversed(others), first]


def test_who_rewrites_files_is_alone(root: Path) -> None:
    with Archive(root) as reader, Archive(root) as other:
        with reader.ledger.hold_alone() as is_alone:
            assert is_alone
            waiting = threading.Thread(target=record, args=(other, exchange(b"x")))
            waiting.start()
            waiting.join(0.1)
            assert waiting.is_alive()
        waiting.join()
        with reader.ledger.hold_alone() as is_alone:
            assert not is_alone


def test_of_what_was_sealed_nothing_is_left_in_the_ledger(root: Path) -> None:
    """Where people are forgotten, files are all that has to be rewritten."""
    with Archive(root) as archive:
        record(archive, exchange(envelope({"email": "ann.lee@example.com"}), question(77777)))
    held = b"".join(path.read_bytes() for path in root.glob("ledger*"))
    assert b"77777" not in held
