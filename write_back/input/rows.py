"""The rows of a push: named columns, cells as text or date-times, and the numbers that a spreadsheet gives
its rows.

Belongs here: what a cell's value becomes, and what makes an input unusable. Not here: reading it (`files`),
what columns mean (`columns`)."""

import contextlib
import datetime as dt
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain, count, islice, pairwise, zip_longest
from typing import Any, NamedTuple, Self
from uuid import UUID

from home.exits import WrongUse
from marketing_api.address import mask_addresses
from write_back.item import Source

#: Text without blanks around it, a date-time (aware or not), None for an empty cell.
Cell = str | dt.datetime | None

#: A spreadsheet takes a cell that begins so for a formula; an apostrophe before it says that it is text.
FORMULA_SIGNS = ("=", "+", "-", "@")

#: How programs write that there is nothing, and what a formula that failed leaves in its cell.
_NOTHING = {"NULL", "null", "(null)", "(NULL)", "<null>", "<NULL>", "[NULL]", "\\N", "(none)", "undefined"}
_NOTHING |= {"nan", "NaN", "NAN", "None", "NaT", "<NA>", "N/A", "n/a"}
_FAILED = {"#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#SPILL!", "#CALC!", "#FIELD!"}
_FAILED |= {"#BLOCKED!", "#UNKNOWN!", "#BUSY!", "#CONNECT!", "#ERROR!", "#PYTHON!", "#GETTING_DATA"}
#: What says that there is nothing, in whatever form of input.
MARKS = _NOTHING | _FAILED
#: Neither seen nor part of what is: of these a joiner between letters of some scripts and in emoji is.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb]|(?<![^\x00-\xff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\xff])"
)


#: A formula that is one text.
_TEXT_FORMULA = re.compile(r'="((?:[^"]|"")*)"')


class Seen(str):
    """What a cell of a workbook shows of `value`, a number or a whole date: who wants that takes it from
    there."""

    __slots__ = ("value",)
    value: float | dt.datetime | str

    def __new__(cls, text: str, value: float | dt.datetime | str) -> Self:
        seen = super().__new__(cls, text)
        seen.value = value
        return seen


class Stored(Seen):
    """The value itself, where the cell's number format is none of the usual ones: what a person sees of it is
    unknown."""

    __slots__ = ()


class CannotBeSent(Exception):
    """Why a value of a file or query cannot be, as a sentence; readers also put one in place of the value."""


class Covered(CannotBeSent):
    """A cell that a merged cell of another column covers: empty in titles and headers, unknown in rows."""


class InputError(WrongUse):
    """The input as a whole cannot be used: one sentence that says what to do. Nothing was planned."""


@dataclass(frozen=True)
class Rows:
    """The rows of an input, column by column; rows that are entirely empty are left out.

    `numbers`: of each row, as people count: in a spreadsheet the header is 1, the first row below it 2; of
    JSON lines the line; the first row of a query or a Parquet file is 1. `faults`: row number → why the row
    cannot be read although the others can. `cell_faults`: title → row number → why its cell cannot, which
    matters where the column is used; `failed`: those that show an error, and count as empty. `hidden`: titles
    of columns that a person does not see."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    numbers: list[int] = field(repr=False)
    source: Source
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    cell_faults: Mapping[str, Mapping[int, str]] = field(default_factory=dict, repr=False)
    failed: Mapping[str, Collection[int]] = field(default_factory=dict, repr=False)
    hidden: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.cells)

    def take_rows(self, places: Iterable[int]) -> "Rows":
        """The rows that stand there."""
        left = list(places)
        if len(left) == len(self.numbers):
            return self
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
        return str(cell) if isinstance(cell, Seen) else cell
    if cell.tzinfo is None and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat(" ", "seconds")


def cell_text(cell: Cell) -> str | None:
    """The text of what a cell holds, where numbers and dates are wanted: 1001, though it shows `1,001`."""
    value = cell.value if isinstance(cell, Seen) else cell
    return number_text(value) if isinstance(value, float) else text_of(value)


def kept_text(cell: Cell) -> str | None:
    """The cell as a file of rejected rows has it: a whole date as it can be read in one way only."""
    return (
        cell_text(cell) if isinstance(cell, Seen) and isinstance(cell.value, dt.datetime) else text_of(cell)
    )


def as_seen(text: str) -> str:
    """Names that look alike are alike: one form of each letter, no characters that show nothing, blanks as
    plain ones, one at a time."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return " ".join(_UNSEEN.sub("", unicodedata.normalize("NFC", text)).split())


def cell_of(value: Any) -> Cell:
    """Any value of a file or query as a cell; CannotBeSent for what has no text, and for infinity."""
    if type(value) is str:
        text = value.strip()
        if text[:2] == '="':
            return _formula_text(text)
        return (text[1:] if text[:1] == "'" and text[1:2] in FORMULA_SIGNS else text) or None
    if value is None:
        return None
    if isinstance(value, list):
        return ",".join(filter(None, map(_quote_listed, value))) or None
    return _type_cell(value)


def _formula_text(formula: str) -> str | None:
    """The text 0170 of `="0170"`, as which a spreadsheet keeps zeros in a CSV. Raises CannotBeSent for
    another formula."""
    match = _TEXT_FORMULA.fullmatch(formula)
    if match is None:
        raise CannotBeSent(f"it is the formula {show_name(formula)}: write the text that it shows")
    return match[1].replace('""', '"').strip() or None


def _quote_listed(value: Any) -> str | None:
    """A value of a list; one with a comma stays one by quotation marks."""
    text = text_of(_type_cell(value)) if value is not None else None
    return '"' + text.replace('"', '""') + '"' if text and ("," in text or '"' in text) else text


def number_text(number: float) -> str | None:
    """In full: 12.0 → `12`, 0.1 + 0.2 → `0.3`; None for what is no number."""
    if number != number:
        return None
    if number in (float("inf"), float("-inf")):
        raise CannotBeSent("infinity cannot be sent")
    plain = f"{number:.15g}"
    return format(Decimal(plain), "f") if "e" in plain else plain


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
        f"values of the type {type(value).__name__} cannot be sent: turn them into text, or leave the "
        "column out with --ignore"
    )


def _format_number(value: float | Decimal) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    return None if value.is_nan() else format(value, "f") if value.is_finite() else number_text(float(value))


#: Rows that are decoded or turned into columns together; what that takes in memory is let go of before the
#: next ones.
BATCH = 50_000
#: Rows in which the header is looked for.
HIGHEST_HEADER = 30
#: What pandas calls the numbers of its rows.
_INDEX = re.compile(r"(?:Unnamed: 0(?:\.\d)?|__index_level_\d+__)?", re.ASCII)


def rows_of_records(
    name: str,
    records: Iterable[Sequence[Any]],
    *,
    numbers: Sequence[int] | None = None,
    is_header: Callable[[Sequence[Cell]], bool] = bool,
    hidden: Collection[int] = (),
    warnings: Iterable[str] = (),
) -> Rows:
    """A grid from its records as they stand in a file. The header is the first that is not empty, or a
    wider one soon below it that alone `is_header`.

    Short records are filled up; one that is longer than the header is a fault of its row. Raises InputError.
    """
    numbered = zip(numbers or count(1), records, strict=False)
    begin = list(_take_beginning(numbered))
    place, notes = _header_place(begin, is_header), list(warnings)
    if place is None:
        raise InputError(f"{name} is empty: the first row has to name the columns, like email,tag")
    if above := [number for number, record in begin[:place] if _has_content(record)]:
        rows = f"row {above[0]}" if len(above) == 1 else f"rows {above[0]} to {above[-1]}"
        notes.append(f"{rows} above the header (row {begin[place][0]}): left out")
    number, cells = begin[place]
    for cell in cells:
        if isinstance(cell, CannotBeSent) and not isinstance(cell, Covered):
            raise InputError(f"{name}: the header, row {number}, has a cell that cannot be read: {cell}")
    header = list(map(_quick_cell, cells))
    while header[-1] is None:
        header.pop()
    rest = chain(begin[place + 1 :], numbered)
    below, columns, wrong = _in_columns(rest, len(header))
    return rows_of_columns(name, header, columns, below, faults=wrong, hidden=hidden, warnings=notes)


def _in_columns(
    numbered: Iterator[tuple[int, Sequence[Any]]], width: int
) -> tuple[list[int], list[list[Any]], dict[int, str]]:
    """Numbers of the records, their cells by column, and what is wrong with those that are wider."""
    below, wrong = list[int](), dict[int, str]()
    columns: list[list[Any]] = [[] for _ in range(width)]
    while some := list(islice(numbered, BATCH)):
        below += [number for number, _ in some]
        for number, record in some:
            if len(record) > width and _has_content(record[width:]):
                wrong[number] = f"it has {len(record)} cells, but the header names {width} columns"
        turned = zip_longest([None] * width, *(record for _, record in some))
        for column, (_, *cells) in zip(columns, turned, strict=False):
            column += share_texts(cells)
    return below, columns, wrong


def share_texts(values: list[Any]) -> list[Any]:
    """Equal texts as one, since most columns repeat a few of them a million times."""
    texts: dict[str, str] = {}
    return [texts.setdefault(value, value) if type(value) is str else value for value in values]


def _take_beginning(numbered: Iterator[tuple[int, Sequence[Any]]]) -> Iterator[tuple[int, Sequence[Any]]]:
    """The records among which the header is, no more than are looked at."""
    for place, each in enumerate(numbered):
        yield each
        if place > HIGHEST_HEADER and _has_content(each[1]):
            return


def header_of(
    records: Iterable[Sequence[Any]], is_header: Callable[[Sequence[Cell]], bool]
) -> Sequence[Cell]:
    """The record that names the columns; none where all are empty."""
    begin = list(_take_beginning(enumerate(records)))
    place = _header_place(begin, is_header)
    return [] if place is None else list(map(_quick_cell, begin[place][1]))


def _header_place(
    numbered: Sequence[tuple[int, Sequence[Any]]], is_header: Callable[[Sequence[Cell]], bool]
) -> int | None:
    first, widest = None, 0
    for place, (_, record) in enumerate(numbered):
        cells = list(map(_quick_cell, record))
        filled = sum(cell is not None for cell in cells)
        if not filled:
            continue
        if is_header(cells) and (first is None or filled > widest):
            return place
        if first is None:
            first = place
        widest = max(widest, filled)
    return first


def _quick_cell(value: Any) -> Cell:
    """As `cell_of`, where it matters only whether there is something."""
    try:
        return cell_of(value)
    except Covered:
        return None
    except CannotBeSent:
        return "(cannot be sent)"


def _has_content(values: Iterable[Any]) -> bool:
    return any(_quick_cell(value) is not None for value in values)


def rows_of_columns(
    name: str,
    header: Sequence[Cell],
    columns: Sequence[list[Any]],
    numbers: list[int],
    *,
    faults: Mapping[int, str] | None = None,
    hidden: Collection[int] = (),
    warnings: Iterable[str] = (),
) -> Rows:
    """A grid from its columns; those at the places `hidden` (from 0) a person does not see. Raises
    InputError when two have one name."""
    notes = list(warnings)
    cells = _clean_columns(name, header, columns, numbers, notes)
    rows = Rows(
        {title: column.cells for title, column in cells.items()},
        numbers,
        Source(name, ""),
        faults or {},
        tuple(notes),
        {title: column.faults for title, column in cells.items() if column.faults},
        {title: column.failed for title, column in cells.items() if column.failed},
        tuple(title for title, column in cells.items() if column.position in hidden),
    )
    rows = _drop_empty_rows(rows)
    return replace(rows, source=Source(name, _hash_cells(rows.cells)))


def _clean_columns(
    name: str, header: Sequence[Cell], columns: Sequence[list[Any]], numbers: list[int], notes: list[str]
) -> dict[str, "_Cleaned"]:
    """The columns that say something by their titles; `notes` gets what a person should know."""
    cells: dict[str, _Cleaned] = {}
    nothing = Counter[str]()
    for position, (title, column) in enumerate(zip(header, columns, strict=True)):
        word = text_of(title) or f"column {position + 1}"
        cleaned = _clean_column(column, numbers, word, nothing)
        if word in cells:
            raise InputError(f"{name}: two columns are called {show_name(word)}; rename or remove one")
        if _is_index(title, cleaned.cells):
            notes.append(f"column {position + 1}, which only numbers the rows, is left out")
        elif title is not None or not cleaned.is_empty:
            cells[word] = cleaned._replace(position=position)
    if nothing:
        marks = ", ".join(f"{show_name(mark)} ({times:,})" for mark, times in nothing.most_common(5))
        notes.append(f"cells that say that there is nothing count as empty: {marks}")
    return cells


def _drop_empty_rows(rows: Rows) -> Rows:
    wrong = rows.faults.keys() | {number for each in rows.cell_faults.values() for number in each}
    lines = enumerate(zip(*rows.cells.values(), strict=True))
    return rows.take_rows(
        place for place, cells in lines if cells.count(None) < len(cells) or rows.numbers[place] in wrong
    )


class _Cleaned(NamedTuple):
    cells: list[Cell]
    faults: dict[int, str]
    failed: list[int]
    position: int = 0  # of the column, from 0

    @property
    def is_empty(self) -> bool:
        return not self.faults and all(cell is None for cell in self.cells)


def _clean_column(
    column: Sequence[Any], numbers: Sequence[int], title: str, nothing: Counter[str]
) -> _Cleaned:
    """The cells of a column; `nothing` counts the marks that were taken for none."""
    cells, faults = _cells_and_faults(column, numbers, title)
    marks = MARKS.intersection(cells)
    if not marks:
        return _Cleaned(cells, faults, [])
    nothing.update(str(cell) for cell in cells if cell in marks)
    failed = [number for number, cell in zip(numbers, cells, strict=True) if cell in _FAILED]
    return _Cleaned([None if cell in marks else cell for cell in cells], faults, failed)


def _cells_and_faults(
    column: Sequence[Any], numbers: Sequence[int], title: str
) -> tuple[list[Cell], dict[int, str]]:
    """And row number → why there is none. One by one only where a value cannot be sent."""
    with contextlib.suppress(CannotBeSent):
        return [None if value is None else cell_of(value) for value in column], {}
    cells: list[Cell] = []
    faults: dict[int, str] = {}
    for number, value in zip(numbers, column, strict=True):
        try:
            cells.append(cell_of(value))
        except CannotBeSent as problem:
            cells.append(None)
            faults[number] = f"column {show_name(title)}: {problem}"
    return cells, faults


def _is_index(title: Cell, cells: Sequence[Cell]) -> bool:
    """Whether it only numbers the rows, as a program does: whole numbers that rise."""
    if not _INDEX.fullmatch(text_of(title) or ""):
        return False
    if not all(isinstance(cell, str) and cell.isdecimal() and len(cell) < 19 for cell in cells):
        return False
    whole = [int(text_of(cell) or 0) for cell in cells]
    return all(one < other for one, other in pairwise(whole))


def _hash_cells(cells: Mapping[str, list[Cell]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for title, column in cells.items():
        text = "\x1e".join(["\x00" if cell is None else str(cell) for cell in column])
        digest.update(f"\x1d{title}\x1e{text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def show_name(text: str) -> str:
    """A name from the input as a message may show it: shortened, and never an address."""
    if mask_addresses(text) != text:
        return "(an address)"
    if text.strip("“”"):
        text = text.replace("“", '"')  # where the quotation begins and ends has to be plain (`push_report`)
    short = text if len(text) <= 40 else text[:39] + "…"
    return "“" + "".join(letter if letter.isprintable() else " " for letter in short) + "”"
