"""Writes the rows of a query as a table for the terminal, as CSV, as JSON or as a workbook.

Not here: what limits the query (`warehouse.sealed_query`)."""

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
from warehouse.sql import quote_text

#: The rows of a table on the terminal; its last line says how many there are.
_TABLE_ROWS = 100
_BATCH = 10_000
#: Limits of an Excel sheet: rows below the header, characters of a cell, digits of a number, and
#: years (DuckDB's infinity is the year 9999).
_SHEET_ROWS = 1_048_575
_CELL_LENGTH = 32_767
_DIGITS = 15
_YEARS = range(1901, 9999)
#: Characters that a workbook must not contain.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

#: JSON with times in ISO 8601, NaN and infinity as null, and other types as text.
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode


def write_output(
    connection: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str, width: int
) -> str:
    """Write the rows to `path`; returns a message about a workbook, else an empty text. `form`:
    table, csv, json or excel; `width`: columns of the terminal."""
    if form == "excel":
        return _write_excel(connection.execute(sql), path)
    with path.open("w", encoding="utf-8", newline="") as file:
        if form == "table":
            # `sql` alone does not accept a comment after a semicolon
            rows = connection.sql(f"from query({quote_text(sql)})")
            with redirect_stdout(file):
                rows.show(max_width=width, max_rows=_TABLE_ROWS)
        else:
            write_rows = _write_csv if form == "csv" else _write_json
            write_rows(connection.execute(sql), file)
    return ""


def _write_csv(result: duckdb.DuckDBPyConnection, file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_column_names(result))
    writer.writerows(map(_plain_value, row) for row in _fetch_rows(result))


def _write_json(result: duckdb.DuckDBPyConnection, file: TextIO) -> None:
    names = _column_names(result)
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise QueryFailed(f"two columns are called {', '.join(repeated)}: rename one with AS")
    separator = "[\n"
    for row in _fetch_rows(result):
        file.write(separator + _encode(dict(zip(names, row, strict=True))).decode())
        separator = ",\n"
    file.write("\n]\n" if separator == ",\n" else "[]\n")


def _write_excel(result: duckdb.DuckDBPyConnection, path: Path) -> str:
    from openpyxl import Workbook  # takes half a second
    from openpyxl.cell import WriteOnlyCell

    (zone,) = result.cursor().execute("select current_setting('timezone')").fetchone() or ("UTC",)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("query")
    row_count = 0

    def make_cell(value: Any) -> Any:
        value = _cell_value(value)
        if not isinstance(value, str):
            return value
        cell = WriteOnlyCell(sheet)
        cell.value = value[:_CELL_LENGTH]
        cell.data_type = "s"  # also if it looks like a formula
        return cell

    columns = [(str(name), str(sql_type)) for name, sql_type, *_ in result.description or ()]
    titles = [f"{name} ({zone})" if "WITH TIME ZONE" in kind else name for name, kind in columns]
    sheet.append([make_cell(title) for title in titles])
    for row_count, row in enumerate(_fetch_rows(result), start=1):
        if row_count > _SHEET_ROWS:
            raise QueryFailed(
                f"the result has more rows than an Excel sheet ({_SHEET_ROWS:,}): use --csv"
            )
        sheet.append([make_cell(value) for value in row])
    book.save(path)
    return count_of(row_count, "row")


def _column_names(result: duckdb.DuckDBPyConnection) -> list[str]:
    return [str(column[0]) for column in result.description or ()]


def _fetch_rows(result: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
    while batch := result.fetchmany(_BATCH):
        yield from batch


def _plain_value(value: Any) -> Any:
    """The value; JSON if it is a list or structure."""
    if isinstance(value, bool):
        return str(value).lower()
    return _encode(value).decode() if isinstance(value, list | tuple | dict) else value


def _cell_value(value: Any) -> Any:
    """The value if a cell stores it exactly, else its text. A cell stores numbers of up to 15
    digits, and times of `_YEARS` without their zone."""
    if isinstance(value, dt.datetime | dt.date) and value.year in _YEARS:
        return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
    if isinstance(value, bool | dt.time | dt.timedelta | None):
        return value
    is_finite = isinstance(value, int | float | Decimal) and math.isfinite(value)
    if is_finite and len(str(int(value))) <= _DIGITS:
        return value
    value = _plain_value(value)
    return _CONTROLS.sub("", value if isinstance(value, str) else str(value))
