"""Takes forgotten people out of what is archived already: rows and bodies of sealed files, bodies in files of their own, the log of loads.

Every file is written anew as a whole, under its name or, where rows refer to it by name, under a new one; whatever is interrupted, the
next time ends the same. Nobody may record meanwhile. Not here: who is forgotten (`suppression`), what of a response goes
(`warehouse.forgetting`).
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import msgspec

from marketing_api.operation import Call
from warehouse.archive import disk, sealed
from warehouse.archive.archive import Archive
from warehouse.archive.journal import journals_in
from warehouse.archive.row import Digests, Row, operation_of
from warehouse.errors import ArchiveError
from warehouse.forgetting import Forgotten

#: Rows whose body is that of a row that was written anew: the name of their file, their id, and what that body is now.
_STALE = """
    select r.filename, r.request_id, s.bytes, s.body_sha256, s.content_sha256
    from read_parquet($files, filename = true) as r join read_parquet($files) as s on s.request_id = r.body_ref
    where r.content_sha256 <> s.content_sha256
"""


def forget_in_archive(root: Path, forgotten: Forgotten, *, apply: bool) -> Mapping[str, int]:
    """How many requests, bodies and lines of the log of loads name somebody; with `apply` they do not any more.

    ArchiveError while another process records; ArchiveFull, ArchiveDamaged.
    """
    with Archive(root):  # seals what dead processes left
        pass
    if journals_in(root):
        raise ArchiveError(f"another process is recording in {root}: end it, and try again")
    with contextlib.closing(disk.Workspace(root / "tmp")) as workspace:
        return _Rewriting(root, forgotten, workspace, apply).all()


class _Rewriting:
    def __init__(self, root: Path, forgotten: Forgotten, workspace: disk.Workspace, apply: bool) -> None:
        self._root, self._forgotten, self._workspace, self._apply = root, forgotten, workspace, apply
        self._counts = Counter({"requests": 0, "bodies": 0, "load log": 0})

    def all(self) -> Mapping[str, int]:
        files = sorted((self._root / "requests").glob("date=*/*.parquet"))
        for path in files:
            named = {row.request_id for row, body in _rows(path) if self._count(row, body)}
            if named and self._apply:
                (self._root / "index.sqlite").unlink(missing_ok=True)
                self._write(path, (self._without(row, body) if row.request_id in named else (row, body) for row, body in _rows(path)))
        if self._apply:
            self._mend_references(files)
            self._remove_orphans(files)
        return self._counts

    def _count(self, row: Row, body: bytes) -> bool:
        after, body_after = self._without(row, body, dry=True)
        is_body = body_after != body or after.body_file != row.body_file
        self._counts["bodies"] += is_body
        self._counts["requests"] += after != row
        return after != row

    def _without(self, row: Row, body: bytes, *, dry: bool = False) -> tuple[Row, bytes]:
        operation, params = operation_of(row.operation), json.loads(row.params)
        kept = self._forgotten.params(row.account, row.operation, params)
        error = row.error and self._forgotten.text(row.error)
        if kept != params or error != row.error:
            row = msgspec.structs.replace(
                row, params=json.dumps(kept, ensure_ascii=False), question_key=Call(operation, kept).key, error=error
            )
        whole = self._large(row) if row.body_file else body
        after = self._forgotten.body(row.account, operation, params, whole) if whole else whole
        if after is whole:
            return row, body
        digests, file = Digests.of(after), row.body_file and f"{row.body_file.removesuffix('.json.zst')}-{disk.new_name()}.json.zst"
        if file and not dry:
            self._pack(after, self._root / file)
        row = msgspec.structs.replace(row, bytes=digests.size, body_sha256=digests.body, content_sha256=digests.content, body_file=file)
        return row, b"" if file else after

    def _large(self, row: Row) -> bytes:
        path = self._workspace.file(f"{row.request_id}.json")
        sealed.unpack(self._root / str(row.body_file), path, row.body_sha256)
        try:
            return path.read_bytes()
        finally:
            path.unlink()

    def _pack(self, body: bytes, target: Path) -> None:
        plain = self._workspace.file("plain.json")
        plain.write_bytes(body)
        sealed.pack(plain, self._workspace.file(target.name), target)

    def _write(self, path: Path, rows: Iterator[tuple[Row, bytes]]) -> None:
        temporary = self._workspace.file(path.name)
        bodies: dict[int, bytes] = {}

        def noted() -> Iterator[Row]:
            for row, body in rows:
                bodies[row.request_id] = body
                yield row

        with disk.room_for(path):
            sealed.write(temporary, noted(), lambda row: bodies.pop(row.request_id))
            disk.move_into_place(temporary, path)

    def _mend_references(self, files: list[Path]) -> None:
        """Rows that refer to a body that was written anew have its size and hashes."""
        with duckdb.connect() as db:
            found = db.execute(_STALE, {"files": list(map(str, files))}).fetchall() if files else []
        stale: dict[str, dict[int, tuple[int, str, str]]] = {}
        for name, request_id, *digests in found:
            stale.setdefault(name, {})[request_id] = (digests[0], digests[1], digests[2])
        for name, rows in stale.items():
            self._write(Path(name), ((_with_digests(row, rows.get(row.request_id)), body) for row, body in _rows(Path(name))))

    def _remove_orphans(self, files: list[Path]) -> None:
        """Bodies in files of their own to which no row refers."""
        named = {name for path in files for name in sealed.read_columns(path, ("body_file",))["body_file"].to_pylist()}
        for path in (self._root / "bodies").glob("date=*/*"):
            if str(path.relative_to(self._root)) not in named:
                path.unlink()


def _with_digests(row: Row, digests: tuple[int, str, str] | None) -> Row:
    if digests is None:
        return row
    size, body, content = digests
    return msgspec.structs.replace(row, bytes=size, body_sha256=body, content_sha256=content)


def _rows(path: Path) -> Iterator[tuple[Row, bytes]]:
    """The rows of a sealed file, each with the body that it has itself."""
    file = sealed.SealedFile(path)
    for group in range(file.groups):
        bodies = file.bodies(group)
        for position, row in file.heads(group).values():
            yield row, bodies[position].as_py() or b""
