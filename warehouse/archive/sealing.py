"""From a journal to Parquet files: one per UTC day of its requests, with equal answers stored by reference.

Whatever is interrupted here is done again by whoever opens the archive next: files appear whole, under names that follow from
the journal's, then the index takes them in, and only then the journal goes.
"""

from __future__ import annotations

import datetime as dt
import itertools
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from warehouse.archive import disk, sealed
from warehouse.archive.index import Asked, Index, Last
from warehouse.archive.journal import JournalView
from warehouse.archive.row import Row
from warehouse.errors import ArchiveDamaged

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sealer:
    """Seals journals of the archive at `root`."""

    root: Path
    index: Index
    workspace: disk.Workspace

    def seal(self, journal: Path) -> None:
        """Turn the journal, on which the caller has the claim, into files and remove it. ArchiveFull: it stays as it is."""
        view = JournalView(journal)
        view.refresh()
        if view.is_foreign:
            log.warning("%s is no journal of this version and is left alone", journal)
            return
        if view.unread:
            log.warning("%s ends with %d bytes of a request that was not recorded whole", journal, view.unread)
        entries = view.entries
        for day, rows in itertools.groupby(sorted((entry.row for entry in entries.values()), key=_order), key=_day):
            name = f"date={day}/{journal.stem}.parquet"
            if not self._is_sealed(name):
                self._write(name, list(rows), view)
            self.index.add(name)
            self._drop_repeated_bodies(name, view)
        journal.unlink()
        disk.sync_folder(journal.parent)

    def _is_sealed(self, name: str) -> bool:
        """Whether somebody got as far as this before being interrupted."""
        try:
            return bool(sealed.read_columns(self.root / "requests" / name, ("request_id",)).num_rows)
        except ArchiveDamaged:
            return False

    def _write(self, name: str, rows: list[Row], view: JournalView) -> None:
        last = self.index.last(Asked(row.account, row.question_key) for row in rows if row.is_whole)
        target = self.root / "requests" / name
        temporary = self.workspace.file(target.name)
        with disk.room_for(target):
            try:
                sealed.write(temporary, with_references(rows, last), lambda row: view.body(view.entries[row.request_id]))
                disk.publish(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)

    def _drop_repeated_bodies(self, name: str, view: JournalView) -> None:
        """Remove the files of large bodies whose rows refer to an earlier answer."""
        own = [entry.row for entry in view.entries.values() if entry.row.body_file]
        if not own:
            return
        table = sealed.read_columns(self.root / "requests" / name, ("request_id", "body_ref"))
        refs = dict(zip(table["request_id"].to_pylist(), table["body_ref"].to_pylist(), strict=True))
        for row in own:
            if row.body_file and refs.get(row.request_id) is not None:
                (self.root / row.body_file).unlink(missing_ok=True)


def with_references(rows: Iterable[Row], last: dict[Asked, Last]) -> Iterator[Row]:
    """The rows in their order; a whole answer that says what the last one to its question said refers to that one's body.

    `last` is what was answered before; it is kept up to date. A reference always leads to a row that has the body itself.
    """
    for row in rows:
        if not row.is_whole:
            yield row
            continue
        asked = Asked(row.account, row.question_key)
        before = last.get(asked)
        if before is not None and before.content_sha256 == row.content_sha256:
            yield msgspec.structs.replace(row, body_ref=before.body_id, body_file=None)
        else:
            last[asked] = Last(row.content_sha256, row.request_id)
            yield row


def _day(row: Row) -> dt.date:
    return row.requested_at.date()


def _order(row: Row) -> tuple[dt.date, int]:
    return _day(row), row.request_id
