"""Large bodies: from the client's spool file into a compressed file of the archive and back, with flat memory.

Not here: bodies that stand in rows (`journal`, `sealed`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import mmap
import os
from pathlib import Path

import pyarrow as pa

from warehouse.archive import disk
from warehouse.archive.row import Digests
from warehouse.errors import ArchiveDamaged

_CHUNK = 1 << 20


def name_of(request_id: int, requested_at: dt.datetime) -> str:
    """Where the body of a request stands, below the archive's folder."""
    return f"bodies/date={requested_at.astimezone(dt.UTC):%Y-%m-%d}/{request_id}.json.zst"


def digests_of(spool: Path) -> Digests:
    """Reads through a memory map: the system may drop its pages at any time, so it does not count as memory used."""
    if spool.stat().st_size == 0:
        return Digests.of(b"")
    with spool.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as body:
        return Digests.of(body)


def pack(spool: Path, temporary: Path, target: Path) -> None:
    """Compress `spool`, which stays its owner's, into `target`, durably, by way of `temporary`. ArchiveFull when there is no room."""
    with disk.room_for(target):
        try:
            with (
                spool.open("rb") as source,
                os.fdopen(disk.create(temporary), "wb") as file,
                pa.CompressedOutputStream(pa.PythonFile(file), "zstd") as sink,
            ):
                while chunk := source.read(_CHUNK):
                    sink.write(chunk)
            disk.publish(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def unpack(packed: Path, target: Path, sha256: str) -> None:
    """Write the body as it was received to `target`.

    FileNotFoundError when it is not there, ArchiveDamaged when it is not what `sha256` says, ArchiveFull when there is no room.
    """
    digest = hashlib.sha256()
    with packed.open("rb") as file, disk.room_for(target), os.fdopen(disk.create(target), "wb") as sink:
        try:
            with pa.CompressedInputStream(pa.PythonFile(file), "zstd") as source:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    sink.write(chunk)
        except OSError as problem:
            if problem.errno is None:  # not the system but the decompressor
                raise ArchiveDamaged(f"{packed} is damaged: {problem}") from problem
            raise
    if digest.hexdigest() != sha256:
        raise ArchiveDamaged(f"{packed} is damaged: it is not what was received")
