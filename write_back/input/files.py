"""Reading the input of a push: CSV, TSV, Excel and Parquet files, or standard input.

The content decides the format, before the name. Python's `csv` reads CSV: the readers of DuckDB and
pyarrow are ten times as fast, but they join rows after an unclosed quotation mark, and do not count
blank rows. Not here: decoding bytes (`encodings`), choosing a workbook's sheet (`workbook`),
queries (`query`), what columns mean (`columns`)."""

import codecs
import contextlib
import copy
import csv
import io
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from home.formatting import count_of
from home.settings import INPUT_LIMIT
from write_back.input.encodings import decode_text
from write_back.input.rows import (
    CannotBeSent,
    InputError,
    Rows,
    cell_of,
    rows_of_columns,
    rows_of_records,
    show_name,
)

_PARQUET = b"PAR1"
_ZIP = b"PK\x03\x04"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_NO_TABLE = (b"<", b"%PDF", b'{"', b"[{")
_DELIMITERS = ",;\t|"
#: A first line that tells Excel the delimiter.
_FOR_EXCEL = re.compile(r'\A"?sep=.?"?(?=[\r\n])', re.IGNORECASE)
#: Rows that are decoded together, which limits the memory.
BATCH = 50_000
#: Lines in which the delimiter is looked for, and letters of each line. csv's limit for a cell is
#: higher.
_HEADER_LINES = 30
_LONGEST_HEADER = 100_000
#: Bytes that are unpacked together.
_CHUNK = 1 << 20
#: The least memory that a cell takes.
_CELL_BYTES = 25


class InputBudget:
    """Counts the bytes and cells of an input. `limit`: in bytes (the setting
    MARKETING_INPUT_LIMIT)."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self.limit = limit
        self._size = self._cells = 0

    def take_bytes(self, size: int = 0, *, cells: int = 0) -> None:
        """Raises InputError when the input has more than its limit."""
        self._size += size
        self._cells += cells
        advice = "split it, or raise MARKETING_INPUT_LIMIT"
        if self._size > self.limit:
            raise InputError(f"{self._name} has more than {self.limit:,} bytes; {advice}")
        if self._cells * _CELL_BYTES > self.limit:
            raise InputError(
                f"{self._name} has more than {self.limit // _CELL_BYTES:,} cells; {advice}"
            )

    def limit_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches. Raises InputError after the limit."""
        for batch in batches:
            self.take_bytes(batch.nbytes, cells=batch.num_rows * (batch.num_columns or 1))
            yield batch


def read_file(
    path: Path,
    *,
    stdin: BinaryIO | None = None,
    limit: int = INPUT_LIMIT,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Rows:
    """The rows of a file of at most `limit` bytes, packed and unpacked; `-` is standard input.
    `encoding`: of a text file without a byte-order mark; `sheet`: of a workbook; None: the first.
    Raises InputError."""
    if str(path) == "-":
        name = "standard input"
        content = (stdin or sys.stdin.buffer).read(limit + 1)
    else:
        name = os.fsencode(path.name).decode(errors="replace")
        content = _read_content(path, limit)
    InputBudget(name, limit).take_bytes(len(content))
    budget = InputBudget(name, limit)
    if content.startswith(_ZIP):
        return _read_excel(name, content, budget, sheet)
    if content.startswith(_OLD_OFFICE):
        raise InputError(
            f"{name} is an old or protected Excel file: save it as .xlsx, without a password"
        )
    if sheet is not None:
        raise InputError(f"{name} is not an Excel workbook and has no sheets: leave --sheet out")
    if content.startswith(_PARQUET):
        return _read_parquet(name, content, budget)
    _check_is_text(name, path.suffix.lower(), content)
    return _read_csv(name, decode_text(name, content, encoding), budget)


def _check_is_text(name: str, suffix: str, content: bytes) -> None:
    """Raises InputError for files that are not CSV."""
    begins = content[:100].removeprefix(codecs.BOM_UTF8).lstrip()
    if begins.startswith(_NO_TABLE):
        raise InputError(
            f"{name} contains a web page, XML, JSON or a PDF: push an .xlsx or CSV file"
        )
    if content and suffix in (".parquet", ".xlsx", ".xlsm"):
        raise InputError(f"{name} is not a complete {suffix} file: export it again, or as CSV")


def _read_content(path: Path, limit: int) -> bytes:
    """Reads one byte more than the limit, which shows that the file is larger."""
    try:
        with path.expanduser().open("rb") as file:
            return file.read(limit + 1)
    except RuntimeError:  # such as `~$people.xlsx`
        raise InputError(f"{path} begins with ~, but no user has this name") from None
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: name a file in it") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


# -- CSV and TSV, in the forms that spreadsheets and databases write


def _read_csv(name: str, text: str, budget: InputBudget) -> Rows:
    text = _FOR_EXCEL.sub("", text)
    delimiter = max(_DELIMITERS, key=lambda sign: _count_columns(text, sign))
    lines: list[int] = []
    rows = rows_of_records(name, _read_records(name, text, budget, delimiter, lines))
    places = {number: f"line {lines[number - 1]}" for number in rows.numbers}
    return replace(rows, places=places)


def _count_columns(text: str, delimiter: str) -> int:
    """How many columns the header has with this delimiter. A quoted name may have line breaks."""
    first_lines = islice(io.StringIO(text, newline=""), _HEADER_LINES)
    lines = (line[:_LONGEST_HEADER] for line in first_lines)
    records = csv.reader(lines, delimiter=delimiter)
    with contextlib.suppress(csv.Error):
        return len(next(filter(any, records), ()))
    return 0


def _read_records(
    name: str, text: str, budget: InputBudget, delimiter: str, lines: list[int]
) -> Iterator[list[str]]:
    """The records, read strictly: an unclosed quotation mark would otherwise put the rest of the
    file into one cell. A blank before an opening quotation mark is allowed. `lines` gets the line
    on which each record begins."""
    stream = io.StringIO(text, newline="")
    reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True, strict=True)
    line = 1
    try:
        for record in reader:
            budget.take_bytes(cells=len(record) or 1)
            lines.append(line)
            yield record
            line = reader.line_num + 1
    except csv.Error as error:
        wrong = "cannot be read: a quotation mark opens or closes in the wrong place; "
        wrong += 'inside a quoted cell write it twice (""), and close every one'
        if "field larger" in str(error):
            wrong = (
                f"has a cell of more than {csv.field_size_limit():,} characters: shorten it, or "
                "close a quotation mark that is open"
            )
        raise InputError(f"{name}: row {len(lines) + 1} {wrong}") from None


# -- Excel: a sheet, with the stored values of its formulas


def _read_excel(name: str, content: bytes, budget: InputBudget, title: str | None) -> Rows:
    """The rows of an .xlsx file. A formula without a stored value is a fault of its row."""
    from write_back.input.workbook import read_sheet  # openpyxl takes half a second

    try:
        _check_size(content, budget)
        found, lines, notes = read_sheet(name, content, budget.take_bytes, title)
    except InputError:
        raise
    except Exception as error:  # damaged files raise many kinds of errors
        raise InputError(
            f"{name} cannot be read as an Excel workbook ({type(error).__name__}): save it "
            "again, or as CSV"
        ) from None
    hidden = [line.number for line in lines if line.is_hidden and any(line.cells)]
    if hidden:
        notes.append(_describe_hidden(hidden))
    lines = [line for line in lines if not line.is_hidden]
    cells = [line.cells for line in lines]
    numbers = [line.number for line in lines]
    rows = rows_of_records(name, cells, numbers=numbers, warnings=notes)
    places = {number: f"sheet {show_name(found)}, row {number}" for number in rows.numbers}
    return replace(rows, places=places)


def _describe_hidden(numbers: list[int]) -> str:
    which = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
    return (
        f"{count_of(len(numbers), 'hidden row')} left out (row {which}): unhide them to push "
        "them, too"
    )


def _check_size(content: bytes, budget: InputBudget) -> None:
    """Unpack everything in pieces to find out how large it is. The size in the archive's directory
    may be wrong, and zipfile trusts it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile
            whole = copy.copy(member)
            whole.file_size, whole.CRC = budget.limit + 1, None  # type: ignore[assignment] # none is checked
            with archive.open(whole) as stream:
                while chunk := stream.read(_CHUNK):
                    budget.take_bytes(len(chunk))


# -- columnar input: Parquet files and results of queries


def _read_parquet(name: str, content: bytes, budget: InputBudget) -> Rows:
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        return rows_of_batches(name, file.schema_arrow, file.iter_batches(BATCH), budget)
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"{name} has a column of a type that cannot be read: leave it out, or turn it into text"
        ) from None
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(
            f"{name} is not a complete Parquet file: export it again, or as CSV"
        ) from None


def rows_of_batches(
    name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], budget: InputBudget
) -> Rows:
    columns: list[list[Any]] = [[] for _ in schema.names]
    count = 0
    for batch in budget.limit_batches(batches):
        count += batch.num_rows
        for column, values in zip(columns, batch.columns, strict=True):
            column += _convert_values(values)
    return rows_of_columns(
        name, list(map(cell_of, schema.names)), columns, list(range(1, 1 + count))
    )


def _convert_values(values: pa.Array) -> list[Any]:
    """Python values, with CannotBeSent in place of values that Python does not have, such as a date
    after the year 9999."""
    kind = values.type
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        # by the shortest text: 0.1, not 0.10000000149
        texts = values.cast(pa.string()).to_pylist()
        return [None if text is None else float(text) for text in texts]
    if getattr(kind, "unit", "") == "ns":  # Python has no such type
        values = values.cast(_MICROSECONDS[type(kind)](kind), safe=False)
    try:
        found: list[Any] = values.to_pylist()
        return found
    except _NO_VALUE:
        return [_convert_value(value) for value in values]


_MICROSECONDS: Mapping[type, Callable[[Any], pa.DataType]] = {
    pa.TimestampType: lambda kind: pa.timestamp("us", kind.tz),
    pa.Time64Type: lambda _: pa.time64("us"),
    pa.DurationType: lambda _: pa.duration("us"),
}
#: An unknown zone raises KeyError.
_NO_VALUE = (pa.ArrowException, OverflowError, ValueError, KeyError)


def _convert_value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except _NO_VALUE:
        return CannotBeSent(
            "this value is neither text nor a valid date (infinity, or a year after 9999?)"
        )
