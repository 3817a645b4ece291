"""Starts programs that end with the process that started them, even if it is killed, together with
all their own subprocesses.

This file also runs as a process between them (standard library only, 10 MB). It starts a program
per line of its standard input, and ends all programs when that input ends, which it also does when
the starting process is killed. Not here: which programs (`commands.ui`)."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Self

#: How long programs may take to end after a signal.
_GRACE_S = {signal.SIGINT: 6.0, signal.SIGTERM: 2.0}


class Keeper:
    """Runs the intermediate process for the duration of a `with`. `process` ends when one of the
    programs does."""

    def __init__(self) -> None:
        command = [sys.executable, "-IS", __file__]
        self.process = subprocess.Popen(  # noqa: S603 (this file)
            command, stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def start(self, *command: str) -> None:
        """Start a program. Raises BrokenPipeError when one has ended already."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all programs; takes as long as the longest of them, 8 s at most."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        with contextlib.suppress(ProcessLookupError):  # the intermediate process was killed
            os.killpg(self.process.pid, signal.SIGKILL)


def _main() -> None:
    """Leader of the process group in which everything runs."""
    for number in _GRACE_S:
        # The signal is for the programs. A handler, since they would inherit SIG_IGN.
        signal.signal(number, lambda *_: None)
    programs: list[subprocess.Popen[bytes]] = []
    over = threading.Event()

    def watch_program(program: subprocess.Popen[bytes]) -> None:
        program.wait()
        over.set()

    def read_commands() -> None:
        for line in sys.stdin:
            command = json.loads(line)
            program = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 (by Keeper)
            programs.append(program)
            threading.Thread(target=watch_program, args=(program,), daemon=True).start()
        over.set()

    threading.Thread(target=read_commands, daemon=True).start()
    over.wait()
    for number, grace in _GRACE_S.items():
        os.killpg(0, number)
        until = time.monotonic() + grace
        while time.monotonic() < until and any(program.poll() is None for program in programs):
            time.sleep(0.1)
    os.killpg(0, signal.SIGKILL)  # subprocesses that are left, and this process


if __name__ == "__main__":
    _main()
