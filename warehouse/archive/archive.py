"""The archive as the rest of the program sees it: record, seal, read back.

Sealing turns what was recorded into Parquet files, one per UTC day of the requests, with equal responses
stored by reference. A file appears whole; the ledger then takes it in and lets go of its requests in one
transaction. Whatever is interrupted is done by whoever opens the archive next. Not here: the ledger, how
files look (`sealed`)."""

import contextlib
import datetime as dt
import itertools
import logging
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import pyarrow as pa

from marketing_api.exchange import Exchange, Response, exceed_request_id
from warehouse.archive import disk, sealed
from warehouse.archive.compaction import Compaction
from warehouse.archive.ledger import AccountCall, Last, Ledger, all_recorded, month_of
from warehouse.archive.reader import Between, Reader, Reusable
from warehouse.archive.row import HEAD_SCHEMA, Digests, Row, row_of
from warehouse.archive.suppression import Suppression
from warehouse.errors import ArchiveDamaged, ArchiveError, ArchiveFull, NotArchived

log = logging.getLogger(__name__)

#: Goes up when a program of the version before could not read ledger or sealed files any more.
ARCHIVE_VERSION = 1

#: After so many bytes or requests what was recorded is sealed.
_FULL_BYTES, _FULL_ROWS = 32 << 20, 20_000


class Archive:
    """All requests of all accounts of one home, in the folder `root`. Safe for several threads, and for
    several processes that have it open at once. Opening seals what dead processes left. `checkpoints` is the
    folder of the tables as they were when earlier bodies went."""

    def __init__(self, root: Path, *, full_bytes: int = _FULL_BYTES, full_rows: int = _FULL_ROWS) -> None:
        self._root = disk.make_folder(root)
        self._limits = (full_bytes, full_rows)
        self._workspace = disk.Workspace(root / "tmp")
        self._workspace.sweep()
        self.ledger = Ledger(root)
        self._reader = Reader(root, self.ledger, self._workspace)
        self._suppression = Suppression(root)
        self.checkpoints = root / "checkpoints"
        self._lock = threading.Lock()
        self._size = self._count = 0  # of what this process has recorded since it last sealed
        self._is_closed = False
        self._recorded: dict[AccountCall, int] = {}  # the last whole response to each call, of this process
        with self.ledger.alone() as is_alone:
            if is_alone:
                self._seal_if_there_is_room()
        exceed_request_id(self._reader.last_id())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def holder(self) -> str:
        """Names this use of the archive, for as long as it lasts."""
        return self._workspace.folder().name

    def is_held(self, holder: str) -> bool:
        """Whether the use of that name lasts, in whatever process. Of those that ended before this one
        began."""
        return (self._root / "tmp" / holder).exists()

    def record(self, exchange: Exchange) -> Exchange:
        """Keep one request for ever, without people who asked to be forgotten; returns it as it is kept. When
        this returns, neither killing the process nor a power loss can lose it. A body in a spool file is
        compressed into a file of its own; the spool file is only touched where it names forgotten people.

        ArchiveFull when there is no room: then this request is not kept, and everything before is.
        ArchiveDamaged when the list of forgotten people cannot be read.
        """
        if self._is_closed:
            raise ArchiveError("the archive is closed")
        self.ledger.begin_recording()
        if forgotten := self._suppression.current():
            with disk.room_for(self._root):
                exchange = forgotten.exchange(exchange)
        if isinstance(exchange.body, Path):
            name = sealed.name_of(exchange.request_id, exchange.requested_at)
            row = row_of(exchange, sealed.digests_of(exchange.body, exchange.opened), name)
            packed = self._root / name
            sealed.pack(exchange.body, self._workspace.file(packed.name), packed)
            try:
                size = self.ledger.record(row, b"")
            except BaseException:
                packed.unlink(missing_ok=True)
                raise
        else:
            row = row_of(exchange, Digests.of(exchange.body, exchange.opened), None)
            size = self.ledger.record(row, exchange.body)
        if row.is_whole:
            self._recorded[AccountCall(row.account, row.question_key)] = row.request_id
        with self._lock:
            self._size, self._count = self._size + size, self._count + 1
            is_full = self._size >= self._limits[0] or self._count >= self._limits[1]
            if is_full:
                self._size = self._count = 0
        if is_full:
            self._seal_if_there_is_room()
        return exchange

    def seal(self) -> None:
        """Put everything that was recorded into Parquet files, that of other processes included. ArchiveFull:
        it stays in the ledger, readable."""
        for packed in self.ledger.run(self._seal):
            packed.unlink(missing_ok=True)

    def close(self) -> None:
        """Seal what this process recorded, and give up everything held. ArchiveFull when sealing failed:
        whoever opens the archive next does it."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self.ledger.is_recording:
                self.seal()
        finally:
            self.ledger.close()
            self._workspace.close()

    def responses(self, request_ids: Sequence[int]) -> Iterator[Response]:
        """The responses in the order of `request_ids`, those that are not sealed included, with flat memory.

        A body stored by reference is that of the earlier, equal response. A large body is a Path to a file
        that is gone once the next response is taken. NotArchived for an unknown id, ArchiveDamaged when a
        body is missing.
        """
        return self._reader.responses(request_ids)

    def rows(self, request_ids: Sequence[int]) -> Iterator[Row]:
        """The same without bodies, which need not be there."""
        return self._reader.rows(request_ids)

    def readable(self, request_ids: Iterable[int]) -> list[int]:
        """Those whose responses can be had. Slow: for what is left when some cannot."""
        found = []
        for request_id in request_ids:
            with contextlib.suppress(ArchiveDamaged, NotArchived):
                found += [response.request_id for response in self.responses([request_id])]
        return found

    def reusable(self, account: str, since: int, between: Between) -> Reusable:
        """The latest whole response to each call by `Call.key`: of request `since` or a later one, requested
        `between` the two moments. What this archive records later is added. A large body is a Path to a file
        that stays until `close`."""
        return Reusable(self._reader, account, self._reader.newest(account, since, between), self._recorded)

    def compact(
        self,
        now: dt.datetime,
        *,
        bodies_before: int = 0,
        rows_before: int = 0,
        needed: Collection[int] = (),
    ) -> None:
        """See `Compaction`. The caller sees to it that no other process does it, nor reads the files one by
        one."""
        Compaction(self._root, self.ledger, self._workspace, now, bodies_before, rows_before, needed).run()
        self._reader.forget_files()

    @property
    def first_month(self) -> str:
        """Of the oldest sealed file, like 2025-11; empty without one."""
        return month_of(next(iter(self.ledger.names()), ""))

    def exchanges(self, exclude: Collection[str] = ()) -> Iterator[tuple[str, pa.Table]]:
        """The sealed files but for `exclude`, oldest first: name (`date=2026-11-21/….parquet`) and rows
        without bodies."""
        for name in self.ledger.names():
            if name not in exclude:
                table = sealed.columns_or_none(self._root / "requests" / name)
                if table is not None:
                    yield name, table.cast(HEAD_SCHEMA)

    def _seal_if_there_is_room(self) -> None:
        try:
            self.seal()
        except (OSError, ArchiveFull) as problem:
            log.warning("requests are not sealed for now: %s", problem)

    def _seal(self, db: sqlite3.Connection) -> list[Path]:
        """Within a transaction, so that nobody records nor seals meanwhile. The large bodies whose rows refer
        to an equal one now."""
        self.ledger.catch_up(db)  # with files of an attempt that did not come to its end
        recorded, equal = all_recorded(db), list[Path]()
        rows = sorted((each.row for each in recorded.values()), key=_day_of)
        for day, group in itertools.groupby(rows, key=_day_of):
            own = list(group)
            calls = (AccountCall(row.account, row.question_key) for row in own if row.is_whole)
            referring = list(with_references(own, self.ledger.last(db, calls)))
            name = f"date={day}/{disk.new_name()}.parquet"
            self._write(
                self._root / "requests" / name,
                ((row, b"" if row.body_ref else recorded[row.request_id].body()) for row in referring),
            )
            self.ledger.take_in(db, name)
            bodies = {before.body_file for before in own} - {row.body_file for row in referring}
            equal += [self._root / body for body in bodies if body]
        if damaged := db.execute("delete from requests").rowcount:
            log.warning("%d requests were damaged before they were sealed, and are lost", damaged)
        return equal

    def _write(self, target: Path, rows: Iterable[tuple[Row, bytes]]) -> None:
        temporary = self._workspace.file(target.name)
        with disk.room_for(target):
            try:
                sealed.write(temporary, sealed.tables_of(rows))
                disk.move_into_place(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)


def _day_of(row: Row) -> dt.date:
    return row.requested_at.date()


def with_references(rows: Iterable[Row], last: dict[AccountCall, Last]) -> Iterator[Row]:
    """The rows in their order; a whole response with the payload of the last one to its call refers to that
    one's body.

    `last` are the responses before; it is kept up to date. A reference always leads to a row that has the
    body itself.
    """
    for row in rows:
        if not row.is_whole:
            yield row
            continue
        call = AccountCall(row.account, row.question_key)
        before = last.get(call)
        if before is not None and before.content_sha256 == row.content_sha256:
            yield msgspec.structs.replace(row, body_ref=before.body_id, body_file=None)
        else:
            last[call] = Last(row.content_sha256, row.request_id)
            yield row
