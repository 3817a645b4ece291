"""Reads the responses of a load into Arrow, table by table, before the warehouse is opened: parsing
needs no lock. Not here: what is done with the rows (`apply`)."""

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from marketing_api import parsing, validation
from marketing_api.address import normal_form
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.parsing import Rows
from marketing_api.records.fields import Record, Unread
from warehouse.arrow_types import arrow_fields, arrow_type
from warehouse.loads.shapes import Shapes
from warehouse.tables import EMAIL, EMAIL_NORMALIZED, EXTRA, Column, Table

#: Records in a batch. They are converted soon, so that the garbage collector has few objects to
#: check.
BATCH = 500
#: A table with more rows than this is written to a file; and the rows in one part of that file.
IN_MEMORY = 60_000
ROW_GROUP = 20_000

#: (response, zone of the account, its local date of the request) → rows;
#: `marketing_api.parsing.parse_rows`.
ParseRows = Callable[[Response, ZoneInfo, dt.date], Iterable[Rows]]


@dataclass(slots=True)
class ResponseHead:
    """One response of the load, without its body, with the facts about it."""

    index: int
    request_id: int
    operation: str
    params: dict[str, str]
    requested_at: dt.datetime
    # the contact that it is about, if the tables declare it (`_contact_of`)
    contact: int | None = None
    extent: tuple[int, int] | None = None  # of a response about a contact: (served, total) entries
    flaw: str = ""  # why it is not whole after all
    counts_nothing: bool = False  # whether it is a listing that states a count of 0
    entries: Counter[str] = field(default_factory=Counter)  # by table, readable or not
    # by table: entries, and collections left open
    unreadable: Counter[str] = field(default_factory=Counter)

    @property
    def is_uncut(self) -> bool:
        """Whether it is about a contact, and shows everything that the service has."""
        return self.extent is not None and self.extent[0] >= self.extent[1]


@dataclass(frozen=True, slots=True)
class Reject:
    """An entry that could not be read, in the response with that index; or, if its row `is_loaded`,
    one of its values."""

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
    cut: int = 0  # entries about people who asked to be forgotten
    # facts about the entries of each table
    shapes: dict[str, Shapes] = field(default_factory=dict)
    with_extra: set[str] = field(default_factory=set)  # tables with a row that has unknown fields

    @property
    def is_large(self) -> bool:
        return any(isinstance(rows, Path) for rows in self.rows.values())

    @property
    def as_of(self) -> dt.datetime | None:
        return max((head.requested_at for head in self.responses), default=None)

    def discard_files(self) -> None:
        for rows in self.rows.values():
            if isinstance(rows, Path):
                rows.unlink(missing_ok=True)


def stage_responses(
    responses: Iterable[Response],
    tables: Sequence[Table],
    zone: ZoneInfo,
    parse_rows: ParseRows,
    file: Callable[[str], Path],
) -> Staged:
    """Read each response once. `file` returns a path for a table that needs one."""
    staged = Staged()
    stages = {table.record: _TableStage(table, staged, file) for table in tables}
    may_remove = any(table.marks_deleted for table in tables)
    for response in responses:
        head = _make_head(len(staged.responses), response, tables)
        staged.responses.append(head)
        if head.contact is not None:
            head.extent = parsing.timeline_extent(response)
        if may_remove and not _is_whole(head, response):
            continue
        parsed = parse_rows(response, zone, response.requested_at.astimezone(zone).date())
        _take_response(head, response, parsed, stages)
    for stage in stages.values():
        stage.finish_table()
    return staged


def _take_response(
    head: ResponseHead,
    response: Response,
    parsed: Iterable[Rows],
    stages: Mapping[type[Record], "_TableStage"],
) -> None:
    """Add the rows of a response to their tables. The facts about members around its entries go to
    the first table that it fills."""
    parts = parsing.parts_served(response)
    if parts:
        filled = next(record for record in response.call.operation.records if record in stages)
        stages[filled].shapes.look_around(head.operation, head.request_id, parts)
    for rows in parsed:
        if rows.record in stages:
            stages[rows.record].add_rows(head, rows)


def _is_whole(head: ResponseHead, response: Response) -> bool:
    """Whether a response that may prove rows to be gone can be read; one with a `flaw` proves
    nothing. An earlier version may have judged it differently."""
    head.flaw = validation.find_flaw(response)
    if head.flaw:
        return False
    head.flaw = parsing.find_shortage(response)
    head.counts_nothing = (
        response.call.operation.is_listing and parsing.service_count(response) == 0
    )
    return True


def _encode_entry(raw: Any) -> str:
    """The entry as JSON; a reference to the archive where it can't be encoded."""
    try:
        return json_text(raw)
    except ValueError as error:
        return json_text(f"({error}: see the response in the archive)")


#: In addition to the record's columns: the index of the row's response, its place among all rows of
#: the load, a bit for each column that its response knows, and the hash of a listing's entry.
RESPONSE = "_response"
PART = "_part"
KNOWN = "_known"
ENTRY_HASH = "_entry_hash"

#: Conversions of values before Arrow takes them.
Prepare = Callable[[Any], Any]

_CENTS = Decimal("0.0001")
#: Errors of the conversion of a value that does not fit its column.
UNFIT = (pa.ArrowException, ArithmeticError, ValueError, TypeError)


_encoder = msgspec.json.Encoder(order="sorted")


def json_text(value: Any) -> str:
    """JSON with sorted keys, so that equal values are equal text. Raises ValueError if it is nested
    too deeply."""
    try:
        try:
            return _encoder.encode(value).decode()
        except (ValueError, TypeError, OverflowError):  # lone surrogates, numbers beyond 64 bits
            return (
                json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
                .encode("utf-8", "replace")
                .decode()
            )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def entry_hash(record: Record) -> str:
    """Hash of an entire entry, which shows whether it changed since its detail was requested (32
    hex digits)."""
    encoded = {name: getattr(record, name) for name in sorted(record.model_fields_set)}
    return hashlib.blake2b(json_text(encoded).encode(), digest_size=16).hexdigest()


_PREPARED: dict[str, Prepare] = {
    "JSON": json_text,
    "DECIMAL(18,4)": lambda value: value.quantize(_CENTS),
}


def _find_source(column: Column) -> tuple[str, Prepare | None]:
    """The record's field that fills the column, and the conversion of its values."""
    if column.name == EMAIL_NORMALIZED:
        return EMAIL, lambda address: normal_form(address) or None
    return column.name, _PREPARED.get(column.sql_type)


class Converter:
    """Turns records of one table into Arrow batches."""

    def __init__(self, table: Table) -> None:
        self.schema = pa.schema(
            [
                *arrow_fields((*table.record_columns, EXTRA)),
                pa.field(RESPONSE, pa.int32()),
                pa.field(PART, pa.int64()),
                pa.field(KNOWN, pa.uint64()),
                pa.field(ENTRY_HASH, pa.string()),
            ]
        )
        self._table = table
        self._columns = [
            (column.name, *_find_source(column), arrow_type(column))
            for column in table.record_columns
        ]
        fields = [field for _, field, *_ in self._columns]
        self._names = frozenset(fields)
        self._mask = cache(
            lambda known: sum(1 << bit for bit, field in enumerate(fields) if field in known)
        )

    def convert_batch(self, chunk: Sequence[tuple[Record, int]], first_part: int) -> pa.RecordBatch:
        """Records, each with its response, as one batch. Raises ValueError or an ArrowException if
        a value does not fit its column."""
        records = [record for record, _ in chunk]
        values = [record.__dict__ for record, _ in chunk]
        extras = [record.__pydantic_extra__ or None for record in records]
        arrays = [self._convert_column(values, *column) for column in self._columns]
        arrays += [
            pa.array([extra and json_text(extra) for extra in extras], pa.string()),
            pa.array([response for _, response in chunk], pa.int32()),
            pa.array(range(first_part, first_part + len(records)), pa.int64()),
            pa.array(map(self._known_fields, records), pa.uint64()),
            pa.array(
                map(entry_hash, records) if self._table.is_composed else [None] * len(records),
                pa.string(),
            ),
        ]
        return pa.record_batch(arrays, schema=self.schema)

    def fit_record(self, record: Record) -> tuple[Record | None, str]:
        """The record without values that do not fit their columns, and why; None if one of them is
        part of the key. Slow: only for batches that failed."""
        faults: dict[str, None] = {}
        for column in self._columns:
            try:
                self._convert_column([record.__dict__], *column)
            except UNFIT:
                faults[column[1]] = None
        reason = f"{', '.join(faults)}: missing, or too large for the column" if faults else ""
        return None if faults.keys() & set(self._table.key) else record.model_copy(
            update=faults
        ), reason

    def _convert_column(
        self,
        values: list[dict[str, Any]],
        name: str,
        field: str,
        prepare: Prepare | None,
        arrow_type: pa.DataType,
    ) -> pa.Array:
        column = [value[field] for value in values]
        if prepare is not None:
            column = [None if value is None else prepare(value) for value in column]
        array = pa.array(column, arrow_type)
        if array.null_count and name in self._table.key:
            raise ValueError(f"{name}, which identifies the row, is missing")
        return array

    def _known_fields(self, record: Record) -> int:
        """If a row comes from a single operation, a missing field is empty."""
        if not self._table.is_partial:
            return self._mask(self._names)
        return self._mask(self._names & record.__pydantic_fields_set__)


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

    def add_rows(self, head: ResponseHead, rows: Rows) -> None:
        head.entries[self._name] += len(rows.records) + len(rows.rejected)
        head.unreadable[self._name] += len(rows.missing)
        self._staged.cut += rows.cut
        self._reject_entries(head, rows.rejected)
        self._reject_entries(head, rows.flawed, is_loaded=True)
        self.shapes.look_at_rows(head.operation, head.request_id, rows)
        self._waiting += [(record, head.index) for record in rows.records]
        if len(self._waiting) >= BATCH:
            self._convert_waiting()

    def _reject_entries(
        self, head: ResponseHead, unread: Sequence[Unread], *, is_loaded: bool = False
    ) -> None:
        if not is_loaded:
            head.unreadable[self._name] += len(unread)
        self._staged.rejects += [
            Reject(self._name, head.index, entry.reason, _encode_entry(entry.raw), is_loaded)
            for entry in unread
        ]

    def finish_table(self) -> None:
        self._convert_waiting()
        if self._writer is None:
            self._staged.rows[self._name] = self._make_table()
        else:
            self._write_batches(self._writer)
            self._writer.close()

    def _convert_waiting(self) -> None:
        chunk = self._waiting
        self._waiting = []
        if not chunk:
            return
        first_part = self._staged.counts[self._name]
        try:
            batch = self._converter.convert_batch(chunk, first_part)
        except UNFIT:
            chunk = list(self._fit_records(chunk))
            batch = self._converter.convert_batch(chunk, first_part)
        self._staged.counts[self._name] += batch.num_rows
        self.shapes.read_words(
            batch, lambda place: self._staged.responses[chunk[place][1]].request_id
        )
        if batch[EXTRA.name].null_count < batch.num_rows:
            self._staged.with_extra.add(self._name)
        self._batches.append(batch)
        self._rows_kept += batch.num_rows
        if self._writer is None and self._rows_kept >= IN_MEMORY:
            self._staged.rows[self._name] = path = self._new_file(f"{self._name}.parquet")
            self._writer = pq.ParquetWriter(path, self._converter.schema, compression="lz4")
        if self._writer is not None and self._rows_kept >= ROW_GROUP:
            self._write_batches(self._writer)

    def _fit_records(self, chunk: Iterable[tuple[Record, int]]) -> Iterator[tuple[Record, int]]:
        for record, response in chunk:
            fitted, reason = self._converter.fit_record(record)
            if reason:
                unread = [Unread(record.model_dump(), reason)]
                self._reject_entries(
                    self._staged.responses[response], unread, is_loaded=fitted is not None
                )
            if fitted is not None:
                yield fitted, response

    def _make_table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, self._converter.schema)

    def _write_batches(self, writer: pq.ParquetWriter) -> None:
        writer.write_table(self._make_table(), ROW_GROUP)
        self._batches = []
        self._rows_kept = 0


def _make_head(index: int, response: Response, tables: Sequence[Table]) -> ResponseHead:
    call = response.call
    head = ResponseHead(
        index, response.request_id, call.operation.name, call.params, response.requested_at
    )
    head.contact = _contact_of(call, tables)
    return head


def _contact_of(call: Call, tables: Iterable[Table]) -> int | None:
    """The contact that a response to the call is about, if one of the tables that it fills declares
    how it is named."""
    for table in tables:
        if table.load.contact_parameter and table.record in call.operation.records:
            contact_id = call.params.get(table.load.contact_parameter, "")
            return int(contact_id) if contact_id.isdecimal() else None
    return None
