"""Which runs count as unfinished: those whose process is gone, not those at work nor those that ended."""

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pytest

from assets.checkpoint import Checkpoints
from marketing_api.exchange import id_at, new_request_id


def test_a_run_that_left_without_ending_is_taken_up_from_its_first_request_on(tmp_path: Path) -> None:
    before = new_request_id()
    killed = Checkpoints(tmp_path)
    killed.begin(["lists", "contacts"])
    first = new_request_id()
    killed.leave()
    following = Checkpoints(tmp_path)
    assert before < (following.resume_from("contacts") or 0) < first
    assert following.resume_from("goals") is None


def test_a_run_that_ended_is_over(tmp_path: Path) -> None:
    run = Checkpoints(tmp_path)
    run.begin(["lists"])
    run.end(["lists"])
    assert Checkpoints(tmp_path).resume_from("lists") is None
    assert list(tmp_path.iterdir()) == []


def test_a_run_at_work_is_left_alone(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from assets.checkpoint import Checkpoints\n"
        "run = Checkpoints(Path(sys.argv[1])); run.begin(['lists']); print('at work', flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "at work\n"
        assert Checkpoints(tmp_path).resume_from("lists") is None
        other.kill()
        other.wait()
    assert Checkpoints(tmp_path).resume_from("lists") is not None


def test_a_run_of_some_assets_leaves_the_others_unfinished(tmp_path: Path) -> None:
    killed = Checkpoints(tmp_path)
    killed.begin(["lists", "contacts"])
    killed.leave()
    part = Checkpoints(tmp_path)
    part.begin(["lists"])
    part.end(["lists"])
    following = Checkpoints(tmp_path)
    assert following.resume_from("lists") is None
    assert following.resume_from("contacts") is not None


def test_a_note_of_a_version_that_noted_times_is_understood(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"started_at": "2026-11-21T20:00:00+00:00", "assets": ["lists"]}')
    assert (
        Checkpoints(tmp_path).resume_from("lists")
        == id_at(dt.datetime(2026, 11, 21, 20, tzinfo=dt.UTC))
        < new_request_id()
    )


@pytest.mark.parametrize("at", ["fcntl.flock", "json.dump", "os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("ends", [False, True])
def test_a_run_that_is_killed_while_it_notes_leaves_nothing_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, *, ends: bool
) -> None:
    """`ends`: it strikes when the run notes what is left of an earlier one, else when it begins."""
    before = Checkpoints(tmp_path)
    if ends:
        before.begin(["lists", "contacts"])
        before.leave()
    killed = Checkpoints(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(at, lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            killed.end(["lists"]) if ends else killed.begin(["lists"])
    following = Checkpoints(tmp_path)
    assert (following.resume_from("contacts") is not None) is ends
    following.begin(["lists", "contacts"])
    following.end(["lists", "contacts"])
    assert list(tmp_path.iterdir()) == []


def test_an_empty_note_of_an_earlier_version_is_removed(tmp_path: Path) -> None:
    (tmp_path / "empty.json").touch()
    Checkpoints(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_note_that_was_torn_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text('{"started_at": "2026-')
    assert Checkpoints(tmp_path).resume_from("lists") is None


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
    run = Checkpoints(tmp_path)
    assert run.resume_from("lists") is None
    run.begin(["lists"])
    run.end(["lists"])
    (aside,) = tmp_path.iterdir()
    assert aside.name.startswith("note.json.damaged-")
    assert aside.read_bytes() == content
