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
            going = self._find_going(names)
            is_unchanged = len(names) == 1 and not len(going)
            if self.forgotten or not is_unchanged:
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
        is_recent = pc.greater_equal(found["request_id"], self.bodies_before)
        kept_rows = found.filter(pc.or_(needed, is_recent))
        sources = pc.unique(pc.coalesce(kept_rows["body_ref"], kept_rows["request_id"]))
        is_old = pc.less(sources, self.bodies_before)
        has_body = pc.not_equal(sources, DROPPED)
        return sources.filter(pc.and_(is_old, has_body))

    def _read_columns(self, names: list[str]) -> pa.Table:
        schema = pa.schema([(name, pa.int64()) for name in ("request_id", "bytes", "body_ref")])
        tables = [schema.empty_table()]
        for name in names:
            columns = sealed.read_columns(self.files, name, schema.names)
            tables.append(columns.cast(schema))
        return pa.concat_tables(tables)

    def _group_files(self) -> Iterator[list[str]]:
        """Files of past months (or of all months) in groups up to a size."""
        unsettled = f"{self.now - _SETTLED:%Y-%m}"
        names_in_order = self.ledger.list_names()
        for month, names in itertools.groupby(names_in_order, month_of):
            if self.forgotten or month < unsettled:
                yield from sealed.split_batches(
                    names,
                    lambda name: (self.files.file_size(f"requests/{name}"),),
                    (_MERGED_BYTES,),
                )

    def _find_going(self, names: list[str]) -> npt.NDArray[np.int64]:
        """The requests in these files that lose something: the row, or a body that it has or refers
        to; sorted."""
        if not self.bodies_before:
            return np.array([], np.int64)
        rows = self._read_columns(names)
        ids = rows["request_id"]
        source = pc.coalesce(rows["body_ref"], ids)
        loses_body = pc.less(ids, self.bodies_before)
        loses_row = pc.less(ids, self.rows_before)
        is_kept = pc.is_in(source, self._kept)
        is_gone = pc.and_(loses_body, pc.invert(is_kept))
        is_filled = pc.greater(rows["bytes"], 0)
        has_body = pc.and_(is_filled, pc.not_equal(source, DROPPED))
        going = pc.and_(is_gone, pc.or_(has_body, loses_row))
        return np.unique(ids.filter(going).to_numpy())

    def _merge_files(self, names: list[str], going: npt.NDArray[np.int64]) -> None:
        merged = sealed.merge_files([sealed.SealedFile(self.files, name) for name in names])
        shortened = (self._drop_rows(rows, going) for rows in merged)
        left = filter(len, shortened)
        first = next(left, None)
        if first is None:
            self._replace_files(names, None)
            return
        name = f"month={month_of(names[0])}/{disk.new_name()}.parquet"
        tables = itertools.chain([first], left)
        sealed.write_sealed(tables, self.files, name, self.workspace)
        self._replace_files(names, name)

    def _replace_files(self, names: list[str], name: str | None) -> None:
        self.ledger.replace_files(names, name)
        retire_files(self.root, self.files, *(f"requests/{name}" for name in names))

    def _drop_rows(self, rows: pa.Table, going: npt.NDArray[np.int64]) -> pa.Table:
        """The rows without those that are dropped."""
        ids = rows["request_id"].to_numpy()
        start, end = np.searchsorted(going, (ids[0], ids[-1] + 1))
        goes = np.isin(ids, going[start:end])
        stays = ~goes | (ids >= self.rows_before)
        rows = rows.filter(pa.array(stays))
        goes = pa.array(goes[stays])
        for name, value in (("body_ref", DROPPED), ("body_file", None), ("body", None)):
            at = rows.schema.get_field_index(name)
            field = rows.schema.field(at)
            replacement = pa.scalar(value, field.type)
            column = pc.if_else(goes, replacement, rows[name])
            rows = rows.set_column(at, field, column)
        if self.forgotten is None:
            return rows
        return self._without_people(rows, self.forgotten)

    def _without_people(self, rows: pa.Table, forgotten: Forgotten) -> pa.Table:
        """The rows; those of calls about forgotten people without parameters."""
        accounts = rows["account"].to_pylist()
        operations = rows["operation"].to_pylist()
        params_texts = rows["params"].to_pylist()
        calls = zip(accounts, operations, params_texts, strict=True)
        places = []
        for place, (account, operation_name, params_text) in enumerate(calls):
            params = json.loads(params_text)
            if forgotten.is_about(account, operation_name, params):
                places.append(place)
        if not places:
            return rows
        columns = rows.to_pydict()
        for place in places:
            bare_call = Call(operation_of(operations[place]), {})
            columns["params"][place] = "{}"
            columns["question_key"][place] = bare_call.key
            columns["error"][place] = None
            columns["body_sha256"][place] = ""
            columns["content_sha256"][place] = ""
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
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
    with os.fdopen(os.open(note, flags, 0o600), "a") as file:
        file.writelines(f"{root.name}/{name}\n" for name in names)
    disk.sync_disk(note)
    files.delete_files(*names)


def list_retired(root: Path) -> frozenset[str]:
    """Names of files that were removed on purpose, relative to the home."""
    note = root / _RETIRED
    if not note.exists():
        return frozenset()
    return frozenset(note.read_text(encoding="utf-8").splitlines())
