"""Reading CSV and TSV in the forms that spreadsheets and databases write: encodings, delimiters, quoted line breaks."""

from __future__ import annotations

import csv
import io

from pipelines.write_back.input.grid import InputError, Rows, rows_of_records

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_DELIMITERS = ",;\t"


def read_csv(name: str, content: bytes, *, prefers_tabs: bool = False) -> Rows:
    """The rows of a CSV file. Raises InputError for what is no text, and for quotation marks that do not match."""
    text, warnings = _decoded(name, content)
    lines = io.StringIO(text, newline="")  # CR, LF and CRLF end a line, as for csv
    first = lines.readline()
    if first.strip().lower().startswith("sep=") and len(first.strip()) == 5:  # a spreadsheet's own hint, which it does not show as a row
        delimiter, text = first.strip()[4], lines.read()
    else:
        delimiter = _delimiter(text, "\t,;" if prefers_tabs else _DELIMITERS)
    return rows_of_records(name, _records(name, text, delimiter), warnings=warnings)


def _decoded(name: str, content: bytes) -> tuple[str, list[str]]:
    if content.startswith(_UTF_16):
        return content.decode("utf-16", "replace"), []
    if b"\0" in content:
        raise InputError(f"{name} is no text: give a CSV, TSV, Parquet or Excel (.xlsx) file")
    try:
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        pass
    said = "is not UTF-8 and was read as Windows-1252: look at letters like é and ü in the plan before sending"
    try:
        return content.decode("cp1252"), [f"{name} {said}"]
    except UnicodeDecodeError:
        return content.decode("latin-1"), [f"{name} {said.replace('Windows-1252', 'Latin-1')}"]


def _delimiter(text: str, candidates: str) -> str:
    """The one that splits the header into most columns; the first of them for a single column."""
    header = next((line for line in io.StringIO(text, newline="") if line.strip()), "")
    return max(candidates, key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter), [])))


def _records(name: str, text: str, delimiter: str) -> list[list[str]]:
    """Strict, since a quotation mark that is never closed would swallow the rest of the file into one cell."""
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            records.append(record)
    except csv.Error as problem:
        if "field larger" in str(problem):
            raise InputError(
                f"{name}: row {len(records) + 1} has a cell of more than {csv.field_size_limit():,} characters: shorten it, or close "
                "a quotation mark that is open"
            ) from None
        raise InputError(
            f"{name}: row {len(records) + 1} cannot be read: a quotation mark opens or closes in the wrong place; "
            'inside a quoted cell write it twice (""), and close every one'
        ) from None
    return records
