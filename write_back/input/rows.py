"""The rows of a push: named columns, cells as text or date-times, and the numbers that a spreadsheet gives
its rows.

Belongs here: what a cell's value becomes, and what makes an input unusable. Not here: reading it (`files`),
what columns mean (`columns`)."""

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import zip_longest
from typing import Any
from uuid import UUID

from home.exits import WrongUse
from write_back.item import Source

#: Text without blanks around it, a date-time (aware or not), None for an empty cell.
Cell = str | dt.datetime | None

#: A spreadsheet takes a cell that begins so for a formula; an apostrophe before it says that it is text.
FORMULA_SIGNS = ("=", "+", "-", "@")


class InputError(WrongUse):
    """The input as a whole cannot be used: one sentence that says what to do. Nothing was planned."""


@dataclass(frozen=True)
class Rows:
    """The rows of an input, column by column; rows that are entirely empty are left out.

    `numbers`: of each row, as a spreadsheet counts: the header is 1, the first row below it 2; of JSON lines,
    the line. `faults`: row number → why the row cannot be read although the others can."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    numbers: list[int] = field(repr=False)
    source: Source
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.cells)

    def at(self, places: Iterable[int]) -> "Rows":
        """The rows that stand there."""
        left = list(places)
        numbers = [self.numbers[place] for place in left]
        return replace(
            self,
            cells={title: [column[place] for place in left] for title, column in self.cells.items()},
            numbers=numbers,
            faults={number: self.faults[number] for number in numbers if number in self.faults},
        )

    def __len__(self) -> int:
        return len(self.numbers)


def text_of(cell: Cell) -> str | None:
    """The cell as it is sent as text; midnight without an offset is a day."""
    if not isinstance(cell, dt.datetime):
        return cell
    if cell.tzinfo is None and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat(" ", "seconds")


def cell_of(value: Any) -> Cell:
    """Any value of a file or query as a cell; TypeError for binary and nested values."""
    if type(value) is str:
        text = value.strip()
        return (
            text[1:] if text[:1] == "'" and text[1:2] in FORMULA_SIGNS and len(text) > 1 else text
        ) or None
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return ",".join(filter(None, (text_of(cell_of(part)) for part in value))) or None
    return _typed(value)


def number_text(number: float) -> str | None:
    """As a spreadsheet shows it: 12.0 → `12`, 0.1 + 0.2 → `0.3`; None for what is no number."""
    if number != number:
        return None
    plain = f"{number:.15g}"
    return format(Decimal(plain), "f") if "e" in plain else plain


def _typed(value: Any) -> Cell:
    if isinstance(value, str):
        return cell_of(str(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else None
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    if isinstance(value, int | dt.time | dt.timedelta | UUID):
        return str(value)
    raise TypeError(type(value).__name__)


def rows_of_records(
    name: str,
    records: Iterable[Sequence[Any]],
    *,
    faults: Mapping[int, str] | None = None,
    warnings: Iterable[str] = (),
) -> Rows:
    """A grid from its records as they stand in a file; the first that is not empty has the columns' names.

    Short records are filled up; one that is longer than the header is a fault of its row. Raises InputError.
    """
    header: list[Cell] = []
    numbered = enumerate(records, 1)
    for _, record in numbered:
        header = [cell_of(value) for value in record]
        while header and header[-1] is None:
            header.pop()
        if header:
            break
    if not header:
        raise InputError(f"{name} is empty: the first row has to name the columns, like email,tag")
    width, wrong = len(header), dict(faults or {})
    below: dict[int, Sequence[Any]] = {}
    for number, record in numbered:
        below[number] = record[:width]
        if any(cell_of(value) is not None for value in record[width:]):
            wrong.setdefault(number, f"it has {len(record)} cells, but the header names {width} columns")
    columns = [column for _, *column in zip_longest(header, *below.values())]
    return rows_of_columns(name, header, columns, list(below), faults=wrong, warnings=warnings)


def rows_of_columns(
    name: str,
    header: Sequence[Cell],
    columns: Sequence[list[Any]],
    numbers: list[int],
    *,
    faults: Mapping[int, str] | None = None,
    warnings: Iterable[str] = (),
) -> Rows:
    """A grid from its columns. Raises InputError when a column cannot be named or its values cannot be
    sent."""
    cells = _cells(name, header, columns)
    width, wrong = len(cells), faults or {}
    left = [
        place
        for place, row in enumerate(zip(*cells.values(), strict=True))
        if row.count(None) < width or numbers[place] in wrong
    ]
    rows = Rows(cells, numbers, Source(name, ""), wrong, tuple(warnings)).at(left)
    return replace(rows, source=Source(name, _hash(rows.cells)))


def _cells(name: str, header: Sequence[Cell], columns: Sequence[list[Any]]) -> dict[str, list[Cell]]:
    cells: dict[str, list[Cell]] = {}
    for position, (title, column) in enumerate(zip(header, columns, strict=True), 1):
        try:
            cleaned = [None if value is None else cell_of(value) for value in column]
        except TypeError as problem:
            word = shown(text_of(title) or f"number {position}")
            raise InputError(
                f"{name}: column {word} holds values that cannot be sent ({problem}); turn them into text"
            ) from None
        if title is None:
            if any(cell is not None for cell in cleaned):
                raise InputError(
                    f"{name}: column {position} has values but no name; name it in the first row"
                )
            continue
        word = text_of(title) or ""
        if word in cells:
            raise InputError(f"{name}: two columns are called {shown(word)}; rename or remove one")
        cells[word] = cleaned
    return cells


def _hash(cells: Mapping[str, list[Cell]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for title, column in cells.items():
        text = "\x1e".join(["\x00" if cell is None else str(cell) for cell in column])
        digest.update(f"\x1d{title}\x1e{text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def shown(text: str) -> str:
    """A name from the input as a message may show it: shortened, and never an address."""
    if "@" in text:
        return "(an address)"
    short = text if len(text) <= 40 else text[:39] + "…"
    return "“" + "".join(letter if letter.isprintable() else " " for letter in short) + "”"
