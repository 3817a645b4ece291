"""The archive as the rest of the program sees it: record, seal, read back.

Sealing turns a journal into Parquet files: one per UTC day of its requests, with equal responses stored by
reference. Whatever is interrupted is done again by whoever opens the archive next: files appear whole, under
names that follow from the journal's, then the index takes them in, and only then the journal goes. Not here:
how journals look (`journal`), how files do (`sealed`)."""

import contextlib
import datetime as dt
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import pyarrow as pa

from marketing_api.exchange import Exchange, Response, exceed_request_id
from warehouse.archive import disk, sealed
from warehouse.archive.compaction import Compaction
from warehouse.archive.index import AccountCall, Index, Last, month_of
from warehouse.archive.journal import Journal, JournalView, frame_of, journals_in
from warehouse.archive.load_log import LoadLog
from warehouse.archive.reader import Between, Reader, Reusable
from warehouse.archive.row import HEAD_SCHEMA, Digests, Row, row_of
from warehouse.archive.suppression import Suppression
from warehouse.errors import ArchiveDamaged, ArchiveError, ArchiveFull, NotArchived

log = logging.getLogger(__name__)

#: Goes up when a program of the version before could not read journals, sealed files or the log of loads any
#: more.
ARCHIVE_VERSION = 1

#: A journal of this many bytes or rows is sealed while recording goes on in a new one.
_FULL_BYTES, _FULL_ROWS = 32 << 20, 20_000
#: Seconds between two syncs: with the time that one takes, less than one second's requests can be lost with
#: the power.
_SYNC_S = 0.5


class Archive:
    """All requests of all accounts of one home, in the folder `root`. Safe for several threads, and for
    several processes that have it open at once. Opening seals what dead processes left. `load_log` is written
    only while holding the warehouse's lock; `checkpoints` is their folder."""

    def __init__(self, root: Path, *, full_bytes: int = _FULL_BYTES, full_rows: int = _FULL_ROWS) -> None:
        self._root = disk.make_folder(root)
        self._limits = (full_bytes, full_rows)
        self._workspace = disk.Workspace(root / "tmp")
        self._index = Index(root / "index.sqlite", root / "requests")
        self._reader = Reader(root, self._index, self._workspace)
        self.load_log = LoadLog(root / "loads.jsonl")
        self._suppression = Suppression(root)
        self.checkpoints = root / "checkpoints"
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        self._full: deque[Journal] = deque()
        self._sealing = threading.Lock()
        self._syncer = threading.Thread(target=self._keep_durable, name="archive-sync", daemon=True)
        self._unsynced = threading.Event()
        self._closing = threading.Event()
        self._failure: OSError | None = None
        self._recorded: dict[AccountCall, int] = {}  # the last whole response to each call, of this process
        self._workspace.sweep()
        self._index.catch_up()
        self._adopt()
        exceed_request_id(self._reader.last_id())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, exchange: Exchange) -> Exchange:
        """Keep one request for ever, without people who asked to be forgotten; returns it as it is kept. When
        this returns, killing the process cannot lose it, and within a second nor can a power loss. A body in
        a spool file is compressed into a file of its own; the spool file is only touched where it names
        forgotten people.

        ArchiveFull when there is no room: then this request is not kept, and everything before is.
        ArchiveDamaged when the list of forgotten people cannot be read."""
        if forgotten := self._suppression.current():
            with disk.room_for(self._root):
                exchange = forgotten.exchange(exchange)
        if isinstance(exchange.body, Path):
            row = row_of(
                exchange,
                sealed.digests_of(exchange.body, exchange.opened),
                sealed.name_of(exchange.request_id, exchange.requested_at),
            )
            packed = self._root / str(row.body_file)
            sealed.pack(exchange.body, self._workspace.file(packed.name), packed)
            try:
                self._append(frame_of(row, b""))
            except BaseException:
                packed.unlink(missing_ok=True)
                raise
        else:
            row = row_of(exchange, Digests.of(exchange.body, exchange.opened), None)
            self._append(frame_of(row, exchange.body))
        if row.is_whole:
            self._recorded[AccountCall(row.account, row.question_key)] = row.request_id
        return exchange

    def flush(self) -> None:
        """Make everything recorded so far durable now."""
        with self._lock:
            journals = [*self._full, *([self._journal] if self._journal else [])]
        for journal in journals:
            journal.sync()

    def seal(self) -> None:
        """Put everything this process recorded into Parquet files. ArchiveFull: it stays in journals,
        readable."""
        with self._lock:
            self._retire_journal()
        self._seal_full()

    def close(self) -> None:
        """Seal, and give up everything held. ArchiveFull when sealing failed: whoever opens the archive next
        does it."""
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
            self._retire_journal()
        try:
            self._seal_full()
        finally:
            self._unsynced.set()
            if self._syncer.is_alive():
                self._syncer.join()
            for journal in self._full:
                journal.sync()
                journal.close()
            self._workspace.close()

    def responses(self, request_ids: Sequence[int]) -> Iterator[Response]:
        """The responses in the order of `request_ids`, those in journals of running processes included, with
        flat memory.

        A body stored by reference is that of the earlier, equal response. A large body is a Path to a file
        that is gone once the next response is taken. NotArchived for an unknown id, ArchiveDamaged when a
        body is missing."""
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
        self, now: dt.datetime, *, bodies_before: int = 0, rows_before: int = 0, needed: Collection[int] = ()
    ) -> None:
        """See `Compaction`. The caller sees to it that no other process does it, nor reads the files one by
        one."""
        Compaction(self._root, self._index, self._workspace, now, bodies_before, rows_before, needed).run()
        self._reader.forget_files()

    @property
    def first_month(self) -> str:
        """Of the oldest sealed file, like 2025-11; empty without one."""
        return month_of(next(iter(self._index.names()), ""))

    def exchanges(self, exclude: Collection[str] = ()) -> Iterator[tuple[str, pa.Table]]:
        """The sealed files but for `exclude`, oldest first: name (`date=2026-11-21/….parquet`) and rows
        without bodies."""
        for name in self._index.names():
            if (
                name not in exclude
                and (table := sealed.columns_or_none(self._root / "requests" / name)) is not None
            ):
                yield name, table.cast(HEAD_SCHEMA)

    def _append(self, frame: bytes) -> None:
        with self._lock:
            if self._closing.is_set():
                raise ArchiveError("the archive is closed")
            if self._failure:
                raise ArchiveError(
                    f"what was recorded cannot be made durable: {self._failure}"
                ) from self._failure
            if self._journal is None:
                if not self._syncer.is_alive():
                    self._syncer.start()
                folder = disk.make_folder(self._root / "journals")
                with disk.room_for(folder):
                    self._journal = Journal(folder)
            self._journal.append(frame)
            full_bytes, full_rows = self._limits
            if is_full := self._journal.size >= full_bytes or self._journal.rows >= full_rows:
                self._retire_journal()
        self._unsynced.set()
        if is_full:  # others go on in a new one meanwhile
            try:
                self._seal_full()
            except (OSError, ArchiveFull) as problem:
                log.warning("requests stay in the journal for now: %s", problem)

    def _retire_journal(self) -> None:
        if self._journal:
            self._full.append(self._journal)
            self._journal = None

    def _keep_durable(self) -> None:
        while not self._closing.is_set():
            self._unsynced.wait()
            self._unsynced.clear()
            try:
                self.flush()
            except OSError as problem:
                self._failure = problem
            self._closing.wait(_SYNC_S)

    def _seal_full(self) -> None:
        with self._sealing:
            while self._full:
                journal = self._full[0]
                self._seal_journal(journal.path)
                with self._lock:
                    self._full.popleft()
                journal.close()

    def _adopt(self) -> None:
        """Seal the journals of dead processes; those of running ones are theirs."""
        for path in journals_in(self._root):
            if (descriptor := disk.claim(path)) is None:
                continue
            try:
                self._seal_journal(path)
            except ArchiveFull as problem:
                log.warning("what an earlier run recorded stays in its journal for now: %s", problem)
            finally:
                os.close(descriptor)

    def _seal_journal(self, journal: Path) -> None:
        """Turn the journal, on which the caller has the claim, into files and remove it. ArchiveFull: it
        stays as it is."""
        view = JournalView(journal)
        view.refresh()
        if view.is_foreign:
            log.warning("%s is no journal of this version and is left alone", journal)
            return
        if view.unread:
            log.warning("%s holds %d bytes of requests that were not recorded whole", journal, view.unread)
        rows = sorted(
            (entry.row for entry in view.entries.values()),
            key=lambda row: (row.requested_at.date(), row.request_id),
        )
        for day, own in (
            (day, list(group))
            for day, group in itertools.groupby(rows, key=lambda row: row.requested_at.date())
        ):
            name = f"date={day}/{journal.stem}.parquet"
            with disk.exclusive(disk.make_folder(self._root / "requests")):  # see Compaction
                self._write(self._root / "requests" / name, own, view)
                self._index.add(name)
            if any(row.body_file for row in own):
                table = sealed.read_columns(self._root / "requests" / name, ("request_id", "body_ref"))
                refs = dict(zip(table["request_id"].to_pylist(), table["body_ref"].to_pylist(), strict=True))
                for row in own:  # the row refers to an earlier response: its own body is not needed
                    if row.body_file and refs.get(row.request_id) is not None:
                        (self._root / row.body_file).unlink(missing_ok=True)
        journal.unlink()
        disk.sync(journal.parent)

    def _write(self, target: Path, rows: list[Row], view: JournalView) -> None:
        """Nothing when somebody got as far as this before being interrupted."""
        with contextlib.suppress(ArchiveDamaged):
            if sealed.read_columns(target, ("request_id",)).num_rows:
                return
        last = self._index.last(AccountCall(row.account, row.question_key) for row in rows if row.is_whole)
        temporary = self._workspace.file(target.name)
        with disk.room_for(target):
            try:
                bodies = (
                    (row, b"" if row.body_ref else view.body(view.entries[row.request_id]))
                    for row in with_references(rows, last)
                )
                sealed.write(temporary, sealed.tables_of(bodies))
                disk.move_into_place(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)


def with_references(rows: Iterable[Row], last: dict[AccountCall, Last]) -> Iterator[Row]:
    """The rows in their order; a whole response with the payload of the last one to its call refers to that
    one's body.

    `last` are the responses before; it is kept up to date. A reference always leads to a row that has the
    body itself."""
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
