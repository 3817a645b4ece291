"""A process of its own for SQL that others wrote: whatever that does, it can be ended.

Both sides write lines. It is the leader of a group that is killed as a whole: when it is silent for too long,
at the end, and, since its input ends then, with the process that started it. It knows no secrets: its
environment has none. Not here: what it does (`sealed_connection`)."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

_ROOT = Path(__file__).parents[1]
#: How long a process may take to start.
START_S = 60.0
#: What a program needs of the environment to start and to read and write text.
_NEEDED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")


class Silent(Exception):
    """It said nothing for as long as it may, and was ended."""


class Ended(Exception):
    """It ended by itself, or was killed."""


class Child:
    """`python -m MODULE` in `folder`, until it is ended."""

    def __init__(self, module: str, folder: Path) -> None:
        environment = {name: os.environ[name] for name in _NEEDED if name in os.environ}
        environment |= {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": str(_ROOT)}
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-W", "ignore", "-m", module],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_put_all, args=(self._process.stdout, self._lines), daemon=True).start()

    def send_line(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # `receive` says so
            self._input.write(f"{line}\n")
            self._input.flush()

    def receive_line(self, seconds: float) -> str:
        """Its next line. Raises Silent, Ended; it is over then."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.kill_child()
            raise Silent from None
        if not line:
            self.kill_child()
            raise Ended
        return line

    def kill_child(self) -> None:
        """Kill it with all that it started, and wait until they are gone."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._input.close()


def _put_all(stream: TextIO, lines: "queue.SimpleQueue[str]") -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put("")


def other_side() -> tuple[Iterator[str], Callable[[str], None]]:
    """In such a process: the lines that are sent, and what sends one. What is printed otherwise goes nowhere.

    A thread listens, so that the end of the input ends the process in the middle of whatever it does.
    """
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    received: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            received.put(line)
        os.killpg(0, signal.SIGKILL)

    def send(line: str) -> None:
        output.write(f"{line}\n")
        output.flush()

    threading.Thread(target=listen, daemon=True).start()
    return iter(received.get, None), send
