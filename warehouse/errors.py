"""The errors of the warehouse, one small tree, named by what is the matter; each message says what to do.

WarehouseError
├── WarehouseLocked   another process has the file open: wait, or end `holder`
├── WarehouseTooNew   written by a newer DuckDB or a newer version of this program: upgrade this installation
├── NotAWarehouse     not one of ours: choose another home
│   └── WarehouseDamaged   rebuild it from the archive
├── NoWarehouse       there is no file yet: nothing has been synced
├── NotPublished      the warehouse is not fit for analysts: the published file stays as it was
├── NothingPublished  there is no published file, or none to go back to
├── PublishedLocked   somebody opened the published file for writing, which keeps others out: open it read-only
├── ForeignFolder     where Parquet was to be written is something of somebody else's: name another folder
├── StorageUnavailable  the folder or object storage of the lake or the backup cannot be used: the message says why
│   └── StorageMisconfigured  not with these settings: an address of nothing, a package that is missing
├── BackupDamaged    files of a backup are missing or are not what they were: the message names them
└── ArchiveError      the archive cannot be used
    ├── ArchiveFull      no space left: nothing recorded is lost, make room and run again
    ├── ArchiveDamaged   a file that the archive's rows refer to is missing or damaged
    ├── ArchiveGone      a rebuild would lose what the warehouse has: put the files back
    └── NotArchived      no such request in the archive
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    """Who has the file open: `pid` is None when the system does not tell."""

    pid: int | None
    program: str

    def __str__(self) -> str:
        return f"{self.program} (process {self.pid})" if self.pid else self.program


class WarehouseError(Exception):
    """Root of every error that this package raises."""


class WarehouseLocked(WarehouseError):
    """So many seconds passed while `holder` had the file at `path` open."""

    def __init__(self, path: Path, holder: Holder, waited_s: float) -> None:
        super().__init__(
            f"{path} is in use by {holder}; waited {waited_s:g} s for it. Let that finish or end it, then run again. "
            "To look at the data meanwhile, use the published copy, which is never locked"
        )
        self.holder = holder


class WarehouseTooNew(WarehouseError):
    """The file's format or schema is newer than what this installation can read."""


class NotAWarehouse(WarehouseError):
    """The file was never one of ours."""


class WarehouseDamaged(NotAWarehouse):
    """The file, or what DuckDB keeps beside it, cannot be read."""


class NoWarehouse(WarehouseError):
    """There is no file at that place and it was to be read only."""


class NotPublished(WarehouseError):
    """Something speaks against showing this warehouse to analysts; the message says what."""


class NothingPublished(WarehouseError):
    """There is no published file, or no earlier one to go back to."""


class PublishedLocked(WarehouseError):
    """Another program has a published file open for writing."""


class ForeignFolder(WarehouseError):
    """There is something of somebody else's where the export was to be."""


class StorageUnavailable(WarehouseError):
    """What is copied elsewhere (lake, backup) could not be written or read there; everything in the home is as it was."""


class StorageMisconfigured(StorageUnavailable):
    """The address, a package or the access has to be put right first."""


class BackupDamaged(WarehouseError):
    """Not everything in a backup is as it was sent."""


class ArchiveError(WarehouseError):
    """The archive cannot be used as requested."""


class ArchiveFull(ArchiveError):
    """No space left, or a quota or file-size limit was reached, at `path`."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the archive has no room for {path.name} in {path.parent} ({reason}). Nothing recorded before is lost: make room and run again"
        )


class ArchiveDamaged(ArchiveError):
    """A file that the archive refers to is missing or cannot be read."""


class ArchiveGone(ArchiveError):
    """The archive no longer holds all that the warehouse was made of."""


class NotArchived(ArchiveError):
    """No request of that id stands in the archive."""
