"""Reading Excel workbooks: the first sheet that is shown, with the values that Excel stored for its formulas."""

from __future__ import annotations

import datetime as dt
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import openpyxl
from openpyxl.utils.cell import coordinate_from_string

from pipelines.write_back.input.grid import InputError, Rows, rows_of_records

#: What a formula that failed leaves in its cell.
_ERRORS = frozenset({"#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#SPILL!", "#CALC!"})
_CELL = re.compile(rb"<(?:\w+:)?c\b([^>]*[^/>])>(.*?)</(?:\w+:)?c>", re.DOTALL)
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_VALUE = re.compile(rb"<(?:\w+:)?v>[^<]")
_PLACE = re.compile(rb'\br="([A-Z]+\d+)"')


def read_excel(name: str, content: bytes) -> Rows:
    """The rows of an .xlsx file. A formula without a stored value is a fault of its row. Raises InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, which do not matter here
            return _read(name, content)
    except InputError:
        raise
    except Exception as problem:  # openpyxl lets many kinds of errors through for damaged files
        raise InputError(f"{name} cannot be read as an Excel workbook ({type(problem).__name__}): save it anew, or as CSV") from None


def _read(name: str, content: bytes) -> Rows:
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        if not sheets:
            raise InputError(f"{name} has no sheet with cells")
        sheet = sheets[0]
        sheet.reset_dimensions()  # some programs write a wrong size, and cells beyond it would be lost
        faults = dict(_not_calculated(content, sheet._worksheet_path))  # type: ignore[attr-defined]
        records = [_record(values) for values in sheet.iter_rows(values_only=True)]
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


def _not_calculated(content: bytes, path: str) -> Iterator[tuple[int, str]]:
    """Formulas that were written by a program that does not calculate. An empty text as result (`t="str"`) is a value."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheet = archive.read(path.lstrip("/"))
    if not _FORMULA.search(sheet):
        return
    for attributes, inner in _CELL.findall(sheet):
        if _FORMULA.search(inner) and not _VALUE.search(inner) and b't="str"' not in attributes and (place := _PLACE.search(attributes)):
            where = place[1].decode()
            yield (
                coordinate_from_string(where)[1],
                f"the formula in cell {where} has no stored value: open the file in Excel, save it, and try again",
            )
