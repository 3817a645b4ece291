"""Two machines that use one home notice each other; one that is gone does not hold up another."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from home import machines
from home.exits import HomeError
from home.folder import prepare_home
from tests.pipelines.running import environment
from tests.pipelines.sandboxes import Sandbox
from warehouse.schema import ensure_schema

OTHER = "0b6a9c1e-0000-4000-8000-000000000000 harbor-2\n"


@pytest.fixture(autouse=True)
def _is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "_claimed", set())


@pytest.fixture
def note(home: Path) -> Path:
    """Of another machine, of just now."""
    home.mkdir()
    note = home / ".machine"
    note.write_text(OTHER)
    return note


@pytest.fixture
def touched(note: Path) -> Iterator[Path]:
    """The same, of a machine that goes on."""
    is_over = threading.Event()

    def touch() -> None:
        while not is_over.wait(0.2):
            note.touch()

    thread = threading.Thread(target=touch)
    thread.start()
    yield note
    is_over.set()
    thread.join()


def test_a_home_that_another_machine_uses_is_refused(touched: Path, home: Path) -> None:
    with pytest.raises(HomeError, match=r"another machine \(harbor-2\) uses the home"):
        prepare_home(home)
    assert touched.read_text() == OTHER


def test_the_command_says_it_and_nothing_is_sent(touched: Path, command, sandbox) -> None:  # type: ignore[no-untyped-def]
    before = len(sandbox.asked())
    ran = command("sync", "--only", "lists", sandbox=sandbox)
    assert ran.code == 2
    assert "another machine (harbor-2) uses the home" in ran.err
    assert len(sandbox.asked()) == before


def test_a_home_that_another_machine_used_is_taken_over(note: Path, home: Path) -> None:
    past = time.time() - 60
    os.utime(note, (past, past))
    prepare_home(home)
    assert note.read_text() != OTHER


@pytest.mark.slow
def test_a_machine_that_ended_a_moment_ago_is_waited_for(
    note: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "_ABANDONED_S", 1.5)
    prepare_home(home)
    assert note.read_text() != OTHER


def test_processes_of_one_machine_share_a_home(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without waiting for each other, which would be logged."""
    prepare_home(home)
    monkeypatch.setattr(machines, "_claimed", set())
    prepare_home(home)
    assert [entry for entry in caplog.records if entry.name == machines.log.name] == []


def test_a_clock_that_differs_from_the_storages_changes_nothing(
    note: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what stands in the storage is compared: the note is fresh there, whatever this machine's clock
    says."""
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert abs(machines._age(note)) < 3600


def test_processes_that_begin_at_once_do_not_take_each_other_for_another_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note that is being written reads as half of it for a moment, unless it is put there in one step."""
    home.mkdir()
    seen: set[str] = set()
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            seen.add(machines._read_note(home / ".machine"))

    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(300):
        (home / ".machine").unlink(missing_ok=True)
        monkeypatch.setattr(machines, "_claimed", {home.parent})
        machines.claim(home)
    while not seen - {""}:  # the note is there: it may take the other thread a moment to look
        time.sleep(0.001)
    is_over.set()
    thread.join()
    assert len(seen - {""}) == 1


def test_the_thread_that_keeps_the_note_leaves_nothing_to_be_reported_at_the_end(
    home: Path, sandbox: Sandbox
) -> None:
    """DuckDB's bindings list on the terminal what is left of them then."""
    prepare_home(home)
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        ensure_schema(connection)
    command = [sys.executable, "-m", "marketing_sync", "rebuild"]
    ran = subprocess.run(command, env=environment(home, sandbox), capture_output=True, text=True, check=True)
    assert ran.stderr == ""
