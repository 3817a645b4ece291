"""The backup of a home, and the way back: what cannot be made anew, in a folder or object storage, found
whole by its manifest.

Sealed files of the archive stand there under the names they have in the home; what changes stands beside its
name with its digest (`outbox.sqlite.1f…`), the load log in pieces. `manifest.json` names what belongs
together and is swapped last. Nothing is deleted, unless people are to be forgotten, and never what has
another name than these. A restore believes no other name either. Not here: what becomes of the outbox
(`write_back.outbox.store`), making the warehouse of it (`rebuild`)."""

import contextlib
import datetime as dt
import hashlib
import itertools
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import msgspec

from marketing_api.clock import utc_now
from warehouse.archive import Archive
from warehouse.archive.compaction import retired
from warehouse.archive.file_store import PATTERNS, Files
from warehouse.archive.ledger import LOADS, UNFINISHED
from warehouse.connection import Waits, connect, private
from warehouse.disk import RESTORING, Workspace, exclusive, make_folder
from warehouse.errors import ForeignFolder, StorageMisconfigured, StorageUnavailable, WarehouseError
from warehouse.sql import literal, query, quoted, rows
from warehouse.storage import Storage, sha256, shown
from warehouse.tables import KEPT, WRITEBACKS

_MANIFEST, _OUTBOX, _KEPT = "manifest.json", "outbox.sqlite", "kept/"
_LOG, _UNFINISHED = f"archive/{LOADS}", f"archive/{UNFINISHED}"
#: Files that only ever appear, whole; the others are small.
_PUSHED = "pushes/*/rows.parquet"
_SEALED = (*(f"archive/{pattern}" for pattern in PATTERNS), _PUSHED)
_CHANGING = (
    "archive/forgotten.json",
    "identity.json",
    "personal.key",
    "sandbox.jsonl",
    "models/**/*",
    "dagster/dagster.yaml",
    "version",
)
#: Where any of these is, a restore would be of no use, or do harm.
_IN_USE = ("archive", "outbox.sqlite", "warehouse.duckdb", "published")


class File(msgspec.Struct, frozen=True):
    """`path` in the home; `stored` there. Several of one path follow one another."""

    path: str
    stored: str
    bytes: int
    sha256: str

    def is_in(self, there: Mapping[str, int]) -> bool:
        return there.get(self.stored) == self.bytes


class Manifest(msgspec.Struct):
    """What the backup holds, as of the moment at which it was begun."""

    made_at: dt.datetime
    files: list[File]
    home_id: str = ""


@dataclass
class BackupReport:
    """What was sent; of what was missing or damaged there, what was sent anew, and what the home does not
    have any more."""

    manifest: Manifest
    sent: list[File]
    mended: list[str]
    lost: list[str]


def back_up(
    home: Path,
    storage: Storage,
    *,
    verify: bool = False,
    is_only: bool = False,
    home_id: str = "",
    **waits: Unpack[Waits],
) -> BackupReport:
    """Send what is not there yet. `verify`: read everything that is there, too. Safe while others use the
    home, and to be killed. `is_only`: what the home does not have as it is there goes, but for requests and
    pushes that the home has lost. `home_id`: no other home's backup is there.

    Raises StorageUnavailable, ForeignFolder, and what `connection.connect` raises.
    """
    with exclusive(home / ".backup"), contextlib.closing(Workspace(home / "tmp" / "backup")) as workspace:
        before = check_place(home, storage, home_id) or Manifest(utc_now(), [])
        there = storage.names()
        bad = {
            file.stored
            for file in before.files
            if not file.is_in(there)
            or (verify and _is_damaged(storage, file))
            # what was written anew under its name may be as long as it was
            or (is_only and _is_sealed(file.path) and _is_other(home, file))
        }
        there = {name: size for name, size in there.items() if name not in bad}
        sending = _Sending(home, storage, workspace, before.files, there)
        manifest = Manifest(utc_now(), [*sending.all(waits)], home_id)
        manifest.files += _lost(home, before, manifest, is_only=is_only)
        storage.write(_MANIFEST, msgspec.json.encode(manifest))
        named, sent = _names(manifest.files), _names(sending.sent)
        if is_only:
            others = filter(_WRITTEN.fullmatch, storage.names().keys() - named - {_MANIFEST})
            storage.delete(list(others))
        return BackupReport(manifest, sending.sent, sorted(bad & sent), sorted(bad & named - sent))


def _names(files: Iterable[File]) -> set[str]:
    return {file.stored for file in files}


def _is_damaged(storage: Storage, file: File) -> bool:
    return storage.digest(file.stored) != file.sha256


def _is_other(home: Path, file: File) -> bool:
    files, name = _place_of(home, file.path)
    # the home has lost it, or merges its file just now
    with contextlib.suppress(FileNotFoundError), files.open(name) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() != file.sha256
    return False


def _place_of(home: Path, path: str) -> tuple[Files, str]:
    """Where a file of the home is, and its name there."""
    if path.startswith("archive/") and _is_sealed(path):
        return Files.of(home / "archive"), path.removeprefix("archive/")
    return Files(home), path


def _size_of(home: Path, path: str) -> int | None:
    files, name = _place_of(home, path)
    with contextlib.suppress(FileNotFoundError):
        return files.size(name)
    return None


def _lost(home: Path, before: Manifest, now: Manifest, *, is_only: bool) -> Iterator[File]:
    """What a home has lost stays in its backup."""
    known = {file.path for file in now.files} | retired(home / "archive")
    for file in before.files:
        is_carried = _is_sealed(file.path) or file.path == _OUTBOX or file.path.startswith(_KEPT)
        is_dropped = is_only and file.path.startswith("archive/bodies/")
        if is_carried and file.path not in known and not is_dropped:
            yield file


def read_manifest(storage: Storage) -> Manifest | None:
    """None when there is no backup, which one of nothing is not either."""
    try:
        manifest = msgspec.json.decode(storage.read(_MANIFEST), type=Manifest)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as problem:
        raise WarehouseError(
            f"{_MANIFEST} in {shown(storage.url)} is damaged ({problem}): put back an earlier version of it"
        ) from None
    return manifest if manifest.files else None


def check_place(home: Path, storage: Storage, home_id: str) -> Manifest | None:
    """The manifest that is there. Raises ForeignFolder where another home's backup is: a home that was begun
    anew must not take the place of what was lost; without ids, files tell. StorageUnavailable."""
    if (before := read_manifest(storage)) is None:
        return None
    if before.home_id and home_id:
        is_other = before.home_id != home_id
    else:
        sealed, gone = (
            [each.path for each in before.files if _is_sealed(each.path)],
            retired(home / "archive"),
        )
        is_other = bool(sealed) and not any(
            path in gone or _size_of(home, path) is not None for path in sealed
        )
    if is_other:
        raise ForeignFolder(
            f"{shown(storage.url)} holds the backup of another home: `marketing-sync restore` brings it into "
            "an empty one; for this one set another MARKETING_BACKUP_URL"
        )
    return before


def _any_of(*patterns: str) -> str:
    """As a regular expression."""
    texts = [
        re.escape(pattern).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]+") for pattern in patterns
    ]
    return f"(?:{'|'.join(texts)})"


_SEALED_NAME, _NAME = _any_of(*_SEALED), _any_of(*_CHANGING, _LOG, _UNFINISHED, _OUTBOX, f"{_KEPT}*")
#: Names that files have in a backup; `.part`: left by a kill.
_WRITTEN = re.compile(rf"(?:{_SEALED_NAME}|{_NAME}\.[0-9a-f]{{16}})(?:\.[0-9a-f]{{8}}\.part)?")


def _is_sealed(path: str) -> bool:
    return re.fullmatch(_SEALED_NAME, path) is not None


def _stored_as(path: str, digest: str) -> str:
    return path if _is_sealed(path) else f"{path}.{digest[:16]}"


def _is_ours(file: File, home: Path) -> bool:
    """Whether a backup would have called it so: no other name of a manifest is believed, nor one that leads
    out of the home."""
    is_plain = not any(part in ("", ".", "..") for part in file.path.split("/")) and "\0" not in file.path
    is_named = re.fullmatch(f"{_SEALED_NAME}|{_NAME}", file.path) is not None
    is_stored = file.stored == _stored_as(file.path, file.sha256)
    return is_plain and is_named and is_stored and (home / file.path).resolve().is_relative_to(home.resolve())


@dataclass
class _Sending:
    """Sends files of a home that are not `there` (name → bytes). The order is that of reference: what a file
    refers to is sent after it."""

    home: Path
    storage: Storage
    workspace: Workspace
    before: list[File]
    there: dict[str, int]
    sent: list[File] = field(default_factory=list)

    def all(self, waits: Waits) -> Iterator[File]:
        yield from self._log()
        yield from self._outbox()
        yield from self._kept(waits)
        known = {file.path: file for file in self.before if _is_sealed(file.path)}
        for path in self._found():
            with contextlib.suppress(FileNotFoundError):  # done with meanwhile
                file = known.get(path)
                is_there = file and file.is_in(self.there) and file.bytes == _size_of(self.home, path)
                yield file if file and is_there else self._send(self._copy(path), path)

    def _found(self) -> Iterator[str]:
        home, archive = Files(self.home), Files.of(self.home / "archive")
        for pattern in (*_CHANGING, _PUSHED):
            yield from (path for path in home.names(pattern) if (self.home / path).is_file())
        for pattern in PATTERNS:
            yield from (f"archive/{name}" for name in archive.names(pattern))

    def _copy(self, path: str) -> Path:
        files, name = _place_of(self.home, path)
        return files.fetch(name, self.workspace.file("copy"))

    def _log(self) -> Iterator[File]:
        """What the ledger alone knows: what is being read, and the load log, of which pieces are there
        already. What it refers to is sealed then, and sent with the other files."""
        if not (root := self.home / "archive").exists():
            return
        with Archive(root) as archive:
            log, start = b"".join(msgspec.json.encode(load) + b"\n" for load in archive.ledger.loads()), 0
            notes = [(holder, *note) for holder, note in archive.ledger.unfinished().items()]
            archive.seal()
        if notes:
            unfinished = self.workspace.file("unfinished")
            unfinished.write_bytes(msgspec.json.encode(notes))
            yield self._send(unfinished, _UNFINISHED)
        for piece in (file for file in self.before if file.path == _LOG):
            end = start + piece.bytes
            if hashlib.sha256(log[start:end]).hexdigest() != piece.sha256 or not piece.is_in(self.there):
                break
            yield piece
            start = end
        if rest := log[start:]:
            added = self.workspace.file("log")
            added.write_bytes(rest)
            yield self._send(added, _LOG)

    def _outbox(self) -> Iterator[File]:
        if not (path := self.home / _OUTBOX).exists():
            return
        copy = self.workspace.file("outbox")
        try:
            with (
                contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source,
                contextlib.closing(sqlite3.connect(copy)) as target,
            ):
                source.backup(target)
        except sqlite3.Error as problem:
            raise WarehouseError(
                f"{path} cannot be backed up ({problem}): `marketing-sync rebuild` mends it"
            ) from problem
        yield self._send(copy, _OUTBOX)

    def _kept(self, waits: Waits) -> Iterator[File]:
        """Tables that a rebuild cannot make of the archive, as Parquet."""
        if not (path := self.home / "warehouse.duckdb").exists():
            return
        copies = []
        with connect(path, read_only=True, **waits) as connection:
            kept = [table.name for table in KEPT if table is not WRITEBACKS]
            for schema, name in rows(connection, query("kept_tables"), [kept]):
                copies.append(self.workspace.file(f"{schema}.{name}.parquet"))
                target = f"{literal(str(copies[-1]))} (format parquet, compression zstd)"
                rows(connection, f"copy {quoted(schema)}.{quoted(name)} to {target}")
        for copy in copies:  # the warehouse is free again
            yield self._send(copy, f"{_KEPT}{copy.name}")

    def _send(self, source: Path, path: str) -> File:
        """As the file `path` of the home. What was sent is read back."""
        digest = sha256(source)
        file = File(path, _stored_as(path, digest), source.stat().st_size, digest)
        if not file.is_in(self.there):
            self.storage.upload(source, file.stored)
            if _is_damaged(self.storage, file):
                raise StorageUnavailable(
                    f"{shown(self.storage.url)}: {file.stored} did not arrive as it was sent: back up again"
                )
            self.sent.append(file)
        return file


def restore(home: Path, storage: Storage) -> Manifest:
    """Bring everything back into an empty home, which stays marked `RESTORING`; resumes when it was
    interrupted.

    Raises WarehouseError, which names what is missing or damaged (the rest is there), ForeignFolder for a
    home that is in use."""
    if (manifest := read_manifest(storage)) is None:
        raise StorageMisconfigured(f"there is no backup in {shown(storage.url)}")
    if not (home / RESTORING).exists() and (used := [name for name in _IN_USE if (home / name).exists()]):
        raise ForeignFolder(
            f"{home} is in use ({', '.join(used)}): a backup is restored into an empty home; name one with "
            "MARKETING_HOME"
        )
    (make_folder(home) / RESTORING).touch(mode=0o600)
    pieces = itertools.groupby(manifest.files, key=lambda file: file.path)
    with contextlib.closing(Workspace(home / "tmp" / "restore")) as workspace:
        bad = [name for path, files in pieces for name in _fetch(home, storage, workspace, path, list(files))]
    if bad:
        named = ", ".join(bad[:20]) + (f" and {len(bad) - 20:,} more" if len(bad) > 20 else "")
        raise WarehouseError(
            f"{len(bad):,} files of {shown(storage.url)} are missing or damaged: {named}. Put them back and "
            "run this again"
        )
    return manifest


def _fetch(home: Path, storage: Storage, workspace: Workspace, path: str, files: list[File]) -> list[str]:
    """The names of those that are missing or damaged; the file is then not made."""
    if strange := [file.stored for file in files if not _is_ours(file, home)]:
        return strange
    whole = workspace.file("whole")
    if _size_of(home, path) == sum(file.bytes for file in files):
        return []
    for file in files:
        part = workspace.file("part")
        try:
            storage.download(file.stored, part)
        except FileNotFoundError:
            return [file.stored]
        if sha256(part) != file.sha256:
            return [file.stored]
        with part.open("rb") as opened, whole.open("ab") as made:
            shutil.copyfileobj(opened, made)
    whole.chmod(0o600)
    place, name = _place_of(home, path)
    place.put(whole, name)
    return []


def kept_tables(home: Path, file: Path) -> Path:
    """A DuckDB file of the tables that were restored as Parquet, for `rebuild`."""
    with private(file) as connection:
        for path in sorted((home / _KEPT).glob("*.parquet")):
            schema, name = map(quoted, path.stem.split(".", 1))
            rows(connection, f"create schema if not exists {schema}")
            rows(connection, f"create table {schema}.{name} as from read_parquet({literal(str(path))})")
    return file


def finish_restore(home: Path) -> None:
    shutil.rmtree(home / _KEPT, ignore_errors=True)
    (home / RESTORING).unlink(missing_ok=True)
