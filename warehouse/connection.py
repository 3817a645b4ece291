"""Opens a DuckDB file for as long as it is needed, and waits while another process has it open.

Belongs here: opening, sharing within the process, waiting. Not here: what DuckDB's errors mean
(`duckdb_errors`), which tables the file holds (`tables`), what is done with them (`load`).

DuckDB's lock is a POSIX record lock. A process loses it as soon as it opens and closes the same
file in any other way. So no code may `open()` a warehouse file."""

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import duckdb

from warehouse import duckdb_errors
from warehouse.duckdb_errors import FileInUse
from warehouse.errors import Holder, NoWarehouse, WarehouseLocked
from warehouse.schema import check_version
from warehouse.sql import add_mask_addresses, add_normal_form, fetch_rows, quote_name, quote_text

#: Loads take seconds and building the models less than a minute. If we wait longer than this, the
#: other process hangs.
DEADLINE_S = 300.0
#: Enough for a million contacts; larger queries use a temporary file.
MEMORY_LIMIT = "400MB"
#: Seconds between two tries, drawn at random, so that waiting processes don't collide again and
#: again.
_POLL = (0.02, 0.2)
#: Taking turns is normal. A longer wait is reported.
_WORTH_REPORTING_S = 1.0


OnWait = Callable[[Holder], None]


class Waits(TypedDict, total=False):
    """How long to wait for a file, and how to report it, see `open_database`."""

    deadline_s: float
    on_wait: OnWait | None


@contextmanager
def open_database(
    path: Path,
    *,
    deadline_s: float = DEADLINE_S,
    read_only: bool = False,
    memory_limit: str | None = None,
    is_unshared: bool = False,
    on_wait: OnWait | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The DuckDB file at `path`, open for the duration of the `with`; created if it does not exist
    (unless `read_only`).

    Waits up to `deadline_s` seconds while another process has it open. After a second `on_wait` is
    called with the holder, and again if the holder changes. Threads of this process share one
    DuckDB instance. One thread at a time writes; the same thread may enter again, but its
    connections don't see each other's open transactions. Readers join the instance and use its
    memory limit. Consume or drop Arrow readers before leaving: an unfinished one keeps the file
    locked. Uncommitted changes are rolled back.

    `is_unshared`: a separate instance in memory, which has the file attached read-only, for
    settings and tables that no other connection may see. It waits until this process has closed the
    file.

    Raises WarehouseLocked, WarehouseTooNew, NotAWarehouse, NoWarehouse; WarehouseError if the disk
    is full."""
    real = path.resolve()
    place = _places.setdefault(real, _Place(real))
    config = {"memory_limit": memory_limit} if memory_limit else {}
    mode = _Mode(read_only or is_unshared, is_unshared, config)
    connection = _wait_for(place, mode, deadline_s, on_wait)
    try:
        check_version(connection, path)
        yield connection
    except duckdb.Error as error:
        known = duckdb_errors.explain_damage(path, error)
        if known is not None:
            raise known from error
        raise
    finally:
        place.leave_place(connection)


@contextmanager
def open_private(
    path: Path | None = None, *, read_only: bool = False, spill: Path | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A separate instance: in memory, or of a file that no load or model shares. DuckDB 1.5 can
    read the files that it makes. `spill`: a folder for queries that don't fit into memory."""
    limits = {"memory_limit": MEMORY_LIMIT, "temp_directory": str(spill)} if spill else {}
    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        # analysts' tools may be older; that version is supported until March 2027
        "storage_compatibility_version": "v1.5.0",
        **limits,
    }
    with duckdb.connect(str(path or ":memory:"), read_only=read_only, config=config) as connection:
        fetch_rows(connection, "set timezone = 'UTC'")
        yield connection


class _Mode(NamedTuple):
    """How a connection uses the file."""

    read_only: bool = False
    is_unshared: bool = False
    config: Mapping[str, Any] = {}


class _User(NamedTuple):
    """A connection that is in use."""

    connection: duckdb.DuckDBPyConnection
    thread: threading.Thread
    is_writer: bool


@dataclass
class _Place:
    """The connections of this process to one path. `root` is the instance, the others are cursors
    of it."""

    path: Path
    changed: threading.Condition = field(default_factory=threading.Condition)
    root: duckdb.DuckDBPyConnection | None = None
    mode: _Mode = field(default_factory=_Mode)  # of the root
    users: list[_User] = field(default_factory=list)
    waiting_writers: int = 0

    def enter_place(self, mode: _Mode) -> duckdb.DuckDBPyConnection:
        """A connection, or FileInUse. Call it while holding `changed`."""
        me = threading.current_thread()
        blocking = self._find_blocking(me, mode.read_only)
        if blocking is not None:
            raise FileInUse(Holder(os.getpid(), f"this program, {blocking.thread.name}"))
        if self.root is None:
            self.root = _open_file(self.path, mode)
            self.mode = mode
        elif mode.is_unshared or self.mode.is_unshared:
            raise FileInUse(Holder(os.getpid(), "this program"))
        connection = self.root.cursor()
        if mode.is_unshared:
            fetch_rows(connection, f"use {quote_name(self.path.stem)}")
        self.users.append(_User(connection, me, not mode.read_only))
        return connection

    def _find_blocking(self, me: threading.Thread, read_only: bool) -> _User | None:
        """The user of this process that must leave first."""
        if not read_only:
            writers = (user for user in self.users if user.is_writer and user.thread is not me)
            return next(iter(self.users) if self.mode.read_only else writers, None)
        is_inside = any(user.thread is me for user in self.users)
        if self.mode.read_only and self.waiting_writers and not is_inside:
            # otherwise readers that follow one another would keep writers out forever
            return next(iter(self.users), None)
        return None

    def leave_place(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Close it, and the file with the last one."""
        with self.changed:
            connection.close()
            self.users = [user for user in self.users if user.connection is not connection]
            if not self.users and self.root is not None:
                root = self.root
                self.root = None
                root.close()
            self.changed.notify_all()


#: One per file; `dict.setdefault` is atomic.
_places: dict[Path, _Place] = {}


def _wait_for(
    place: _Place, mode: _Mode, deadline_s: float, on_wait: OnWait | None
) -> duckdb.DuckDBPyConnection:
    began = time.monotonic()
    reported: Holder | None = None
    while True:
        with place.changed:
            try:
                return place.enter_place(mode)
            except FileInUse as in_use:
                holder = in_use.args[0]
            waited = time.monotonic() - began
            if waited >= deadline_s:
                raise WarehouseLocked(place.path, holder, deadline_s)
            place.waiting_writers += not mode.read_only
            poll_s = random.uniform(*_POLL)  # noqa: S311 (not a secret)
            try:  # until another user in this process leaves, or the time is up
                place.changed.wait(min(deadline_s - waited, poll_s))
            finally:
                place.waiting_writers -= not mode.read_only
        if on_wait and holder != reported and waited >= _WORTH_REPORTING_S:
            on_wait(holder)
            reported = holder


def _open_file(path: Path, mode: _Mode) -> duckdb.DuckDBPyConnection:
    is_new = not path.exists()
    if is_new and mode.read_only:
        raise NoWarehouse(
            f"there is no {path} yet: nothing has been synced; run `marketing-sync sync`"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    config = {
        **mode.config,
        # inside the home: temporary files hold personal data, too
        "temp_directory": f"{path}.tmp",
        "autoinstall_known_extensions": False,  # a wrong file must not start a download
    }
    try:
        if mode.is_unshared:
            connection = duckdb.connect(config=config)
            attached = f"{quote_text(str(path))} as {quote_name(path.stem)}"
            fetch_rows(connection, f"attach {attached} (read_only)")
        else:
            connection = duckdb.connect(str(path), read_only=mode.read_only, config=config)
        if not mode.read_only:
            add_normal_form(connection)
            add_mask_addresses(connection)
    except duckdb.Error as error:
        raise duckdb_errors.explain_unopened(path, error) from error
    if is_new:
        path.chmod(0o600)
    if not mode.read_only:
        # no other process has it open, so these are temporary files of a killed process
        shutil.rmtree(f"{path}.tmp", ignore_errors=True)
    return connection


def copy_database(connection: duckdb.DuckDBPyConnection, target: Path) -> None:
    """Write the current database to the new file `target`, in its own storage version. In DuckDB,
    unused blocks of a file keep the bytes of deleted rows; the copy doesn't have them."""
    here = "database_name = current_database()"
    sql = (
        "select database_name, rtrim(tags['storage_version'], '+') from duckdb_databases() where "
        f"{here}"
    )
    ((own, version),) = fetch_rows(connection, sql)
    fetch_rows(
        connection,
        f"attach {quote_text(str(target))} as copied (storage_version {quote_text(version)})",
    )
    fetch_rows(connection, f"copy from database {quote_name(own)} to copied")
    fetch_rows(connection, "detach copied")
