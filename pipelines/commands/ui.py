"""`marketing-sync ui`: Dagster's web server and daemon on loopback, with the home's run history."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from pipelines.home import prepare_home
from pipelines.service import connections
from pipelines.settings import Settings, SettingsError

#: For each of two signals: the kernel ends this process 12 seconds after the first (`interrupts`), and its children must not stay.
_STOP_SECONDS = 5
#: What Dagster says about itself at each start, and what nobody here can change.
_IDLE_WARNINGS = "ignore:Function `dev_command` is superseded,ignore:Parameter `owners` of initializer `SensorDefinition"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--port`."""
    parser.add_argument("--port", type=_port, default=3000, help="port on 127.0.0.1 (default 3000)")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; it takes a number from 1 to 65535")
    return int(text)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until Ctrl-C."""
    _make_sure_of(arguments.port)
    home = prepare_home(settings.home)
    from pipelines.run_history import set_damaged_history_aside  # Dagster takes seconds to import

    for line in set_damaged_history_aside(home / "dagster"):
        print(line, file=sys.stderr)
    with connections(settings) as accounts:
        environment = os.environ | {"DAGSTER_HOME": str(home / "dagster"), "MARKETING_HOME": str(home), "PYTHONWARNINGS": _IDLE_WARNINGS}
        if settings.is_sandbox:
            environment["MARKETING_SANDBOX_URL"] = accounts[0].url
            print(f"no key is configured: the embedded sandbox answers at {accounts[0].url}")
        print(f"Dagster UI: http://127.0.0.1:{arguments.port} in about 20 seconds; Ctrl-C stops it, and the schedule with it", flush=True)
        return _serve(arguments.port, environment)


def _make_sure_of(port: int) -> None:
    """Dagster takes any other port without a word when this one is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was in use a moment ago is free
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as problem:
            why = f"port {port} cannot be had ({problem.strerror})"
            raise SettingsError(f"{why}: perhaps the UI is open already; otherwise choose another with --port") from None


def _serve(port: int, environment: dict[str, str]) -> int:
    dagster = Path(sys.executable).with_name("dagster")
    command = [str(dagster), "dev", "--module-name=pipelines.definitions", "--host=127.0.0.1", f"--port={port}", "--log-level=warning"]
    process = subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603 (our own interpreter's dagster)
    try:
        return process.wait()
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and its children: Dagster is slow to end on a first request, so the group is ended after a while."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None and number is not signal.SIGKILL:
            continue
        try:
            os.killpg(process.pid, number)
            process.wait(_STOP_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
