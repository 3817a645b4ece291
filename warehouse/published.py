"""The published file: where it stands, what it says of itself, the ones before it, and going back to them.

Not here: how it is written (`publish`). Readers may keep it open for as long as they like: it is never changed, a newer one
takes its name.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from warehouse.archive.disk import make_folder, no_folder, publish, sync_folder
from warehouse.errors import NothingPublished, PublishedLocked
from warehouse.personal_data import GROUP_MIN, PersonalData
from warehouse.sql import rows
from warehouse.sync_tables import SyncTable
from warehouse.table import Column

#: How many earlier files stay to go back to.
KEPT = 3

FACTS = SyncTable(
    "published",
    (),
    "What this copy is; one row.",
    (
        Column("published_at", "TIMESTAMPTZ", "When it was written."),
        Column("data_as_of", "TIMESTAMPTZ", "When the newest answer in it was asked; NULL when nothing was ever read."),
        Column("personal_data", "VARCHAR", "What became of personal data: keep, hash or drop."),
        Column("group_min", "BIGINT", "Unless it is kept: people that a group has at least which is shown by a name that tells of them."),
        Column("table_count", "BIGINT", "Tables it holds beside this one."),
        Column("row_count", "BIGINT", "Their rows."),
    ),
)


@dataclass(frozen=True, slots=True)
class Published:
    """What a copy says of itself; the columns of `sync.published` say what the fields mean."""

    published_at: dt.datetime
    data_as_of: dt.datetime | None
    personal_data: PersonalData
    group_min: int
    table_count: int
    row_count: int

    def shows_more_than(self, personal_data: PersonalData, group_min: int) -> bool:
        """Of people, than a copy of that kind."""
        if self.personal_data is personal_data is not PersonalData.KEEP and self.group_min < group_min:
            return True
        return not personal_data.allows(self.personal_data)


def published_path(home: Path) -> Path:
    """Where analysts find it."""
    return home / "published" / "marketing.duckdb"


def facts(path: Path) -> Published | None:
    """What the copy at `path` says of itself; None when there is none, or it is not one of ours. Raises PublishedLocked."""
    if not path.exists():
        return None
    try:
        with duckdb.connect(str(path), read_only=True, config={"autoinstall_known_extensions": False}) as connection:
            rows(connection, "set timezone = 'UTC'")
            return read_facts(connection, FACTS.qualified)
    except duckdb.Error as problem:
        if "Could not set lock" in str(problem):
            raise PublishedLocked(
                f"{path} is open for writing in another program, which keeps everybody else out: open it read-only there "
                "(`duckdb -readonly`)"
            ) from None
        return None


def read_facts(connection: duckdb.DuckDBPyConnection, source: str) -> Published:
    """What stands in `source`: a copy's table, or its export. One of before there was `group_min` hashed and dropped less than its
    word says now: it counts as one that keeps all.
    """
    result = connection.execute(f"select * from {source}")
    found = dict(zip([column[0] for column in result.description], result.fetchall()[0], strict=True))
    if "group_min" not in found:
        found |= {"group_min": 0, "personal_data": PersonalData.KEEP}
    return Published(**found | {"personal_data": PersonalData(found["personal_data"])})


def write_facts(connection: duckdb.DuckDBPyConnection, published: Published) -> None:
    """Fill `sync.published`."""
    rows(connection, f"insert into {FACTS.qualified} by name select unnest($row)", {"row": asdict(published)})


def earlier(home: Path) -> list[Path]:
    """The copies that can be gone back to, newest first."""
    return sorted(_earlier_folder(home).glob("marketing-*.duckdb"), reverse=True)


def put_in_place(temporary: Path, home: Path, personal_data: PersonalData, group_min: int) -> None:
    """Swap the finished copy in; the one before becomes the newest of the earlier ones, and the oldest goes.

    Earlier copies that show more of people than these allow go as well. Call it within `turn`.
    """
    path = published_path(home)
    if no_folder(path).exists():
        _keep(path, home)
    temporary.chmod(0o600)
    publish(temporary, path)
    for rank, copy in enumerate(earlier(home)):
        if rank >= KEPT or not _is_allowed(copy, personal_data, group_min):
            copy.unlink()


def roll_back(home: Path, personal_data: PersonalData = PersonalData.KEEP, group_min: int = GROUP_MIN) -> Published:
    """Put the newest earlier copy in the place of the current one, which goes.

    NothingPublished when there is none, or none that shows no more of people than these allow; PublishedLocked.
    """
    with turn(home):
        for copy in earlier(home):
            if _is_allowed(copy, personal_data, group_min) and (found := facts(copy)) is not None:
                copy.replace(published_path(home))
                sync_folder(published_path(home).parent)
                return found
    allowed = "" if personal_data is PersonalData.KEEP else f" with personal data as `{personal_data}` asks for"
    raise NothingPublished(f"there is no earlier copy{allowed} in {_earlier_folder(home)} to go back to")


@contextlib.contextmanager
def turn(home: Path) -> Iterator[Path]:
    """The folder of the published file, for one process at a time; what killed ones left in it is removed."""
    folder = make_folder(published_path(home).parent)
    folder.chmod(0o700)
    descriptor = os.open(folder / ".turn", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _sweep(folder)
        try:
            yield folder
        finally:
            _sweep(folder)
    finally:
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    for leftover in folder.glob(".marketing-*"):
        leftover.unlink()


def _is_allowed(copy: Path, personal_data: PersonalData, group_min: int) -> bool:
    """Whether the copy shows no more of people than that. One that cannot be read now may show anything."""
    try:
        found = facts(copy)
    except PublishedLocked:
        return personal_data is PersonalData.KEEP
    return found is not None and not found.shows_more_than(personal_data, group_min)


def _keep(path: Path, home: Path) -> None:
    """A second name for the current copy, so that its own can be given to the next one without a moment in between."""
    written = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=path.stat().st_mtime_ns // 1000)
    copy = make_folder(_earlier_folder(home)) / f"marketing-{written:%Y%m%dT%H%M%S.%fZ}.duckdb"
    try:
        copy.hardlink_to(path)
    except FileExistsError:  # an attempt before this one got so far
        return
    except OSError:  # a file system that knows one name a file
        shutil.copy2(path, copy)


def _earlier_folder(home: Path) -> Path:
    return published_path(home).parent / "earlier"
