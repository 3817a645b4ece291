"""The outbox's file: an SQLite database that survives a kill and a power cut, its schema, clear
errors for a full or broken disk, resuming with its copy, and one sender at a time.

Every change is one transaction with synchronous=FULL: it is stored completely or not at all. Not
here: what the tables mean (`outbox`)."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import logging
import os
import shutil
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from home.door import sender_of
from home.exits import Incomplete, WrongUse
from home.versions import VERSIONS
from marketing_api.address import normal_form
from marketing_api.clock import SteadyClock
from warehouse.disk import no_folders_beside, set_aside
from warehouse.sql import load_statements

log = logging.getLogger(__name__)

VERSION = VERSIONS["outbox"]
_APPLICATION_ID = 0x6D73_6F62  # "msob": marks our file among SQLite files
# another process's transaction takes milliseconds, a push of 100,000 rows about a second
_BUSY_S = 30.0

_FOLDER = Path(__file__).parent
_SCHEMA, _VIEWS = (
    _FOLDER.joinpath(f"{name}.sql").read_text(encoding="utf-8") for name in ("schema", "views")
)
STATEMENTS = load_statements(_FOLDER / "statements.sql")


class OutboxError(Incomplete):
    """Base of all errors of the outbox, with one sentence that says what to do."""


class OutboxDamaged(OutboxError):
    """The file is damaged, or not an outbox."""


class OutboxTooNew(WrongUse, OutboxError):
    """Written by a newer version of this program."""


class OutboxTooOld(WrongUse, OutboxError):
    """Written before the first release."""


class OutboxHeld(OutboxError):
    """The outbox was restored, and does not have what was sent since its backup."""


class OutboxFull(OutboxError):
    """The disk is full. Earlier changes are stored, this one is not."""


class OutboxBusy(OutboxError):
    """Another process has not ended its transaction in time, or sends for the same account."""


class Store:
    """One connection for all threads of a process, which take turns. Raises OutboxError instead of
    errors of sqlite3."""

    def __init__(self, path: Path, *, clock: Callable[[], float] | None = None) -> None:
        self.path = path
        self._clock = clock or SteadyClock().seconds
        self._lock = threading.RLock()
        self._is_checked = self._is_changed = False
        self._under_way: Change | None = None
        with self._explain_errors():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if copy_of(path).exists() and not (path.exists() and path.stat().st_size):
                raise OutboxDamaged(describe_damage(path, "it is gone"))
            if path.is_dir():
                raise OutboxDamaged(describe_damage(path, "it is a folder"))
            no_folders_beside(path)
            # SQLite creates the files beside it with the same mode
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._connection.create_function(
                "normal_form", 1, lambda email: normal_form(email or ""), deterministic=True
            )
            try:
                self._prepare_file()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Update the copy first, if something was changed."""
        with self._lock:
            if self._is_changed:
                self._write_copy()
            self._connection.close()

    def check_pages(self) -> None:
        """Raises OutboxDamaged when a page or an index is damaged. Takes 6 s for a million
        items."""
        with self._lock, self._explain_errors():
            (found,) = self._connection.execute("pragma integrity_check(1)").fetchone()
            if found != "ok":
                raise OutboxDamaged(describe_damage(self.path, found))
            (revision,) = self._connection.execute("select value from revision").fetchone()
            if revision < _read_note(self.path):
                raise OutboxDamaged(
                    describe_damage(self.path, "changes of a process that was killed are missing")
                )

    def _write_copy(self) -> None:
        """Replaces a damaged copy. A copy that cannot be written now is written after the next
        change."""
        copy = copy_of(self.path)
        for is_last in (False, True):
            try:
                os.close(os.open(copy, os.O_RDWR | os.O_CREAT, 0o600))
                with contextlib.closing(sqlite3.connect(copy, timeout=_BUSY_S)) as target:
                    self._connection.backup(target)
                return
            except (OSError, sqlite3.Error) as error:
                is_damaged = isinstance(error, IsADirectoryError | sqlite3.DatabaseError)
                if is_last or not is_damaged or isinstance(error, sqlite3.OperationalError):
                    log.warning("the copy of the outbox is not up to date: %s", error)
                    return
                set_aside(copy)

    def fetch_rows(self, statement: str, **values: Any) -> list[Any]:
        with self._lock, self._explain_errors():
            found = self._connection.execute(STATEMENTS[statement], _encode_values(values))
            return found.fetchall()

    def iterate_rows(self, statement: str, **values: Any) -> Iterator[Any]:
        """The same, as of one moment, one at a time, for results that are too large for memory."""
        with self._explain_errors():
            yield from self._connection.execute(STATEMENTS[statement], _encode_values(values))

    @contextmanager
    def open_change(self) -> Iterator[Change]:
        """One transaction: it is committed when the context ends without an error. Inside another
        transaction it is a part of that one. Before the first transaction the file is checked."""
        with self._lock, self._explain_errors():
            if self._under_way is not None:
                yield self._under_way
                return
            if not self._is_checked:
                self.check_pages()
            self._is_checked = self._is_changed = True
            self._connection.execute("begin immediate")
            self._under_way = change = Change(self._connection, self._clock())
            try:
                yield change
                self._connection.execute("commit")
                _write_note(self.path, change.revision)
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
                raise
            finally:
                self._under_way = None

    def _prepare_file(self) -> None:
        connection = self._connection
        connection.row_factory = sqlite3.Row
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        version = self._read_version()
        if version > VERSION:
            raise OutboxTooNew(
                f"{self.path} was written by a newer version of marketing-sync: upgrade this "
                "installation"
            )
        if 0 < version < VERSION:
            raise OutboxTooOld(
                f"{self.path} was written before the first release: move it away to start a new "
                "one; what was sent is then only known from sync.writebacks"
            )
        if version == 0:
            self._is_checked = True
            self._make_tables()
            self._is_changed = False  # a new outbox has nothing that could be lost
        connection.executescript(_VIEWS)

    def _read_version(self) -> int:
        application = self._connection.execute("pragma application_id").fetchone()[0]
        version = int(self._connection.execute("pragma user_version").fetchone()[0])
        is_empty = self._connection.execute("select count(*) from sqlite_schema").fetchone()[0] == 0
        if application != _APPLICATION_ID and not (is_empty and version == 0):
            raise OutboxDamaged(f"{self.path} is not an outbox of marketing-sync: move it away")
        return version

    def _make_tables(self) -> None:
        with self.open_change():
            if self._read_version():
                return  # another process was faster
            for statement in _SCHEMA.split(";\n"):
                self._connection.execute(statement)
            self._connection.execute(f"pragma application_id = {_APPLICATION_ID}")
            self._connection.execute(f"pragma user_version = {VERSION}")

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _explain_error(error, self.path) from error
        except OSError as error:
            raise OutboxError(
                f"the outbox {self.path} cannot be used ({error.strerror})"
            ) from error


class Change:
    """A transaction. `revision`: of everything that it changes; 0: nothing yet."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self._connection = connection
        self.now = now
        self.revision = 0

    def run_statement(self, statement: str, **values: Any) -> sqlite3.Cursor:
        """Run a statement of `statements.sql`; `now` and `revision` are those of the
        transaction."""
        sql = STATEMENTS[statement]
        if ":revision" in sql and not self.revision:
            raised = self._connection.execute(
                "update revision set value = value + 1 returning value"
            )
            (self.revision,) = raised.fetchone()
        return self._connection.execute(
            sql, _encode_values(values) | {"now": self.now, "revision": self.revision}
        )


def _encode_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _encode_value(value) for name, value in values.items()}


def _encode_value(value: Any) -> str | int | float | None:
    """Collections as JSON."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, msgspec.Struct):
        return msgspec.json.encode(value).decode()
    collection = dict(value) if isinstance(value, Mapping) else list(value)
    return json.dumps(collection, ensure_ascii=False)


def _explain_error(error: sqlite3.Error, path: Path) -> OutboxError:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return OutboxFull(
            f"there is no space left for the outbox {path} ({text}): free some and run the command "
            "again; nothing is lost or sent twice"
        )
    if "locked" in text or "busy" in text:
        return OutboxBusy(
            f"the outbox {path} has been in use by another program for {_BUSY_S:g} s: end it, or "
            "try again later"
        )
    if isinstance(error, sqlite3.OperationalError) and (
        "readonly" in text or "unable to open" in text
    ):
        return OutboxError(f"the outbox {path} cannot be written ({text}): is it yours?")
    return OutboxDamaged(describe_damage(path, text))


def describe_damage(path: Path, text: str) -> str:
    error = f"the outbox {path} is damaged ({text}): nothing more is sent from it"
    if not copy_of(path).exists():
        return (
            f"{error}, and there is no copy. Move it away to start a new one; earlier pushes are "
            "then only known from sync.writebacks"
        )
    return (
        f"{error}. `marketing-sync rebuild` replaces it with its copy; activities that may have "
        "been sent since are looked up before they are sent again"
    )


def copy_of(path: Path) -> Path:
    """The file of the outbox's copy."""
    return path.with_name(f"{path.stem}.copy{path.suffix}")


def revision_note(path: Path) -> Path:
    """A file that also has the revision of the last change, because SQLite ignores damaged changes
    that a killed process left in its log."""
    return path.with_name(f"{path.stem}.revision")


def describe_hold(path: Path) -> Path:
    """A file that blocks sending from a restored outbox until a person has decided. It has the
    reason."""
    return path.with_name(f"{path.stem}.held")


def check_no_hold(path: Path) -> None:
    """Raises OutboxHeld."""
    if describe_hold(path).exists():
        raise OutboxHeld(describe_hold(path).read_text(encoding="utf-8"))


def _write_note(path: Path, revision: int) -> None:
    """Overwrites the note, which always has one size. Truncating the file first would take as long
    as the commit."""
    if revision:
        number = b"%020d" % revision
        with (
            contextlib.suppress(OSError),  # the note only reveals damage
            os.fdopen(
                os.open(revision_note(path), os.O_WRONLY | os.O_CREAT, 0o600), "wb", 0
            ) as note,
        ):
            note.write(b"%b %010d" % (number, zlib.crc32(number)))


def _read_note(path: Path) -> int:
    """0 when nothing is noted, or the note itself is damaged."""
    try:
        number, check = revision_note(path).read_bytes().split(b" ")
        return int(number) if zlib.crc32(number) == int(check) else 0
    except (OSError, ValueError):
        return 0


# ---- resuming with the copy of an outbox that is damaged or gone, so that nothing is sent twice


def restore_copy(path: Path, now: float, not_idempotent: Collection[str]) -> bool:
    """Replace a damaged outbox with its copy; returns False when there is no need to. The damaged
    file is set aside.

    Open items of the copy count as unknown. The next push looks for items of kinds that are
    `not_idempotent`, and rejects those that it cannot look for. Other items may be sent twice
    without harm. Raises OutboxDamaged when there is no copy."""
    if not (path.exists() or copy_of(path).exists()):
        return False
    try:
        with contextlib.closing(Store(path)) as store:
            store.check_pages()
        return False
    except OutboxDamaged as error:
        if not copy_of(path).exists():
            raise
        log.warning("%s", error)
    try:
        with contextlib.closing(Store(copy_of(path))) as copy:
            copy.check_pages()
    except OutboxDamaged as error:
        raise OutboxDamaged(
            f"the outbox {path} is damaged, and so is its copy ({error}): move both away to "
            "start empty. What was sent is then only known from sync.writebacks, and activities "
            "that are pushed again would arrive twice"
        ) from error
    temporary = path.with_name(f".{path.name}")
    Path(f"{temporary}-journal").unlink(missing_ok=True)
    shutil.copyfile(copy_of(path), temporary)
    temporary.chmod(0o600)
    _doubt_open_items(temporary, now, not_idempotent)
    for suffix in ("-wal", "-shm", ""):
        if (part := Path(f"{path}{suffix}")).exists():
            set_aside(part)
    revision_note(path).unlink(missing_ok=True)
    temporary.rename(path)
    return True


def hold_open_items(
    path: Path, made_at: dt.datetime, now: float, not_idempotent: Collection[str]
) -> None:
    """Mark an outbox that was restored from the backup of that time. Its open items count as
    unknown, and nothing is sent until a person decides."""
    describe_hold(path).write_text(
        f"nothing was sent: this outbox was restored from the backup of {made_at:%Y-%m-%d %H:%M} "
        "UTC and lacks later pushes, which could be sent twice. Run `marketing-sync sync` to read "
        "what arrived, then `marketing-sync restore --release` to allow pushes again",
        encoding="utf-8",
    )
    if path.exists():
        _doubt_open_items(path, now, not_idempotent)


def _doubt_open_items(path: Path, now: float, not_idempotent: Collection[str]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        change = Change(connection, now)
        change.run_statement("doubt_maybe_sent")
        change.run_statement("doubt_not_to_be_found", not_idempotent=not_idempotent)


# ---- one sender per home and account at a time: a locked file, which is unlocked when its process
# ends

_LOOK_S = 0.2


@contextmanager
def sender_lock(
    home: Path,
    account: str,
    *,
    wait_s: float = 0.0,
    on_wait: Callable[[str], object] = lambda holder: None,
) -> Iterator[None]:
    """Held during the context. `on_wait` is called once with the holder's name. Raises OutboxBusy
    after `wait_s` seconds."""
    path = sender_of(home, account)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OutboxError(
            f"{path} cannot be used ({error.strerror}): make it writable, or move it away"
        ) from error
    try:
        deadline = time.monotonic() + wait_s
        is_logged = False
        while holder := _take_lock(handle):
            if time.monotonic() >= deadline:
                raise OutboxBusy(
                    f"{holder} is sending for account {account}: wait for it to end, or stop it"
                )
            if not is_logged:
                on_wait(holder)
            is_logged = True
            time.sleep(_LOOK_S)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {Path(sys.argv[0]).name or 'python'}".encode(), 0)
        yield
    finally:
        os.close(handle)


def _take_lock(handle: int) -> str:
    """Take the lock; or who has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        process, _, name = os.pread(handle, 200, 0).decode(errors="replace").partition(" ")
        # without a name, the process has only just taken it
        return f"{name} (process {process})" if name else "another process"
