"""A derived index over the sealed files: which ids stand in which file, and the last whole response to every
call.

It is made from the Parquet files alone, always by `_add`; missing, damaged or outdated it is built again.
Every use opens it, under a lock file, for the moment that it takes: so nobody holds it open when it has to be
replaced."""

import contextlib
import datetime as dt
import json
import logging
import os
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.archive import disk, sealed
from warehouse.errors import ArchiveFull
from warehouse.sql import statements

log = logging.getLogger(__name__)
T = TypeVar("T")

_VERSION = 2
_SQL = statements(Path(__file__).with_suffix(".sql"))
_COLUMNS = (
    "request_id",
    "account",
    "question_key",
    "requested_at",
    "outcome",
    "bytes",
    "content_sha256",
    "body_ref",
)


class AccountCall(NamedTuple):
    account: str
    question_key: str


class Last(NamedTuple):
    """The payload's hash of the last whole response, and the request whose row has its body."""

    content_sha256: str
    body_id: int


class Extent(NamedTuple):
    """A sealed file: its name below `requests`, the ids within it, and the time of its latest request."""

    name: str
    first_id: int
    last_id: int
    last_at: dt.datetime


class Index:
    """The index at `path` over the files in `requests`."""

    def __init__(self, path: Path, requests: Path) -> None:
        self._path = disk.no_folder(path)
        self._lock = disk.no_folder(path.with_suffix(".lock"))
        self._requests = requests
        disk.make_folder(path.parent)
        self._run(lambda db: None)

    def names(self) -> list[str]:
        """The sealed files that exist, month by month, oldest first."""
        return sorted(
            (f"{path.parent.name}/{path.name}" for path in self._requests.glob("*=*/*.parquet")),
            key=lambda name: name.split("=")[1],
        )

    def catch_up(self) -> None:
        """Take in the files that a process sealed and did not live to index; begin anew when indexed files
        are gone."""
        self._run(self._catch_up)

    def add(self, name: str) -> None:
        """Take in a file that was sealed just now."""
        self._run(lambda db: self._add(db, name))

    def replace(self, names: Iterable[str], name: str | None) -> None:
        """Take in the file in whose rows are those of others, which go; None: no row is left."""

        def work(db: sqlite3.Connection) -> None:
            db.executemany("delete from files where name = ?", [(old,) for old in names])
            if name:
                self._add(db, name)

        self._run(work)

    def forget(self, name: str, request_ids: Collection[int]) -> None:
        """Before a file is written anew with these rows changed: it counts as not taken in, until `add`."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("pragma secure_delete = on")  # the keys are made of addresses
            db.execute("delete from files where name = ?", [name])
            db.execute(
                "delete from answers where request_id in (select value from json_each(?))",
                [json.dumps(list(request_ids))],
            )

        self._run(work)

    def forget_bodies(self, before: int, kept: Collection[int]) -> None:
        """Let no later response refer to bodies of requests before that one, but for those `kept`."""

        sql = "delete from answers where body_id < ? and body_id not in (select value from json_each(?))"
        self._run(lambda db: db.execute(sql, [before, json.dumps(list(kept))]))

    def files(self) -> list[Extent]:
        """All indexed files, in the order of their smallest ids."""
        rows = self._run(
            lambda db: [_whole(*row) for row in db.execute("select * from files order by first_id")]
        )
        return [
            Extent(name, first, last, dt.datetime.fromtimestamp(at / 1e6, dt.UTC))
            for name, first, last, at in rows
        ]

    def last(self, calls: Iterable[AccountCall]) -> dict[AccountCall, Last]:
        """The last whole responses among the sealed ones, of those calls that have any."""
        sql = "select * from answers where question_key = ? and account = ?"
        keys = {call: (bytes.fromhex(call.question_key), call.account) for call in calls}
        rows = self._run(
            lambda db: {call: _whole(*row) for call, key in keys.items() for row in db.execute(sql, key)}
        )
        return {call: Last(content.hex(), body_id) for call, (*_, content, body_id) in rows.items()}

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with disk.exclusive(self._lock):
            try:
                with self._connection() as db:
                    return work(db)
            except sqlite3.DatabaseError as problem:
                if "full" in str(problem):
                    raise ArchiveFull(self._path, str(problem)) from problem
                log.warning(
                    "the archive's index is not usable (%s): building it again from the files", problem
                )
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            try:
                with self._connection() as db:
                    return work(db)
            except sqlite3.OperationalError as problem:  # a new, small file cannot be written either
                raise ArchiveFull(self._path, str(problem)) from problem

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """One transaction; a new or outdated index is built first."""
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")  # it can be built again
            version = db.execute("pragma user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"version {version}")
            if version == 0:
                for sql in ("begin", _SQL["files"], _SQL["answers"], f"pragma user_version = {_VERSION}"):
                    db.execute(sql)
                self._catch_up(db)
                db.execute("commit")
            db.execute("begin")
            yield db
            db.execute("commit")

    def _catch_up(self, db: sqlite3.Connection) -> None:
        known = {name for (name,) in db.execute("select name from files")}
        present = self.names()
        if gone := known.difference(present):
            log.warning(
                "files are missing from the archive, the first is %s: building its index again", min(gone)
            )
            db.execute("delete from files")
            db.execute("delete from answers")
            known = set()
        for name in present:
            if name not in known:
                self._add(db, name)
        # a reference needs its row: a response whose body went with a missing file is as good as never given
        if gone:
            db.execute(
                "delete from answers where not exists (select 1 from files where body_id between first_id "
                "and last_id)"
            )

    def _add(self, db: sqlite3.Connection, name: str) -> None:
        if (table := sealed.columns_or_none(self._requests / name, _COLUMNS)) is None:
            return
        ids, times = (
            pc.min_max(table["request_id"]).as_py(),
            pc.max(table["requested_at"]).cast(pa.int64()).as_py(),
        )
        db.execute(
            "insert or replace into files values (?, ?, ?, ?, ?)",
            _checked(name, ids["min"], ids["max"], times),
        )
        whole = table.filter(sealed.are_whole(table))
        columns = (
            whole[name].to_pylist()
            for name in ("question_key", "account", "request_id", "content_sha256", "body_ref")
        )
        answers = (
            _checked(
                bytes.fromhex(key),
                account,
                request_id,
                bytes.fromhex(content),
                request_id if ref is None else ref,
            )
            for key, account, request_id, content, ref in zip(*columns, strict=True)
        )
        db.executemany(_SQL["upsert"], answers)


def month_of(name: str) -> str:
    """Of a sealed file, like 2026-11."""
    return name.partition("=")[2][:7]


def _checked(*values: Any) -> tuple[Any, ...]:
    return (*values, zlib.crc32(repr(values).encode()))


def _whole(*row: Any) -> tuple[Any, ...]:
    """The row's values. sqlite3.DatabaseError when they are not those that were written."""
    if row != _checked(*row[:-1]):
        raise sqlite3.DatabaseError("a row is damaged")
    return row[:-1]
