"""How the bytes of a text file become text. No other module decodes a file. The first case decides:

    a byte-order mark          → the encoding that it stands for
    --encoding NAME            → that encoding
    valid UTF-8                → UTF-8
    UTF-8 in most of its lines → UTF-8; cells that are not UTF-8 are faults of their rows
    anything else              → refused, since the bytes alone do not say which letters are meant

Lines count where they have bytes beyond ASCII. Not here: what text means (`files`)."""

import codecs
import io
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from write_back.input.rows import CannotBeSent, InputError

_UTF_8 = "utf-8"
#: UTF-32 first, since its little-endian mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: _UTF_8,
}
_MARK = "\ufeff"
#: A byte as `surrogateescape` keeps it.
_UNDECODED = re.compile("[\ud800-\udfff]")
_LINE = re.compile(rb"[^\r\n]+")
#: Bytes that are decoded together.
_CHUNK = 1 << 20
_DAMAGED = "it has bytes that are not UTF-8: write the cell again"
_ADVICE = (
    "save it as .xlsx or as CSV UTF-8, or name its encoding, like --encoding windows-1252 (Western Europe), "
    "windows-1251 (Cyrillic) or mac-roman (old Macs)"
)


class TextFile:
    """A text file. Raises InputError when its encoding is unknown.

    `is_damaged`: some of its lines are not UTF-8; `check_cells` finds their cells."""

    def __init__(self, name: str, content: bytes, encoding: str | None = None) -> None:
        self._content = content
        marked = next((marked for mark, marked in _MARKS.items() if content.startswith(mark)), None)
        self._encoding = marked or codecs.lookup(encoding or _UTF_8).name
        self.is_damaged = False
        if self._encoding == _UTF_8:
            self.is_damaged = _is_damaged(name, content, is_marked=marked is not None)
        elif not _is_in(self._encoding, content):
            raise InputError(f"{name} is not in the encoding {self._encoding}: {_ADVICE}")

    def decode_lines(self) -> Iterator[str]:
        """With their ends: CR, LF or CRLF. Decoded as they are read, since all of them at once take four
        times the memory."""
        errors = "surrogateescape" if self.is_damaged else "strict"
        stream = io.TextIOWrapper(io.BytesIO(self._content), self._encoding, errors, newline="")
        return chain([stream.readline().lstrip(_MARK)], stream)  # some programs write the mark twice


def check_cells(cells: Sequence[Any]) -> list[Any]:
    """Cells of a damaged file, with CannotBeSent in place of those that are damaged."""
    return [
        CannotBeSent(_DAMAGED) if isinstance(cell, str) and _UNDECODED.search(cell) else cell
        for cell in cells
    ]


def _is_damaged(name: str, content: bytes, *, is_marked: bool) -> bool:
    """Whether some of its lines are not UTF-8. InputError when most of those beyond ASCII are not."""
    if b"\0" in content:
        raise InputError(
            f"{name} is not text: give a CSV, TSV, JSON lines, Parquet or Excel (.xlsx) file; if it is "
            "UTF-16 without a byte-order mark, say --encoding utf-16-le or utf-16-be"
        )
    if _is_in(_UTF_8, content):
        return False
    whole, damaged = 0, list[int]()
    for line in _LINE.finditer(content):
        if not _is_in(_UTF_8, line[0]):
            damaged.append(line.start())
        elif not line[0].isascii():
            whole += 1
    if is_marked or whole > len(damaged):
        return True
    number = len(content[: damaged[0]].splitlines()) + 1
    raise InputError(f"{name} is not UTF-8 (line {number}): {_ADVICE}")


def _is_in(encoding: str, content: bytes) -> bool:
    chunks = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    try:
        deque(codecs.iterdecode(chunks, encoding), maxlen=0)
    except UnicodeError:
        return False
    return True
