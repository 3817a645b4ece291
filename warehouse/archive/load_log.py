"""The log of loads: which answers were loaded into which tables, one JSON object per line, in the order it was done.

Written only under the warehouse's lock, so by one process at a time; read by anybody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from warehouse.archive import disk
from warehouse.errors import ArchiveDamaged


class LoadLog:
    """The log in the file at `path`, which need not exist."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, *events: Mapping[str, Any]) -> None:
        """Durably add events (JSON values only); what a writer that died left of a line is removed. ArchiveFull."""
        lines = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
        is_new = not self._path.exists()
        with disk.room_for(self._path):
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                self._write(descriptor, lines)
            finally:
                os.close(descriptor)
        if is_new:
            disk.sync_folder(self._path.parent)

    @staticmethod
    def _write(descriptor: int, lines: bytes) -> None:
        end = _end_of_last_line(descriptor)
        os.ftruncate(descriptor, end)
        os.lseek(descriptor, end, os.SEEK_SET)
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise

    def read(self) -> Iterator[dict[str, Any]]:
        """All events, oldest first; a torn last line counts as not written."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield msgspec.json.decode(line, type=dict[str, Any])
                except msgspec.DecodeError as problem:
                    raise ArchiveDamaged(f"{self._path}, line {number} is damaged: {problem}") from problem

    def read_backwards(self) -> Iterator[dict[str, Any]]:
        """All events, newest first: what was logged last is found without reading the years before it."""
        if not self._path.exists():
            return
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            end = _end_of_last_line(descriptor)
            while end > 0:
                start = _end_of_last_line(descriptor, end=end - 1)
                try:
                    yield msgspec.json.decode(os.pread(descriptor, end - start, start), type=dict[str, Any])
                except msgspec.DecodeError as problem:
                    raise ArchiveDamaged(f"{self._path}, byte {start} is damaged: {problem}") from problem
                end = start
        finally:
            os.close(descriptor)


def _end_of_last_line(descriptor: int, step: int = 1 << 16, end: int | None = None) -> int:
    """The position behind the last line break before `end` (the file's)."""
    end = os.fstat(descriptor).st_size if end is None else end
    while end > 0:
        start = max(0, end - step)
        at = os.pread(descriptor, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
