"""The journal: what one process has recorded and not sealed yet, one checked frame per request, appended at
once.

    file    HEADER frame*
    frame   MARK crc32 head-length body-length body-size head body
            (little-endian; the CRC covers all that follows it)
    head    the Row as MessagePack          body    zstd, decompressing to body-size bytes

A frame stands in the operating system's hands when `append` returns, so killing the process loses nothing. A
torn frame (power loss, full disk) is recognised by its CRC and skipped. Not here: when journals are begun,
synced and sealed (`archive`)."""

import fcntl
import os
import struct
import threading
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from warehouse.archive import disk
from warehouse.archive.row import Row
from warehouse.errors import ArchiveFull

SUFFIX = ".journal"
HEADER = b"MSJRNL1\n"
_MARK = b"\xa7MSf"
_FIXED = struct.Struct("<4sIIII")
_COVERED = struct.Struct("<III")
_CRC_END = len(_MARK) + 4

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode
_zstd = pa.Codec("zstd")


def journals_in(root: Path) -> list[Path]:
    """The journals of the archive at `root`, in order. What is no file is none: nothing can be read from it,
    and it is in nobody's way."""
    return sorted(path for path in (root / "journals").glob(f"*{SUFFIX}") if path.is_file())


def frame_of(row: Row, body: bytes) -> bytes:
    """The bytes that stand for the row in a journal; `body` is b"" when it stands in a file."""
    head = _encode(row)
    packed = _zstd.compress(body, asbytes=True) if body else b""
    covered = _COVERED.pack(len(head), len(packed), len(body)) + head + packed
    return _MARK + zlib.crc32(covered).to_bytes(4, "little") + covered


class Journal:
    """A journal being written. The claim on its file lasts until `close`."""

    def __init__(self, folder: Path) -> None:
        self.rows = 0
        self.size = 0
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._synced = 0  # bytes that survive a power loss
        self._is_open = True
        while True:  # somebody clearing up after dead processes may be quicker to claim it: then another one
            self.path = disk.make_folder(folder) / f"{disk.new_name()}{SUFFIX}"
            self.descriptor = disk.create(self.path, os.O_APPEND)
            if disk.keep_claim(self.descriptor, self.path):
                break
            os.close(self.descriptor)
        try:
            self._write(HEADER)
        except ArchiveFull:
            self.path.unlink()
            self.close()
            raise
        disk.sync(folder)

    def append(self, frame: bytes) -> None:
        """Hand one frame to the operating system whole; ArchiveFull, and the journal is as before, when it
        does not fit."""
        with self._lock:
            self._write(frame)
            self.rows += 1

    def _write(self, data: bytes) -> None:
        with disk.room_for(self.path):
            try:
                disk.write_whole(self.descriptor, data)
            except OSError:
                os.ftruncate(self.descriptor, self.size)
                raise
        self.size += len(data)

    def sync(self) -> None:
        """Make everything appended so far survive a power loss. Of several who come at once the first to get
        through does it for all."""
        wanted = self.size
        with self._syncing:
            with self._lock:
                if not self._is_open or self._synced >= wanted:
                    return
                descriptor, size = os.dup(self.descriptor), self.size  # appending goes on meanwhile
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
            self._synced = size

    def close(self) -> None:
        """Give up the claim; the file, when it still exists, is then anybody's to seal."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
                os.close(self.descriptor)


class Entry(NamedTuple):
    """A row in a journal, and where its body stands there."""

    row: Row
    offset: int
    length: int
    size: int


class JournalView:
    """A journal being read, its own process's or another's, while it grows; readable even after it was sealed
    and removed."""

    def __init__(self, path: Path) -> None:
        """FileNotFoundError when it was removed meanwhile."""
        self.path = path
        self.entries: dict[int, Entry] = {}
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self._position = 0
        self._damaged = 0  # bytes before it that are in no whole frame

    def refresh(self) -> None:
        """Take in the whole frames that were added since."""
        if self._position == 0:
            if os.pread(self._descriptor, len(HEADER), 0) != HEADER:
                return
            self._position = len(HEADER)
        data = self._read(os.fstat(self._descriptor).st_size - self._position, self._position)
        start = self._position
        for entry, begin, end in _entries(data, start):
            self.entries[entry.row.request_id] = entry
            self._damaged += start + begin - self._position
            self._position = start + end

    def body(self, entry: Entry) -> bytes:
        """The body of one of its entries, as received."""
        if not entry.length:
            return b""
        packed = self._read(entry.length, entry.offset)
        return bytes(_zstd.decompress(packed, entry.size, asbytes=True))

    @property
    def is_foreign(self) -> bool:
        """Whether the file begins with something else than a journal of this version, whole or torn, does."""
        return not HEADER.startswith(os.pread(self._descriptor, len(HEADER), 0))

    @property
    def unread(self) -> int:
        """Bytes that are in no whole frame: damaged ones, and those behind the last."""
        return self._damaged + max(os.fstat(self._descriptor).st_size - self._position, 0)

    def _read(self, length: int, offset: int) -> bytes:
        parts = []
        while length > 0 and (part := os.pread(self._descriptor, length, offset)):
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return b"".join(parts)


def _entries(data: bytes, base: int) -> Iterator[tuple[Entry, int, int]]:
    """The whole frames in `data`, which stands at `base` of its file, each with its begin and end in `data`;
    others are stepped over."""
    position = 0
    while 0 <= (position := data.find(_MARK, position)) <= len(data) - _FIXED.size:
        _, crc, head, length, size = _FIXED.unpack_from(data, position)
        start = position + _FIXED.size
        end = start + head + length
        if end > len(data) or zlib.crc32(memoryview(data)[position + _CRC_END : end]) != crc:
            position += 1
            continue
        yield (
            Entry(_decode(memoryview(data)[start : start + head]), base + start + head, length, size),
            position,
            end,
        )
        position = end
