"""The ledger: what the archive knows in addition to its sealed files, in one SQLite database in WAL
mode.

Only the ledger has unsealed requests, the log of loads, and notes of unfinished runs. The ids in
each sealed file, and the last whole response to every call, follow from the files. Every change is
one transaction, and survives a power loss once it returns. Rows have checksums: a damaged ledger is
refused, and must be restored from a backup. Not here: when requests are sealed (`archive`)."""

import contextlib
import datetime as dt
import fcntl
import json
import logging
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from warehouse import disk
from warehouse.archive import sealed
from warehouse.archive.file_store import SEALED, Files
from warehouse.archive.row import Row
from warehouse.errors import ArchiveDamaged, ArchiveError, ArchiveFull, WarehouseTooNew
from warehouse.sql import load_statements

log = logging.getLogger(__name__)
T = TypeVar("T")
#: The log entry of a load: JSON values.
Event = dict[str, Any]

NAME = "ledger.sqlite"
_VERSION = 1
_SQL = load_statements(Path(__file__).with_suffix(".sql"))
_TABLES = ("requests", "loads", "unfinished", "files", "answers")
_COLUMNS = (
    *("request_id", "account", "question_key", "requested_at"),
    *("outcome", "bytes", "content_sha256", "body_ref"),
)
#: Seconds to wait for another process, which may be sealing.
_WAIT_S = 60.0
#: Bytes of SQLite's own log that are kept for the next transactions.
_LOG_BYTES = 8 << 20
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_ROOM_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode
_zstd = pa.Codec("zstd")


class AccountCall(NamedTuple):
    account: str
    question_key: str


class Last(NamedTuple):
    """The hash of the last whole response's payload, and the request whose row has its body."""

    content_sha256: str
    body_id: int


class Extent(NamedTuple):
    """A sealed file: its name below `requests`, the ids within it, and the time of its latest
    request."""

    name: str
    first_id: int
    last_id: int
    last_at: dt.datetime


class Recorded(NamedTuple):
    """A request that is not sealed yet."""

    row: Row
    packed: bytes
    size: int

    def unpack_body(self) -> bytes:
        """The body as received."""
        return bytes(_zstd.decompress(self.packed, self.size, asbytes=True)) if self.size else b""


class Ledger:
    """The ledger of the archive at `root`. Safe for several threads and processes."""

    def __init__(self, root: Path, files: Files) -> None:
        self._path = root / NAME
        self._files = files
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self._claim = os.open(root / "ledger.lock", os.O_CREAT | os.O_RDWR, 0o600)
        self.is_recording = False
        with contextlib.ExitStack() as opening:
            opening.callback(self.close)
            self.run_transaction(self.catch_up)
            opening.pop_all()

    def close(self) -> None:
        with self._lock:
            self._let_go()
            if self._claim >= 0:
                os.close(self._claim)
                self._claim = -1

    def run_transaction(
        self, work: Callable[[sqlite3.Connection], T], begin: str = "begin immediate"
    ) -> T:
        """A transaction; other writers wait for it. Raises ArchiveFull, and then changes
        nothing."""
        with self._lock:
            if self._db and self._db.in_transaction:  # the caller's transaction
                return work(self._db)
            try:
                return self._run_once(work, begin)
            except sqlite3.DatabaseError as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
                if code in _NO_ROOM_CODES:
                    raise ArchiveFull(self._path, str(error)) from error
                if code not in _DAMAGE_CODES:
                    raise ArchiveError(f"{self._path} cannot be used: {error}") from error
                raise ArchiveDamaged(
                    f"{self._path} is damaged ({error}): restore the last backup with "
                    "`marketing-sync restore`. Without one, move the file away and sync: what an "
                    "interrupted sync had received is requested again, and the tables cannot be "
                    "rebuilt from earlier responses"
                ) from error

    def run_read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """A read-only snapshot that blocks no writer."""
        return self.run_transaction(work, "begin")

    def _run_once(self, work: Callable[[sqlite3.Connection], T], begin: str) -> T:
        db = self._open_database()
        db.execute(begin)
        try:
            result = work(db)
            db.execute("commit")
            return result
        finally:
            if db.in_transaction:
                db.rollback()

    def _open_database(self) -> sqlite3.Connection:
        with contextlib.suppress(FileNotFoundError):
            if self._db and self._path.stat().st_ino == self._inode:
                return self._db
        self._let_go()
        disk.no_folders_beside(self._path)
        # opening and closing the file would release SQLite's locks
        with contextlib.suppress(FileExistsError):
            os.close(disk.create_file(disk.no_folder(self._path)))
        self._db = db = sqlite3.connect(
            self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )
        self._inode = self._path.stat().st_ino
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
        # so that free pages keep nothing about forgotten people
        db.execute("pragma secure_delete = on")
        db.execute(f"pragma journal_size_limit = {_LOG_BYTES}")
        db.execute("begin immediate")
        version = db.execute("pragma user_version").fetchone()[0]
        if version == 0:
            for name in _TABLES:
                db.execute(_SQL[name])
            db.execute(f"pragma user_version = {_VERSION}")
        db.execute("commit")
        if version > _VERSION:
            raise WarehouseTooNew(
                f"{self._path} is of a newer version of this program: use that one"
            )
        return db

    def _let_go(self) -> None:
        if self._db:
            self._db.close()
            self._db = None

    # -- processes that record

    def begin_recording(self) -> None:
        """Register this process as one that records, until `close`."""
        if not self.is_recording:
            fcntl.flock(self._claim, fcntl.LOCK_SH)
            self.is_recording = True

    @contextlib.contextmanager
    def hold_alone(self) -> Iterator[bool]:
        """Whether no other process records; none begins to until the context ends."""
        try:
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alone = True
        except BlockingIOError:
            is_alone = False
        try:
            yield is_alone
        finally:  # also if it was refused, since the attempt may have lost the lock
            fcntl.flock(self._claim, fcntl.LOCK_SH if self.is_recording else fcntl.LOCK_UN)

    # -- requests that are not sealed

    def record_request(self, row: Row, body: bytes) -> int:
        """Add a request; `body` is b"" if it is in a file. Returns the bytes that it takes."""
        head = _encode(row)
        packed = _zstd.compress(body, asbytes=True) if body else b""
        values = _add_checksum(row.request_id, head, packed, len(body))
        self.run_transaction(
            lambda db: db.execute("insert into requests values (?, ?, ?, ?, ?)", values)
        )
        return len(head) + len(packed)

    def find_recorded(self, request_ids: Collection[int] | None = None) -> dict[int, Recorded]:
        """Those of these requests that are in the ledger; without ids all of them, in the order of
        their ids."""
        return self.run_read(lambda db: recorded_in(db, request_ids))

    # -- sealed files

    def list_names(self) -> list[str]:
        """The sealed files that exist, month by month, oldest first."""
        found = (name.partition("/")[2] for name in self._files.list_names(SEALED))
        return sorted(found, key=lambda name: name.split("=")[1])

    def list_files(self) -> list[Extent]:
        """The sealed files that the ledger has added, in the order of their smallest ids."""
        sql = "select * from files order by first_id"
        rows = self.run_read(lambda db: [_check_row(row) for row in db.execute(sql)])
        return [
            Extent(name, first, last, dt.datetime.fromtimestamp(at / 1e6, dt.UTC))
            for name, first, last, at in rows
        ]

    def take_in(self, db: sqlite3.Connection, name: str) -> None:
        """Add a sealed file to the ledger, and remove its requests from it."""
        table = sealed.columns_or_none(self._files, name, _COLUMNS)
        if table is None:
            return
        ids = pc.min_max(table["request_id"]).as_py()
        last_at = pc.max(table["requested_at"]).cast(pa.int64()).as_py()
        values = _add_checksum(name, ids["min"], ids["max"], last_at)
        db.execute("insert or replace into files values (?, ?, ?, ?, ?)", values)
        whole = table.filter(sealed.are_whole(table))
        names = ("question_key", "account", "request_id", "content_sha256", "body_ref")
        answers = (
            _add_checksum(
                bytes.fromhex(key),
                account,
                id_,
                bytes.fromhex(content),
                id_ if ref is None else ref,
            )
            for key, account, id_, content, ref in zip(
                *(whole[name].to_pylist() for name in names), strict=True
            )
        )
        db.executemany(_SQL["upsert"], answers)
        db.executemany(
            "delete from requests where request_id = ?", zip(table["request_id"].to_pylist())
        )

    def replace_files(self, names: Iterable[str], name: str | None) -> None:
        """Replace these files by the file that has their rows. None: no row is left."""

        def replace_within(db: sqlite3.Connection) -> None:
            db.executemany("delete from files where name = ?", [(old,) for old in names])
            if name:
                self.take_in(db, name)

        self.run_transaction(replace_within)

    @staticmethod
    def find_last(db: sqlite3.Connection, calls: Iterable[AccountCall]) -> dict[AccountCall, Last]:
        """The last whole sealed response to each of these calls that has one."""
        sql = "select * from answers where question_key = ? and account = ?"
        found = {}
        for call in calls:
            for row in db.execute(sql, (bytes.fromhex(call.question_key), call.account)):
                *_, content, body_id = _check_row(row)
                found[call] = Last(content.hex(), body_id)
        return found

    def catch_up(self, db: sqlite3.Connection) -> None:
        """Add files that a dead process could not add; start again if files are gone."""
        known = {name for (name,) in db.execute("select name from files")}
        present = self.list_names()
        gone = known.difference(present)
        if gone:
            log.warning(
                "files are missing from the archive, the first is %s: its ledger is made of the "
                "others",
                min(gone),
            )
            db.execute("delete from files")
            db.execute("delete from answers")
            known = set()
        for name in present:
            if name not in known:
                self.take_in(db, name)
        if gone:  # a response whose body was in a missing file does not count
            db.execute(
                "delete from answers "
                "where not exists (select 1 from files where body_id between first_id and last_id)"
            )

    # -- loads

    def log_loads(self, *events: Mapping[str, Any]) -> None:
        """Add to the log. After ArchiveFull it is unchanged."""
        self.run_transaction(lambda db: _add_loads(db, map(msgspec.json.encode, events)))

    def list_loads(self, *, newest_first: bool = False) -> Iterator[Event]:
        """The log, in its order or reversed."""
        sign, order, after = ("<", "desc", 1 << 62) if newest_first else (">", "asc", 0)
        sql = f"select * from loads where number {sign} ? order by number {order} limit 500"
        # earlier years may not be needed
        while found := self.run_read(partial(_fetch_rows, sql, after)):
            for after, event in found:  # noqa: B007 (the last number of a page is where the next one begins)
                yield msgspec.json.decode(event, type=Event)

    def clear_loads(self) -> None:
        """Empty the log."""
        self.run_transaction(lambda db: db.execute("delete from loads"))

    # -- unfinished runs

    def find_unfinished(self) -> dict[str, tuple[int, frozenset[str]]]:
        """Holder → the first request of its run, and its assets."""
        rows = self.run_read(
            partial(_fetch_rows, "select * from unfinished where since >= ? order by since", 0)
        )
        return {holder: (since, frozenset(json.loads(assets))) for holder, since, assets in rows}

    def set_unfinished(self, holder: str, since: int, assets: Iterable[str]) -> None:
        """Note the assets of a run; without assets, the run is finished."""
        names = sorted(assets)

        def set_within(db: sqlite3.Connection) -> None:
            db.execute("delete from unfinished where holder = ?", [holder])
            if names:
                values = _add_checksum(holder, since, json.dumps(names))
                db.execute("insert into unfinished values (?, ?, ?, ?)", values)

        self.run_transaction(set_within)


def month_of(name: str) -> str:
    """The month of a sealed file, like 2026-11."""
    return name.partition("=")[2][:7]


def _fetch_rows(sql: str, after: int, db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return [_check_row(row) for row in db.execute(sql, [after])]


def recorded_in(
    db: sqlite3.Connection, request_ids: Collection[int] | None = None
) -> dict[int, Recorded]:
    """See Ledger.recorded."""
    which = "" if request_ids is None else "where request_id in (select value from json_each($ids))"
    ids = {"ids": json.dumps(list(request_ids or ()))}
    rows = db.execute(f"select * from requests {which} order by request_id", ids if which else {})
    return {
        id_: Recorded(_decode(head), packed, size)
        for id_, head, packed, size in map(_check_row, rows)
    }


def _add_loads(db: sqlite3.Connection, lines: Iterable[bytes]) -> None:
    number = db.execute("select coalesce(max(number), 0) from loads").fetchone()[0]
    values = (_add_checksum(number, line) for number, line in enumerate(lines, number + 1))
    db.executemany("insert into loads values (?, ?, ?)", values)


def _add_checksum(*values: Any) -> tuple[Any, ...]:
    crc = 0
    for value in values:
        crc = zlib.crc32(value if isinstance(value, bytes) else repr(value).encode(), crc)
    return (*values, crc)


def _check_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row's values. Raises sqlite3.DatabaseError if they are not those that were written."""
    if row != _add_checksum(*row[:-1]):
        raise sqlite3.DatabaseError("a row is damaged")
    return row[:-1]
