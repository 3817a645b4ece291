"""The rows of a query in the form that a person chose: a table for the terminal, CSV, JSON or a
workbook.

Not here: what keeps the query to the tables (`warehouse.sealed_query`)."""

import csv
import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import duckdb
import msgspec

from home.formatting import count_of
from warehouse.sealed_query import QueryFailed

#: Rows of a table on the terminal; its last line says how many more there are.
_TABLE_ROWS = 100
_BATCH = 10_000
#: What a sheet of Excel holds: rows below the header, characters of a cell, digits of a number, and
#: years, without that of infinity.
_SHEET_ROWS, _CELL_LENGTH, _DIGITS, _YEARS = 1_048_575, 32_767, 15, range(1901, 9999)
#: Characters that no workbook may have.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

#: JSON with times in ISO 8601, NaN and infinity as null, and types that JSON does not know as text.
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode


def write_output(
    connection: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str, width: int
) -> str:
    """Write the rows into the file at `path`; returns what is to be said of a workbook. `form`:
    table, csv, json or excel; `width`: columns of the terminal."""
    if form == "excel":
        return _write_excel(connection.execute(sql), path)
    with path.open("w", encoding="utf-8", newline="") as file:
        if form == "table":
            with redirect_stdout(file):
                connection.sql(sql).show(max_width=width, max_rows=_TABLE_ROWS)
        else:
            write_rows = _write_csv if form == "csv" else _write_json
            write_rows(connection.execute(sql), file)
    return ""


def _write_csv(found: duckdb.DuckDBPyConnection, file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_column_names(found))
    writer.writerows(map(_plain_value, row) for row in _fetch_rows(found))


def _write_json(found: duckdb.DuckDBPyConnection, file: TextIO) -> None:
    names = _column_names(found)
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise QueryFailed(
            f"two columns are called {', '.join(repeated)}: give one another name with AS"
        )
    separator = "[\n"
    for row in _fetch_rows(found):
        file.write(separator + _encode(dict(zip(names, row, strict=True))).decode())
        separator = ",\n"
    file.write("\n]\n" if separator == ",\n" else "[]\n")


def _write_excel(found: duckdb.DuckDBPyConnection, path: Path) -> str:
    from openpyxl import Workbook  # takes half a second
    from openpyxl.cell import WriteOnlyCell

    (zone,) = found.cursor().execute("select current_setting('timezone')").fetchone() or ("UTC",)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("query")
    row_count = 0

    def make_cell(value: Any) -> Any:
        value = _cell_value(value)
        if not isinstance(value, str):
            return value
        made = WriteOnlyCell(sheet)
        made.value, made.data_type = value[:_CELL_LENGTH], "s"  # also one that looks like a formula
        return made

    columns = [(str(name), str(sql_type)) for name, sql_type, *_ in found.description or ()]
    sheet.append(
        [
            make_cell(f"{name} ({zone})" if "WITH TIME ZONE" in kind else name)
            for name, kind in columns
        ]
    )
    for row_count, row in enumerate(_fetch_rows(found), start=1):
        if row_count > _SHEET_ROWS:
            raise QueryFailed(
                f"a sheet holds {_SHEET_ROWS:,} rows: let the query give fewer, or take --csv"
            )
        sheet.append([make_cell(value) for value in row])
    book.save(path)
    return count_of(row_count, "row")


def _column_names(found: duckdb.DuckDBPyConnection) -> list[str]:
    return [str(column[0]) for column in found.description or ()]


def _fetch_rows(found: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
    while batch := found.fetchmany(_BATCH):
        yield from batch


def _plain_value(value: Any) -> Any:
    """The value; JSON where CSV and Excel have no form for it."""
    if isinstance(value, bool):
        return str(value).lower()
    return _encode(value).decode() if isinstance(value, list | tuple | dict) else value


def _cell_value(value: Any) -> Any:
    """A value that a cell holds unchanged: numbers of at most 15 digits, times of these years
    without their zone; the text of all others."""
    if isinstance(value, dt.datetime | dt.date) and value.year in _YEARS:
        return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
    if isinstance(value, bool | dt.time | dt.timedelta | None):
        return value
    if (
        isinstance(value, int | float | Decimal)
        and math.isfinite(value)
        and len(str(int(value))) <= _DIGITS
    ):
        return value
    value = _plain_value(value)
    return _CONTROLS.sub("", value if isinstance(value, str) else str(value))
