"""Opens a DuckDB file for as long as it is needed, waits while another process has it, and says who that is.

Belongs here: opening, locking, refusing files that are not ours or too new. Not here: which tables the file holds (`tables`),
what is done to them (`load`).

DuckDB's lock is a POSIX record lock: a process loses it as soon as it opens and closes the same file by any other means, so
nothing here or elsewhere may `open()` a warehouse file to look into it.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.errors import NotAWarehouse, NoWarehouse, WarehouseError, WarehouseLocked, WarehouseTooNew
from warehouse.version import check_version

#: Loads take seconds and the models' build less than a minute; who waits longer than this waits for something that hangs.
DEADLINE_S = 300.0
#: Seconds between two tries, at random, so that several who wait do not keep meeting.
_POLL = (0.02, 0.2)

_HELD = re.compile(r"lock is held in (?P<program>.+?) \(PID (?P<pid>\d+)\)")
_DAMAGED = ("not a valid DuckDB database", "Corrupt database", "Could not read enough bytes", "sqlite_scanner", "older development version")


@dataclass(frozen=True)
class Holder:
    """Who has the file open: `pid` is None when the system does not tell."""

    pid: int | None
    program: str

    def __str__(self) -> str:
        return f"{self.program} (process {self.pid})" if self.pid else self.program


OnWait = Callable[[Holder], None]


class _Held(Exception):
    """Not open yet: somebody has it."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder


@contextmanager
def connect(
    path: Path,
    *,
    deadline_s: float = DEADLINE_S,
    read_only: bool = False,
    memory_limit: str | None = None,
    threads: int | None = None,
    on_wait: OnWait | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The DuckDB file at `path`, open for the duration of the `with`; created when it is not there (unless `read_only`).

    Waits up to `deadline_s` seconds while another process has it open; `on_wait` is told who whenever that changes. Threads
    of this process share one DuckDB instance: one writer at a time (the same thread may enter again; its connections do not
    see each other's open transactions), readers join whoever is there and then get its memory limit and threads. Consume or
    drop Arrow readers before leaving: a half-read one keeps the file locked. What is not committed is rolled back.

    Raises WarehouseLocked, WarehouseTooNew, NotAWarehouse, NoWarehouse.
    """
    place = _place(path)
    config = _config(path, memory_limit, threads)
    connection = _wait_for(place, read_only, config, deadline_s, on_wait)
    try:
        check_version(connection, path)
        yield connection
    finally:
        place.leave(connection)


def read(
    path: Path,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    deadline_s: float = DEADLINE_S,
    on_wait: OnWait | None = None,
) -> pa.Table:
    """The rows of one query as an Arrow table; the file is closed again when it returns. Raises what `connect` raises."""
    with connect(path, deadline_s=deadline_s, read_only=True, on_wait=on_wait) as connection:
        return connection.sql(sql, params=params).to_arrow_table()


@dataclass
class _Place:
    """What this process has open at one path: `root` is the instance, the connections handed out are cursors of it."""

    path: Path
    changed: threading.Condition = field(default_factory=threading.Condition)
    root: duckdb.DuckDBPyConnection | None = None
    is_read_only: bool = False
    users: list[duckdb.DuckDBPyConnection] = field(default_factory=list)
    writers: list[duckdb.DuckDBPyConnection] = field(default_factory=list)  # of one thread, nested
    writing_thread: threading.Thread | None = None

    def enter(self, read_only: bool, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        """A connection, or _Held. Call it while holding `changed`."""
        me = threading.current_thread()
        if not read_only and self.writing_thread not in (None, me):
            raise _Held(self._ourselves(self.writing_thread))
        if not read_only and self.root is not None and self.is_read_only:
            raise _Held(self._ourselves(None))
        if self.root is None:
            self.root, self.is_read_only = _open(self.path, read_only, config), read_only
        connection = self.root.cursor()
        self.users.append(connection)
        if not read_only:
            self.writers.append(connection)
            self.writing_thread = me
        return connection

    def leave(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Close it, and the file with the last one."""
        with self.changed:
            connection.close()
            self.users = [user for user in self.users if user is not connection]
            self.writers = [writer for writer in self.writers if writer is not connection]
            if not self.writers:
                self.writing_thread = None
            if not self.users and self.root is not None:
                root, self.root = self.root, None
                root.close()
            self.changed.notify_all()

    @staticmethod
    def _ourselves(thread: threading.Thread | None) -> Holder:
        return Holder(os.getpid(), f"this program, {thread.name if thread else 'which reads it'}")


_places: dict[Path, _Place] = {}
_places_lock = threading.Lock()


def _place(path: Path) -> _Place:
    real = path.resolve()
    with _places_lock:
        return _places.setdefault(real, _Place(real))


def _wait_for(
    place: _Place, read_only: bool, config: dict[str, Any], deadline_s: float, on_wait: OnWait | None
) -> duckdb.DuckDBPyConnection:
    began = time.monotonic()
    told: Holder | None = None
    while True:
        with place.changed:
            try:
                return place.enter(read_only, config)
            except _Held as held:
                holder = held.holder
        left = began + deadline_s - time.monotonic()
        if left <= 0:
            raise WarehouseLocked(_locked(place.path, holder, deadline_s), holder=holder)
        if on_wait and holder != told:
            on_wait(holder)
            told = holder
        with place.changed:
            place.changed.wait(min(left, random.uniform(*_POLL)))  # noqa: S311 - not a secret


def _locked(path: Path, holder: Holder, deadline_s: float) -> str:
    return (
        f"{path} is in use by {holder}; waited {deadline_s:g} s for it. Let that finish or end it, then run again. "
        "To look at the data meanwhile, use the published copy, which is never locked"
    )


def _config(path: Path, memory_limit: str | None, threads: int | None) -> dict[str, Any]:
    config: dict[str, Any] = {
        "temp_directory": f"{path.resolve()}.tmp",  # inside the home: what does not fit into memory is personal data too
        "autoinstall_known_extensions": False,  # a wrong file must not start a download
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    if threads is not None:
        config["threads"] = threads
    return config


def _open(path: Path, read_only: bool, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    is_new = not path.exists()
    if is_new and read_only:
        raise NoWarehouse(f"there is no {path} yet: nothing has been synced")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        connection = duckdb.connect(str(path), read_only=read_only, config=config)
    except duckdb.Error as problem:
        raise _explained(path, problem) from problem
    if is_new:
        path.chmod(0o600)
    return connection


def _explained(path: Path, problem: duckdb.Error) -> Exception:
    """What DuckDB's message means for us."""
    text = str(problem)
    if "Could not set lock" in text:
        return _Held(_holder(text))
    if "different configuration than existing connections" in text:
        return _Held(Holder(os.getpid(), "this program, with other settings"))
    if "newer version of DuckDB" in text:
        return WarehouseTooNew(
            f"{path} was written by a newer DuckDB than the {duckdb.__version__} installed here: upgrade this installation "
            f"(or move the file away and run `marketing-sync rebuild`). DuckDB says: {text.splitlines()[0]}"
        )
    if any(sign in text for sign in _DAMAGED):
        return NotAWarehouse(
            f"{path} is not a whole DuckDB file: move it away and run `marketing-sync rebuild`, which needs no request. "
            f"DuckDB says: {text.splitlines()[0]}"
        )
    return WarehouseError(f"{path} cannot be opened: {text}")


def _holder(text: str) -> Holder:
    if (found := _HELD.search(text)) is None:
        return Holder(None, "another program")
    pid = int(found["pid"])
    return Holder(pid, _program(pid) or Path(found["program"]).name)


def _program(pid: int) -> str | None:
    """The program's name with its sub-command: never more of the command line, which may hold anything."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return None
    names = [Path(words[0]).name, *words[1:]]
    if names[0].startswith("python") and len(names) > 1:
        names = names[2:] if names[1] == "-m" else [Path(names[1]).name, *names[2:]] if not names[1].startswith("-") else names[:1]
    return " ".join([*names[:1], *(word for word in names[1:2] if re.fullmatch(r"[a-z][a-z-]*", word))]) or None
