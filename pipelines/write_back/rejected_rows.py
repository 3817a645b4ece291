"""`rejected.csv`, the dead letters of a push: rows that were not sent, or that the service refused, as in the input and with the reason.

Beside it stands what is needed to write it again when more is known: the input's rows that were to be sent. Not here: why a row is
rejected (`kinds`, `delivery`).
"""

import csv
import logging
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.write_back.input.rows import FORMULA_SIGNS, Rows, text_of
from pipelines.write_back.item import Source, State
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.result import NO_REASON

log = logging.getLogger(__name__)

#: In front of the columns of the input. They name nothing that a push knows, so that the corrected file can be pushed as it is.
ROW, REASON = "rejected row", "rejected because"

_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_ENDS_CELL = ("\t", "\r", "\n")


def folder_of(home: Path, push_id: int | None) -> Path:
    """Where the files of a push are; None: those of a plan that was not applied."""
    return home / "pushes" / ("plan" if push_id is None else str(push_id))


def write_rejected(path: Path, rows: Rows, reasons: Mapping[int, str]) -> Path | None:
    """Write the rows named by `reasons` (row number → why), in their order; None, and no file, when there are none."""
    temporary = path.with_name(f".{path.name}")
    for earlier in (path, temporary):
        earlier.unlink(missing_ok=True)
    if not reasons:
        return None
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    columns = [rows.cells[name] for name in rows.columns]
    with _private(temporary, "w", encoding="utf-8-sig", newline="") as stream:  # the mark: spreadsheets guess otherwise
        writer = csv.writer(stream)
        writer.writerow([ROW, REASON, *map(defused, rows.columns)])
        for position, number in enumerate(rows.numbers):
            if number in reasons:
                cells = [defused(text_of(column[position]) or "") for column in columns]
                writer.writerow([number, defused(reasons[number]), *cells])
    temporary.replace(path)
    return path


def write_rejections(home: Path, outbox: Outbox, push_id: int) -> Path | None:
    """Write the push's rejected.csv anew; None when no row of it is rejected."""
    folder = folder_of(home, push_id)
    reasons = {row: entry.message or NO_REASON for entry in outbox.items(push_id, [State.REJECTED]) for row in entry.rows}
    rows = kept_rows(folder / "rows.parquet", "") or Rows((), {}, sorted(reasons), Source("", ""))
    return write_rejected(folder / "rejected.csv", rows, reasons)


def defused(text: str) -> str:
    """The cell so that no spreadsheet runs it: an apostrophe in front, which reading takes away again. Numbers stay numbers."""
    if text[:1] in _ENDS_CELL or (text.startswith(FORMULA_SIGNS) and not _NUMBER.fullmatch(text)):
        return f"'{text}"
    return text


def keep_rows(path: Path, rows: Rows, numbers: Collection[int]) -> None:
    """Keep these rows of the input: the service may refuse them later, when the file may be gone."""
    wanted = set(numbers)
    positions = [position for position, number in enumerate(rows.numbers) if number in wanted]
    cells = {name: pa.array([text_of(column[position]) for position in positions], pa.string()) for name, column in rows.cells.items()}
    table = pa.table({"": pa.array([rows.numbers[position] for position in positions], pa.int64())} | cells)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    with _private(temporary, "wb") as stream:
        pq.write_table(table, stream, compression="zstd", write_page_checksum=True)
    temporary.replace(path)


def kept_rows(path: Path, name: str) -> Rows | None:
    """What was kept; None when it is gone or damaged."""
    if not path.is_file():
        return None
    try:
        columns: dict[str, list[str | None]] = pq.read_table(path, page_checksum_verification=True).to_pydict()
        numbers: Iterable[object] = columns.pop("")
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as problem:
        log.warning("%s of push %s is damaged (%s): its rows are known by number only", path.name, path.parent.name, type(problem).__name__)
        return None
    return Rows(tuple(columns), {title: list(cells) for title, cells in columns.items()}, [int(str(n)) for n in numbers], Source(name, ""))


def _private(path: Path, mode: str, **options: str) -> IO[Any]:
    """A new file that only its owner can read, whatever the umask."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), mode, **options)  # type: ignore[call-overload,no-any-return]
