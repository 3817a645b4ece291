"""Reading a workbook (.xlsx, also in its strict form): which sheet is read, and what it shows.

Read here rather than by openpyxl, which tells neither which rows are hidden nor how a number is shown without
reading the sheet twice, and no strict form. Not here: formats of numbers (`number_formats`)."""

import datetime as dt
import math
import posixpath
import re
import zipfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from write_back.input.columns import names_somebody, suggest_names
from write_back.input.number_formats import BUILTIN, UNKNOWN, show_number
from write_back.input.rows import CannotBeSent, Cell, Covered, InputError, header_of, show_name

#: A character that XML cannot hold, or the `_` of a text that looks like one.
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})", re.ASCII)
_TRUE = ("1", "true")
#: What every package of this kind has.
_TYPES = "[Content_Types].xml"
_NOT_CALCULATED = "the formula in cell {} has no stored value: open the file in Excel, save it, and try again"
#: The folder that names, beside each part of a package, the parts that belong to it.
_RELATIONS = "_rels"


class Line(NamedTuple):
    """A row of the sheet; CannotBeSent in place of a cell that cannot be read."""

    number: int
    cells: list[str | CannotBeSent | None]
    is_hidden: bool


class Merged(NamedTuple):
    """Cells that are shown as one, which has the value of the first; columns from 0."""

    first_row: int
    last_row: int
    first_column: int
    last_column: int


@dataclass
class Sheet:
    """`hidden_columns` (from 0) and `merged` are known once its lines are read."""

    title: str
    path: str
    is_hidden: bool
    hidden_columns: set[int] = field(default_factory=set)
    merged: list[Merged] = field(default_factory=list)


_COVERED = "it is part of a merged cell that begins in another column: unmerge that and fill each cell"
#: Called with the number of cells of each row (`InputBudget.take_bytes`); raises InputError for too many.
Take = Callable[..., None]


def choose_sheet(
    name: str,
    archive: zipfile.ZipFile,
    take: Take,
    title: str | None,
    fits: Callable[[Sequence[Cell]], bool],
) -> tuple[Sheet, list[Line], list[str]]:
    """The sheet of that title, else the first visible one whose header `fits`, else the first visible one;
    with its lines and notes for the plan. Raises InputError, and what zipfile and ElementTree raise for
    damaged files."""
    _check_is_workbook(name, archive)
    book = _Book(archive)
    if title is not None:
        sheet = _find_sheet(name, book.sheets, title)
        return sheet, book.read_lines(sheet, take), []
    shown_sheets = [sheet for sheet in book.sheets if not sheet.is_hidden]
    if not shown_sheets:
        raise InputError(f"{name} has no sheet with cells")
    first: list[Line] | None = None
    for sheet in shown_sheets:
        lines = book.read_lines(sheet, take)
        first = lines if first is None else first
        if fits(header_of((line.cells for line in lines if not line.is_hidden), names_somebody)):
            break
    else:
        sheet, lines = shown_sheets[0], first or []
    others = len(shown_sheets) - 1
    note = f"{name}: the sheet {show_name(sheet.title)} is read, one of {others + 1}; --sheet chooses another"
    return sheet, lines, [note] if others else []


def _check_is_workbook(name: str, archive: zipfile.ZipFile) -> None:
    parts = set(archive.namelist())
    if "xl/workbook.xml" in parts or (_TYPES in parts and "xl/workbook.bin" not in parts):
        return
    raise InputError(
        f"{name} is a ZIP archive, or a workbook like .ods, .xlsb or .numbers, which cannot be read: save "
        "the table as .xlsx or CSV UTF-8"
    )


def _find_sheet(name: str, sheets: Sequence[Sheet], title: str) -> Sheet:
    found = next((sheet for sheet in sheets if sheet.title.casefold() == title.casefold()), None)
    if found is None:
        titles = [sheet.title for sheet in sheets]
        there = ", ".join(map(show_name, titles[:20]))
        raise InputError(
            f"{name} has no sheet {show_name(title)}{suggest_names(title, titles)}; it has {there}"
        )
    return found


class _Book:
    """The parts of a workbook."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._path = next(
            iter(self._read_relations("").get("officeDocument", {}).values()), "xl/workbook.xml"
        )
        self._root = self._read_xml(self._path)
        self._related = self._read_relations(self._path)
        properties = self._root.find("{*}workbookPr")
        self.since_1904 = properties is not None and properties.get("date1904") in _TRUE
        self._texts = [_join_text(each) for each in self._read_parts("sharedStrings", "{*}si")]

    def _read_xml(self, path: str) -> Element:
        return ElementTree.fromstring(self._archive.read(path))  # noqa: S314 (expat limits entities)

    def _read_relations(self, path: str) -> dict[str, dict[str, str]]:
        """Type → id → path."""
        folder, name = posixpath.split(path)
        own = posixpath.join(folder, _RELATIONS, f"{name}.rels")
        found: dict[str, dict[str, str]] = {}
        for each in self._read_xml(own) if own in self._archive.namelist() else ():
            kind = each.get("Type", "").rpartition("/")[2]
            target = posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/")
            found.setdefault(kind, {})[each.get("Id", "")] = target
        return found

    @cached_property
    def sheets(self) -> list[Sheet]:
        """Those with cells: charts have none."""
        parts, paths = set(self._archive.namelist()), self._related.get("worksheet", {})
        found = []
        for sheet in self._root.findall("{*}sheets/{*}sheet"):
            relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), "")
            path, state = paths.get(relation, ""), sheet.get("state", "visible")
            if path in parts:
                found.append(Sheet(sheet.get("name", ""), path, is_hidden=state != "visible"))
        return found

    def _read_parts(self, kind: str, tag: str) -> list[Element]:
        return [
            each
            for path in self._related.get(kind, {}).values()
            for each in self._read_xml(path).findall(tag)
        ]

    @cached_property
    def _style_formats(self) -> list[str]:
        """The format of each style of cells."""
        own = {
            each.get("numFmtId"): each.get("formatCode", "")
            for each in self._read_parts("styles", "{*}numFmts/{*}numFmt")
        }
        ids = [each.get("numFmtId", "0") for each in self._read_parts("styles", "{*}cellXfs/{*}xf")]
        return [own.get(each, BUILTIN.get(int(each), UNKNOWN)) for each in ids]

    def read_lines(self, sheet: Sheet, take: Take) -> list[Line]:
        """Its rows, with what merged cells show."""
        lines = list(self._read_lines(sheet, take))
        _fill_merged(lines, sheet.merged, take)
        return lines

    def _read_lines(self, sheet: Sheet, take: Take) -> Iterator[Line]:
        last = 0
        with self._archive.open(sheet.path) as stream:
            for _, element in ElementTree.iterparse(stream):  # noqa: S314 (as above)
                tag = element.tag.rpartition("}")[2]
                if tag == "row":
                    number = int(element.get("r") or last + 1)
                    if number <= last:
                        raise ValueError("rows out of order")
                    line = self._read_line(number, element)
                    take(cells=len(line.cells) or 1)
                    yield line
                    last = number
                    element.clear()
                elif tag == "col" and element.get("hidden") in _TRUE:
                    sheet.hidden_columns.update(
                        range(int(element.get("min", "1")) - 1, min(int(element.get("max", "1")), 16_384))
                    )
                elif tag == "mergeCell":
                    sheet.merged.append(_read_merged(element.get("ref", "")))

    def _read_line(self, number: int, row: Element) -> Line:
        line, place = Line(number, [], row.get("hidden") in _TRUE), -1
        for cell in row.iterfind("{*}c"):
            place = _read_place(cell.get("r"))[1] if cell.get("r") else place + 1
            line.cells.extend([None] * (place + 1 - len(line.cells)))
            line.cells[place] = self._read_cell(cell)
        return line

    def _read_cell(self, cell: Element) -> str | CannotBeSent | None:
        kind, raw = cell.get("t", "n"), cell.findtext("{*}v") or ""
        if kind == "inlineStr":
            return _join_text(cell.find("{*}is"))
        if kind == "str":
            return _unescape_text(raw)
        if not raw:
            has_formula = cell.find("{*}f") is not None
            return CannotBeSent(_NOT_CALCULATED.format(cell.get("r", ""))) if has_formula else None
        if kind == "s":
            return self._texts[int(raw)]
        if kind == "b":
            return "TRUE" if raw in _TRUE else "FALSE"
        return raw if kind == "e" else self._read_number(cell, kind, raw)

    def _read_number(self, cell: Element, kind: str, raw: str) -> str | CannotBeSent:
        value = _to_serial(raw, self.since_1904) if kind == "d" else float(raw)
        if not math.isfinite(value):
            return CannotBeSent("the cell has no number that can be sent")
        style = int(cell.get("s") or 0)
        code = self._style_formats[style] if style < len(self._style_formats) else "General"
        return show_number(value, code, since_1904=self.since_1904)


def _fill_merged(lines: list[Line], merged: Sequence[Merged], take: Take) -> None:
    """Give each row of a merged cell its value, unless the row has nothing else. In other columns that the
    cell covers, a row's value is unknown."""
    numbers = [line.number for line in lines]
    is_empty = [not any(line.cells) for line in lines]
    for area in merged:
        width = area.last_column - area.first_column
        places = range(bisect_left(numbers, area.first_row), bisect_right(numbers, area.last_row))
        value: str | CannotBeSent | None = None
        for place in places:
            number, cells, _ = lines[place]
            if is_empty[place]:
                continue
            take(cells=width + 1)
            cells.extend([None] * (area.last_column + 1 - len(cells)))
            if number == area.first_row:
                value = cells[area.first_column]
            covered = None if value is None else Covered(_COVERED)
            cells[area.first_column : area.last_column + 1] = [value, *[covered] * width]


def _read_merged(reference: str) -> Merged:
    """`B2:C4` → rows 2 to 4 of the columns 1 and 2."""
    first, _, last = reference.partition(":")
    (first_row, first_column), (last_row, last_column) = _read_place(first), _read_place(last or first)
    return Merged(first_row, last_row, first_column, last_column)


def _read_place(reference: str | None) -> tuple[int, int]:
    """Row and column (from 0): `AB12` → 12, 27."""
    match = _REFERENCE.fullmatch(reference or "")
    if match is None:
        raise ValueError("not the reference of a cell")
    column = 0
    for letter in match[1]:
        column = column * 26 + ord(letter) - 64
    return int(match[2]), column - 1


def _join_text(item: Element | None) -> str:
    """Of all its runs, without what tells how it is spoken."""
    texts = () if item is None else (*item.iterfind("{*}t"), *item.iterfind("{*}r/{*}t"))
    return _unescape_text("".join(each.text or "" for each in texts))


def _unescape_text(text: str) -> str:
    if "_x" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _to_serial(text: str, since_1904: bool) -> float:
    """Of a date as the strict form writes it."""
    moment = dt.datetime.fromisoformat(text.removesuffix("Z"))
    epoch = dt.datetime(1904, 1, 1) if since_1904 else dt.datetime(1899, 12, 30)
    return (moment - epoch) / dt.timedelta(days=1)
