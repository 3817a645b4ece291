"""Reading a workbook (.xlsx): which sheet is read, and what its cells display.

openpyxl reads the cells. It does not return which rows are hidden and which formulas have no stored
value, so the sheet is read a second time for that. Not here: number formats
(`number_formats`)."""

import datetime as dt
import io
import warnings
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import openpyxl
from openpyxl.utils.escape import unescape

from write_back.input.columns import suggest_names
from write_back.input.number_formats import show_date, show_number
from write_back.input.rows import CannotBeSent, InputError, show_name

_TRUE = ("1", "true")
_MOST_ROWS = 1 << 20
#: Every Office file has this part.
_TYPES = "[Content_Types].xml"
_NOT_CALCULATED = (
    "the formula in cell {} has no stored value: open the file in Excel, save it, and try again"
)


class Line(NamedTuple):
    """A row of the sheet; CannotBeSent in place of a cell that cannot be read."""

    number: int
    cells: list[str | CannotBeSent | None]
    is_hidden: bool


class _Scanned(NamedTuple):
    """Numbers of hidden rows, and cells whose formula has no stored value."""

    hidden: set[int]
    not_calculated: set[str]


def read_sheet(
    name: str, content: bytes, take: Callable[..., None], title: str | None
) -> tuple[str, list[Line], list[str]]:
    """The sheet of that title, else the first visible one: its title, its rows, and notes for the
    plan. `take`: `InputBudget.take_bytes`. Raises InputError, and what openpyxl, zipfile and
    ElementTree raise for damaged files."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive, warnings.catch_warnings(action="ignore"):
        _check_is_workbook(name, archive)
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheet, notes = _choose_sheet(name, book.worksheets, title)
        scanned = _scan_sheet(name, archive, sheet)
        sheet.reset_dimensions()  # some programs write wrong ones
        lines: list[Line] = []
        for number, row in enumerate(sheet.iter_rows(), 1):
            take(cells=len(row))
            if row:
                cells = [_show_cell(cell, scanned) for cell in row]
                lines.append(Line(number, cells, number in scanned.hidden))
    return sheet.title, lines, notes


def _check_is_workbook(name: str, archive: zipfile.ZipFile) -> None:
    parts = set(archive.namelist())
    if "xl/workbook.xml" in parts or (_TYPES in parts and "xl/workbook.bin" not in parts):
        return
    raise InputError(
        f"{name} is a ZIP archive, or a workbook like .ods, .xlsb or .numbers, which cannot be "
        "read: save the table as .xlsx or CSV UTF-8"
    )


def _choose_sheet(name: str, sheets: Sequence[Any], title: str | None) -> tuple[Any, list[str]]:
    if title is not None:
        titles = [sheet.title for sheet in sheets]
        for sheet in sheets:
            if sheet.title.casefold() == title.casefold():
                return sheet, []
        there = ", ".join(map(show_name, titles[:20]))
        raise InputError(
            f"{name} has no sheet {show_name(title)}{suggest_names(title, titles)}; it has {there}"
        )
    visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
    if not visible:
        raise InputError(f"{name} has no sheet with cells")
    first, *others = [show_name(sheet.title) for sheet in visible[:20]]
    note = f"{name}: the sheet {first} is read; --sheet chooses another: {', '.join(others)}"
    return visible[0], [note] if len(visible) > 1 else []


def _scan_sheet(name: str, archive: zipfile.ZipFile, sheet: Any) -> _Scanned:
    """Raises InputError when cells are merged, because it is unclear which rows the value is
    for."""
    found = _Scanned(set(), set())
    number = 0
    with archive.open(sheet._worksheet_path) as stream:
        for _, element in ElementTree.iterparse(stream):  # noqa: S314 (expat limits entities)
            tag = element.tag.rpartition("}")[2]
            if tag == "mergeCell":
                raise InputError(
                    f"{name}: the sheet {show_name(sheet.title)} has merged cells, like "
                    f"{element.get('ref')}: unmerge them, and fill each cell"
                )
            if tag != "row":
                continue
            number = int(element.get("r") or number + 1)
            if number > _MOST_ROWS:
                raise ValueError("more rows than Excel has")
            if element.get("hidden") in _TRUE:
                found.hidden.add(number)
            found.not_calculated.update(
                cell.get("r", "")
                for cell in element
                if cell.get("t", "n") == "n"
                and cell.find("{*}f") is not None
                and not cell.findtext("{*}v")
            )
            element.clear()
    return found


def _show_cell(cell: Any, scanned: _Scanned) -> str | CannotBeSent | None:
    value = cell.value
    if value is None:
        coordinate = getattr(cell, "coordinate", "")  # an empty cell has none
        is_unknown = coordinate in scanned.not_calculated
        return CannotBeSent(_NOT_CALCULATED.format(coordinate)) if is_unknown else None
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return show_number(float(value), cell.number_format)
    if isinstance(value, dt.datetime | dt.time):
        return show_date(value, cell.number_format)
    if isinstance(value, dt.timedelta):
        return CannotBeSent("it is a duration: write it as text")
    return _unescape_text(value)


def _unescape_text(text: str) -> str:
    if "_x" in text:
        text = unescape(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
