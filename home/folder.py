"""The home: the folder with everything that syncs keep, for the owner only, since it holds personal
data.

No file of a home contains the home's path, so a home can be moved, copied and restored.

A home of a newer program is refused; one of an earlier program is upgraded. Not here: how, and the
versions (`versions`), the content of the files (`warehouse`), the home's path (`settings`)."""

import errno
import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb

from home.door import open_tables, open_warehouse
from home.exits import HomeError
from home.settings import Settings
from home.versions import VERSIONS, check_not_newer, complete_tables, noted_versions
from warehouse.connection import DEADLINE_S
from warehouse.disk import RESTORING, Workspace, no_folder, sweep_home, write_file
from warehouse.schema import is_current
from warehouse.sql import fetch_rows

log = logging.getLogger(__name__)

_DAGSTER_YAML = Path(__file__).with_name("dagster.yaml")
#: How long work waits until people are forgotten.
_IN_USE_S = 600.0


def prepare_home(home: Path, lock_seconds: float = DEADLINE_S, *, completes: bool = True) -> Path:
    """Create the home and Dagster's folder in it, readable by the owner only, and remove files of
    killed processes; upgrade the home if it is of an earlier version.

    Raises HomeError, also if a newer version made the home; OSError if the disk is full; and what
    `versions.complete_tables` raises."""
    os.umask(0o077)
    dagster = home / "dagster"
    if (home / RESTORING).exists():
        raise HomeError(
            f"the restore of {home} is not complete: run `marketing-sync restore` again"
        )
    check_not_newer(home)
    try:
        dagster.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        sweep_home(home)
        probe = home / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another process may have removed it first
        if completes:
            if noted_versions(home) != VERSIONS:
                complete_tables(Settings(home, lock_seconds=lock_seconds))
            settings = no_folder(dagster / "dagster.yaml")
            if (
                not settings.exists() or settings.stat().st_size == 0
            ):  # changes that a person made stay
                write_file(settings, _DAGSTER_YAML.read_bytes())
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise HomeError(
            f"the home {home} cannot be written ({error.filename or home}: {error.strerror}): "
            f"change the owner of its files (sudo chown -R USER {home}), or set MARKETING_HOME to "
            "another folder"
        ) from None
    return home


@cache  # each step of a run may load its settings again
def note_running(home: Path, run_id: str) -> None:
    """Record that this process executes the run, for as long as it lives. The record is a lock of
    the system: it ends with the process, after the run's last event was stored."""
    _runs_folder(home, run_id).open_folder()


def list_running(home: Path) -> list[str]:
    """The runs that a process executes now, including those in other containers on this machine."""
    return _runs_folder(home).sweep_dead()


def _runs_folder(home: Path, run_id: str = "") -> Workspace:
    return Workspace(home / "tmp" / "runs", run_id)


@contextmanager
def open_for_reading(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """The warehouse, open for reading, with all tables of this version and times in UTC. Raises
    what `open_warehouse` and `prepare_home` raise."""
    with open_warehouse(settings, read_only=True) as connection:
        is_complete = is_current(connection)
    if not is_complete:
        prepare_home(settings.home, settings.lock_seconds)
        with open_tables(settings):
            pass
    with open_warehouse(settings, read_only=True) as connection:
        fetch_rows(connection, "set timezone = 'UTC'")
        yield connection


@contextmanager
def dagster_home(home: Path) -> Iterator[Path]:
    """The folder of Dagster's settings and history: `DAGSTER_HOME` if it is set, else in the home.
    Raises HomeError."""
    own = os.environ.get("DAGSTER_HOME", "")
    if own and not (Path(own).is_absolute() and Path(own).is_dir()):
        raise HomeError(
            f"DAGSTER_HOME={own} is not the absolute path of a folder: correct it, or unset it to "
            "use the home's own"
        )
    os.environ["DAGSTER_HOME"] = own or str(home / "dagster")
    try:
        yield Path(os.environ["DAGSTER_HOME"])
    finally:
        os.environ["DAGSTER_HOME"] = own


_alone: set[Path] = set()


@contextmanager
def in_use(home: Path, *, alone: bool = False, wait_s: float = _IN_USE_S) -> Iterator[None]:
    """Reading, building, publishing and pushing use the home at the same time. `alone`: no other
    process uses it meanwhile.

    Waits up to `wait_s`, then raises HomeError. It also raises HomeError if an erasure was
    interrupted."""
    if home in _alone:  # this process uses it alone
        yield
        return
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(no_folder(home / ".in-use"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        _lock_home(descriptor, home, wait_s, alone=alone)
        if not alone and _is_half_forgotten(home):
            raise HomeError(unfinished_erasure(home))
        if alone:
            _alone.add(home)
        yield
    finally:
        _alone.discard(home)
        os.close(descriptor)


def _lock_home(descriptor: int, home: Path, wait_s: float, *, alone: bool) -> None:
    ends = time.monotonic() + wait_s
    while True:
        try:
            return fcntl.flock(
                descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB
            )
        except BlockingIOError:
            if time.monotonic() >= ends:
                who = "another program" if alone else "an erasure of people"
                raise HomeError(
                    f"{who} is using the home {home}: wait until it has ended, and try again"
                ) from None
        time.sleep(0.1)


def work_list(home: Path) -> Path:
    """The file that lists people who are being forgotten, until their erasure is complete."""
    return home / "forgetting.json"


def unfinished_erasure(home: Path) -> str:
    """The message about an interrupted erasure; empty when there is none."""
    sentence = "an erasure of people is not finished: `marketing-sync forget --apply` resumes it"
    return sentence if work_list(home).exists() else ""


def _is_half_forgotten(home: Path) -> bool:
    """Whether the archive may have pseudonyms of people whose names are in the warehouse. Data that
    is loaded meanwhile would be there twice."""
    try:
        return not json.loads(work_list(home).read_bytes()).get("is_home_done")
    except FileNotFoundError:
        return False
    except ValueError:  # `forget` says that it is damaged
        return True
