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
from itertools import chain, count
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
    return pushes_of(home) / ("plan" if push_id is None else str(push_id))


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
    reasons = [entry.why for entry in outbox.list_entries(push.push_id, [State.REJECTED])]
    if not reasons:
        return RejectedRows((), [])
    rows = kept_rows(folder_of(home, push.push_id) / "rows.parquet")
    if rows is None:
        numbers = {row for reason in reasons for row in reason.rows}
        rows = Rows({}, sorted(numbers))
    rows = replace(rows, source=Source(push.source))
    chosen = {name: push.options.get(name) for name in _REPEATED}
    options = {name: value for name, value in chosen.items() if value}
    rejected = _make_rejected(rows, reasons, push.push_id)
    return rejected._replace(kind=push.kind, options=options)


def _make_rejected(rows: Rows, reasons: Iterable[Reason], push_id: int | None) -> RejectedRows:
    why = {row: replace(reason, rows=(row,)) for reason in reasons for row in reason.rows}
    columns = tuple(name for name in rows.columns if name not in INFORMATION)
    found: list[RejectedRow] = []
    for place, number in enumerate(rows.numbers):
        if number in why:
            cells = [kept_text(rows.cells[name][place]) or "" for name in columns]
            source_place = rows.find_place(number)
            found.append(RejectedRow(push_id, why[number], source_place, tuple(cells)))
    return RejectedRows(columns, found)


def named_rows(rows: Rows) -> Iterator[tuple[int, tuple[str, str]]]:
    """The number of each row in a file of rejected rows, with the push and row that it names."""
    if PUSH in rows.columns and ROW in rows.columns:
        for number, push, row in zip(rows.numbers, rows.cells[PUSH], rows.cells[ROW], strict=True):
            yield number, (text_of(push) or "", text_of(row) or "")


def write_copy(path: Path, rejected: RejectedRows) -> Path:
    """Write the rows to the path, or to a free name like it; returns the path."""
    numbered = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    free = next(candidate for candidate in chain([path], numbered) if not candidate.exists())
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
    write_file(path, stream.getvalue().encode("utf-8-sig"))
    return path


def write_csv(stream: IO[str], rejected: RejectedRows) -> None:
    """The rows after their information, with cells that no spreadsheet runs as formulas."""
    writer = csv.writer(stream)
    writer.writerow([*INFORMATION, *map(defuse_cell, rejected.columns)])
    for row in rejected.rows:
        reason = defuse_cell(row.why.reason)
        place = defuse_cell(row.place)
        writer.writerow([*row.why.rows, place, reason, row.push_id, *map(defuse_cell, row.cells)])


def write_planned(home: Path, plan: Plan, rows: Rows) -> Path | None:
    """Write the rows that a plan rejects, to a separate file for each input."""
    name = f"rejected-{plan.kind}-{plan.source.content_hash[:8]}.csv"
    rejected = _make_rejected(rows, plan.bad, None)
    return _write_rows(folder_of(home, None) / name, rejected)


def write_rejections(home: Path, outbox: Outbox, push: Push) -> Path | None:
    """Write the push's rejected.csv again; None when no row is rejected."""
    path = folder_of(home, push.push_id) / "rejected.csv"
    return _write_rows(path, find_rejected(home, outbox, push))


def defuse_cell(text: str) -> str:
    """The cell with an apostrophe in front if a spreadsheet would run it. Reading removes the
    apostrophe. Numbers stay numbers."""
    is_formula = text.startswith(FORMULA_SIGNS) and not _NUMBER.fullmatch(text)
    if is_formula or text[:1] in _ENDS_CELL:
        return f"'{text}"
    return text


def keep_rows(path: Path, rows: Rows, numbers: Collection[int]) -> None:
    """Store these rows of the input. When the service refuses them later, the file may be gone."""
    kept_numbers = set(numbers)
    places = [place for place, number in enumerate(rows.numbers) if number in kept_numbers]
    kept = rows.take_rows(places)
    columns: dict[str, list[Any]] = {"": kept.numbers}
    columns |= {name: list(map(kept_text, column)) for name, column in kept.cells.items()}
    columns[PLACE] = [rows.places.get(number) for number in kept.numbers]
    types = {name: pa.string() if name else pa.int64() for name in columns}
    table = pa.table(columns, pa.schema(types, {_DIGEST: hash_cells(columns)}))
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, compression="zstd", write_page_checksum=True)
    make_folder(path.parent)
    write_file(path, stream.getvalue().to_pybytes())


def kept_rows(path: Path) -> Rows | None:
    """The stored rows; None when they are gone or damaged."""
    if not path.is_file():
        return None
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        columns: dict[str, list[Any]] = table.to_pydict()
        digest = (table.schema.metadata or {}).get(_DIGEST)
        if digest not in (None, hash_cells(columns).encode()):
            raise ValueError(path)
        numbers = list(map(int, columns.pop("")))
        places = zip(numbers, columns.pop(PLACE, ()), strict=False)  # no places before 1.1
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        log.warning(
            "%s of push %s is damaged (%s): its rows are known by number only",
            path.name,
            path.parent.name,
            type(error).__name__,
        )
        return None
    known_places = {number: place for number, place in places if place is not None}
    return Rows(columns, numbers, places=known_places)
