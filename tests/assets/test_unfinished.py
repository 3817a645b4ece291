"""Which runs count as unfinished: those whose process is gone, not those at work nor those that ended."""

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pytest

from assets.unfinished import Unfinished

EVENING = dt.datetime(2026, 11, 21, 20, tzinfo=dt.UTC)
NIGHT = dt.datetime(2026, 11, 22, 2, tzinfo=dt.UTC)


def test_a_run_that_left_without_ending_is_taken_up(tmp_path: Path) -> None:
    killed = Unfinished(tmp_path, EVENING)
    killed.begin(["lists", "contacts"])
    killed.leave()
    following = Unfinished(tmp_path, NIGHT)
    assert following.since("contacts") == EVENING
    assert following.since("goals") is None


def test_a_run_that_ended_is_over(tmp_path: Path) -> None:
    run = Unfinished(tmp_path, EVENING)
    run.begin(["lists"])
    run.end(["lists"])
    assert Unfinished(tmp_path, NIGHT).since("lists") is None
    assert list(tmp_path.iterdir()) == []


def test_a_run_at_work_is_left_alone(tmp_path: Path) -> None:
    code = (
        "import sys, datetime as dt; from pathlib import Path; from assets.unfinished import Unfinished\n"
        "run = Unfinished(Path(sys.argv[1]), dt.datetime.now(dt.UTC)); run.begin(['lists']); print('at work', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "at work\n"
        assert Unfinished(tmp_path, NIGHT).since("lists") is None
        other.kill()
        other.wait()
    assert Unfinished(tmp_path, NIGHT).since("lists") is not None


def test_a_run_of_some_assets_leaves_the_others_unfinished(tmp_path: Path) -> None:
    killed = Unfinished(tmp_path, EVENING)
    killed.begin(["lists", "contacts"])
    killed.leave()
    part = Unfinished(tmp_path, NIGHT)
    part.begin(["lists"])
    part.end(["lists"])
    following = Unfinished(tmp_path, NIGHT)
    assert following.since("lists") is None
    assert following.since("contacts") == EVENING


def test_a_note_that_was_torn_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text('{"started_at": "2026-')
    assert Unfinished(tmp_path, NIGHT).since("lists") is None


HARMED = [
    b"[]",
    b"7",
    b'{"started_at": 7, "assets": ["lists"]}',
    b'{"started_at": "2026-11-21T20:00:00", "assets": ["lists"]}',
    b"\xff\0",
    b"[" * 9999,
]


@pytest.mark.parametrize("content", HARMED)
def test_a_note_that_cannot_be_read_is_set_aside_and_hinders_nobody(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "note.json").write_bytes(content)
    run = Unfinished(tmp_path, NIGHT)
    assert run.since("lists") is None
    run.begin(["lists"])
    run.end(["lists"])
    (aside,) = tmp_path.iterdir()
    assert aside.name.startswith("note.json.damaged-")
    assert aside.read_bytes() == content
