"""Whatever lies in the inbox: what cannot be pushed is named and left, others go on, nothing is pushed twice or half, nothing hangs."""

# ruff: noqa: F811 (fixtures of another module)

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.write_back import inbox as inbox_module
from pipelines.write_back.inbox import FAILED, dropped, make_folders
from pipelines.write_back.input.files import read_file
from pipelines.write_back.input.rows import InputError
from tests.pipelines.write_back.test_inbox import Daemon, Drop, daemon, drop, tags  # noqa: F401 (fixtures)

pytestmark = pytest.mark.filterwarnings("ignore")


def _link(folder: Path) -> None:
    (folder.parent / "outside.csv").write_text("email,tag\n")
    (folder / "odd.csv").symlink_to(folder.parent / "outside.csv")


def _dangling(folder: Path) -> None:
    (folder / "odd.csv").symlink_to(folder / "nowhere.csv")


def _to_a_device(folder: Path) -> None:
    (folder / "odd.csv").symlink_to("/dev/zero")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "odd.csv")


def _socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("odd.csv")
    os.chdir(here)


def _folder(folder: Path) -> None:
    (folder / "odd.csv").mkdir()


def _named(name: str | bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / (os.fsdecode(name) if isinstance(name, bytes) else name)
        path.write_text("email,tag\n")
        os.utime(path, (0, 0))

    return make


ODD = {
    "a link": _link,
    "a dangling link": _dangling,
    "a link to a device": _to_a_device,
    "a pipe": _pipe,
    "a socket": _socket,
    "a folder": _folder,
    "a name of two lines": _named("odd\n2026-01-01 ERROR forged.csv"),
    "a name with escapes": _named("odd\x1b]0;title\x07\x1b[2J.csv"),
    "a name from right to left": _named("odd\u202evsc.exe"),
    "a name that is no UTF-8": _named(b"odd\xff\xfe.csv"),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_cannot_be_pushed_is_named_and_left_and_others_go_on(daemon: Daemon, drop: Drop, tags: list[str], odd: str) -> None:
    path = drop(tags)
    ODD[odd](path.parent)
    warnings: list[str] = []
    (found,) = dropped(make_folders(daemon.settings), warnings.append)
    assert found.path == path
    assert len(warnings) == 1
    assert "odd" in warnings[0]
    assert warnings[0].isprintable(), "it forges no line and moves no cursor"
    assert daemon.pick_up().run_config["ops"]["plan_tags"]["config"]["from"] == str(path)


@pytest.mark.parametrize("name", ["x" * 251 + ".csv", "é" * 120 + ".csv", "=cmd|'calc'!A0.csv", "🐘 [a](b).csv", "VIP.CSV"])
def test_any_name_that_can_be_shown_is_put_away(daemon: Daemon, drop: Drop, tags: list[str], name: str) -> None:
    path = drop(["email,tag", "nobody,vip"], name)
    assert not daemon.run(daemon.pick_up())
    assert daemon.look() == []
    assert not path.exists()
    names = sorted(each.name for each in (path.parent / FAILED).iterdir())
    assert len(names) == 2
    assert names[1] == f"{names[0]}.result.txt"


def test_a_file_that_changes_after_it_was_taken_up_is_not_pushed_half(
    daemon: Daemon,
    drop: Drop,
    tags: list[str],
    service: object,
) -> None:
    path = drop(tags)
    request = daemon.pick_up()
    path.write_text("\n".join(tags[:4]))
    assert not daemon.run(request), "half of a new file"
    path.unlink()
    assert not daemon.run(request), "it was taken away"
    path.symlink_to("/dev/zero")
    assert not daemon.run(request), "something endless stands in its place"
    assert getattr(service, "count", 0) == 0
    path.unlink()
    path = drop(tags, age_s=40)
    assert daemon.run(daemon.pick_up())
    daemon.look()
    assert (path.parent / "done" / "vip.csv").exists()


def test_a_folder_whose_name_a_file_has_keeps_nobody_waiting(daemon: Daemon, drop: Drop, tags: list[str]) -> None:
    path = drop(tags)
    (path.parent.parent / "moves").write_text("no folder")
    (path.parent / "done").write_text("no folder either")
    request = daemon.pick_up()
    assert daemon.run(request)
    assert [daemon.look(), daemon.look()] == [[], []], "it cannot be put away, and is not pushed again"
    assert path.exists()
    (path.parent / "done").unlink()
    daemon.look()
    assert (path.parent / "done" / "vip.csv").exists()


def test_thousands_of_files_are_taken_up_over_several_looks(daemon: Daemon, drop: Drop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "_MOST_RUNS", 5)
    for number in range(40):
        drop(["email,tag", f"a{number}@example.com,vip"], f"{number}.csv", age_s=100 - number)
    daemon.look()
    started = time.monotonic()
    assert [Path(each.run_config["ops"]["plan_tags"]["config"]["from"]).name for each in daemon.look()] == [f"{n}.csv" for n in range(5)]
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/random", "pipe"])
def test_a_push_from_what_has_no_end_is_refused_at_once(tmp_path: Path, path: str) -> None:
    if path == "pipe":
        path = str(tmp_path / path)
        os.mkfifo(path)
    with pytest.raises(InputError, match="no file: name a file"):
        read_file(Path(path))
