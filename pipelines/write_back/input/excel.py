"""Reading Excel workbooks: the first sheet that is shown, with the values that Excel stored for its formulas."""

from __future__ import annotations

import copy
import datetime as dt
import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

import openpyxl
from openpyxl.utils.cell import coordinate_from_string

from pipelines.write_back.input.grid import InputError, RequestBudget, Rows, rows_of_records

#: What a formula that failed leaves in its cell.
_ERRORS = frozenset({"#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#SPILL!", "#CALC!"})
_CELL = re.compile(rb"<(?:\w+:)?c\s([^<>]*)>")
_CELL_END = re.compile(rb"</(?:\w+:)?c>")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_VALUE = re.compile(rb"<(?:\w+:)?v>[^<]")
#: Bytes that are unpacked at once, and of a cell (Excel's own limit is 32,767 letters).
_CHUNK, _LONGEST_CELL = 1 << 20, 1 << 18
_PLACE = re.compile(rb'\br="([A-Z]+\d+)"')


def read_excel(name: str, content: bytes, budget: RequestBudget) -> Rows:
    """The rows of an .xlsx file. A formula without a stored value is a fault of its row. Raises InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, which do not matter here
            _check_size(content, budget)
            return _read(name, content, budget)
    except InputError:
        raise
    except Exception as problem:  # openpyxl lets many kinds of errors through for damaged files
        raise InputError(f"{name} cannot be read as an Excel workbook ({type(problem).__name__}): save it anew, or as CSV") from None


def _read(name: str, content: bytes, budget: RequestBudget) -> Rows:
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        if not sheets:
            raise InputError(f"{name} has no sheet with cells")
        sheet = sheets[0]
        sheet.reset_dimensions()  # some programs write a wrong size, and cells beyond it would be lost
        faults = dict(_not_calculated(content, sheet._worksheet_path))  # type: ignore[attr-defined]
        records = [_record(values) for values in budget.records(sheet.iter_rows(values_only=True))]
        for number, record in enumerate(records, 1):
            if not _ERRORS.isdisjoint(value for value in record if type(value) is str):
                faults.setdefault(number, "a formula in it failed: a cell shows an error like #N/A")
        said = [f"{name} has {len(sheets)} sheets; only the first, {sheet.title}, is read"] if len(sheets) > 1 else []
        return rows_of_records(name, records, faults=faults, warnings=said)
    finally:
        book.close()


def _record(values: tuple[Any, ...]) -> list[Any]:
    return [_rounded(value) if isinstance(value, dt.datetime) else value for value in values]


def _rounded(moment: dt.datetime) -> dt.datetime:
    """Excel keeps moments as fractions of days, which miss the second by a little."""
    return (moment + dt.timedelta(milliseconds=500)).replace(microsecond=0)


def _check_size(content: bytes, budget: RequestBudget) -> None:
    """Unpack everything a piece at a time, to know how large it is: the directory may say what it likes, and openpyxl believes it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile
            packed = copy.copy(member)
            packed.compress_type, packed.file_size, packed.CRC = zipfile.ZIP_STORED, member.compress_size, None  # type: ignore[assignment]
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            with archive.open(packed) as stream:
                while chunk := stream.read(_CHUNK):
                    if member.compress_type == zipfile.ZIP_STORED:
                        budget.take(len(chunk))
                    while chunk and member.compress_type == zipfile.ZIP_DEFLATED:
                        budget.take(len(inflater.decompress(chunk, _CHUNK)))
                        chunk = inflater.unconsumed_tail


def _not_calculated(content: bytes, path: str) -> Iterator[tuple[int, str]]:
    """Formulas that were written by a program that does not calculate. An empty text as result (`t="str"`) is a value."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(path.lstrip("/")) as sheet:
        for text in _cells(sheet):
            if not _FORMULA.search(text) or not (cells := list(_CELL.finditer(text))):
                continue
            attributes, inner = cells[-1][1], text[cells[-1].end() :]
            if (
                _FORMULA.search(inner)
                and not _VALUE.search(inner)
                and b't="str"' not in attributes
                and (place := _PLACE.search(attributes))
            ):
                where = place[1].decode()
                yield (
                    coordinate_from_string(where)[1],
                    f"the formula in cell {where} has no stored value: open the file in Excel, save it, and try again",
                )


def _cells(sheet: IO[bytes]) -> Iterator[bytes]:
    """The text up to each cell's end tag, from the one before it."""
    held = b""
    while chunk := sheet.read(_CHUNK):
        *whole, held = _CELL_END.split(held + chunk)
        yield from whole
        held = held[-_LONGEST_CELL:]
