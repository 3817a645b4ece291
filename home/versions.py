"""The versions of the files of a home: newer ones are refused, earlier ones are upgraded in one
transaction each.

`version` in the home has the versions of its files, so that they are known without opening the
files. Not here: how tables change (`warehouse.schema`), how the outbox is checked
(`outbox.store`)."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from home.door import open_tables
from home.exits import HomeError
from home.settings import Settings
from warehouse.archive.row import ARCHIVE_VERSION
from warehouse.disk import DAMAGED_JSON, hold_lock, no_folder, write_file
from warehouse.errors import NotAWarehouse
from warehouse.schema import SCHEMA_VERSION

#: A number is raised if an older program can no longer use the files.
VERSIONS = {"warehouse": SCHEMA_VERSION, "outbox": 2, "archive": ARCHIVE_VERSION, "dagster": 2}


def version_file(home: Path) -> Path:
    return home / "version"


def complete_tables(settings: Settings) -> None:
    """Upgrade the tables to this program's version, and record the versions. Raises what
    `open_tables` raises. A foreign file is left alone; the code that uses it reports it."""
    with hold_lock(settings.home):
        if settings.warehouse_path.exists():
            with suppress(NotAWarehouse), open_tables(settings):
                pass
        write_file(no_folder(version_file(settings.home)), msgspec.json.encode(VERSIONS))


def noted_versions(home: Path) -> dict[str, int]:
    """The versions in the home's file `version`; none if it does not exist or cannot be read: then
    the files must be opened."""
    try:
        return msgspec.json.decode(version_file(home).read_bytes(), type=dict[str, int])
    except (OSError, *DAMAGED_JSON):
        return {}


def check_not_newer(home: Path) -> None:
    """Raises HomeError."""
    newer = {
        name: number
        for name, number in noted_versions(home).items()
        if number > VERSIONS.get(name, 0)
    }
    if newer:
        raise HomeError(
            f"the home {home} was written by a newer version of marketing-sync "
            f"({_in_words(newer)}; known here: {_in_words(VERSIONS)}): upgrade this installation. "
            f"If no newer version used it, {version_file(home)} is damaged: move it away"
        )


def _in_words(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
