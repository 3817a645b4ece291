"""Commands in processes that have their imports behind them: importing Dagster takes seconds, forking does
not.

A process of its own imports everything once, for all workers of pytest-xdist, and forks a child for each
command; the child is a whole process with arguments, environment, folder and streams of its own, which can be
signalled and killed. It ends as a program ends. Not for what happens while a program starts: that takes a real
one."""

import atexit
import gc
import importlib
import json
import logging
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from home.interrupts import exit_process

ROOT = str(Path(__file__).parent.parent)
_OURS = ("marketing_api", "warehouse", "assets", "home", "write_back", "upkeep", "pipelines")
#: What is imported late, by us or by others.
_LATE = (
    *(
        "dagster._daemon.controller",
        "pandas",
        "fsspec.implementations.local",
        "_strptime",
        "openpyxl",
        "altair",
        "vl_convert",
    ),
)
#: In the words of a command: the id of the process that it is a child of.
PARENT = "{parent}"
#: An environment variable: where the process that forks listens.
ADDRESS = "TESTS_WARM_ADDRESS"


class Command:
    """A running command, like `subprocess.Popen`; only `typed` of `communicate` reaches its input."""

    def __init__(self, module: str, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        (in_read, in_write), (out_read, out_write), (err_read, err_write), (end_read, end_write) = (
            os.pipe() for _ in range(4)
        )
        theirs = [in_read, out_write, err_write, end_write]
        request = {"module": module, "words": list(words), "cwd": str(cwd), "env": dict(env)}
        socket.send_fds(_server(), [json.dumps(request).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(in_write, "w"),
            os.fdopen(out_read),
            os.fdopen(err_read),
        )
        self._end = os.fdopen(end_read, "rb", buffering=0)
        self.returncode: int | None = None
        self._output: dict[str, str] = {}
        self._readers: list[threading.Thread] = []
        self.pid = int.from_bytes(self._end.read(4), sys.byteorder)
        assert self.pid, "the process that forks commands has ended"

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("the command", timeout or 0)
            self.returncode = int.from_bytes(self._end.read(4), sys.byteorder, signed=True)
            self._end.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, typed: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote, when it has ended. Raises subprocess.TimeoutExpired; then it can be called again."""
        ends = None if timeout is None else time.monotonic() + timeout
        if not self._readers:
            with suppress(BrokenPipeError):
                self.stdin.write(typed or "")
                self.stdin.close()
            self._readers = [
                threading.Thread(target=self._read, args=(name,), daemon=True)
                for name in ("stdout", "stderr")
            ]
            for reader in self._readers:
                reader.start()
        for reader in self._readers:
            reader.join(None if ends is None else max(0, ends - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired("the command", timeout or 0)
        self.wait(None if ends is None else max(0, ends - time.monotonic()))
        return self._output["stdout"], self._output["stderr"]

    def _read(self, name: str) -> None:
        with getattr(self, name) as stream:
            self._output[name] = stream.read()


def remember_migrations() -> None:
    """Dagster's storage has Alembic import a hundred migrations nine times per home; once is enough."""
    from alembic.script import ScriptDirectory

    read = ScriptDirectory.from_config
    known: dict[str | None, ScriptDirectory] = {}

    def from_config(config: Any) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        if location not in known:
            known[location] = read(config)
        return known[location]

    ScriptDirectory.from_config = from_config  # type: ignore[method-assign, assignment]


def sandbox(*arguments: str) -> Command:
    """The sandbox's command, which ends with the process that forks."""
    return Command("tests.dialects.server", ["--parent", PARENT, *arguments], Path.cwd(), os.environ)


def launch() -> None:
    """Start the process that forks, for this process and all that it starts. It ends with this process, and
    imports everything when the first of them connects."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("")  # Linux chooses an address, which is no file
        listener.listen()
        os.environ[ADDRESS] = listener.getsockname()[1:].decode()
        passed = (theirs.fileno(), listener.fileno())
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MARKETING_", "DAGSTER_"))
        }
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.warm", *map(str, passed)],
            cwd=ROOT,
            env=kept,
            pass_fds=passed,
            stdin=nowhere,
            stdout=nowhere,
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)


@cache
def _server() -> socket.socket:
    """A connection of this process to the one that forks."""
    if ADDRESS not in os.environ:
        launch()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(b"\0" + os.environ[ADDRESS].encode())
    atexit.register(connection.close)
    return connection


# -- the process that forks


def _serve(control: socket.socket, listener: socket.socket) -> dict[str, Any]:
    """Fork a child for each request, until `control` ends; returns in the child, with the request."""
    opened = [control, listener]
    while True:
        for ready in select.select(opened, [], [])[0]:
            if ready is listener:
                _import_everything()
                opened.append(listener.accept()[0])
                continue
            content, descriptors, _, _ = socket.recv_fds(ready, 1 << 20, 4)
            if content and not os.fork():
                for connection in opened:
                    connection.close()
                _fork_watched(descriptors)
                return dict(json.loads(content))
            _close(descriptors)
            _reap()
            if ready is control:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.killpg(0, signal.SIGTERM)  # whatever runs still
                _reap()
                os._exit(0)
            if not content:
                opened.remove(ready)
                ready.close()


def _fork_watched(descriptors: list[int]) -> None:
    """Returns in a child; the parent reports its id and how it ended on the last descriptor."""
    *streams, end = descriptors
    child = os.fork()
    if not child:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        _close(descriptors)
        return
    _close(streams)
    os.write(end, child.to_bytes(4, sys.byteorder))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(BrokenPipeError):
        os.write(end, code.to_bytes(4, sys.byteorder, signed=True))
    os._exit(0)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@cache
def _import_everything() -> None:
    for package in _OURS:
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    for name in _LATE:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    remember_migrations()
    logging.getLogger().handlers.clear()  # which one of these adds
    assert threading.active_count() == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()


def _become(request: Mapping[str, Any]) -> None:
    """The command, to its end."""
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    words = [str(os.getppid()) if word == PARENT else word for word in request["words"]]
    sys.argv = [request["module"], *words]
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    time.tzset()
    try:
        code = importlib.import_module(request["module"]).main(words)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    exit_process(int(code or 0))


if __name__ == "__main__":
    control, listener = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    _become(_serve(control, listener))
