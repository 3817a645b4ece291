"""The shared file: what survives, what is replaced, and that two openings exclude each other."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marketing_api.rate_limit.pacing import Schedule
from marketing_api.rate_limit.shared_state import StateFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slots"


def test_another_opening_sees_what_was_written(path: Path) -> None:
    with StateFile(path) as slots:
        slots.limit = 15.0
    with StateFile(path) as slots:
        assert slots.limit == 15.0


def test_only_the_owner_can_read_it(path: Path) -> None:
    with StateFile(path):
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\0" * 300, b"pacing 1" + b"\xff" * 600])
def test_a_damaged_file_is_replaced(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)
    with StateFile(path) as slots:
        assert slots == Schedule()
        slots.limit = 15.0
    with StateFile(path) as slots:
        assert slots.limit == 15.0


def test_damage_while_in_use_is_replaced(path: Path) -> None:
    file = StateFile(path)
    with file as slots:
        slots.limit = 15.0
    path.write_bytes(path.read_bytes()[:-9])
    with file as slots:
        assert slots == Schedule()


def test_a_removed_file_is_made_anew_and_shared_again(path: Path) -> None:
    first, second = StateFile(path), StateFile(path)
    with first as slots:
        slots.limit = 15.0
    path.unlink()
    with second as slots:
        slots.limit = 20.0
    with first as slots:
        assert slots.limit == 20.0


def test_openings_exclude_each_other(path: Path) -> None:
    def count() -> None:
        file = StateFile(path)
        for _ in range(300):
            with file as slots:
                slots.limit += 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with StateFile(path) as slots:
        assert slots.limit == 1200


_FORKING = """
import os, sys
from pathlib import Path
from marketing_api.rate_limit.shared_state import StateFile
file = StateFile(Path(sys.argv[1]))
with file as slots:
    slots.limit = 0.0
child = os.fork()
for _ in range(300):
    with file as slots:
        slots.limit += 1
if child:
    os.waitpid(child, 0)
"""


def test_a_forked_child_excludes_its_parent(path: Path) -> None:
    subprocess.run([sys.executable, "-c", _FORKING, str(path)], check=True, timeout=30)
    with StateFile(path) as slots:
        assert slots.limit == 600
