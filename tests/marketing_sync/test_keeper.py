"""Programs end with the process that started them, however it ends, and so do their children."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANGS_S, wait_until

#: A program that starts another one, which heeds no signal; both note that they are there. It ends by itself
#: once the note of another one is there, if it is told which.
PROGRAM = """
import os, signal, subprocess, sys, time
deaf = "import signal, time; [signal.signal(each, signal.SIG_IGN) for each in (2, 15)]; print('up', flush=True); time.sleep(3600)"
child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
child.stdout.readline()
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}\\n")
while not (sys.argv[2:] and os.path.exists(sys.argv[2]) and os.path.getsize(sys.argv[2])):
    time.sleep(0.01)
"""
PARENT = """
import signal, sys, time
from marketing_sync.keeper import Keeper
with Keeper() as programs:
    for words in ({commands}):
        programs.start(sys.executable, "-c", {program!r}, *words)
    print(programs.process.pid, flush=True)
    {then}
"""


def parent(*commands: list[str], then: str) -> subprocess.Popen[str]:
    words = ", ".join(map(repr, commands))
    code = PARENT.format(commands=f"{words},", program=PROGRAM, then=then)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def noted(*paths: Path) -> list[int]:
    """The processes, once all of them are there."""
    wait_until(
        lambda: all(path.exists() and path.read_text().endswith("\n") for path in paths),
        "the programs did not start",
    )
    return [int(number) for path in paths for number in path.read_text().split()]


def wait_until_gone(processes: list[int]) -> None:
    wait_until(lambda: not any(map(is_there, processes)), "something is left over")


def is_there(process: int) -> bool:
    """Not only as the entry of one that nobody waited for."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return bool(told.stdout.strip()) and not told.stdout.startswith("Z")


@pytest.mark.parametrize("end", ["leaves", "is interrupted", "is killed", "loses the one between"])
def test_nothing_outlives_the_process_that_started_it(tmp_path: Path, end: str) -> None:
    then = "sys.stdin.read(1)" if end == "leaves" else "programs.process.wait()"
    with parent([str(tmp_path / "a")], [str(tmp_path / "b")], then=then) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        keeper = int(process.stdout.readline())
        programs = noted(tmp_path / "a", tmp_path / "b")
        if end == "leaves":
            process.stdin.close()
        elif end == "loses the one between":
            os.kill(keeper, signal.SIGKILL)
        else:
            process.send_signal(signal.SIGKILL if end == "is killed" else signal.SIGINT)
        wait_until_gone([keeper, *programs])
        process.wait(HANGS_S)


def test_one_that_ends_by_itself_ends_the_others(tmp_path: Path) -> None:
    with parent(
        [str(tmp_path / "a")], [str(tmp_path / "b"), str(tmp_path / "a")], then="programs.process.wait()"
    ) as process:
        wait_until_gone(noted(tmp_path / "a", tmp_path / "b"))
        process.wait(HANGS_S)
