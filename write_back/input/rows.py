"""The rows of a push: named columns, cells as text or date-times, and row numbers as in a
spreadsheet.

Belongs here: turning values into cells, and checks of the whole input. Not here: reading files
(`files`), what columns mean (`columns`)."""

import contextlib
import datetime as dt
import hashlib
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import UUID

from home.exits import WrongUse
from marketing_api.address import mask_addresses
from write_back.item import Source

#: Text without blanks around it, a date-time (aware or not), None for an empty cell.
Cell = str | dt.datetime | None

#: A cell that begins with one of these is a formula in a spreadsheet, unless an apostrophe precedes
#: it.
FORMULA_SIGNS = ("=", "+", "-", "@")

_MARKS = tomllib.loads(Path(__file__).with_name("marks.toml").read_text(encoding="utf-8"))
_NOTHING = frozenset(_MARKS["nothing"])
_FAILED = frozenset(_MARKS["failed"])
#: What LibreOffice displays of an error, and of a number in a column that is too narrow.
_UNREADABLE = re.compile("Err:[0-9]{3}|#+")
#: Marks of an empty value in any form of input.
MARKS = _NOTHING | _FAILED
#: Invisible characters, except joiners between letters of some scripts and in emoji.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb]"
    "|(?<![^\x00-\xff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\xff])"
)


#: A float has all digits of whole numbers below this one.
_EXACT_BELOW = 2**53


class Seen(str):
    """The text that a cell of a workbook displays; `value` is the number or date itself."""

    __slots__ = ("value",)
    value: float | dt.datetime | str

    def __new__(cls, text: str, value: float | dt.datetime | str) -> Self:
        seen = super().__new__(cls, text)
        seen.value = value
        return seen


class Stored(Seen):
    """The value itself, because the cell's number format is not supported: the displayed text is
    unknown."""

    __slots__ = ()


class CannotBeSent(Exception):
    """Why a value of a file or query cannot be sent, as a sentence. Readers also put one in place
    of the value."""


class InputError(WrongUse):
    """The input as a whole cannot be used, with one sentence that says what to do. Nothing was
    planned."""


@dataclass(frozen=True)
class Rows:
    """The rows of an input, column by column, without empty rows.

    `numbers`: row numbers as people count: in a spreadsheet the header is 1 and the first row below
    it 2; the first row of a query or a Parquet file is 1. `faults`: row number → why the row cannot
    be read although the others can. `cell_faults`: title → row number → why its cell cannot, which
    matters where the column is used. `places`: row number → where the row is in its file, if that
    says more than the number."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    numbers: list[int] = field(repr=False)
    source: Source = field(default=Source())
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    cell_faults: Mapping[str, Mapping[int, str]] = field(default_factory=dict, repr=False)
    places: Mapping[int, str] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.cells)

    def find_place(self, number: int) -> str:
        """Where the row is, like `people.csv, line 7`."""
        place = self.places.get(number, f"row {number}")
        return f"{self.source.name}, {place}"

    def take_rows(self, places: Iterable[int]) -> "Rows":
        """The rows at these places."""
        left = list(places)
        if len(left) == len(self.numbers):
            return self
        numbers = [self.numbers[place] for place in left]
        return replace(
            self,
            cells={
                title: [column[place] for place in left] for title, column in self.cells.items()
            },
            numbers=numbers,
            faults={number: self.faults[number] for number in numbers if number in self.faults},
        )

    def __len__(self) -> int:
        return len(self.numbers)


def text_of(cell: Cell) -> str | None:
    """The cell as it is sent. Midnight without an offset is a day."""
    if isinstance(cell, Seen):
        return str(cell)
    if not isinstance(cell, dt.datetime):
        return cell
    is_day = cell.tzinfo is None and cell.time() == dt.time()
    if is_day:
        return cell.date().isoformat()
    return cell.isoformat(" ", "seconds")


def cell_text(cell: Cell) -> str | None:
    """The text of the cell's value, for numbers and dates: 1001, although it displays `1,001`."""
    value = cell.value if isinstance(cell, Seen) else cell
    if isinstance(value, float):
        return number_text(value)
    return text_of(value)


def kept_text(cell: Cell, kind: str) -> str | None:
    """The cell for a file of rejected rows of a kind: as it is displayed, since that is sent, but
    with unambiguous times for activities."""
    is_date = isinstance(cell, Seen) and isinstance(cell.value, dt.datetime)
    return cell_text(cell) if is_date and kind == "activities" else text_of(cell)


def as_seen(text: str) -> str:
    """The name with one form of each letter, without invisible characters and repeated blanks, so
    that names that look equal are equal."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    visible = _UNSEEN.sub("", unicodedata.normalize("NFC", text))
    return " ".join(visible.split())


def cell_of(value: Any) -> Cell:
    """Any value of a file or query as a cell. Raises CannotBeSent for errors, infinity and values
    without a text."""
    if type(value) is str:
        text = value.strip()
        if text[:2] == '="':
            raise CannotBeSent(f"it is the formula {show_name(text)}: write its result")
        if text in _FAILED or _UNREADABLE.fullmatch(text):
            raise CannotBeSent("the cell shows an error like #N/A")
        is_defused = text[:1] == "'" and text[1:2] in FORMULA_SIGNS
        if is_defused:
            text = text[1:]
        return text if as_seen(text) else None
    if value is None:
        return None
    if isinstance(value, list):
        texts = filter(None, map(_listed_text, value))
        return ",".join(texts) or None
    return _type_cell(value)


def _listed_text(value: Any) -> str | None:
    if value is None:
        return None
    text = text_of(_type_cell(value))
    if text and "," in text:
        raise CannotBeSent("a value of the list has a comma in it")
    return text


def number_text(number: float) -> str | None:
    """In full: 12.0 → `12`, 0.1 + 0.2 → `0.3`; None for NaN. A whole number that may have lost its
    last digits has an exponent, and `values.field_value` rejects it."""
    if number != number:
        return None
    if number in (float("inf"), float("-inf")):
        raise CannotBeSent("infinity cannot be sent")
    plain = f"{number:.15g}"
    if number.is_integer() and float(plain) != number:
        return str(int(number)) if abs(number) < _EXACT_BELOW else f"{number:.16e}"
    if "e" in plain:
        return format(Decimal(plain), "f")
    return plain


def _type_cell(value: Any) -> Cell:
    if isinstance(value, Seen):
        return value or None
    if isinstance(value, str):
        return cell_of(str(value))
    if isinstance(value, int | float | Decimal):
        return _format_number(value)
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    if isinstance(value, dt.time | UUID):
        return str(value)
    if isinstance(value, CannotBeSent):
        raise value
    raise CannotBeSent(
        f"values of the type {type(value).__name__} cannot be sent: turn them into text, or leave "
        "the column out with --ignore"
    )


def _format_number(value: float | Decimal) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if value.is_finite():
        return format(value, "f")
    return number_text(float(value))


def rows_of_records(
    name: str,
    records: Iterable[Sequence[str | CannotBeSent | None]],
    *,
    numbers: Sequence[int] | None = None,
    warnings: Iterable[str] = (),
) -> Rows:
    """Rows from the records of a file. The first record that is not empty is the header.

    Short records are filled up. A record that is longer than the header is a fault of its row.
    Raises InputError."""
    numbered = zip(numbers or count(1), records, strict=False)
    filled = (record for record in numbered if _has_content(record[1]))
    number, titles = next(filled, (0, ()))
    if not titles:
        raise InputError(f"{name} is empty: the first row has to name the columns, like email,tag")
    try:
        header = list(map(cell_of, titles))
    except CannotBeSent as error:
        raise InputError(
            f"{name}: the header, row {number}, has a cell that cannot be read: {error}"
        ) from None
    while header[-1] is None:
        header.pop()
    columns: list[list[Any]] = [[] for _ in header]
    below = list[int]()
    faults = dict[int, str]()
    for number, record in numbered:
        surplus = record[len(header) :]
        if _has_content(surplus):
            faults[number] = (
                f"it has {len(record)} cells, but the header names {len(header)} columns"
            )
        below.append(number)
        for place, column in enumerate(columns):
            value = record[place] if place < len(record) else None
            column.append(value)
    return rows_of_columns(name, header, columns, below, faults=faults, warnings=warnings)


def _has_content(record: Sequence[object]) -> bool:
    return any(str(value).strip() for value in record if value is not None)


def rows_of_columns(
    name: str,
    header: Sequence[Cell],
    columns: Sequence[list[Any]],
    numbers: list[int],
    *,
    faults: Mapping[int, str] | None = None,
    warnings: Iterable[str] = (),
) -> Rows:
    """Rows from columns. Raises InputError when two columns have one name."""
    notes = list(warnings)
    cleaned = _clean_columns(name, header, columns, numbers, notes)
    cells = {title: column.cells for title, column in cleaned.items()}
    cell_faults = {title: column.faults for title, column in cleaned.items() if column.faults}
    rows = _drop_empty_rows(
        Rows(
            cells,
            numbers,
            faults=faults or {},
            warnings=tuple(notes),
            cell_faults=cell_faults,
        )
    )
    source = Source(name, hash_cells(rows.cells))
    return replace(rows, source=source)


def _clean_columns(
    name: str,
    header: Sequence[Cell],
    columns: Sequence[list[Any]],
    numbers: list[int],
    notes: list[str],
) -> dict[str, "_Cleaned"]:
    """The columns that are not empty, by title; `notes` gets what a person should know."""
    cleaned: dict[str, _Cleaned] = {}
    nothing = Counter[str]()
    for position, (title, column) in enumerate(zip(header, columns, strict=True), 1):
        word = text_of(title) or f"column {position}"
        found = _clean_column(column, numbers, word, nothing)
        if word in cleaned:
            raise InputError(
                f"{name}: two columns are called {show_name(word)}; rename or remove one"
            )
        is_filled = any(cell is not None for cell in found.cells)
        if title is not None or found.faults or is_filled:
            cleaned[word] = found
    if nothing:
        most_common = nothing.most_common(5)
        counts = [f"{show_name(mark)} ({times:,})" for mark, times in most_common]
        marks = ", ".join(counts)
        notes.append(f"these values count as empty: {marks}")
    return cleaned


def _drop_empty_rows(rows: Rows) -> Rows:
    wrong = set(rows.faults)
    for faults in rows.cell_faults.values():
        wrong.update(faults)
    kept: list[int] = []
    lines = zip(*rows.cells.values(), strict=True)
    for place, cells in enumerate(lines):
        is_filled = cells.count(None) < len(cells)
        if is_filled or rows.numbers[place] in wrong:
            kept.append(place)
    return rows.take_rows(kept)


class _Cleaned(NamedTuple):
    cells: list[Cell]
    faults: dict[int, str]


def _clean_column(
    column: Sequence[Any], numbers: Sequence[int], title: str, nothing: Counter[str]
) -> _Cleaned:
    """The cells of a column; `nothing` counts the marks of empty values."""
    cells, faults = _cells_and_faults(column, numbers, title)
    marks = _NOTHING.intersection(cells)
    if marks:
        nothing.update(str(cell) for cell in cells if cell in marks)
        cells = [None if cell in marks else cell for cell in cells]
    return _Cleaned(cells, faults)


def _cells_and_faults(
    column: Sequence[Any], numbers: Sequence[int], title: str
) -> tuple[list[Cell], dict[int, str]]:
    """The cells, and row number → why a cell cannot be sent. Values are converted one by one only
    if one of them cannot be sent."""
    with contextlib.suppress(CannotBeSent):
        return [None if value is None else cell_of(value) for value in column], {}
    cells: list[Cell] = []
    faults: dict[int, str] = {}
    for number, value in zip(numbers, column, strict=True):
        try:
            cells.append(cell_of(value))
        except CannotBeSent as error:
            cells.append("#N/A")  # in the file of rejected rows, it is rejected again
            faults[number] = f"column {show_name(title)}: {error}"
    return cells, faults


def hash_cells(cells: Mapping[str, Sequence[object]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for title, column in cells.items():
        texts = ["\x00" if cell is None else str(cell) for cell in column]
        text = "\x1e".join(texts)
        digest.update(f"\x1d{title}\x1e{text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def show_name(text: str) -> str:
    """A name from the input, quoted for a message: shortened, and never an address."""
    if mask_addresses(text) != text:
        return "(an address)"
    if text.strip("“”"):
        # `push_report` has to find where the quotation begins and ends
        text = text.replace("“", '"')
    short = text if len(text) <= 40 else text[:39] + "…"
    letters = [letter if letter.isprintable() else " " for letter in short]
    printable = "".join(letters)
    return f"“{printable}”"
