"""Rewrites sealed files of past months into as few files as possible, without bodies and rows that
are no longer kept. After a person was forgotten, files of all months are rewritten.

If it is interrupted, the next pass repeats it: a new file appears as a whole, with a new name,
before the old ones are deleted. Meanwhile rows are in both, but they are equal. Not here: what must
be kept (`warehouse.retention`)."""

import datetime as dt
import itertools
import json
import logging
import os
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from marketing_api.operation import Call
from warehouse import disk
from warehouse.archive import sealed
from warehouse.archive.file_store import Files
from warehouse.archive.ledger import Ledger, month_of
from warehouse.archive.row import DROPPED, operation_of
from warehouse.errors import ArchiveDamaged
from warehouse.forgetting import Forgotten

log = logging.getLogger(__name__)

#: Files are merged up to this size: larger ones are not faster to read, and this limits what must
#: be rewritten for one person.
_MERGED_BYTES = 256 << 20
#: A run that began in a month may seal its requests this much later.
_SETTLED = dt.timedelta(days=2)
#: The list of files that were removed on purpose, so that a backup does not restore them.
_RETIRED = "retired.txt"


@dataclass
class Compaction:
    """One pass. Requests before `bodies_before` lose their bodies, and requests before
    `rows_before` their rows; except bodies that later rows refer to, and those of the `needed`
    requests. Both are ids; 0: nothing is dropped.

    `forgotten`: people who are being forgotten now. Then no body is kept, calls about these people
    lose their parameters, and a file that cannot be read is deleted."""

    root: Path
    files: Files
    ledger: Ledger
    workspace: disk.Workspace
    now: dt.datetime
    bodies_before: int = 0
    rows_before: int = 0
    needed: Collection[int] = ()
    forgotten: Forgotten | None = None
    _kept: pa.Array = field(default_factory=lambda: pa.array([], pa.int64()))

    def compact_files(self) -> None:
        if self.bodies_before:
            self._kept = self.ledger.run_transaction(self._let_go)
        for names in self._group_files():
            self._write_anew(names)
        if self.bodies_before:
            self._remove_bodies()

    def _write_anew(self, names: list[str]) -> None:
        try:
            if len(going := self._find_going(names)) or len(names) > 1 or self.forgotten:
                self._merge_files(names, going)
        except ArchiveDamaged as error:
            if self.forgotten is None:
                log.warning("files of the archive stay as they are: %s", error)
            elif len(names) > 1:
                for name in names:
                    self._write_anew([name])
            else:
                log.warning(
                    "a damaged file of the archive is removed, it may name somebody: %s", error
                )
                self._replace_files(names, None)

    def _let_go(self, db: sqlite3.Connection) -> pa.Array:
        """No process seals meanwhile: from here on, no sealed row refers to a dropped body."""
        kept = self._find_kept()
        ids = json.dumps(kept.to_pylist())
        sql = (
            "delete from answers where body_id < ? and body_id not in (select value from "
            "json_each(?))"
        )
        db.execute(sql, [self.bodies_before, ids])
        return kept

    def _find_kept(self) -> pa.Array:
        """Requests whose bodies are needed. Raises ArchiveDamaged, since an unreadable row may
        refer to any body."""
        if self.forgotten:
            return pa.array([], pa.int64())
        found = self._read_columns(self.ledger.list_names())
        needed = pc.is_in(found["request_id"], pa.array(self.needed, pa.int64()))
        kept_rows = found.filter(
            pc.or_(needed, pc.greater_equal(found["request_id"], self.bodies_before))
        )
        sources = pc.unique(pc.coalesce(kept_rows["body_ref"], kept_rows["request_id"]))
        return sources.filter(
            pc.and_(pc.less(sources, self.bodies_before), pc.not_equal(sources, DROPPED))
        )

    def _read_columns(self, names: list[str]) -> pa.Table:
        schema = pa.schema([(name, pa.int64()) for name in ("request_id", "bytes", "body_ref")])
        found = (sealed.read_columns(self.files, name, schema.names).cast(schema) for name in names)
        return pa.concat_tables([schema.empty_table(), *found])

    def _group_files(self) -> Iterator[list[str]]:
        """Files of past months (or of all months) in groups up to a size."""
        over = "9999-12" if self.forgotten else f"{self.now - _SETTLED:%Y-%m}"
        for month, names in itertools.groupby(self.ledger.list_names(), month_of):
            if month < over:
                yield from sealed.split_batches(names, self._file_size, (_MERGED_BYTES,))

    def _file_size(self, name: str) -> tuple[int]:
        return (self.files.file_size(f"requests/{name}"),)

    def _find_going(self, names: list[str]) -> npt.NDArray[np.int64]:
        """The requests in these files that lose something: the row, or a body that it has or refers
        to; sorted."""
        if not self.bodies_before:
            return np.array([], np.int64)
        rows = self._read_columns(names)
        source = pc.coalesce(rows["body_ref"], rows["request_id"])
        is_gone = pc.and_(
            pc.less(rows["request_id"], self.bodies_before), pc.invert(pc.is_in(source, self._kept))
        )
        has_body = pc.and_(pc.greater(rows["bytes"], 0), pc.not_equal(source, DROPPED))
        going = pc.and_(is_gone, pc.or_(has_body, pc.less(rows["request_id"], self.rows_before)))
        return np.unique(rows["request_id"].filter(going).to_numpy())

    def _merge_files(self, names: list[str], going: npt.NDArray[np.int64]) -> None:
        opened = [sealed.SealedFile(self.files, name) for name in names]
        left = (
            table
            for rows in sealed.merge_files(opened)
            if len(table := self._drop_rows(rows, going))
        )
        name = f"month={month_of(names[0])}/{disk.new_name()}.parquet"
        first = next(left, None)
        if first is not None:
            sealed.write_sealed(itertools.chain([first], left), self.files, name, self.workspace)
        self._replace_files(names, name if first is not None else None)

    def _replace_files(self, names: list[str], name: str | None) -> None:
        self.ledger.replace_files(names, name)
        retire_files(self.root, self.files, *(f"requests/{name}" for name in names))

    def _drop_rows(self, rows: pa.Table, going: npt.NDArray[np.int64]) -> pa.Table:
        """The rows without those that are dropped."""
        ids = rows["request_id"].to_numpy()
        near = going[slice(*np.searchsorted(going, (ids[0], ids[-1] + 1)))]
        goes = np.isin(ids, near)
        stays = ~goes | (ids >= self.rows_before)
        rows = rows.filter(pa.array(stays))
        goes = pa.array(goes[stays])
        for name, value in (("body_ref", DROPPED), ("body_file", None), ("body", None)):
            at = rows.schema.get_field_index(name)
            field = rows.schema.field(at)
            rows = rows.set_column(
                at, field, pc.if_else(goes, pa.scalar(value, field.type), rows[name])
            )
        return rows if self.forgotten is None else self._without_people(rows, self.forgotten)

    def _without_people(self, rows: pa.Table, forgotten: Forgotten) -> pa.Table:
        """The rows; those of calls about forgotten people without parameters."""
        calls = zip(
            *(rows[name].to_pylist() for name in ("account", "operation", "params")), strict=True
        )
        places = [
            place
            for place, (account, operation, params) in enumerate(calls)
            if forgotten.is_about(account, operation, json.loads(params))
        ]
        if not places:
            return rows
        columns = rows.to_pydict()
        for place in places:
            operation = operation_of(columns["operation"][place])
            empty = {"params": "{}", "question_key": Call(operation, {}).key, "error": None}
            for name, value in (
                empty | dict.fromkeys(("body_sha256", "content_sha256"), "")
            ).items():
                columns[name][place] = value
        return pa.Table.from_pydict(columns, schema=rows.schema)

    def _remove_bodies(self) -> None:
        """Remove large bodies that no row refers to. Later bodies are skipped, since their rows may
        not be sealed yet."""
        gone = sealed.unnamed_bodies(self.files, self.ledger.list_names())
        early = (name for name in gone if sealed.request_of(name) < self.bodies_before)
        retire_files(self.root, self.files, *early)


def retire_files(root: Path, files: Files, *names: str) -> None:
    """Remove files of the archive at `root`, after noting their names."""
    note = root / _RETIRED
    with os.fdopen(os.open(note, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a") as file:
        file.writelines(f"{root.name}/{name}\n" for name in names)
    disk.sync_disk(note)
    files.delete_files(*names)


def list_retired(root: Path) -> frozenset[str]:
    """Names of files that were removed on purpose, relative to the home."""
    note = root / _RETIRED
    return frozenset(note.read_text(encoding="utf-8").splitlines() if note.exists() else ())
