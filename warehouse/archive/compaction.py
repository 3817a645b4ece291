"""Writes sealed files of months that are over anew: as few files, and without bodies and rows that are kept no longer.

Whatever is interrupted is done again by the next pass: a new file appears whole, under a name of its own, before the old ones go. Rows
that stand in both meanwhile are equal. Not here: what has to be kept (`warehouse.retention`).
"""

import contextlib
import datetime as dt
import heapq
import itertools
import logging
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.archive import disk, sealed
from warehouse.archive.index import Index, month_of
from warehouse.archive.row import DROPPED, Row
from warehouse.errors import ArchiveDamaged

log = logging.getLogger(__name__)

#: Files are merged up to this size: one more reads no slower, and what has to be rewritten for one person stays small.
_MERGED_BYTES = 256 << 20
#: A run that began in a month may seal its requests so much later.
_SETTLED = dt.timedelta(days=2)
#: Notes files that are gone on purpose: a backup does not bring them back.
_RETIRED = "retired.txt"


@dataclass
class Compaction:
    """One pass. Of requests before `bodies_before` the bodies go, and of those before `rows_before` the rows: but for bodies that later
    rows refer to, and those of the `needed` requests. Both are ids; 0: none goes.
    """

    root: Path
    index: Index
    workspace: disk.Workspace
    body_of: Callable[[Row], bytes]
    now: dt.datetime
    bodies_before: int = 0
    rows_before: int = 0
    needed: Collection[int] = ()
    _kept: set[int] = field(default_factory=set)

    def run(self) -> None:
        if self.bodies_before:
            with disk.exclusive(disk.make_folder(self.root / "requests")):  # from here on nothing sealed refers to a body that goes
                self._kept = self._find_kept()
                self.index.forget_bodies(self.bodies_before, self._kept)
        for names in self._groups():
            try:
                if len(names) > 1 or (names[0] and self._is_outdated(names[0])):
                    self._merge(names)
            except ArchiveDamaged as problem:
                log.warning("files of the archive stay as they are: %s", problem)
        if self.bodies_before:
            self._remove_bodies()

    def _find_kept(self) -> set[int]:
        """Requests whose bodies are needed. ArchiveDamaged: what cannot be read may refer to any."""
        if not (tables := [self._columns(name) for name in self.index.names()]):
            return set()
        found = pa.concat_tables(tables)
        needed = pc.is_in(found["request_id"], pa.array(self.needed, pa.int64()))
        wanted = found.filter(pc.or_(needed, pc.greater_equal(found["request_id"], self.bodies_before)))
        sources = pc.unique(pc.coalesce(wanted["body_ref"], wanted["request_id"]))
        return set(sources.filter(pc.less(sources, self.bodies_before)).to_pylist()) - {DROPPED}

    def _columns(self, name: str) -> pa.Table:
        return sealed.read_columns(self.root / "requests" / name, ("request_id", "bytes", "body_ref"))

    def _groups(self) -> Iterator[list[str]]:
        """Files of months that are over, as they belong together: up to a size."""
        group, size, over = [""], 0, f"{self.now - _SETTLED:%Y-%m}"
        for name in itertools.takewhile(lambda name: month_of(name) < over, self.index.names()):
            more = (self.root / "requests" / name).stat().st_size
            if month_of(name) != month_of(group[0]) or size + more > _MERGED_BYTES:
                yield group
                group, size = [], 0
            group, size = [*group, name], size + more
        yield group

    def _is_outdated(self, name: str) -> bool:
        """Whether something of it goes."""
        rows = zip(*self._columns(name).to_pydict().values(), strict=True) if self.bodies_before else ()
        return any(self._is_gone(id_, ref) and (id_ < self.rows_before or (size > 0 and ref != DROPPED)) for id_, size, ref in rows)

    def _is_gone(self, request_id: int, body_ref: int | None) -> bool:
        """Whether the row's body is not kept."""
        return request_id < self.bodies_before and (body_ref or request_id) not in self._kept

    def _merge(self, names: list[str]) -> None:
        paths = [self.root / "requests" / name for name in names]
        merged = heapq.merge(*(sealed.SealedFile(path).rows() for path in paths), key=lambda row: row.request_id)
        rows = (self._kept_row(next(same)) for _, same in itertools.groupby(merged, key=lambda row: row.request_id))
        left = (row for row in rows if row is not None)
        name, temporary = f"month={month_of(names[0])}/{disk.new_name()}.parquet", self.workspace.file("merged.parquet")
        if first := next(left, None):
            with disk.room_for(temporary):
                sealed.write(temporary, itertools.chain([first], left), self.body_of)
                disk.move_into_place(temporary, self.root / "requests" / name)
        self.index.replace(names, name if first else None)
        retire(self.root, *paths)

    def _kept_row(self, row: Row) -> Row | None:
        if not self._is_gone(row.request_id, row.body_ref):
            return row
        if row.request_id < self.rows_before:
            return None
        return msgspec.structs.replace(row, body_ref=DROPPED, body_file=None) if row.bytes else row

    def _remove_bodies(self) -> None:
        """Files of large bodies that no row refers to any more."""
        files = self.root.glob("bodies/*/*.json.zst")
        retire(self.root, *(path for path in files if self._is_gone(int(path.name.partition(".")[0]), None)))


def retire(root: Path, *paths: Path) -> None:
    """Remove files of the archive at `root`, which is noted before."""
    note = root / _RETIRED
    with os.fdopen(os.open(note, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a") as file:
        file.writelines(f"{path.relative_to(root.parent).as_posix()}\n" for path in paths)
    disk.sync(note)
    for path in paths:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def retired(root: Path) -> frozenset[str]:
    """Names of files that are gone on purpose, from the home on."""
    note = root / _RETIRED
    return frozenset(note.read_text(encoding="utf-8").splitlines() if note.exists() else ())
