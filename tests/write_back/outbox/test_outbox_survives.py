"""Whatever ends a process, fills the disk or damages the file: the outbox never says what is not so."""

import contextlib
import datetime as dt
import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from tests.waiting import HANGS_S
from tests.write_back.plans import a_plan, activity, find_entry, tag
from write_back.item import OPEN, State
from write_back.kinds import NOT_IDEMPOTENT
from write_back.outbox.outbox import Entry, Outbox
from write_back.outbox.store import (
    Change,
    OutboxBusy,
    OutboxDamaged,
    OutboxError,
    OutboxFull,
    OutboxHeld,
    check_no_hold,
    copy_of,
    describe_hold,
    hold_open_items,
    restore_copy,
)


class Crash(BaseException):
    """The power is gone."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outbox.sqlite"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["claim", "applied", "rejected", "unknown", "again", "unclaim", "cancel", "retry", "recover"]
        ),
        st.integers(0, 3),
    )
)


def take(outbox: Outbox, step: str, item_id: int) -> None:
    """One step of a sender or a person; what the present state does not allow is refused."""
    acts: dict[str, Callable[[], Any]] = {
        "claim": lambda: outbox.claim_item(item_id),
        "applied": lambda: outbox.settle_item(item_id, State.APPLIED, request_id=1),
        "rejected": lambda: outbox.settle_item(item_id, State.REJECTED, message="no"),
        "unknown": lambda: outbox.settle_item(item_id, State.UNKNOWN),
        "again": lambda: outbox.settle_item(item_id, State.PLANNED),
        "unclaim": lambda: outbox.unclaim_item(item_id),
        "cancel": lambda: outbox.cancel_items("main"),
        "retry": lambda: outbox.retry_items("main", not_idempotent=NOT_IDEMPOTENT),
        "recover": lambda: outbox.recover_sent("main"),
    }
    with contextlib.suppress(ValueError):
        acts[step]()


def shown(entries: list[Entry]) -> list[tuple[int, State, int]]:
    return [(entry.item_id, entry.state, entry.attempts) for entry in entries]


@settings(max_examples=examples(30))
@given(steps=STEPS, crash_at=st.integers(0, 24))
def test_a_crash_at_any_statement_leaves_the_state_before_or_after_the_change(
    tmp_path_factory: Any, steps: list[tuple[str, int]], crash_at: int
) -> None:
    path = tmp_path_factory.mktemp("outbox") / "outbox.sqlite"
    left = [crash_at]
    do = Change.run_statement

    def may_crash() -> None:
        if left[0] == 0:
            raise Crash
        left[0] -= 1

    def fragile(self: Change, statement: str, **values: Any) -> sqlite3.Cursor:
        may_crash()
        done = do(self, statement, **values)
        may_crash()
        return done

    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(tag(2), tag(3), activity(4, 7, "x"), tag(5)))
        ids = [entry.item_id for entry in outbox.list_entries(push_id)]
        before = after = shown(outbox.list_entries(push_id))
        patch = pytest.MonkeyPatch()
        try:
            for step, number in steps:
                before = shown(outbox.list_entries(push_id))
                patch.setattr(Change, "run_statement", fragile)
                take(outbox, step, ids[number])
                patch.undo()
                after = shown(outbox.list_entries(push_id))
        except Crash:
            patch.undo()
            after = before
    with Outbox(path) as outbox:
        assert shown(outbox.list_entries(push_id)) == after
        outbox.recover_sent("main")
        states = {entry.item_id: entry.state for entry in outbox.list_entries(push_id)}
        assert State.SENDING not in states.values()
        for item_id, state, _ in after:
            assert states[item_id] is (State.UNKNOWN if state is State.SENDING else state)
        assert {entry.item_id for entry in outbox.list_open("main")} == {
            item_id for item_id, state in states.items() if state in OPEN
        }


SENDER = """
    import sys
    from pathlib import Path
    from write_back.item import State
    from write_back.outbox.outbox import Outbox

    with Outbox(Path(sys.argv[1])) as outbox, outbox.hold_sender("main"):
        for entry in outbox.list_open("main"):
            outbox.claim_item(entry.item_id)
            print("sent", entry.item_id, " " * 300, flush=True)  # more than a pipe holds
            outbox.settle_item(entry.item_id, State.APPLIED)
            print("done", entry.item_id, " " * 300, flush=True)
"""


def test_a_kill_loses_no_intent_and_no_outcome(path: Path) -> None:
    """What the sender said after it had committed is so; and whoever is next can begin at once."""
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(*[tag(row) for row in range(300)]))
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SENDER), str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        told = [child.stdout.readline().split() for _ in range(101)]
        with pytest.raises(OutboxBusy, match=str(child.pid)), outbox.hold_sender("main"):
            pass
        child.send_signal(signal.SIGKILL)
        told += [line.split() for line in child.stdout.read().splitlines()]
        child.wait()
        child.stdout.close()
        with outbox.hold_sender("main"):
            sent = {int(number) for word, number in told if word == "sent"}
            done = {int(number) for word, number in told if word == "done"}
            states = {entry.item_id: entry.state for entry in outbox.list_entries(push_id)}
            assert all(states[item_id] is State.APPLIED for item_id in done)
            assert all(states[item_id] in (State.SENDING, State.APPLIED) for item_id in sent)
            assert sum(state is not State.PLANNED for state in states.values()) <= len(sent) + 1
            assert outbox.recover_sent("main") <= 1


def test_a_full_disk_changes_nothing_and_says_so(path: Path) -> None:
    with Outbox(path) as outbox:
        (entry,) = outbox.list_entries(outbox.enqueue_plan(a_plan(tag(2))))
        outbox.claim_item(entry.item_id)
        connection = outbox._connection
        connection.execute(f"pragma max_page_count = {connection.execute('pragma page_count').fetchone()[0]}")
        with pytest.raises(OutboxFull, match="free some and run the command again"):
            outbox.enqueue_plan(a_plan(*[tag(row) for row in range(2000)]))
        assert len(outbox.list_pushes()) == 1
        assert find_entry(outbox, entry.item_id).state is State.SENDING
        connection.execute("pragma max_page_count = 1000000")
        outbox.settle_item(entry.item_id, State.APPLIED)


def test_a_damaged_file_is_told_and_nothing_is_sent_from_it(path: Path) -> None:
    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(*[tag(row) for row in range(400)]))
    content = bytearray(path.read_bytes())
    content[4096:-4096] = os.urandom(len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(OutboxDamaged, match="damaged"), Outbox(path) as outbox:
        outbox.list_open("main")


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 8
    path.write_bytes(content)


def _replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARMS = {
    "gone": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(os.urandom(9000)),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-5000]),
    "head": lambda path: _flip(path, 0),
    "subject": lambda path: _flip(path, path.read_bytes().rindex(b"person7@example.com|vip")),
    "folder": _replace_by_a_folder,
}


@pytest.mark.parametrize("harm", HARMS)
def test_nothing_is_sent_from_a_damaged_outbox_and_its_copy_takes_everything_sent_since_for_unknown(
    path: Path, harm: str
) -> None:
    with Outbox(path) as outbox:
        first = outbox.enqueue_plan(a_plan(*[tag(row) for row in range(2, 9)]))
        for entry in outbox.list_entries(first):
            outbox.claim_item(entry.item_id)
            outbox.settle_item(entry.item_id, State.APPLIED)
    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(*[tag(row) for row in range(20, 30)]))
    HARMS[harm](path)
    with pytest.raises(OutboxDamaged, match="`marketing-sync rebuild`"), Outbox(path) as outbox:
        outbox.recover_sent("main")
    assert restore_copy(path, 1.0, NOT_IDEMPOTENT)
    assert not restore_copy(path, 1.0, NOT_IDEMPOTENT)
    with Outbox(path) as outbox:
        assert {entry.state for entry in outbox.list_entries(first)} == {State.APPLIED}
        assert {entry.state for entry in outbox.list_open("main")} == {State.UNKNOWN}
        assert len(outbox.list_open("main")) == 10


@pytest.mark.parametrize("harm", ["gone", "emptied", "garbage", "cut"])
def test_what_a_killed_process_sent_is_not_forgotten_when_its_log_is_damaged(
    path: Path, tmp_path: Path, harm: str
) -> None:
    home = tmp_path / "killed"
    with Outbox(path) as outbox:
        push = outbox.enqueue_plan(a_plan(*[activity(row, row, "x") for row in range(2, 6)]))
    with Outbox(path) as outbox:
        for entry in outbox.list_entries(push):
            outbox.claim_item(entry.item_id)
            outbox.settle_item(entry.item_id, State.APPLIED)
        home.mkdir()
        for part in path.parent.glob("outbox.*"):
            shutil.copy(part, home)
    killed = home / path.name
    HARMS[harm](Path(f"{killed}-wal"))
    with pytest.raises(OutboxDamaged, match="killed"), Outbox(killed) as outbox:
        outbox.recover_sent("main")
    assert restore_copy(killed, 1.0, NOT_IDEMPOTENT)
    with Outbox(killed) as outbox:
        outbox.recover_sent("main")
        assert {entry.state for entry in outbox.list_entries(push)} == {State.UNKNOWN}


@pytest.mark.parametrize("harm", ["gone", "emptied", "garbage", "cut", "head", "folder"])
def test_a_damaged_copy_is_made_anew_with_the_next_change(path: Path, harm: str) -> None:
    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(tag(2)))
    HARMS[harm](copy_of(path))
    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(tag(3)))
    path.unlink()
    assert restore_copy(path, 1.0, NOT_IDEMPOTENT)
    with Outbox(path) as outbox:
        assert len(outbox.list_open("main")) == 2


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_a_whole_copy_that_cannot_be_written_now_stays_in_its_place(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = os.open

    def fail(name: Path, *args: int) -> int:
        if name == copy_of(path):
            raise OSError(number, os.strerror(number))
        return real(name, *args)

    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(tag(2)))
    with monkeypatch.context() as patch, Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(tag(3)))
        patch.setattr(os, "open", fail)
    assert [file.name for file in path.parent.iterdir() if "damaged" in file.name] == []
    path.unlink()
    assert restore_copy(path, 1.0, NOT_IDEMPOTENT)
    with Outbox(path) as outbox:
        assert len(outbox.list_open("main")) == 1


def test_a_folder_that_cannot_be_written_is_told(path: Path) -> None:
    path.mkdir()
    with pytest.raises(OutboxError, match=path.name):
        Outbox(path)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_folder_in_the_place_of_a_log_is_renamed(path: Path, end: str) -> None:
    path.with_name(path.name + end).mkdir(parents=True)
    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(tag(2)))
        assert len(outbox.list_open("main")) == 1


def test_others_read_while_one_writes(path: Path) -> None:
    with Outbox(path) as outbox, Outbox(path) as reader:
        push_id = outbox.enqueue_plan(a_plan(*[tag(row) for row in range(50)]))
        failures: list[BaseException] = []

        def watch() -> None:
            try:
                while reader.count_states(push_id).requests.get(State.APPLIED, 0) < 50:
                    list(reader.changed_since(0))
            except BaseException as problem:
                failures.append(problem)

        thread = threading.Thread(target=watch)
        thread.start()
        for entry in outbox.list_entries(push_id):
            outbox.claim_item(entry.item_id)
            outbox.settle_item(entry.item_id, State.APPLIED)
        thread.join(HANGS_S)
        assert not failures
        assert not thread.is_alive()


def test_what_changed_is_told_completely_however_often_it_is_asked_for(path: Path) -> None:
    """A mirror that only ever takes in what changed is equal to the outbox."""
    mirror: dict[int, tuple[State, int]] = {}
    with Outbox(path) as outbox:
        seen = 0
        push_id = outbox.enqueue_plan(a_plan(*[tag(row) for row in range(6)]))
        ids = [entry.item_id for entry in outbox.list_entries(push_id)]
        for number, step in enumerate(
            ["claim", "applied", "claim", "unknown", "cancel", "again", "retry", "claim", "recover"]
        ):
            take(outbox, step, ids[number // 2])
            for entry in outbox.changed_since(seen):
                mirror[entry.item_id] = (entry.state, entry.attempts)
                seen = max(seen, entry.revision)
        assert mirror == {
            entry.item_id: (entry.state, entry.attempts) for entry in outbox.list_entries(push_id)
        }
        assert json.dumps(sorted(mirror)) == json.dumps(sorted(ids))


def test_what_a_backup_had_open_is_unknown_and_nothing_goes_until_a_person_decides(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(*(activity(row, row, "x") for row in (1, 2, 3))))
        first, second, _ = (entry.item_id for entry in outbox.list_entries(push_id))
        outbox.claim_item(first)
        outbox.settle_item(first, State.APPLIED, request_id=1)
        outbox.claim_item(second)
    for _ in range(2):  # a restore that was killed is run again
        hold_open_items(path, dt.datetime(2026, 3, 20, 4, tzinfo=dt.UTC), 1.0, NOT_IDEMPOTENT)
    with Outbox(path) as outbox:
        assert [entry.state for entry in outbox.list_entries(push_id)] == [
            State.APPLIED,
            State.UNKNOWN,
            State.UNKNOWN,
        ]
    with pytest.raises(OutboxHeld, match="from the backup of 2026-03-20 04:00 UTC"):
        check_no_hold(path)
    describe_hold(path).unlink()
    check_no_hold(path)
