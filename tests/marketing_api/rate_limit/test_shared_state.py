"""The shared file: what survives, what is replaced, and that two changes exclude each other."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marketing_api.pacing import Schedule
from marketing_api.rate_limit import FileStore
from tests.waiting import HANGS_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slots"


def set_limit(path: Path, limit: float) -> None:
    FileStore(path).apply(lambda slots: setattr(slots, "limit", limit))


def limit_in(path: Path) -> float:
    return FileStore(path).apply(lambda slots: slots.limit)


def one_more(slots: Schedule) -> None:
    slots.limit += 1


def test_another_opening_sees_what_was_written(path: Path) -> None:
    set_limit(path, 15.0)
    assert limit_in(path) == 15.0


def test_only_the_owner_can_read_it(path: Path) -> None:
    set_limit(path, 15.0)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\0" * 300, b"pacing 1" + b"\xff" * 600, b" " * 5000])
def test_a_damaged_file_is_replaced(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)
    assert FileStore(path).apply(lambda slots: slots == Schedule())
    set_limit(path, 15.0)
    assert limit_in(path) == 15.0
    assert path.stat().st_size == 1024


def test_damage_while_in_use_is_replaced(path: Path) -> None:
    file = FileStore(path)
    file.apply(one_more)
    path.write_bytes(path.read_bytes()[:-9])
    assert file.apply(lambda slots: slots == Schedule())


def test_a_change_that_fails_changes_nothing(path: Path) -> None:
    file = FileStore(path)
    file.apply(one_more)

    def fail(slots: Schedule) -> None:
        slots.limit = 99.0
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        file.apply(fail)
    assert file.apply(lambda slots: slots.limit) == limit_in(path) == 1.0


def test_a_removed_file_is_made_anew_and_shared_again(path: Path) -> None:
    first = FileStore(path)
    first.apply(one_more)
    path.unlink()
    set_limit(path, 20.0)
    assert first.apply(lambda slots: slots.limit) == 20.0


def test_changes_exclude_each_other(path: Path) -> None:
    def count() -> None:
        file = FileStore(path)
        for _ in range(300):
            file.apply(one_more)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert limit_in(path) == 1200


_FORKING = """
import os, sys
from pathlib import Path
from marketing_api.rate_limit import FileStore
file = FileStore(Path(sys.argv[1]))
def one_more(slots):
    slots.limit += 1
file.apply(lambda slots: None)
child = os.fork()
for _ in range(300):
    file.apply(one_more)
if child:
    os.waitpid(child, 0)
"""


def test_a_forked_child_excludes_its_parent(path: Path) -> None:
    subprocess.run([sys.executable, "-c", _FORKING, str(path)], check=True, timeout=HANGS_S)
    assert limit_in(path) == 600
