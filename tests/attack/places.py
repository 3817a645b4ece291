"""The places of this process where something can fail: counts them, or makes one fail.

A place is a kind of call (a write, a rename, a statement, a request …), the line of ours that it comes from,
and the how-manieth time. Naming the line makes a place the same one in the next run, whatever the threads do
in between. Nothing of the program knows of this: `install` wraps what Python offers, in a process that was
forked to be attacked. What DuckDB and SQLite write themselves is reached by their statements."""

import builtins
import errno
import http.client
import io
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow.parquet as pq

ROOT = f"{Path(__file__).parents[2]}/"
OURS = tuple(
    f"{ROOT}{package}/"
    for package in ("marketing_api", "warehouse", "assets", "home", "write_back", "upkeep", "pipelines")
)
#: Kinds of calls that change a file: a full disk refuses all of these, and nothing else.
CHANGING = ("write", "open", "name", "parquet", "sync")
DATABASES = ("sqlite", "duckdb")
#: A statement that changes nothing: a kill there is the same as one at the next call that does.
LOOK = "look"
#: The moments of a request.
WIRE = ("leaving", "sent", "answered")
_CHANGES = re.compile(
    r"(?:/\*.*?\*/|\s)*(insert|update|delete|create|drop|alter|commit|copy|attach|checkpoint|merge|replace|comment)",
    re.I | re.S,
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True, order=True)
class Place:
    kind: str
    site: str  # file:line of ours
    occurrence: int  # from 1

    def __str__(self) -> str:
        return f"{self.kind}@{self.site}#{self.occurrence}"

    @classmethod
    def read(cls, text: str) -> "Place":
        rest, _, occurrence = text.rpartition("#")
        kind, _, site = rest.partition("@")
        return cls(kind, site, int(occurrence))


@dataclass
class Places:
    """`fault`: kill, error (once), full (all writes from there on), torn (half a write); "" counts."""

    fault: str = ""
    at: Place | None = None
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    is_met: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meet(
        self,
        kind: str,
        failure: Callable[[], Exception],
        text: str = "",
        tear: Callable[[], object] = lambda: None,
    ) -> None:
        """Count one call; make it fail when it is the one. `tear` does half of it."""
        site = _site(text)
        if site is None:
            return
        changes = kind in CHANGING or _CHANGES.match(text) is not None
        kind = LOOK if kind in DATABASES and not changes else kind
        with self._lock:
            self.seen[kind, site] += 1
            is_it = self.at == Place(kind, site, self.seen[kind, site])
            was_met, self.is_met = self.is_met, self.is_met or is_it
        if is_it and self.fault in ("kill", "torn"):
            if self.fault == "torn":
                tear()
            os.kill(os.getpid(), signal.SIGKILL)
        if is_it or (was_met and self.fault == "full" and changes):
            raise failure()

    def save(self, path: Path) -> None:
        """Written past the wrappers."""
        rows = [[kind, site, count] for (kind, site), count in self.seen.items()]
        with _REAL_OPEN(path, "w") as file:
            json.dump({"is_met": self.is_met, "seen": rows}, file)


def _site(text: str) -> str | None:
    """The innermost line of ours that leads here; None when none does: then the call is the harness's."""
    frame = sys._getframe(2)
    found: Any = frame
    while found is not None:
        if found.f_code.co_filename.startswith(OURS):
            return f"{found.f_code.co_filename.removeprefix(ROOT)}:{found.f_lineno}"
        found = found.f_back
    return None


def _no_room() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def _sqlite_full() -> sqlite3.OperationalError:
    return sqlite3.OperationalError("database or disk is full")


def _duckdb_full() -> Exception:
    return cast(Exception, duckdb.IOException('IO Error: Could not write file "x": No space left on device'))


_REAL_OPEN = io.open
_REAL_WRITE = os.write


def install(places: Places) -> None:
    """Wrap everything, for the rest of this process."""
    _wrap_files(places)
    _wrap_sqlite(places)
    _wrap_duckdb(places)
    _wrap_requests(places)
    _before(subprocess, "Popen", places, "spawn", lambda: OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))


def _before(owner: Any, name: str, places: Places, kind: str, failure: Callable[[], Exception]) -> None:
    """Each call of `owner.name` is a place."""
    real = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        places.meet(kind, failure)
        return real(*args, **options)

    setattr(owner, name, wrapped)


# -- files


def _wrap_files(places: Places) -> None:
    for name in (
        "replace",
        "rename",
        "unlink",
        "remove",
        "mkdir",
        "rmdir",
        "link",
        "symlink",
        "chmod",
        "utime",
        "truncate",
        "ftruncate",
    ):
        _before(
            os,
            name,
            places,
            "name",
            _no_room if name in ("mkdir", "replace", "rename", "link", "symlink") else _broken,
        )
    for name in ("fsync", "fdatasync"):
        _before(os, name, places, "sync", _broken)
    for name in ("write_table", "write_batch", "close"):
        _before(pq.ParquetWriter, name, places, "parquet", _no_room)
    _before(os, "sendfile", places, "write", _no_room)
    _wrap_writes(places)
    _wrap_open(places)


def _wrap_writes(places: Places) -> None:
    real_pwrite = os.pwrite

    def write(descriptor: int, data: Any) -> int:
        if _is_file(descriptor):
            places.meet(
                "write", _no_room, tear=lambda: _REAL_WRITE(descriptor, memoryview(data)[: len(data) // 2])
            )
        return _REAL_WRITE(descriptor, data)

    def pwrite(descriptor: int, data: Any, offset: int) -> int:
        places.meet(
            "write",
            _no_room,
            tear=lambda: real_pwrite(descriptor, memoryview(data)[: len(data) // 2], offset),
        )
        return real_pwrite(descriptor, data, offset)

    os.write, os.pwrite = write, pwrite


def _is_file(descriptor: int) -> bool:
    return descriptor > 2 and stat.S_ISREG(os.fstat(descriptor).st_mode)


def _wrap_open(places: Places) -> None:
    real_open = os.open

    def open_descriptor(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & _WRITING:
            places.meet("open", _no_room)
        return real_open(path, flags, *args, **options)

    def open_file(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        *texts: Any,
        closefd: bool = True,
        opener: Any = None,
        **options: Any,
    ) -> Any:
        if not set(mode) & set("wax+") or file in (0, 1, 2):
            return _REAL_OPEN(file, mode, buffering, *texts, closefd=closefd, opener=opener, **options)
        if not isinstance(file, int) and opener is None:
            places.meet("open", _no_room)
        raw = _FailingFile(places, file, mode.replace("b", "").replace("t", ""), closefd, opener)
        return _dressed(raw, mode, buffering, *texts, **options)

    os.open = open_descriptor
    builtins.open = io.open = open_file  # type: ignore[assignment]


def _dressed(raw: io.FileIO, mode: str, buffering: int, *texts: Any, **options: Any) -> Any:
    """What `open` puts around a raw file."""
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    buffered: Any = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
    if "b" in mode:
        return buffered
    text = io.TextIOWrapper(buffered, *texts, line_buffering=buffering == 1, **options)
    text.mode = mode  # type: ignore[misc]
    return text


class _FailingFile(io.FileIO):
    def __init__(self, places: Places, file: Any, mode: str, closefd: bool, opener: Any) -> None:
        super().__init__(file, mode, closefd=closefd, opener=opener)
        self._places = places

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        if _is_file(self.fileno()):
            self._places.meet(
                "write", _no_room, tear=lambda: _REAL_WRITE(self.fileno(), view[: len(view) // 2])
            )
        return int(super().write(data) or 0)


# -- databases


def _wrap_sqlite(places: Places) -> None:
    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, *args: Any) -> Any:
            places.meet("sqlite", _sqlite_full, sql)
            return super().execute(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            places.meet("sqlite", _sqlite_full, sql)
            return super().executemany(sql, *args)

        def executescript(self, sql: str) -> Any:
            places.meet("sqlite", _sqlite_full, sql)
            return super().executescript(sql)

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *args: Any) -> Any:
            return self.cursor().execute(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            return self.cursor().executemany(sql, *args)

        def executescript(self, sql: str) -> Any:
            return self.cursor().executescript(sql)

        def commit(self) -> None:
            if self.in_transaction:
                places.meet("sqlite", _sqlite_full, "commit")
            super().commit()

        def __exit__(self, *error: Any) -> Any:
            if error[0] is None and self.in_transaction:
                places.meet("sqlite", _sqlite_full, "commit")
            return super().__exit__(*error)

    real = sqlite3.connect

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        places.meet("open", lambda: sqlite3.OperationalError("unable to open database file"))
        return cast(sqlite3.Connection, real(*args, **({"factory": Connection} | options)))

    sqlite3.connect = sqlite3.dbapi2.connect = connect  # type: ignore[assignment]


def _wrap_duckdb(places: Places) -> None:
    def wrap(name: str) -> None:
        real = getattr(duckdb.DuckDBPyConnection, name)

        def wrapped(self: Any, *args: Any, **options: Any) -> Any:
            text = args[0] if args and isinstance(args[0], str) else name
            places.meet("duckdb", _duckdb_full, text)
            return real(self, *args, **options)

        setattr(duckdb.DuckDBPyConnection, name, wrapped)

    for name in ("execute", "executemany", "sql", "query", "commit"):
        wrap(name)
    real_connect = duckdb.connect

    def connect(*args: Any, **options: Any) -> Any:
        places.meet("open", _duckdb_full)
        return real_connect(*args, **options)

    duckdb.connect = connect


# -- the wire


def _wrap_requests(places: Places) -> None:
    """Three moments: before a request leaves, when it has left, and when the head of its answer arrived."""
    real_put, real_get = http.client.HTTPConnection.putrequest, http.client.HTTPConnection.getresponse

    def putrequest(self: Any, *args: Any, **options: Any) -> Any:
        places.meet("leaving", ConnectionResetError)
        return real_put(self, *args, **options)

    def getresponse(self: Any) -> Any:
        places.meet("sent", ConnectionResetError)
        answer = real_get(self)
        places.meet("answered", ConnectionResetError)
        return answer

    http.client.HTTPConnection.putrequest = putrequest  # type: ignore[method-assign]
    http.client.HTTPConnection.getresponse = getresponse  # type: ignore[method-assign]
