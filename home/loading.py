"""Opens the archive of a home and the warehouse that loads its responses. Separate from `door`,
because importing this takes a third of a second, which commands that only read tables don't
need."""

from pathlib import Path

from home.door import archive_of, waiting_options
from home.settings import Settings
from warehouse.archive.archive import Archive
from warehouse.warehouse import Warehouse


def open_archive(home: Path) -> Archive:
    return Archive(archive_of(home))


def warehouse_of(settings: Settings, archive: Archive) -> Warehouse:
    """The warehouse that applies loads; assets and checks query it."""
    return Warehouse(settings.home, archive, **waiting_options(settings))
