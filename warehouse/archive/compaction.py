"""Writes sealed files of months that are over anew: as few files, and without bodies and rows that are kept no longer.

Whatever is interrupted is done again by the next pass: a new file appears whole, under a name of its own, before the old ones go. Rows
that stand in both meanwhile are equal. Not here: what has to be kept (`warehouse.retention`).
"""

import contextlib
import datetime as dt
import functools
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
_COLUMNS = ("request_id", "bytes", "body_ref")

#: A row with how to get its body.
_Placed = tuple[Row, Callable[[], bytes]]


@dataclass
class Compaction:
    """One pass. Of requests before `bodies_before` the bodies go, and of those before `rows_before` the rows: but for bodies that later
    rows refer to, and those of the `needed` requests. Both are ids; 0: none goes.
    """

    root: Path
    index: Index
    workspace: disk.Workspace
    now: dt.datetime
    bodies_before: int = 0
    rows_before: int = 0
    needed: Collection[int] = ()
    _kept: set[int] = field(default_factory=set)

    def run(self) -> int:
        """How many files were replaced."""
        if self.bodies_before:
            with disk.exclusive(disk.make_folder(self.root / "requests")):  # from here on nothing sealed refers to a body that goes
                self._kept = self._find_kept()
                self.index.forget(self.bodies_before, self._kept)
        replaced = 0
        for month, names in self._groups():
            try:
                if len(names) > 1 or self._is_outdated(names[0]):
                    self._merge(month, names)
                    replaced += len(names)
            except ArchiveDamaged as problem:
                log.warning("files of the archive stay as they are: %s", problem)
        if self.bodies_before:
            self._remove_bodies()
        return replaced

    def _path(self, name: str) -> Path:
        return self.root / "requests" / name

    def _find_kept(self) -> set[int]:
        """Requests whose bodies are needed. ArchiveDamaged: what cannot be read may refer to any."""
        tables = [sealed.read_columns(self._path(name), _COLUMNS) for name in self.index.names()]
        if not tables:
            return set()
        found = pa.concat_tables(tables)
        needed = pc.is_in(found["request_id"], pa.array(self.needed, pa.int64()))
        wanted = found.filter(pc.or_(needed, pc.greater_equal(found["request_id"], self.bodies_before)))
        sources = pc.unique(pc.coalesce(wanted["body_ref"], wanted["request_id"]))
        return set(sources.filter(pc.less(sources, self.bodies_before)).to_pylist()) - {DROPPED}

    def _groups(self) -> Iterator[tuple[str, list[str]]]:
        """Files of months that are over, as they belong together."""
        for month, names in itertools.groupby(self.index.names(), month_of):
            if month >= f"{self.now - _SETTLED:%Y-%m}":
                return
            group: list[str] = []
            size = 0
            for name in names:
                more = self._path(name).stat().st_size
                if group and size + more > _MERGED_BYTES:
                    yield month, group
                    group, size = [], 0
                group, size = [*group, name], size + more
            yield month, group

    def _is_outdated(self, name: str) -> bool:
        """Whether something goes."""
        if not self.bodies_before:
            return False
        columns = (column.to_pylist() for column in sealed.read_columns(self._path(name), _COLUMNS).columns)
        return any(
            id_ < self.bodies_before and (ref or id_) not in self._kept and (id_ < self.rows_before or (size > 0 and ref != DROPPED))
            for id_, size, ref in zip(*columns, strict=True)
        )

    def _merge(self, month: str, names: list[str]) -> None:
        name, temporary = f"month={month}/{disk.new_name()}.parquet", self.workspace.file("merged.parquet")
        with disk.room_for(temporary):
            placed = self._rows(names)
            try:
                if first := next(placed, None):
                    self._write(temporary, itertools.chain([first], placed))
                    disk.move_into_place(temporary, self._path(name))
            finally:
                temporary.unlink(missing_ok=True)
        self.index.replace(names, name if first else None)
        retire(self.root, *map(self._path, names))

    def _write(self, path: Path, placed: Iterator[_Placed]) -> None:
        bodies: dict[int, Callable[[], bytes]] = {}

        def rows() -> Iterator[Row]:
            for row, body in placed:
                bodies.clear()
                bodies[row.request_id] = body
                yield row

        sealed.write(path, rows(), lambda row: bodies[row.request_id]())

    def _rows(self, names: list[str]) -> Iterator[_Placed]:
        """What is kept of the files' rows, in the order of their ids."""
        files = [_placed(sealed.SealedFile(self._path(name))) for name in names]
        merged = heapq.merge(*files, key=lambda placed: placed[0].request_id)
        for _, same in itertools.groupby(merged, key=lambda placed: placed[0].request_id):
            row, body = next(same)
            if row.request_id >= self.bodies_before or (row.body_ref or row.request_id) in self._kept:
                yield row, body
            elif row.request_id >= self.rows_before:
                yield msgspec.structs.replace(row, body_ref=DROPPED, body_file=None) if row.bytes else row, body

    def _remove_bodies(self) -> None:
        """Files of large bodies that no row refers to any more."""
        gone = [path for path in self.root.glob("bodies/*/*.json.zst") if int(path.name.split(".")[0]) < self.bodies_before]
        retire(self.root, *(path for path in gone if int(path.name.split(".")[0]) not in self._kept))


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


def _placed(file: sealed.SealedFile) -> Iterator[_Placed]:
    """The file's rows, each with how to get its body."""
    for group in range(file.group_count):
        bodies = functools.cache(functools.partial(file.bodies, group))
        for position, row in file.heads(group).values():
            yield row, functools.partial(_body, bodies, position)


def _body(bodies: Callable[[], pa.Array], position: int) -> bytes:
    return bytes(bodies()[position].as_py() or b"")
