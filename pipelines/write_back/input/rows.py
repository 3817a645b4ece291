"""Reading the input of a push: a file of any usual kind, standard input, or a query on the warehouse.

Belongs here: telling what kind of file it is, by its content before its name. Not here: each kind (`csv_text`, `excel`, `arrow`),
what the columns mean (`columns`).
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from pipelines.settings import INPUT_LIMIT
from pipelines.write_back.input.arrow import read_parquet, read_query
from pipelines.write_back.input.csv_text import read_csv
from pipelines.write_back.input.grid import Cell, InputError, RequestBudget, Rows, text_of

__all__ = ["Cell", "InputError", "Rows", "read_file", "read_query", "text_of"]

_PARQUET, _ZIP, _OLD_OFFICE = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


def read_file(path: Path, *, stdin: BinaryIO | None = None, limit: int = INPUT_LIMIT) -> Rows:
    """The rows of a CSV, TSV, Parquet or Excel file of at most `limit` bytes, also unpacked; `-` is standard input. Raises InputError."""
    name, content = _content(path, stdin, limit)
    budget = RequestBudget(name, limit)
    if not content:
        raise InputError(f"{name} is empty: the first row has to name the columns, like email,tag")
    if content.startswith(_PARQUET):
        return read_parquet(name, content, budget)
    if content.startswith(_ZIP):
        from pipelines.write_back.input.excel import read_excel  # its library is large

        return read_excel(name, content, budget)
    if content.startswith(_OLD_OFFICE):
        raise InputError(f"{name} is an old or protected Excel file: save it as .xlsx, without a password")
    if path.suffix.lower() in (".parquet", ".xlsx", ".xlsm"):
        raise InputError(f"{name} is not a whole {path.suffix.lower()} file: write it anew, or give the data as CSV")
    return read_csv(name, content, budget, prefers_tabs=path.suffix.lower() in (".tsv", ".tab"))


def _content(path: Path, stdin: BinaryIO | None, limit: int) -> tuple[str, bytes]:
    if str(path) == "-":
        return "standard input", _read("standard input", stdin or sys.stdin.buffer, limit)
    try:
        _refuse_endless(path.expanduser())
        with path.expanduser().open("rb") as file:
            if os.fstat(file.fileno()).st_size > limit:
                RequestBudget(path.name, limit).take(limit + 1)
            return path.name, _read(path.name, file, limit)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: name a file in it") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None


def _read(name: str, file: BinaryIO, limit: int) -> bytes:
    content = file.read(limit + 1)
    RequestBudget(name, limit).take(len(content))
    return content


def _refuse_endless(path: Path) -> None:
    """A device has no end, a pipe that nobody writes to no beginning; what a shell pipes in (`<(…)`, /dev/stdin) has both."""
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and str(path).startswith(("/dev/", "/proc/"))):
        return
    raise InputError(f"{path} is a device, a pipe or a socket, and no file: name a file, or `-` for standard input")
