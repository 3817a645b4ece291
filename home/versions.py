"""Which versions the files of a home have: newer ones are refused, earlier ones completed in one
transaction each.

`version` in the home says what its files are versions of, so that nothing has to be opened to know.
Not here: how tables change (`warehouse.schema`), or how the outbox is checked (`outbox.store`)."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from home.door import open_tables
from home.exits import HomeError
from home.settings import Settings
from warehouse.archive.row import ARCHIVE_VERSION
from warehouse.disk import hold_lock, no_folder, write_file
from warehouse.errors import NotAWarehouse
from warehouse.schema import SCHEMA_VERSION

#: Each number goes up when a program of the version before could no longer go on with what it
#: counts.
VERSIONS = {"warehouse": SCHEMA_VERSION, "outbox": 2, "archive": ARCHIVE_VERSION, "dagster": 2}


def version_file(home: Path) -> Path:
    return home / "version"


def complete_tables(settings: Settings) -> None:
    """Bring the tables to this program's version, and note the versions. Raises what `open_tables`
    raises. A file that is none of ours is left to whoever uses it, and says what to do."""
    with hold_lock(settings.home):
        if settings.warehouse_path.exists():
            with suppress(NotAWarehouse), open_tables(settings):
                pass
        write_file(no_folder(version_file(settings.home)), msgspec.json.encode(VERSIONS))


def noted_versions(home: Path) -> dict[str, int]:
    """Those that `version` in the home names; none where it is not there or cannot be read: its
    files have to be looked into."""
    try:
        return msgspec.json.decode(version_file(home).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
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
            f"the home {home} is of a newer version of marketing-sync than this one "
            f"({_in_words(newer)}; known here: {_in_words(VERSIONS)}): upgrade this installation. "
            f"If it never was, {version_file(home)} is damaged: move it away"
        )


def _in_words(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
