"""Reading a workbook (.xlsx, also in its strict form): what the first sheet that is shown shows.

Read here rather than by openpyxl, which tells neither which rows are hidden nor how a number is shown without
reading the sheet twice, and no strict form. Not here: formats of numbers (`number_formats`)."""

import datetime as dt
import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from write_back.input.number_formats import BUILTIN, Unshown, shown_number, shown_text
from write_back.input.rows import CannotBeSent, InputError, Seen

#: A character that XML cannot hold, or the `_` of a text that looks like one.
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_REFERENCE = re.compile(r"([A-Z]{1,3})[0-9]{1,7}", re.ASCII)
_TRUE = ("1", "true")
_NOT_CALCULATED = "the formula in cell {} has no stored value: open the file in Excel, save it, and try again"
#: The folder that names, beside each part of a package, the parts that belong to it.
_RELATIONS = "_rels"


class Line(NamedTuple):
    """A row of the sheet; CannotBeSent in place of a cell that cannot be read."""

    number: int
    cells: list[str | CannotBeSent | None]
    is_hidden: bool


@dataclass
class Sheet:
    """`hidden_columns` (from 0) are known once `lines` are read."""

    title: str
    sheet_count: int
    lines: Iterator[Line]
    hidden_columns: set[int] = field(default_factory=set)


def first_sheet(name: str, archive: zipfile.ZipFile) -> Sheet:
    """Raises InputError, and what zipfile and ElementTree raise for damaged files."""
    book = _Book(archive)
    shown = [
        sheet
        for sheet in book.root.findall("{*}sheets/{*}sheet")
        if sheet.get("state", "visible") == "visible"
    ]
    paths = [path for sheet in shown if (path := book.path_of(sheet)) in archive.namelist()]
    if not paths:
        raise InputError(f"{name} has no sheet with cells")
    found = Sheet(shown[0].get("name", ""), len(shown), iter(()))
    found.lines = book.lines(paths[0], found.hidden_columns)
    return found


class _Book:
    """The parts of a workbook."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._path = next(iter(self._relations("").get("officeDocument", {}).values()), "xl/workbook.xml")
        self.root = self._xml(self._path)
        self._related = self._relations(self._path)
        properties = self.root.find("{*}workbookPr")
        self.since_1904 = properties is not None and properties.get("date1904") in _TRUE
        self._texts = [_text(each) for each in self._parts("sharedStrings", "{*}si")]

    def _xml(self, path: str) -> Element:
        return ElementTree.fromstring(self._archive.read(path))  # noqa: S314 (expat limits entities)

    def _relations(self, path: str) -> dict[str, dict[str, str]]:
        """Type → id → path."""
        folder, name = posixpath.split(path)
        own = posixpath.join(folder, _RELATIONS, f"{name}.rels")
        found: dict[str, dict[str, str]] = {}
        for each in self._xml(own) if own in self._archive.namelist() else ():
            kind = each.get("Type", "").rpartition("/")[2]
            target = posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/")
            found.setdefault(kind, {})[each.get("Id", "")] = target
        return found

    def path_of(self, sheet: Element) -> str:
        relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), "")
        return self._related.get("worksheet", {}).get(relation, "")

    def _parts(self, kind: str, tag: str) -> list[Element]:
        return [
            each for path in self._related.get(kind, {}).values() for each in self._xml(path).findall(tag)
        ]

    @cached_property
    def _formats(self) -> list[str]:
        """The format of each style of cells."""
        own = {
            each.get("numFmtId"): each.get("formatCode", "")
            for each in self._parts("styles", "{*}numFmts/{*}numFmt")
        }
        ids = [each.get("numFmtId", "0") for each in self._parts("styles", "{*}cellXfs/{*}xf")]
        return [own.get(each) or BUILTIN.get(int(each), "General") for each in ids]

    def _format(self, cell: Element) -> str:
        style = int(cell.get("s") or 0)
        return self._formats[style] if style < len(self._formats) else "General"

    def lines(self, path: str, hidden_columns: set[int]) -> Iterator[Line]:
        number = 0
        with self._archive.open(path) as sheet:
            for _, element in ElementTree.iterparse(sheet):  # noqa: S314 (as above)
                tag = element.tag.rpartition("}")[2]
                if tag == "row":
                    number = int(element.get("r") or number + 1)
                    yield self._line(number, element)
                    element.clear()
                elif tag == "col" and element.get("hidden") in _TRUE:
                    hidden_columns.update(
                        range(int(element.get("min", "1")) - 1, min(int(element.get("max", "1")), 16_384))
                    )

    def _line(self, number: int, row: Element) -> Line:
        is_hidden = row.get("hidden") in _TRUE or row.get("zeroHeight") in _TRUE or _has_no_height(row)
        line, place = Line(number, [], is_hidden), -1
        for cell in row.iterfind("{*}c"):
            place = _column_index(cell.get("r")) if cell.get("r") else place + 1
            line.cells.extend([None] * (place + 1 - len(line.cells)))
            line.cells[place] = self._cell(cell)
        return line

    def _cell(self, cell: Element) -> str | CannotBeSent | None:
        kind, raw = cell.get("t", "n"), cell.findtext("{*}v") or ""
        code = self._format(cell)
        if kind == "inlineStr":
            return shown_text(_text(cell.find("{*}is")), code)
        if kind == "str":
            return shown_text(_unescaped(raw), code)
        if not raw:
            has_formula = cell.find("{*}f") is not None
            return CannotBeSent(_NOT_CALCULATED.format(cell.get("r", ""))) if has_formula else None
        if kind == "s":
            return shown_text(self._texts[int(raw)], code)
        if kind == "b":
            return "TRUE" if raw in _TRUE else "FALSE"
        if kind == "e":
            return raw
        return self._number(_serial(raw, self.since_1904) if kind == "d" else float(raw), code)

    def _number(self, value: float, code: str) -> str | CannotBeSent:
        try:
            text, moment = shown_number(value, code, since_1904=self.since_1904)
        except Unshown:
            return CannotBeSent("a cell shows nothing but #####: it holds no date that there is")
        return Seen(text, value if moment is None else moment)


def _column_index(reference: str | None) -> int:
    """`AB12` → 27."""
    match = _REFERENCE.fullmatch(reference or "")
    if match is None:
        raise ValueError("not the reference of a cell")
    place = 0
    for letter in match[1]:
        place = place * 26 + ord(letter) - 64
    return place - 1


def _has_no_height(row: Element) -> bool:
    """Which hides it, too."""
    return row.get("customHeight") in _TRUE and float(row.get("ht") or 1) == 0


def _text(item: Element | None) -> str:
    """Of all its runs, without what tells how it is spoken."""
    texts = () if item is None else (*item.iterfind("{*}t"), *item.iterfind("{*}r/{*}t"))
    return _unescaped("".join(each.text or "" for each in texts))


def _unescaped(text: str) -> str:
    if "_x" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _serial(text: str, since_1904: bool) -> float:
    """Of a date as the strict form writes it."""
    moment = dt.datetime.fromisoformat(text.removesuffix("Z"))
    epoch = dt.datetime(1904, 1, 1) if since_1904 else dt.datetime(1899, 12, 30)
    return (moment - epoch) / dt.timedelta(days=1)
