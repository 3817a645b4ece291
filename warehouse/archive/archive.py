"""The archive for the rest of the program: record, seal, read back.

Sealing turns recorded requests into Parquet files, one per UTC day of the requests, with equal
responses stored by reference. A file appears as a whole; then the ledger adds it and deletes its
requests in one transaction. If that is interrupted, the next opening of the archive completes it.
Not here: the ledger, the format of files (`sealed`)."""

import contextlib
import datetime as dt
import itertools
import logging
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from marketing_api.exchange import Exchange, exceed_request_id, new_request_id
from warehouse import disk
from warehouse.archive import sealed
from warehouse.archive.compaction import Compaction
from warehouse.archive.file_store import Files
from warehouse.archive.ledger import AccountCall, Last, Ledger, recorded_in
from warehouse.archive.reader import Between, Reader, Reusable
from warehouse.archive.row import Digests, Row, row_of
from warehouse.archive.suppression import load_forgotten
from warehouse.errors import ArchiveError, ArchiveFull
from warehouse.forgetting import Forgotten

log = logging.getLogger(__name__)

#: Bytes and requests after which recorded requests are sealed.
_FULL_BYTES = 32 << 20
_FULL_ROWS = 20_000


class Archive(contextlib.AbstractContextManager["Archive"]):
    """All requests of all accounts of one home, in the folder `root`. Safe for several threads, and
    for several processes that have it open at the same time. Opening it seals what dead processes
    left. `files` holds the sealed files, and checkpoints of the tables."""

    def __init__(
        self, root: Path, *, full_bytes: int = _FULL_BYTES, full_rows: int = _FULL_ROWS
    ) -> None:
        self._root = disk.make_folder(root)
        self._limits = (full_bytes, full_rows)
        self._workspace = disk.Workspace(root / "tmp")
        self._workspace.sweep_dead()
        self.files = Files(root)
        self.ledger = Ledger(root, self.files)
        self._reader = Reader(self.files, self.ledger, self._workspace)
        self.responses = self._reader.read_responses
        self._lock = threading.Lock()
        self._size = self._count = 0  # recorded by this process since it last sealed
        self._is_closed = False
        # the last whole response to each call in this process
        self._recorded: dict[AccountCall, int] = {}
        with contextlib.ExitStack() as opening:
            opening.callback(self.ledger.close)
            with self.ledger.hold_alone() as is_alone:
                if is_alone:
                    self._seal_if_there_is_room()
            exceed_request_id(self._reader.last_id())
            opening.pop_all()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def holder(self) -> str:
        """The name of this use of the archive."""
        return self._workspace.open_folder().name

    def is_in_use(self, holder: str) -> bool:
        """Whether the use with that name still lasts, in any process. Only for uses that began
        before this one."""
        return (self._root / "tmp" / holder).exists()

    def record_exchange(self, exchange: Exchange) -> Exchange:
        """Archive one request permanently, without forgotten people; returns it as archived. After
        this returns, neither a kill nor a power loss can lose it. A body in a spool file is
        compressed into its own file; the spool file is only changed if it names forgotten people.

        Raises ArchiveFull if the disk is full: then this request is not archived, but all earlier
        ones are. Raises ArchiveDamaged if the list of forgotten people cannot be read."""
        if self._is_closed:
            raise ArchiveError("the archive is closed")
        self.ledger.begin_recording()
        forgotten = load_forgotten(self._root)
        if forgotten:
            with disk.room_for(self._root):
                exchange = forgotten.cut_exchange(exchange)
        if isinstance(exchange.body, Path):
            name = sealed.name_of(exchange.request_id, exchange.requested_at)
            row = row_of(exchange, sealed.digests_of(exchange.body, exchange.opened), name)
            sealed.pack_body(exchange.body, self.files, name, self._workspace)
            try:
                size = self.ledger.record_request(row, b"")
            except BaseException:
                self.files.delete_files(name)
                raise
        else:
            row = row_of(exchange, Digests.of_body(exchange.body, exchange.opened), None)
            size = self.ledger.record_request(row, exchange.body)
        if row.is_whole:
            self._recorded[AccountCall(row.account, row.question_key)] = row.request_id
        with self._lock:
            self._size = self._size + size
            self._count = self._count + 1
            is_full = self._size >= self._limits[0] or self._count >= self._limits[1]
            if is_full:
                self._size = self._count = 0
        if is_full:
            self._seal_if_there_is_room()
        return exchange

    def seal_requests(self) -> None:
        """Write all recorded requests into Parquet files, including those of other processes. After
        ArchiveFull they stay in the ledger, readable."""
        self.files.delete_files(*self.ledger.run_transaction(self._seal_within))

    def close(self) -> None:
        """Seal what this process recorded, and release everything. Raises ArchiveFull if sealing
        failed; the next opening of the archive seals the rest."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self.ledger.is_recording:
                self.seal_requests()
        finally:
            self.ledger.close()
            self._workspace.close()

    def find_reusable(self, account: str, since: int, between: Between) -> Reusable:
        """The latest whole response to each call by `Call.key`: of request `since` or a later one,
        requested `between` the two moments. Responses that this archive records later are added. A
        large body is a Path to a file that stays until `close`."""
        return Reusable(
            self._reader, account, self._reader.find_newest(account, since, between), self._recorded
        )

    def compact_files(
        self,
        now: dt.datetime,
        *,
        bodies_before: int = 0,
        rows_before: int = 0,
        needed: Collection[int] = (),
    ) -> None:
        """See `Compaction`. The caller ensures that no other process compacts, or reads the files
        one by one."""
        where = (self._root, self.files, self.ledger, self._workspace)
        Compaction(*where, now, bodies_before, rows_before, needed).compact_files()
        self._reader.forget_files()

    def drop_bodies(self, forgotten: Forgotten, now: dt.datetime) -> None:
        """Drop every body, and the parameters of calls about forgotten people. Unfinished runs
        start from the beginning, and the log of loads becomes empty: the caller must have a
        checkpoint of all tables (`retention`).

        Raises ArchiveError while another process records, or ArchiveFull. In both cases it can be
        repeated."""
        with self.ledger.hold_alone() as is_alone:
            if not is_alone:
                raise ArchiveError(
                    f"another process is writing to {self._root}: end it, and try again"
                )
            self.seal_requests()
            where = (self._root, self.files, self.ledger, self._workspace)
            Compaction(
                *where, now, bodies_before=new_request_id(), forgotten=forgotten
            ).compact_files()
            self._reader.forget_files()
            for holder in self.ledger.find_unfinished():
                self.ledger.set_unfinished(holder, 0, ())
            self.ledger.clear_loads()

    def list_exchanges(self, exclude: Collection[str] = ()) -> Iterator[tuple[str, pa.Table]]:
        """The sealed files except `exclude`, oldest first: name (`date=2026-11-21/….parquet`) and
        rows without bodies."""
        for name in self.ledger.list_names():
            table = None if name in exclude else sealed.columns_or_none(self.files, name)
            if table is not None:
                yield name, table.cast(sealed.HEAD_SCHEMA)

    def _seal_if_there_is_room(self) -> None:
        try:
            self.seal_requests()
        except (OSError, ArchiveFull) as error:
            log.warning("requests are not sealed for now: %s", error)

    def _seal_within(self, db: sqlite3.Connection) -> list[str]:
        """Runs within a transaction, so that no other process records or seals meanwhile. Returns
        the large bodies whose rows now refer to an equal one."""
        self.ledger.catch_up(db)  # with files of an interrupted attempt
        recorded = recorded_in(db)
        equal = list[str]()
        rows = sorted((exchange.row for exchange in recorded.values()), key=_day_of)
        for day, group in itertools.groupby(rows, key=_day_of):
            own = list(group)
            calls = (AccountCall(row.account, row.question_key) for row in own if row.is_whole)
            referring = list(with_references(own, self.ledger.find_last(db, calls)))
            name = f"date={day}/{disk.new_name()}.parquet"
            bodies = (
                (row, b"" if row.body_ref else recorded[row.request_id].unpack_body())
                for row in referring
            )
            sealed.write_sealed(sealed.tables_of(bodies), self.files, name, self._workspace)
            self.ledger.take_in(db, name)
            referred = {before.body_file for before in own} - {row.body_file for row in referring}
            equal += filter(None, referred)
        return equal


def _day_of(row: Row) -> dt.date:
    return row.requested_at.date()


def with_references(rows: Iterable[Row], last: dict[AccountCall, Last]) -> Iterator[Row]:
    """The rows in their order. If a whole response has the same payload as the last one to its
    call, it refers to that body.

    `last` are the responses before; it is kept up to date. A reference always leads to a row that
    has the body itself."""
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
