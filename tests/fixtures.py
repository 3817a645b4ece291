"""Fixtures of the pipelines' tests: sandboxes, a home, and the command line without a process of its own."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

import pytest

from assets.sources import SOURCE_ASSETS
from home.folder import dagster_home, prepare_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_sync import cli
from pipelines.reading import open_reader
from tests.conftest import BEGAN_AT, Once
from tests.dialects.server import Options, serve
from tests.pipelines.running import Ran, finish, start
from tests.pipelines.sandboxes import KEY, Sandbox, move_account, spawned
from tests.pipelines.unrecorded import unrecorded as not_recorded
from tests.warm import remember_migrations
from warehouse.publish import published_path

if TYPE_CHECKING:
    from tests.pipelines.pages import Told

remember_migrations()
#: The clock of sandboxes stands still, so that two of them with the same seed are the same account all the
#: time.
NOW = dt.datetime.fromtimestamp(BEGAN_AT, dt.UTC).strftime("%Y-%m-%dT%H:%M")
#: An account whose clock stands still, so that every sandbox of it begins the same.
STANDING = Options(contacts=100, rate_limit=0, now=BEGAN_AT // 60 * 60)

#: Noon of the day before, unix seconds.
NOON = (BEGAN_AT // 86_400 - 1) * 86_400 + 43_200


@dataclass(frozen=True)
class Night:
    """One whole sync of the account of `start_sandbox`."""

    home: Path
    ran: Ran
    asked: list[dict[str, Any]]  # what the sandbox received


StartSandbox = Callable[..., Sandbox]
Command = Callable[..., Ran]


@pytest.fixture
def start_sandbox() -> Iterator[StartSandbox]:
    """Call it with command-line options; without a limit and with 100 contacts unless told otherwise."""
    with ExitStack() as stack:

        def start_one(*options: str) -> Sandbox:
            return Sandbox(
                stack.enter_context(spawned("--rate-limit", "0", "--contacts", "100", "--now", NOW, *options))
            )

        yield start_one


#: Well above what is promised (2 % 500s, 1 % resets, 0.5 % cut JSON, 1 % 502 pages, 0.5 % HTML with 200), so
#: that a few hundred requests meet every one of them.
FAULTS = {
    "500-before": 0.05,
    "reset": 0.03,
    "cut-json": 0.03,
    "502-html": 0.03,
    "html-200": 0.03,
    "429": 0.02,
    "stall": 0.02,
}
#: A key that stands nowhere by chance.
UNMISTAKABLE = "unmistakable-key-7d41c9"


@pytest.fixture(scope="session")
def calm_night(once: Once) -> Night:
    """The reads of an undisturbed night, which other nights are compared with. Don't write to its home."""
    return _read_night(once("calm", _live_calm_night))


@pytest.fixture(scope="session")
def rough_night(once: Once) -> Night:
    """A whole night of that account, with all faults, its own key and every log line. Don't write to its home."""
    return _read_night(once("rough", _live_rough_night))


_ACCOUNT = ("--rate-limit", "0", "--contacts", "100", "--now", NOW)


def _live_calm_night(folder: Path) -> None:
    with spawned(*_ACCOUNT) as url:
        _live_night(folder, url, "sync", "--reads-only", module="tests.pipelines.unrecorded")


def _live_rough_night(folder: Path) -> None:
    faults = [word for name, chance in FAULTS.items() for word in (f"--fault-{name}", str(chance))]
    with spawned(*_ACCOUNT, *faults, "--stall-seconds", "0.7", "--key", UNMISTAKABLE) as url:
        _live_night(folder, url, "sync", MARKETING_API_KEY=UNMISTAKABLE, MARKETING_LOG="DEBUG")


def _live_night(folder: Path, url: str, *words: str, **settings: str) -> None:
    home, service = folder / "home", Sandbox(url)
    ran = finish(start(home, service, *words, **settings))
    assert ran.code == 0, ran.text[-2000:]
    (folder / "night").write_bytes(pickle.dumps(Night(home, ran, service.asked())))


def _read_night(folder: Path) -> Night:
    night: Night = pickle.loads((folder / "night").read_bytes())
    return night


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A small account in a thread of this process, for tests that hardly ask it."""
    with serve(Options(contacts=100, rate_limit=0)) as url:
        yield Sandbox(url)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where a home may be; there is nothing yet."""
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of `command`, where `.env` and `accounts.toml` are looked for."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def command(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """The command line in this process: `command("sync", "--only", "lists", sandbox=sandbox,
    MARKETING_LOCK_SECONDS="1")`."""
    for name in [name for name in os.environ if name.startswith("MARKETING_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DAGSTER_HOME", "")  # the command sets it: it is put back afterwards
    umask, level = os.umask(0o077), logging.getLogger("urllib3").level

    def run(*words: str, sandbox: Sandbox | None = None, **settings: str) -> Ran:
        live = {"MARKETING_API_URL": sandbox.url, "MARKETING_API_KEY": KEY} if sandbox else {}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in ({"MARKETING_HOME": str(home)} | live | settings).items():
                patch.setenv(name, value)
            capsys.readouterr()
            try:
                code = cli.main(words)
            except SystemExit as end:
                code = int(end.code or 0)
        return Ran(code, *capsys.readouterr())

    yield run
    os.umask(umask)
    logging.getLogger("urllib3").setLevel(level)


@pytest.fixture
def unrecorded() -> Iterator[None]:
    """Syncs are not recorded in Dagster."""
    with not_recorded():
        yield


@pytest.fixture
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our clocks start at `NOON`: no day ends meanwhile."""
    monkeypatch.setattr("marketing_api.clock.unix_now", lambda: NOON)


@contextmanager
def no_report() -> Iterator[None]:
    """Runs write no report: drawing takes longer than reading. That of `rough_night` does."""
    with patch(
        "report.mail.write_report", lambda home, _: (published_path(home), SimpleNamespace(accounts=()))
    ):
        yield


@pytest.fixture(scope="session")
def dagster_history(once: Once) -> Path:
    """Dagster's folder with its databases, to be copied: creating them takes longer than most tests."""

    def make(folder: Path) -> None:
        from pipelines.dagster_internals import open_run_instance

        home = prepare_home(folder / "home")
        with dagster_home(home), open_run_instance(home):
            pass

    return once("history", make) / "home" / "dagster"


@pytest.fixture(scope="session")
def known_account(once: Once) -> Path:
    """A home that has read business, lists and contacts of the account of `service`; to be copied."""
    return once("known", _read_account) / "home"


def _read_account(folder: Path) -> None:
    home = prepare_home(folder / "home")
    with serve(STANDING) as url:
        settings = Settings(home, (Connection("main", url, Secret(KEY)),))
        with open_reader(
            settings, [SOURCE_ASSETS[name] for name in ("business", "lists", "contacts")]
        ) as reader:
            reader.begin_reading()
            reader.finish_reading()
            assert not reader.list_missing_reasons()
            reader.note_run("first", "nightly_sync")


@pytest.fixture
def service(home: Path, known_account: Path) -> Iterator[Sandbox]:
    """A sandbox of this test alone; what `home` knows of it is as of its start."""
    shutil.copytree(known_account, home)
    with serve(STANDING) as url:
        move_account(home, url)
        yield Sandbox(url)


@pytest.fixture
def known_night(home: Path, rough_night: Night) -> Iterator[Sandbox]:
    """A sandbox of which `home` has had a whole night: another one reads and builds little."""
    shutil.copytree(rough_night.home, home)
    with serve(STANDING) as url:
        move_account(home, url)
        yield Sandbox(url)


@pytest.fixture(scope="session")
def told(once: Once, rough_night: Night) -> Callable[[str], Told]:
    """Call it with a page: what its blocks printed, and the home that they left. Nobody writes to it
    afterwards."""
    from tests.pipelines.pages import carry_out

    def tell(page: str) -> Told:
        def make(folder: Path) -> None:
            (folder / "told").write_bytes(pickle.dumps(carry_out(page, rough_night, folder)))

        found: Told = pickle.loads((once(f"page-{page.replace('/', '-')}", make) / "told").read_bytes())
        return found

    return tell


class Alerts(BaseHTTPRequestHandler):
    """A chat service's webhook: keeps what is posted."""

    bodies: ClassVar[list[dict[str, Any]]] = []
    url: ClassVar[str]
    status: ClassVar[int] = 204

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def alerts() -> Iterator[type[Alerts]]:
    with HTTPServer(("127.0.0.1", 0), Alerts) as server:
        Alerts.bodies.clear()
        Alerts.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield Alerts
        server.shutdown()
