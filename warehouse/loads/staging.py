"""Reads the responses of a load into Arrow, table by table, before the warehouse is opened: parsing needs no
lock. Responses that are unchanged since they were loaded last are passed over: of those in the archive not
even the body is read. Not here: conversion (`arrow`), what becomes of the rows (`apply`)."""

import datetime as dt
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from marketing_api import parsing, validation
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.parsing import Rows
from marketing_api.records.fields import Record, Unread
from warehouse import sql
from warehouse.archive import sealed
from warehouse.archive.row import Digests, Row, call_of
from warehouse.loads.arrow import UNFIT, Converter, json_text
from warehouse.loads.shapes import Shapes
from warehouse.tables import EXTRA, Table

#: Records are converted as soon as so many wait: the fewer are alive, the less the garbage collector looks
#: through.
BATCH = 500
#: Rows up to which a table waits in memory instead of a file, and rows in one part of that file.
IN_MEMORY, ROW_GROUP = 60_000, 20_000
#: First digits of the digests of those responses about single contacts which are looked at for schema drift:
#: a quarter of them, the same ones whether or not unchanged ones are read again.
_LOOKED_AT = "0123"
#: Everything that decides which rows come of a payload.
_CODE = ("marketing_api", "marketing_api.operations", "marketing_api.records", "warehouse", "warehouse.loads")

#: (response, zone of the account, its local date of the request) → rows; `marketing_api.parsing.parse_rows`.
ParseRows = Callable[[Response, ZoneInfo, dt.date], Iterable[Rows]]


@dataclass(slots=True)
class ResponseHead:
    """One response of the load, without its body, and what was found out about it."""

    index: int
    request_id: int
    operation: str
    params: dict[str, str]
    requested_at: dt.datetime
    contact: int | None = None  # the one that it is about, where the tables declare it (`_contact_of`)
    payload: str | None = None  # of a response about a contact: the hash of what it says
    extent: tuple[int, int] | None = None  # of the same: (served, total) entries
    is_looked_at: bool = True
    flaw: str = ""  # why it is not whole after all
    entries: Counter[str] = field(default_factory=Counter)  # by table, readable or not
    unreadable: Counter[str] = field(default_factory=Counter)  # by table: entries, and collections left open

    @property
    def is_uncut(self) -> bool:
        """Whether it is about a contact, and shows all that the service has."""
        return self.extent is not None and self.extent[0] >= self.extent[1]


@dataclass(frozen=True, slots=True)
class Reject:
    """An entry that could not be read, of the response with that index; or, where its row `is_loaded`, a
    value of it."""

    table: str
    response: int
    reason: str
    raw: str  # JSON
    is_loaded: bool = False


@dataclass
class Staged:
    """The rows of a load by table: an Arrow table, or a Parquet file when they are many."""

    responses: list[ResponseHead] = field(default_factory=list)
    rows: dict[str, pa.Table | Path] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    rejects: list[Reject] = field(default_factory=list)
    shapes: dict[str, Shapes] = field(default_factory=dict)  # what the entries of each table are like
    with_extra: set[str] = field(default_factory=set)  # tables with a row that has unknown fields
    #: What the responses about a contact say, by contact; None: the next one has to be read.
    digests: dict[int, str | None] = field(default_factory=dict)
    #: Those of them that were not read: this has to be what was loaded last, for the load to be complete.
    assumed: dict[int, str] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        return any(isinstance(rows, Path) for rows in self.rows.values())

    @property
    def as_of(self) -> dt.datetime | None:
        return max((head.requested_at for head in self.responses), default=None)

    def discard(self) -> None:
        for rows in self.rows.values():
            if isinstance(rows, Path):
                rows.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class LastLoaded:
    """The response that was loaded of a contact last: its digest, and how many entries it had of how many."""

    digest: str
    extent: tuple[int, int]


def stage(
    heads: Sequence[ResponseHead],
    read: Callable[[Sequence[int]], Iterable[Response]],
    tables: Sequence[Table],
    zone: ZoneInfo,
    parse_rows: ParseRows,
    file: Callable[[str], Path],
    last: Mapping[int, LastLoaded] = MappingProxyType({}),
) -> Staged:
    """Read all responses once, but for those about a contact whose digest is that of the `last` one that was
    loaded. `read` has the responses to requests, in that order; `file` makes a path for a table that needs
    one."""
    staged = Staged(list(heads))
    _pass_over_unchanged(staged, reading_key(tuple(tables), str(zone)), last)
    stages = {table.record: _TableStage(table, staged, file) for table in tables}
    may_remove = any(table.marks_deleted for table in tables)
    left = [head for head in heads if head.contact not in staged.assumed]
    for head, response in zip(left, read([head.request_id for head in left]), strict=True):
        if head.contact is not None:
            head.extent = parsing.timeline_extent(response)
        if may_remove and not _is_whole(head, response):
            continue
        if head.is_looked_at and (parts := parsing.parts_served(response)):
            filled = next(record for record in response.call.operation.records if record in stages)
            stages[filled].shapes.look_around(head.operation, head.request_id, parts)
        for rows in parse_rows(response, zone, response.requested_at.astimezone(zone).date()):
            if rows.record in stages:
                stages[rows.record].add(head, rows)
    for each in stages.values():
        each.finish()
    for reject in staged.rejects:  # it is set aside anew with each response that has it
        if (contact := staged.responses[reject.response].contact) is not None:
            staged.digests[contact] = None
    return staged


def _is_whole(head: ResponseHead, response: Response) -> bool:
    """Whether a response that may prove rows to be gone can be read; one with a `flaw` proves nothing. It was
    judged before: by an earlier version, perhaps."""
    head.flaw = validation.flaw(response)
    if head.flaw:
        return False
    head.flaw = parsing.shortage(response)
    return True


def _pass_over_unchanged(staged: Staged, key: bytes, last: Mapping[int, LastLoaded]) -> None:
    """Note what responses say of their contacts, and of which contacts that is what was loaded of them
    last."""
    about = [(head, head.contact) for head in staged.responses if head.contact is not None]
    for head, contact in about:
        digest = None
        if head.payload is not None:
            digest = hashlib.blake2b(bytes.fromhex(head.payload), key=key, digest_size=16).hexdigest()
        head.is_looked_at = digest is None or digest[0] in _LOOKED_AT
        if staged.digests.setdefault(contact, digest) != digest:
            staged.digests[contact] = None
    staged.assumed = {
        contact: before.digest
        for contact, before in last.items()
        if staged.digests.get(contact) == before.digest
    }
    for head, contact in about:
        if contact in staged.assumed:
            head.extent = last[contact].extent


def _kept(raw: Any) -> str:
    """The entry as it is kept: of one that nothing can write, the archive has the text."""
    try:
        return json_text(raw)
    except ValueError as problem:
        return json_text(f"({problem}: see the response in the archive)")


class _TableStage:
    """The rows of one table: in memory up to a limit, then all of them in a file."""

    def __init__(self, table: Table, staged: Staged, file: Callable[[str], Path]) -> None:
        self._name = table.name
        self.shapes = staged.shapes[table.name] = Shapes(table)
        self._staged = staged
        self._new_file = file
        self._converter = Converter(table)
        self._waiting: list[tuple[Record, int]] = []
        self._batches: list[pa.RecordBatch] = []
        self._rows_kept = 0  # in `_batches`
        self._writer: pq.ParquetWriter | None = None
        staged.rows[table.name] = self._converter.schema.empty_table()

    def add(self, head: ResponseHead, rows: Rows) -> None:
        head.entries[self._name] += len(rows.records) + len(rows.rejected)
        head.unreadable[self._name] += len(rows.missing)
        self._reject(head, rows.rejected)
        self._reject(head, rows.flawed, is_loaded=True)
        if head.is_looked_at:
            self.shapes.look(head.operation, head.request_id, rows)
        self._waiting += [(record, head.index) for record in rows.records]
        if len(self._waiting) >= BATCH:
            self._convert()

    def _reject(self, head: ResponseHead, unread: Sequence[Unread], *, is_loaded: bool = False) -> None:
        if not is_loaded:
            head.unreadable[self._name] += len(unread)
        self._staged.rejects += [
            Reject(self._name, head.index, entry.reason, _kept(entry.raw), is_loaded) for entry in unread
        ]

    def finish(self) -> None:
        self._convert()
        if self._writer is None:
            self._staged.rows[self._name] = self._table()
        else:
            self._write(self._writer)
            self._writer.close()

    def _convert(self) -> None:
        chunk, self._waiting = self._waiting, []
        if not chunk:
            return
        first_part = self._staged.counts[self._name]
        try:
            batch = self._converter.batch(chunk, first_part)
        except UNFIT:
            chunk = list(self._fitting(chunk))
            batch = self._converter.batch(chunk, first_part)
        self._staged.counts[self._name] += batch.num_rows
        self.shapes.read_words(batch, lambda place: self._staged.responses[chunk[place][1]].request_id)
        if batch[EXTRA.name].null_count < batch.num_rows:
            self._staged.with_extra.add(self._name)
        self._batches.append(batch)
        self._rows_kept += batch.num_rows
        if self._writer is None and self._rows_kept >= IN_MEMORY:
            self._staged.rows[self._name] = path = self._new_file(f"{self._name}.parquet")
            self._writer = pq.ParquetWriter(path, self._converter.schema, compression="lz4")
        if self._writer is not None and self._rows_kept >= ROW_GROUP:
            self._write(self._writer)

    def _fitting(self, chunk: Iterable[tuple[Record, int]]) -> Iterator[tuple[Record, int]]:
        for record, response in chunk:
            fitted, reason = self._converter.fitted(record)
            if reason:
                unread = [Unread(record.model_dump(), reason)]
                self._reject(self._staged.responses[response], unread, is_loaded=fitted is not None)
            if fitted is not None:
                yield fitted, response

    def _table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, self._converter.schema)

    def _write(self, writer: pq.ParquetWriter) -> None:
        writer.write_table(self._table(), ROW_GROUP)
        self._batches, self._rows_kept = [], 0


def heads_of(found: Iterable[Row | Response], tables: Sequence[Table]) -> list[ResponseHead]:
    """Of the responses of a load, at hand or in the archive."""
    heads = []
    for index, each in enumerate(found):
        call = call_of(each) if isinstance(each, Row) else each.call
        head = ResponseHead(index, each.request_id, call.operation.name, call.params, each.requested_at)
        head.contact = _contact_of(call, tables)
        if head.contact is not None:
            head.payload = _digests_of(each).payload
        heads.append(head)
    return heads


def _digests_of(found: Row | Response) -> Digests:
    if isinstance(found, Row):
        return found.digests
    if isinstance(found.body, Path):
        return sealed.digests_of(found.body)
    return Digests.of(found.body, found.opened)


def _contact_of(call: Call, tables: Iterable[Table]) -> int | None:
    """The one contact that a response to the call is about, where one of the tables that it fills declares
    how it is named."""
    for table in tables:
        if table.load.contact_parameter and table.record in call.operation.records:
            wanted = call.params.get(table.load.contact_parameter, "")
            # that of a forgotten contact is negative
            return int(wanted) if wanted.removeprefix("-").isdecimal() else None
    return None


def last_loaded(
    connection: duckdb.DuckDBPyConnection, account: str, contacts: Iterable[int]
) -> dict[int, LastLoaded]:
    """What was loaded of these contacts last, where that is certain."""
    found = sql.rows(connection, sql.query("last_loaded"), {"account": account, "contacts": sorted(contacts)})
    return {contact: LastLoaded(digest, (served, total)) for contact, digest, served, total in found}


def are_current(connection: duckdb.DuckDBPyConnection, account: str, assumed: Mapping[int, str]) -> bool:
    """Whether these digests are what was loaded last: somebody else may have loaded since they were
    compared."""
    if not assumed:
        return True
    last = last_loaded(connection, account, assumed)
    return {contact: loaded.digest for contact, loaded in last.items()} == assumed


@functools.cache
def reading_key(tables: tuple[Table, ...], zone: str) -> bytes:
    """Another one wherever the same payload may become other rows: in another time zone, other tables, or by
    other code."""
    shapes = [
        (table.name, table.key, [(column.name, column.sql_type) for column in table.columns])
        for table in tables
    ]
    return hashlib.blake2b(repr((zone, shapes, _code())).encode(), digest_size=32).digest()


@functools.cache
def _code() -> str:
    digest = hashlib.blake2b(digest_size=16)
    for package in _CODE:
        for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()
