"""Takes forgotten people out of what is archived already: rows and bodies of sealed files, bodies in files of
their own, the log of loads.

Every file is written anew as a whole, under its name or, where rows refer to it by name, under a new one;
whatever is interrupted, the next time ends the same. Nobody may record meanwhile. Not here: who is forgotten
(`suppression`), what of a response goes (`warehouse.forgetting`)."""

import contextlib
import functools
import logging
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from marketing_api.exchange import Exchange, Outcome
from warehouse import disk
from warehouse.archive import sealed
from warehouse.archive.archive import Archive
from warehouse.archive.ledger import Event
from warehouse.archive.row import HEAD_SCHEMA, Digests, Row, response_of, row_of
from warehouse.errors import ArchiveDamaged, ArchiveError
from warehouse.forgetting import Forgotten

log = logging.getLogger(__name__)

REQUESTS, BODIES, LOAD_LOG, UNREADABLE = "requests", "bodies", "load log", "unreadable files"
_CHUNK, _OVERLAP = 4 << 20, 4096
#: Rows whose body is that of a row that was written anew: the name of their file, their id, and what that
#: body is now.
_STALE = """
    select r.number, r.request_id,
        {'bytes': s.bytes, 'body_sha256': s.body_sha256, 'content_sha256': s.content_sha256}
    from referring as r
    join every as s on s.request_id = r.body_ref
    where r.content_sha256 <> s.content_sha256
"""
_REFERENCE = [
    HEAD_SCHEMA.field(name) for name in ("request_id", "body_ref", "bytes", "body_sha256", "content_sha256")
]


def forget_in_archive(root: Path, forgotten: Forgotten, *, apply: bool) -> Mapping[str, int]:
    """How many requests, bodies and lines of the log of loads name somebody, and how many files cannot be
    read, which stay as they are; with `apply` nobody is named any more. People whom `forgotten` includes by
    name are found many times faster.

    ArchiveError while another process records; ArchiveFull: the next time goes on.
    """
    with (
        Archive(root) as archive,  # seals what dead processes left
        archive.ledger.alone() as is_alone,
        contextlib.closing(disk.Workspace(root / "tmp")) as workspace,
    ):
        if not is_alone:
            raise ArchiveError(f"another process is writing to {root}: end it, and try again")
        return _Rewriting(archive, forgotten, workspace).all(apply=apply)


class _Rewriting:
    def __init__(self, archive: Archive, forgotten: Forgotten, workspace: disk.Workspace) -> None:
        self._files, self._ledger = archive.files, archive.ledger
        self._forgotten, self._workspace = forgotten, workspace
        self._counts = Counter({REQUESTS: 0, BODIES: 0, LOAD_LOG: 0})

    def all(self, *, apply: bool) -> Mapping[str, int]:
        names, readable = self._ledger.names(), list[str]()
        # Arrow decompresses and searches without Python's lock
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, search in [(name, pool.submit(self._likely, name)) for name in names]:
                try:
                    if likely := search.result():
                        self._forget(name, likely, apply=apply)
                    readable.append(name)
                except ArchiveDamaged as problem:
                    self._pass_over(problem)
        self._forget_in_log(apply=apply)
        if apply:
            self._mend_references(readable)
            gone = sealed.unnamed_bodies(self._files, readable, are_all=readable == names)
            self._files.delete(*gone)
        return self._counts

    def _likely(self, name: str) -> set[int]:
        """The requests in a file that may name somebody. ArchiveDamaged."""
        file, found = sealed.SealedFile(self._files, name), set[int]()
        for group in range(file.groups):
            rows = file.read(group, ("request_id", "params", "error", "body_file", "body"))
            masks = [self._matches(rows[name]) for name in ("params", "error", "body")]
            masks.append(
                pa.chunked_array(
                    [[name is not None and self._may_name(name) for name in rows["body_file"].to_pylist()]]
                )
            )
            found.update(rows["request_id"].filter(functools.reduce(pc.or_, masks)).to_pylist())
        return found

    def _matches(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        if self._forgotten.likely is None:
            return pc.is_valid(column)
        return pc.fill_null(pc.match_substring_regex(column.cast(pa.binary()), self._forgotten.likely), False)

    def _may_name(self, body_file: str) -> bool:
        """Whether a body in a file of its own may name somebody; read in parts that overlap by more than a
        name is long."""
        before = b""
        try:
            with sealed.unpacked(self._files, body_file) as source:
                while chunk := source.read(_CHUNK):
                    if self._matches(pa.chunked_array([[before + chunk]], pa.binary()))[0].as_py():
                        return True
                    before = chunk[-_OVERLAP:]
        except (FileNotFoundError, ArchiveDamaged) as problem:
            return isinstance(problem, ArchiveDamaged)
        return False

    def _forget(self, name: str, likely: Collection[int], *, apply: bool) -> None:
        rows = (
            (row, self._without(row, body, apply=apply))
            for row, body in sealed.SealedFile(self._files, name).rows()
            if row.request_id in likely
        )
        changed = {row.request_id: (row, *after) for row, after in rows if after is not None}
        self._counts[REQUESTS] += len(changed)
        self._counts[BODIES] += sum(
            after.body_sha256 != before.body_sha256 for before, after, _ in changed.values()
        )
        if changed and apply:
            self._write(name, {request_id: (after, body) for request_id, (_, after, body) in changed.items()})

    def _without(self, row: Row, body: bytes, *, apply: bool) -> tuple[Row, bytes] | None:
        """The row without forgotten people, and the body that it has itself; None when it stays as it is."""
        file = self._unpack(row)
        response = response_of(row, file or body)
        exchange = Exchange(
            request_id=row.request_id,
            account=row.account,
            call=response.call,
            requested_at=row.requested_at,
            waited_ms=row.waited_ms,
            took_ms=row.took_ms,
            http_status=row.http_status,
            outcome=Outcome(row.outcome),
            error=row.error,
            body=response.body,
        )
        if (kept := self._forgotten.exchange(exchange)) is exchange:
            return None
        digests = row.digests
        if file:
            digests = sealed.digests_of(file)
        elif isinstance(kept.body, bytes) and kept.body is not body:
            digests, body = Digests.of(kept.body), kept.body
        name = row.body_file
        if file and digests.body != row.body_sha256:
            # rows may still refer to the old file when this is interrupted
            name = f"{str(row.body_file).partition('.')[0]}.{disk.new_name()}.json.zst"
            if apply:
                sealed.pack(file, self._files, name, self._workspace)
        return msgspec.structs.replace(row_of(kept, digests, name), body_ref=row.body_ref), body

    def _unpack(self, row: Row) -> Path | None:
        """The row's own large body, in a file that may be written."""
        if row.body_file is None:
            return None
        try:
            path = self._workspace.file("body.json")
            return sealed.unpack(self._files, row.body_file, path, row.body_sha256)
        except FileNotFoundError:
            return None
        except ArchiveDamaged as problem:
            self._pass_over(problem)
            return None

    def _pass_over(self, problem: ArchiveDamaged) -> None:
        log.warning("a file of the archive stays as it is: %s", problem)
        self._counts[UNREADABLE] += 1

    def _write(self, name: str, changed: Mapping[int, tuple[Row, bytes]]) -> None:
        """The file anew, with these rows in the place of theirs."""
        before = sealed.SealedFile(self._files, name).rows()
        rows = (changed.get(row.request_id, (row, body)) for row, body in before)
        self._ledger.replace([name], None, changed)
        sealed.put(sealed.tables_of(rows), self._files, name, self._workspace)
        self._ledger.replace([name], name)

    def _forget_in_log(self, *, apply: bool) -> None:
        named = sum(self._change(event) != event for event in self._ledger.loads())
        self._counts[LOAD_LOG] += named
        if named and apply:
            self._ledger.rewrite_loads(map(self._change, self._ledger.loads()))

    def _change(self, event: Event) -> Event:
        encoded = msgspec.json.encode(event).decode()
        after = self._forgotten.text(encoded)
        return event if after == encoded else dict(msgspec.json.decode(after))

    def _mend_references(self, names: list[str]) -> None:
        """Rows that refer to a body that was written anew have its size and hashes."""
        stale = defaultdict[str, dict[int, dict[str, Any]]](dict)
        with duckdb.connect() as db:
            db.execute("set enable_progress_bar = false")
            for each in ("referring", "every"):
                db.register(each, self._references(names))
            for number, request_id, digests in db.execute(_STALE).fetchall():
                stale[names[number]][request_id] = digests
        for name, digests_of in stale.items():
            changed = {
                row.request_id: (msgspec.structs.replace(row, **digests_of[row.request_id]), b"")
                for row, _ in sealed.SealedFile(self._files, name).rows()
                if row.request_id in digests_of
            }
            self._write(name, changed)

    def _references(self, names: list[str]) -> pa.RecordBatchReader:
        """What the rows of the files say of their bodies, file by file."""
        schema = pa.schema([*_REFERENCE, ("number", pa.int64())])

        def batches() -> Iterator[pa.RecordBatch]:
            for number, name in enumerate(names):
                rows = sealed.read_columns(self._files, name, schema.names)
                rows = rows.append_column("number", pa.array([number] * len(rows), pa.int64()))
                yield from rows.select(schema.names).cast(schema).to_batches()

        return pa.RecordBatchReader.from_batches(schema, batches())
