"""The storage of the archive's files that appear as a whole: sealed requests, large bodies,
checkpoints.

Not here: the ledger and the files next to it, which SQLite and locks need on this machine; the
content of the files (`sealed`)."""

import os
import shutil
from pathlib import Path

import pyarrow as pa

from warehouse import disk

SEALED = "requests/*=*/*.parquet"
BODIES = "bodies/date=*/*.zst"
CHECKPOINTS = "checkpoints/*.duckdb"
PATTERNS = (SEALED, BODIES, CHECKPOINTS)


class Files:
    """The files below the folder `root` of this machine. Names are relative, with `/`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def list_names(self, pattern: str) -> list[str]:
        """The names of existing files, sorted."""
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.glob(pattern))

    def file_size(self, name: str) -> int:
        """Bytes. FileNotFoundError."""
        return (self._root / name).stat().st_size

    def open_file(self, name: str) -> pa.NativeFile:
        """Open a file for reading at any position, even if it is replaced or deleted meanwhile.
        Raises FileNotFoundError."""
        return pa.OSFile(self.describe_place(name))

    def put_file(self, made: Path, name: str) -> None:
        """Move a finished file of this machine to its place, durably and in one step; it replaces a
        file of that name. Raises ArchiveFull."""
        target = self._root / name
        with disk.room_for(target):
            disk.move_into_place(made, target)

    def delete_files(self, *names: str) -> None:
        """Delete the files that exist."""
        for name in names:
            path = self._root / name
            path.unlink(missing_ok=True)
            disk.remove_if_empty(path.parent)

    def describe_place(self, name: str) -> str:
        """The name of the place in messages."""
        return str(self._root / name)

    def fetch_file(self, name: str, target: Path) -> Path:
        """Copy a file to this machine. Raises FileNotFoundError, ArchiveFull."""
        with (
            self.open_file(name) as source,
            disk.room_for(target),
            os.fdopen(disk.create_file(target), "wb") as sink,
        ):
            shutil.copyfileobj(source, sink)
        return target
