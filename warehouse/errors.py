"""The errors of the warehouse, in one small tree, named by what is wrong. Each message says what to
do."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    """The program that has the file open; `pid` is None if the system does not report it."""

    pid: int | None
    program: str

    def __str__(self) -> str:
        return f"{self.program} (process {self.pid})" if self.pid else self.program


class WarehouseError(Exception):
    """Root of every error that this package raises."""


class WarehouseLocked(WarehouseError):
    """`holder` had the file at `path` open until the time-out: wait, or end that program."""

    def __init__(self, path: Path, holder: Holder, waited_s: float) -> None:
        super().__init__(
            f"{path} is in use by {holder}; waited {waited_s:g} s for it. Wait until it "
            "has ended, then try again. The published copy is never locked"
        )
        self.holder = holder


class WarehouseTooNew(WarehouseError):
    """Written by a newer DuckDB or a newer version of this program: upgrade this installation."""


class NotAWarehouse(WarehouseError):
    """The file was not made by this program: choose another home."""


class WarehouseDamaged(NotAWarehouse):
    """The file, or its write-ahead log, cannot be read."""


class NoWarehouse(WarehouseError):
    """There is no file to read yet: nothing has been synced."""


class NotPublished(WarehouseError):
    """The warehouse is not fit for analysts; the message says why. The published file stays
    unchanged."""


class NothingPublished(WarehouseError):
    """There is no published file."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is no {path} yet: run `marketing-sync sync` to publish it")


class PublishedLocked(WarehouseError):
    """Another program has a published file open for writing."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is open for writing in another program, which keeps everybody else out: open "
            "it read-only there (`duckdb -readonly`)"
        )


class ForeignFolder(WarehouseError):
    """The target has files of another program: name another folder."""


class ArchiveError(WarehouseError):
    """The archive cannot be used as requested."""


class ArchiveFull(ArchiveError):
    """No space left at `path`, or a quota or file-size limit was reached: free some and run
    again."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the archive has no room for {path.name} in {path.parent} ({reason}): "
            "free some space and run again; nothing recorded earlier is lost"
        )


class ArchiveDamaged(ArchiveError):
    """A file that the archive refers to is missing or cannot be read."""


class NotArchived(ArchiveError):
    """The archive has no request with that id."""
