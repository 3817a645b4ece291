"""An unexpected error leaves its traceback in a file of the home, without keys, addresses or values."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from assets.sources import SOURCE_ASSETS
from home import logs
from home.failures import Unexpected
from home.folder import prepare_home
from home.logs import logging_to_home
from home.progress import begin_stage
from home.settings import Settings
from tests.fixtures import UNMISTAKABLE, Command
from tests.pipelines.leftovers import contents
from tests.pipelines.running import environment
from tests.pipelines.sandboxes import Sandbox
from warehouse.disk import make_folder

#: A command that meets everything that quotes values: a warning, a thread, a library's log, chained errors.
PLANTED = f"""
import logging, sys, threading, warnings
from marketing_sync import cli
from marketing_sync import commands

def planted(settings):
    local = "unmistakable" + "-local"
    warnings.warn("warned of {UNMISTAKABLE} and ann@example.com")
    thread = threading.Thread(target=int, args=("in a thread {UNMISTAKABLE} bob@example.com",))
    thread.start()
    thread.join()
    logging.getLogger("library").debug("GET /1/app/me.json?key={UNMISTAKABLE}&email=cid%2540example.com")
    try:
        int("first {UNMISTAKABLE} <dan@example.com>")
    except ValueError as first:
        raise RuntimeError("second {UNMISTAKABLE} eve@example.com") from first

from marketing_sync.commands import status
status.status = commands.declare_command(name="status")(planted)
sys.exit(cli.main(["status"]))
"""


def logged(home: Path) -> str:
    return "".join(path.read_text() for path in sorted((home / "logs").iterdir()))


@pytest.mark.parametrize("level", ["CRITICAL", "WARNING", "DEBUG"])
@pytest.mark.slow
def test_an_unexpected_error_leaves_its_traceback_without_keys_and_addresses(
    home: Path, tmp_path: Path, level: str
) -> None:
    prepare_home(home)
    settings = {
        "MARKETING_API_KEY": UNMISTAKABLE,
        "MARKETING_API_URL": "http://127.0.0.1:1/1",
        "MARKETING_LOG": level,
    }
    ran = subprocess.run(
        [sys.executable, "-c", PLANTED],
        cwd=tmp_path,
        env=environment(home, None, **settings),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    (path,) = (home / "logs").iterdir()
    assert (
        f"something unexpected happened: RuntimeError: second *** •••; logs/{path.name} of the "
        "home shows where" in ran.stderr
    )
    text = path.read_text()
    for part in (
        "ValueError: invalid literal",
        "first *** <•••>",
        "second *** •••",
        "warned of ***",
        "in a thread *** •••",
    ):
        assert part in text
    assert text.count("Traceback (most recent call last)") == 3, "both of the chain, and the thread's"
    assert "in planted" in text
    assert ("GET /1/app/me.json?key=***&email=•••" in text) == (level == "DEBUG")
    assert ("Traceback" in ran.stderr) == (level == "DEBUG")
    everything = (
        ran.stdout + ran.stderr + "".join(content.decode(errors="replace") for _, content in contents(home))
    )
    for word in (UNMISTAKABLE, "example.com", "unmistakable-local"):
        assert word not in everything
    assert str(home) not in text
    assert path.stat().st_mode & 0o077 == 0 == path.parent.stat().st_mode & 0o077


@pytest.mark.slow
def test_a_mistake_while_reading_is_named_with_its_kind_and_logged(
    command: Command, sandbox: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(ask: object) -> None:
        raise KeyError("contact_id")

    monkeypatch.setattr(type(SOURCE_ASSETS["users"]), "__setattr__", object.__setattr__)
    monkeypatch.setattr(SOURCE_ASSETS["users"], "function", mistaken)
    ran = command("sync", "--only", "users", sandbox=sandbox)
    assert ran.code == 1
    assert (
        "users, account main: something unexpected happened: KeyError: 'contact_id'; the newest file of "
        "the home's logs" in ran.out
    )
    (path,) = (home / "logs").iterdir()
    assert "in mistaken" in path.read_text()


def test_what_fails_unexpectedly_in_a_step_is_kept_by_dagster_without_its_values(home: Path) -> None:
    with logging_to_home(Settings(prepare_home(home)), "test"):
        with (
            pytest.raises(
                Unexpected, match=r"RuntimeError: no •••; logs/\S+ of the home shows where"
            ) as raised,
            begin_stage("publishing"),
        ):
            raise RuntimeError("no ann@example.com")
        assert raised.value.__suppress_context__, "Dagster would keep the text of what was raised first"
    assert "no •••" in logged(home)


def test_a_home_keeps_so_many_logs_of_each_command_and_of_so_many_bytes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_KEPT_FILES", 4)
    monkeypatch.setattr(logs, "_MOST_BYTES", 10_000)
    settings = Settings(prepare_home(home))
    folder = make_folder(home / "logs")
    for number in range(8):
        (folder / f"20260101T00000{number}Z-sync-{number}.log").write_text("earlier")
    (folder / "20250101T000000Z-rebuild-1.log").write_text("the only one of its command, and the oldest")
    with logging_to_home(settings, "sync"):
        for _ in range(500):
            logging.getLogger("library").info("x" * 100)
    kept = sorted(path.name for path in folder.iterdir())
    assert "20250101T000000Z-rebuild-1.log" in kept
    assert len([name for name in kept if "-sync-" in name]) <= 5, kept
    assert "20260101T000007Z-sync-7.log" in kept
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 5 * 10_000


def test_no_home_is_made_for_a_log_and_one_that_cannot_be_written_costs_nothing(
    command: Command, home: Path
) -> None:
    assert command("status").code == 0
    assert not home.exists()
    prepare_home(home)
    (home / "logs").write_text("in the way")
    ran = command("status")
    assert ran.code == 0
    assert "Traceback" not in ran.text
    settings = Settings(home / ("x" * 300))  # the system refuses to look, as into a home of another user
    with logging_to_home(settings, "status") as file:
        assert not file.is_open


def test_a_file_that_was_one_too_many_is_begun_anew(home: Path) -> None:
    with logging_to_home(Settings(prepare_home(home)), "ui") as file:
        logging.getLogger("library").warning("one")
        file.path.unlink()
        logging.getLogger("library").warning("two")
    assert logged(home).endswith("two\n")


def test_a_log_that_has_no_room_costs_the_log_only(tmp_path: Path) -> None:
    with logging_to_home(Settings(prepare_home(tmp_path / "home")), "sync") as file:
        logging.getLogger("sync").warning("while there is room")
        file.stream.close()
        file.stream = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115 (the handler closes it)
        logging.getLogger("sync").warning("when there is none")
    assert file not in logging.getLogger().handlers
