"""`rejected.csv`, the dead letters of a push: rows that were not sent, or that the service refused,
as in the input and with the reason.

The rows that were to be sent are stored beside it, so that it can be written again when the service
refuses more of them. Not here: why a row is rejected (`kinds`, `sending`)."""

import csv
import io
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from home.door import pushes_of
from warehouse.disk import make_folder, write_file
from write_back.input.rows import FORMULA_SIGNS, Rows, hash_cells, kept_text, text_of
from write_back.item import Plan, Reason, Source, State
from write_back.outbox.outbox import Outbox, Push

log = logging.getLogger(__name__)

#: Columns before those of the input. No kind of push has columns with these names, so the corrected
#: file can be pushed unchanged.
INFORMATION = ROW, PLACE, REASON, PUSH = (
    "rejected row",
    "rejected from",
    "rejected because",
    "rejected in push",
)

#: Options of a push that apply to its corrected rows, too.
_REPEATED = ("map", "ignore", "clear_empty", "fill_only")

#: Key of the file of kept rows: names of columns have no checksum of their own.
_DIGEST = b"digest"

_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_ENDS_CELL = ("\t", "\r", "\n")


def folder_of(home: Path, push_id: int | None) -> Path:
    """The folder of a push; None: of plans that were not applied."""
    name = "plan" if push_id is None else str(push_id)
    return pushes_of(home) / name


class RejectedRow(NamedTuple):
    """A row as in the input; `push_id` None: of a plan."""

    push_id: int | None
    why: Reason  # of this row alone
    place: str  # in the input
    cells: tuple[str, ...]


class RejectedRows(NamedTuple):
    """The content of a file of rejected rows, with the kind and `options` of their push."""

    columns: tuple[str, ...]
    rows: list[RejectedRow]
    kind: str = ""
    options: Mapping[str, Any] = {}


def find_rejected(home: Path, outbox: Outbox, push: Push) -> RejectedRows:
    """The rejected rows of the push that no later push has corrected. If the stored rows are lost,
    only their numbers and reasons."""
    entries = outbox.list_entries(push.push_id, [State.REJECTED])
    reasons = [entry.why for entry in entries]
    if not reasons:
        return RejectedRows((), [])
    folder = folder_of(home, push.push_id)
    rows = kept_rows(folder / "rows.parquet")
    if rows is None:
        numbers: set[int] = set()
        for reason in reasons:
            numbers.update(reason.rows)
        rows = Rows({}, sorted(numbers))
    source = Source(push.source)
    rows = replace(rows, source=source)
    options: dict[str, Any] = {}
    for name in _REPEATED:
        value = push.options.get(name)
        if value:
            options[name] = value
    rejected = _make_rejected(rows, reasons, push.push_id, push.kind)
    return rejected._replace(kind=push.kind, options=options)


def _make_rejected(
    rows: Rows, reasons: Iterable[Reason], push_id: int | None, kind: str
) -> RejectedRows:
    why: dict[int, Reason] = {}
    for reason in reasons:
        for row in reason.rows:
            why[row] = replace(reason, rows=(row,))
    columns = tuple(name for name in rows.columns if name not in INFORMATION)
    contents = [rows.cells[name] for name in columns]
    found: list[RejectedRow] = []
    for place, number in enumerate(rows.numbers):
        if number in why:
            cells = [kept_text(column[place], kind) or "" for column in contents]
            source_place = rows.find_place(number)
            found.append(RejectedRow(push_id, why[number], source_place, tuple(cells)))
    return RejectedRows(columns, found)


def named_rows(rows: Rows) -> Iterator[tuple[int, tuple[str, str]]]:
    """The number of each row in a file of rejected rows, with the push and row that it names."""
    if PUSH not in rows.columns or ROW not in rows.columns:
        return
    push_cells = rows.cells[PUSH]
    row_cells = rows.cells[ROW]
    for number, push, row in zip(rows.numbers, push_cells, row_cells, strict=True):
        named_push = text_of(push) or ""
        named_row = text_of(row) or ""
        yield number, (named_push, named_row)


def write_copy(path: Path, rejected: RejectedRows) -> Path:
    """Write the rows to the path, or to a free name like it; returns the path."""
    free = path
    number = 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    _write_rows(free, rejected)
    return free


def _write_rows(path: Path, rejected: RejectedRows) -> Path | None:
    """Write the rows to a file for its owner alone; None, and no file, when there are none."""
    path.unlink(missing_ok=True)
    if not rejected.rows:
        return None
    stream = io.StringIO()
    write_csv(stream, rejected)
    make_folder(path.parent)
    # with a byte-order mark, because spreadsheets guess the encoding without it
    content = stream.getvalue().encode("utf-8-sig")
    write_file(path, content)
    return path


def write_csv(stream: IO[str], rejected: RejectedRows) -> None:
    """The rows after their information, with cells that no spreadsheet runs as formulas."""
    writer = csv.writer(stream)
    titles = map(defuse_cell, rejected.columns)
    writer.writerow([*INFORMATION, *titles])
    for row in rejected.rows:
        reason = defuse_cell(row.why.reason)
        place = defuse_cell(row.place)
        information = [*row.why.rows, place, reason, row.push_id]
        cells = map(defuse_cell, row.cells)
        writer.writerow([*information, *cells])


def write_planned(home: Path, plan: Plan, rows: Rows) -> Path | None:
    """Write the rows that a plan rejects, to a separate file for each input."""
    short_hash = plan.source.content_hash[:8]
    name = f"rejected-{plan.kind}-{short_hash}.csv"
    path = folder_of(home, None) / name
    rejected = _make_rejected(rows, plan.bad, None, plan.kind)
    return _write_rows(path, rejected)


def write_rejections(home: Path, outbox: Outbox, push: Push) -> Path | None:
    """Write the push's rejected.csv again; None when no row is rejected."""
    path = folder_of(home, push.push_id) / "rejected.csv"
    rejected = find_rejected(home, outbox, push)
    return _write_rows(path, rejected)


def defuse_cell(text: str) -> str:
    """The cell with an apostrophe in front if a spreadsheet would run it. Reading removes the
    apostrophe. Numbers stay numbers."""
    is_formula = text.startswith(FORMULA_SIGNS) and not _NUMBER.fullmatch(text)
    ends_cell = text.startswith(_ENDS_CELL)
    if is_formula or ends_cell:
        return f"'{text}"
    return text


def keep_rows(path: Path, rows: Rows, numbers: Collection[int], kind: str) -> None:
    """Store these rows of the input. When the service refuses them later, the file may be gone."""
    kept_numbers = set(numbers)
    places = [place for place, number in enumerate(rows.numbers) if number in kept_numbers]
    kept = rows.take_rows(places)
    columns: dict[str, list[Any]] = {"": kept.numbers}
    for name, column in kept.cells.items():
        columns[name] = [kept_text(cell, kind) for cell in column]
    columns[PLACE] = [rows.places.get(number) for number in kept.numbers]
    types = dict.fromkeys(columns, pa.string())
    types[""] = pa.int64()
    digest = hash_cells(columns)
    schema = pa.schema(types, {_DIGEST: digest})
    table = pa.table(columns, schema)
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, compression="zstd", write_page_checksum=True)
    make_folder(path.parent)
    content = stream.getvalue().to_pybytes()
    write_file(path, content)


def kept_rows(path: Path) -> Rows | None:
    """The stored rows; None when they are gone or damaged."""
    if not path.is_file():
        return None
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        columns: dict[str, list[Any]] = table.to_pydict()
        metadata = table.schema.metadata or {}
        stored_digest = metadata.get(_DIGEST)
        digest = hash_cells(columns).encode()
        if stored_digest != digest:
            raise ValueError(path)
        numbers = list(map(int, columns.pop("")))
        numbered_places = zip(numbers, columns.pop(PLACE), strict=True)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        log.warning(
            "%s of push %s is damaged (%s): its rows are known by number only",
            path.name,
            path.parent.name,
            type(error).__name__,
        )
        return None
    known_places = {number: place for number, place in numbered_places if place is not None}
    return Rows(columns, numbers, places=known_places)
