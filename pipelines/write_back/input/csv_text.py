"""Reading CSV and TSV in the forms that spreadsheets and databases write: encodings, delimiters, quoted line breaks."""

from __future__ import annotations

import codecs
import csv
import io

from pipelines.write_back.input.grid import InputError, RequestBudget, Rows, rows_of_records

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_DELIMITERS = ",;\t"
#: Letters of a header that are looked at, below csv's own limit for a cell; bytes that are decoded at once.
_LONGEST_HEADER, _CHUNK = 100_000, 1 << 20


def read_csv(name: str, content: bytes, budget: RequestBudget, *, prefers_tabs: bool = False) -> Rows:
    """The rows of a CSV file. Raises InputError for what is no text, and for quotation marks that do not match."""
    encoding, warnings = _encoding(name, content)
    lines = _lines(content, encoding)
    first = lines.readline(_LONGEST_HEADER)
    if first.strip().lower().startswith("sep=") and len(first.strip()) == 5:  # a spreadsheet's own hint, which it does not show as a row
        delimiter = first.strip()[4]
    else:
        lines, delimiter = _lines(content, encoding), _delimiter(_lines(content, encoding), "\t,;" if prefers_tabs else _DELIMITERS)
    return rows_of_records(name, _records(name, lines, delimiter, budget), warnings=warnings)


def _lines(content: bytes, encoding: str) -> io.TextIOWrapper:
    """CR, LF and CRLF end a line, as for csv. Decoded as they are read: all of it at once takes four times the memory."""
    return io.TextIOWrapper(io.BytesIO(content), encoding, "replace", newline="")


def _encoding(name: str, content: bytes) -> tuple[str, list[str]]:
    if content.startswith(_UTF_16):
        return "utf-16", []
    if b"\0" in content:
        raise InputError(f"{name} is no text: give a CSV, TSV, Parquet or Excel (.xlsx) file")
    if _is_text(content, "utf-8-sig"):
        return "utf-8-sig", []
    said = "is not UTF-8 and was read as Windows-1252: look at letters like é and ü in the plan before sending"
    if _is_text(content, "cp1252"):
        return "cp1252", [f"{name} {said}"]
    return "latin-1", [f"{name} {said.replace('Windows-1252', 'Latin-1')}"]


def _is_text(content: bytes, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for start in range(0, len(content), _CHUNK):
            decoder.decode(content[start : start + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(lines: io.TextIOWrapper, candidates: str) -> str:
    """The one that splits the header into most columns; the first of them for a single column."""
    header = next(filter(str.strip, iter(lambda: lines.readline(_LONGEST_HEADER), "")), "")
    return max(candidates, key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter), [])))


def _records(name: str, lines: io.TextIOWrapper, delimiter: str, budget: RequestBudget) -> list[list[str]]:
    """Strict, since a quotation mark that is never closed would swallow the rest of the file into one cell."""
    records: list[list[str]] = []
    try:
        for record in budget.records(csv.reader(lines, delimiter=delimiter, strict=True)):
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
