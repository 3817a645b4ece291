"""Open the Dagster UI on this machine.

Dagster's web server runs behind the guard, and its daemon beside it, on loopback, with the home's
run history."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from home import exits
from home.accounts import open_connections
from home.door import report_of
from home.folder import dagster_home, prepare_home
from home.options import Option
from home.settings import Settings, SettingsError
from marketing_api.clock import TOLERANCE, SteadyClock
from marketing_sync.commands import declare_command, print_error, print_warning
from marketing_sync.keeper import Keeper
from marketing_sync.packages import ROOT
from pipelines import CODE_LOCATION, CODE_MODULE, SERVES_REPORT, report_address

_HOST = "127.0.0.1"
PORT = 3000
#: Tells the web server and the daemon how to find the code server, which they share.
_WORKSPACE = (
    'load_from: [{{grpc_server: {{host: localhost, socket: "{socket}", location_name: {name}}}}}]\n'
)
#: A warning of Dagster at every start that users can't do anything about.
_IDLE_WARNINGS = "ignore:Parameter `owners` of initializer `SensorDefinition"
_REFRESH_MS = 2000
#: How often to check whether the clock was set back.
_CLOCK_EVERY_S = 10
#: How long to wait at the end for requests in progress.
_LAST_REQUESTS_S = 2


def _read_port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise ValueError("not a port; it takes a number from 1 to 65535")
    return int(text)


@declare_command(
    Option("port", f"port on 127.0.0.1 (default: {PORT})", int, _read_port, PORT, "PORT"),
    is_for_all_shards=True,
)
def ui(settings: Settings, port: int) -> int:
    """Stop it with Ctrl-C."""
    with (
        open_listener(port) as listener,
        open_connections(settings) as accounts,
        dagster_home(settings.home),
    ):
        home = prepare_home(settings.home, settings.lock_seconds)
        os.environ |= {
            "MARKETING_HOME": str(home.parent if settings.shard else home),
            "PYTHONWARNINGS": _IDLE_WARNINGS,
            SERVES_REPORT: "1",
        }
        if settings.is_sandbox:
            os.environ["MARKETING_SANDBOX_URL"] = accounts[0].url
            print(f"the embedded sandbox listens at {accounts[0].url}")
        print(
            f"Dagster UI: http://{_HOST}:{port} in about 10 seconds; Ctrl-C stops it, "
            "and the schedule with it",
            flush=True,
        )
        with tempfile.TemporaryDirectory() as folder, Keeper() as programs:
            add_guard = partial(_guard_application, port=port, settings=settings)
            _serve_ui(listener, programs, Path(folder), add_guard, home)
    return print_error(
        "the UI has ended because one of Dagster's programs has ended, or the clock was set back; "
        "start it again",
        exits.INCOMPLETE,
    )


def open_listener(port: int) -> socket.socket:
    """A listener on the port, opened before anything is started: a page that is opened too early
    waits."""
    listener = socket.socket()
    # allow a port that was in use a moment ago
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"port {port} cannot be used ({error.strerror}): perhaps the UI is open already; "
            "otherwise choose another with --port"
        ) from None
    return listener


def _guard_application(application: Any, port: int, settings: Settings) -> Any:
    """The application behind the guard, with the report of every home."""
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from pipelines.web_guard import Guard, report_page

    def report_of_shard(request: Request) -> Response:
        return report_page(report_of(reports[request.url.path]))

    reports = {report_address(shard): home for shard, home in settings.homes.items()}
    application.routes[:0] = [Route(address, report_of_shard) for address in reports]
    return Guard(application, port)


def _serve_ui(
    listener: socket.socket,
    programs: Keeper,
    folder: Path,
    add_guard: Callable[[Any], Any],
    home: Path,
) -> None:
    """Run the code server, the daemon and, in this process, the web server. Returns when one of
    them has ended."""
    code = folder / "code"
    workspace = folder / "workspace.yaml"
    workspace.write_text(_WORKSPACE.format(socket=code, name=CODE_LOCATION), encoding="utf-8")
    python = (sys.executable, "-m")
    # Its working directory is where it finds modules; settings are read from the current folder.
    where = (f"--module-name={CODE_MODULE}", f"--working-directory={ROOT}", f"--socket={code}")
    programs.start(*python, "dagster", "code-server", "start", *where, "--log-level=warning")
    # imported while the code server loads, since each takes seconds
    import uvicorn

    from pipelines.dagster_internals import DAEMON, web_server

    if not _is_listening(code, programs):
        return
    with web_server(home, workspace, _REFRESH_MS) as application:
        # after the web server, which the user waits for
        programs.start(*python, *DAEMON, f"--workspace={workspace}", "--log-level=warning")
        server = uvicorn.Server(
            uvicorn.Config(
                add_guard(application),
                log_config=None,
                lifespan="off",
                timeout_graceful_shutdown=_LAST_REQUESTS_S,
            )
        )

        def end_with_the_programs() -> None:
            is_set_back = partial(_is_set_back, SteadyClock())
            while programs.process.poll() is None and not is_set_back():
                with suppress(subprocess.TimeoutExpired):
                    programs.process.wait(_CLOCK_EVERY_S)
            server.should_exit = True

        threading.Thread(target=end_with_the_programs, daemon=True).start()
        server.run(sockets=[listener])


def _is_set_back(clock: SteadyClock) -> bool:
    """Whether the machine's clock was set back: schedules would wait until it shows that time
    again."""
    if clock.jump > -TOLERANCE:
        return False
    print_warning("this machine's clock was set back, so schedules would not start")
    return True


def _is_listening(path: Path, programs: Keeper) -> bool:
    """Wait for the code server; False when a program has ended before."""
    while programs.process.poll() is None:
        with socket.socket(socket.AF_UNIX) as probe:
            if not probe.connect_ex(str(path)):
                return True
        time.sleep(0.1)
    return False
