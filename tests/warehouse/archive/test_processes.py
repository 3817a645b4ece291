"""Nothing that was recorded is lost to a kill or to another process."""

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.warehouse.exchanges import ALWAYS, envelope, exchange, files, question, rows
from warehouse import disk
from warehouse.archive.archive import Archive
from warehouse.errors import ArchiveError

PROJECT = Path(__file__).parents[3]


def recorder(root: Path, spool: Path, count: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.warehouse.archive.recording", str(root), str(spool), str(count)]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def ids_said(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    with process.stdout:
        return [int(line) for line in process.stdout.read().splitlines() if line.isdigit()]


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing_that_was_recorded(root: Path, spool: Path) -> None:
    chance = random.Random(11)
    for _ in range(3):
        process = recorder(root, spool)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        first = int(process.stdout.readline())
        time.sleep(chance.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        recorded = [first, *ids_said(process)]
        process.wait()
        with Archive(root) as archive:
            assert set(recorded) <= set(rows(archive))
            answers = list(archive.responses(recorded))
        assert [answer.request_id for answer in answers] == recorded
        assert all(
            isinstance(answer.body, bytes) == (int(answer.call.params["id"]) % 50 != 0) for answer in answers
        )
        assert {path.split("/")[0] for path in files(root)} <= {"requests", "bodies"}


@pytest.mark.slow
def test_processes_record_and_read_side_by_side(root: Path, spool: Path) -> None:
    processes = [recorder(root, spool, 400) for _ in range(2)]
    with Archive(root) as archive:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
        for _ in range(5):
            with Archive(root):  # opening seals nothing of those who live
                archive.record_exchange(exchange(envelope({"n": 1})))
            time.sleep(0.05)
        said = [int(process.stdout.readline()) for process in processes if process.stdout]
        assert [answer.request_id for answer in archive.responses(said)] == said
        every = said + [id_ for process in processes for id_ in ids_said(process)]
        assert [process.wait() for process in processes] == [0, 0]
        assert len(every) == 800
        assert [answer.request_id for answer in archive.responses(every)] == every
    with Archive(root) as archive:
        assert len(rows(archive)) == 805


def test_what_a_living_process_has_not_sealed_can_be_read_and_used(root: Path) -> None:
    with Archive(root) as theirs, Archive(root) as ours:
        theirs.record_exchange(one := exchange(envelope({"n": 1})))
        assert [answer.body for answer in ours.responses([one.request_id])] == [one.body]
        theirs.record_exchange(two := exchange(envelope({"n": 2}), question(2)))
        reusable = ours.find_reusable("main", 0, ALWAYS)
        assert reusable.get(question(2).key).body == two.body  # type: ignore[union-attr]
        theirs.seal_requests()
        assert [answer.body for answer in ours.responses([one.request_id, two.request_id])] == [
            one.body,
            two.body,
        ]
        assert reusable.get(question(2).key).body == two.body  # type: ignore[union-attr]


def test_what_dead_processes_had_in_the_works_is_cleared_away_and_nothing_else(
    root: Path, spool: Path
) -> None:
    dead = disk.make_folder(root / "tmp" / "dead")
    (dead / "1.json.zst").write_bytes(b"x")
    with Archive(root) as archive:
        archive.record_exchange(one := exchange(spool))
        answers = archive.responses([one.request_id])
        body = next(answers).body
        with Archive(root):
            assert not dead.exists()
            assert isinstance(body, Path)
            assert body.read_bytes() == spool.read_bytes()
        answers.close()  # type: ignore[attr-defined]


def test_reading_goes_on_while_others_seal(root: Path) -> None:
    """A row is always in the ledger or in a file that it knows, never in between."""
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
                        assert [answer.request_id for answer in archive.responses(wanted)] == wanted
                    except (ArchiveError, AssertionError, OSError) as problem:
                        failures.append(problem)
                        return

        threads = [threading.Thread(target=read, args=(archive,)) for archive in (writer, other)]
        for thread in threads:
            thread.start()
        for number in range(1, 400):
            writer.record_exchange(one := exchange(envelope({"n": number}), question(number)))
            recorded.append(one.request_id)
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
