"""Programs that end with the process that started them, however that ends, with all that they
started in turn.

Between both stands a process of this file alone (standard library, 10 MB): it starts a program for
each line of its standard input, and ends them all when the input ends, which a kill of the other
side brings about, too. Not here: which programs (`commands.ui`)."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Self

#: How long programs may take to end on each of the signals.
_GRACE_S = {signal.SIGINT: 6.0, signal.SIGTERM: 2.0}


class Keeper:
    """The other side, for the length of a `with`, with the environment as of its beginning:
    `process` ends when a program does."""

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
        with contextlib.suppress(ProcessLookupError):  # the process between was killed
            os.killpg(self.process.pid, signal.SIGKILL)


def _main() -> None:
    """Leader of the process group in which everything runs."""
    for number in _GRACE_S:
        signal.signal(
            number, lambda *_: None
        )  # meant for the others; a handler, since ignoring would be passed on to them
    programs: list[subprocess.Popen[bytes]] = []
    over = threading.Event()

    def watch_program(program: subprocess.Popen[bytes]) -> None:
        program.wait()
        over.set()

    def read_commands() -> None:
        for line in sys.stdin:
            programs.append(subprocess.Popen(json.loads(line), stdin=subprocess.DEVNULL))  # noqa: S603 (what our other side wrote)
            threading.Thread(target=watch_program, args=(programs[-1],), daemon=True).start()
        over.set()

    threading.Thread(target=read_commands, daemon=True).start()
    over.wait()
    for number, grace in _GRACE_S.items():
        os.killpg(0, number)
        until = time.monotonic() + grace
        while time.monotonic() < until and any(program.poll() is None for program in programs):
            time.sleep(0.1)
    os.killpg(0, signal.SIGKILL)  # what the programs left behind, and this process


if __name__ == "__main__":
    _main()
