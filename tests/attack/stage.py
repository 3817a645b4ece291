"""Where commands are attacked: a warm process that forks a sandbox, and each command as a process of its own.

A forked command has its imports behind it and costs what it does. The warm process itself starts no thread
and opens no database."""

import atexit
import contextlib
import faulthandler
import importlib
import io
import logging
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marketing_api.sandbox import server
from tests.attack.places import Places, install
from tests.dialects.app import RoughApp
from tests.dialects.server import Options
from tests.pipelines.running import environment
from tests.pipelines.sandboxes import Sandbox

#: Unmistakable: it is searched for in everything that is left.
KEY = "attacked-key-5b1f0c93"
LIMIT_S = 300.0
#: Never met, but a sandbox asks for faults only when one is switched on: `lies` answers there.
_WATCHED = {"reset": "1e-12"}
_IMPORTED = (
    "pipelines.definitions",
    "home.failures",
    "home.logs",
    "home.settings",
    "marketing_sync.push_terminal",
    "write_back.push_service",
    "pipelines.push_jobs",
    *(f"marketing_sync.commands.{name}" for name in ("sync", "push", "publish", "status")),
    *("dagster._daemon.controller", "pandas", "fsspec.implementations.local", "_strptime"),
    *("marketing_api.client", "write_back.writebacks_export"),
)

Action = Callable[[], int]


@dataclass(frozen=True)
class Ended:
    """`code` is None when it hung, and the negative signal when it was killed."""

    code: int | None
    text: str
    seconds: float


def warm() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _IMPORTED:
            importlib.import_module(name)
    logging.getLogger().handlers.clear()  # which one of these adds
    assert threading.active_count() == 1, "threads do not survive a fork"


def run(folder: Path, url: str, action: Action, places: Places | None = None) -> Ended:
    """`action` in its own process and home (`folder/home`); `places` counts or fails."""
    began = time.monotonic()
    output = folder / "output.txt"
    process = _fork(lambda: _command(folder, url, action, places, output))
    code = _wait(process, began + LIMIT_S)
    return Ended(code, output.read_text(encoding="utf-8", errors="replace"), time.monotonic() - began)


def _fork(body: Callable[[], int]) -> int:
    """The id of a process that does `body` and ends with its value."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        code = body()
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def _wait(process: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def _command(folder: Path, url: str, action: Action, places: Places | None, output: Path) -> int:
    descriptor = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(stream, "w", closefd=False), write_through=True) for stream in (1, 2)
    )  # type: ignore[type-var]
    faulthandler.dump_traceback_later(LIMIT_S - 10, file=2)  # type: ignore[arg-type]
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    os.chdir(elsewhere)
    settings = environment(
        folder / "home", Sandbox(url), MARKETING_API_KEY=KEY, MARKETING_HISTORY_START="2026-06-01"
    )
    os.environ.clear()
    os.environ.update(settings)
    tempfile.tempdir = None
    warnings.simplefilter("ignore")
    _hasten()
    if places:
        install(places)
    code = _as_a_program(action)
    if places:
        places.save(folder / "places.json")
    return code


def _hasten() -> None:
    """Look for activities whose answer was lost sooner than live: the sandbox shows them immediately."""
    from write_back.item import RETRY_POLICY

    for name, seconds in {"first_look_s": 1.0, "last_look_s": 4.0}.items():
        object.__setattr__(RETRY_POLICY, name, seconds)


def _as_a_program(action: Action) -> int:
    """With the ending that an interpreter has: threads are waited for, and what wants to be told is told."""
    try:
        code = action()
    except SystemExit as end:
        code = int(end.code or 0)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    return code


def asked(body: Callable[[], Any]) -> Any:
    """What `body` returns in a process of its own. RuntimeError with the traceback when it fails."""
    reader, writer = os.pipe()

    def work() -> int:
        try:
            answer: tuple[bool, Any] = True, body()
        except BaseException:
            answer = False, traceback.format_exc()
        with os.fdopen(writer, "wb") as file:
            pickle.dump(answer, file)
        return 0

    process = _fork(work)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    os.waitpid(process, 0)
    is_good, value = pickle.loads(content) if content else (False, "ended without an answer")
    if not is_good:
        raise RuntimeError(value)
    return value


@dataclass
class Service:
    """Sandboxes, one after another, at one address."""

    now: int
    contacts: int
    port: int

    @contextlib.contextmanager
    def running(self, state: Path, lie: Callable[[], None] = lambda: None) -> Iterator[Sandbox]:
        """With the account as `state` remembers it; `lie` changes the sandbox's code in its process."""
        options = Options(
            port=self.port,
            key=KEY,
            contacts=self.contacts,
            now=self.now,
            rate_limit=0,
            state=state,
            faults=_WATCHED,
        )

        def serve() -> int:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            lie()
            return server.run(RoughApp(options))

        process = _fork(serve)
        sandbox = Sandbox(f"http://127.0.0.1:{self.port}/1")
        try:
            _await_port(self.port)
            yield sandbox
        finally:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _await_port(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise RuntimeError("the sandbox does not answer")


def copy(source: Path, target: Path) -> None:
    """`target` becomes what `source` is: the home and the account's state."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if (source / "home").exists():
        shutil.copytree(source / "home", target / "home", symlinks=True)
    if (source / "state").exists():
        shutil.copyfile(source / "state", target / "state")
