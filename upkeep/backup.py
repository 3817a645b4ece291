"""The snapshot of a home in a folder, made after each run and push, and its restore.

A snapshot is a copy of the home as of one moment. It is made next to the previous one, and replaces
it by a rename after every file was checked: a damaged file of the home never replaces a good copy.
Copying snapshots to other machines is up to the user (`docs/backup.md`)."""

import contextlib
import datetime as dt
import hashlib
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import msgspec
import pyarrow.parquet as pq

from home.alerts import try_to_post
from home.door import archive_of, outbox_of, waiting_options
from home.failures import explain_error
from home.folder import in_use
from home.identity import identity_of
from home.progress import begin_stage
from home.settings import Settings, SettingsError, check_apart
from home.versions import check_not_newer
from marketing_api.clock import unix_now, utc_now
from warehouse.archive.archive import Archive
from warehouse.archive.compaction import list_retired
from warehouse.archive.file_store import CHECKPOINTS, PATTERNS
from warehouse.archive.ledger import NAME as LEDGER
from warehouse.connection import open_database
from warehouse.disk import (
    DAMAGED_JSON,
    RESTORING,
    copy_locked,
    hold_lock,
    make_folder,
    remove_path,
    sync_disk,
    write_file,
)
from warehouse.errors import ForeignFolder, WarehouseError
from warehouse.sql import fetch_rows, quote_name
from write_back.kinds import NOT_IDEMPOTENT
from write_back.outbox.store import hold_open_items

log = logging.getLogger(__name__)

MANIFEST = "snapshot.json"
_WAREHOUSE = "warehouse.duckdb"
_OUTBOX = "outbox.sqlite"
_LEDGER = f"archive/{LEDGER}"
#: Files that appear as a whole and never change.
_SEALED = tuple(f"archive/{pattern}" for pattern in PATTERNS)
_CHANGING_FILES = (
    "archive/forgotten.json",
    "archive/retired.txt",
    "identity.json",
    "personal.key",
    "sandbox.jsonl",
    "version",
    "models/**/*",
    "pushes/*/*",
    "dagster/dagster.yaml",
)
#: A restore into a folder with any of these would do harm.
_IN_USE = ("archive", _OUTBOX, _WAREHOUSE, "published")


class Snapshot(msgspec.Struct, frozen=True):
    """The content of a snapshot. `files`: SHA-256 by path, in hexadecimal."""

    made_at: dt.datetime
    home_id: str
    files: dict[str, str]
    bytes: int


def backup_folder(settings: Settings, folder: str = "") -> Path:
    """The folder of the home's snapshot. Raises SettingsError if no folder is set, or one inside
    the home."""
    folder = folder or settings.backup_dir
    if not folder:
        raise SettingsError("no backup folder is set: name one, or set MARKETING_BACKUP_DIR")
    check_apart(settings, folder)
    return Path(folder).expanduser().absolute() / (settings.shard or "main")


def read_snapshot(place: Path) -> Snapshot | None:
    """None if there is none. Raises WarehouseError."""
    found = place if place.exists() else _path_beside(place, "old")
    try:
        return msgspec.json.decode((found / MANIFEST).read_bytes(), type=Snapshot)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WarehouseError(
            f"the backup in {place} cannot be read ({error.strerror}): check that the folder "
            "exists and that you can read it"
        ) from error
    except DAMAGED_JSON as error:
        raise WarehouseError(
            f"{found / MANIFEST} is damaged ({error}): move {found} away, and back up again"
        ) from None


def check_place(settings: Settings, place: Path) -> Snapshot | None:
    """The snapshot in the folder. Raises ForeignFolder if it is of another home: a home that was
    created again must not replace the lost one's snapshot."""
    before = read_snapshot(place)
    home_id = identity_of(settings.home).home_id
    is_other = before.home_id != home_id if before else place.exists() and any(place.iterdir())
    if is_other:
        what = "the backup of another home" if before else "files that are no backup"
        raise ForeignFolder(
            f"{place} contains {what}: set another MARKETING_BACKUP_DIR for this home, or restore "
            "that backup into an empty MARKETING_HOME with `marketing-sync restore`"
        )
    return before


def check_backup(settings: Settings) -> None:
    """Check before a run that its backup will not replace another home's. Raises ForeignFolder.
    Other problems of the folder are reported at the end of the run."""
    if settings.backup_dir:
        try:
            check_place(settings, backup_folder(settings))
        except ForeignFolder:
            raise
        except WarehouseError as error:
            log.warning("%s", error)


def back_up(settings: Settings, folder: str = "") -> Snapshot:
    """Replace the snapshot. Other processes may use the home meanwhile, and this may be killed at
    any moment.

    Raises ForeignFolder, SettingsError, and WarehouseError with the name of a damaged file."""
    home = settings.home
    place = backup_folder(settings, folder)
    with (
        in_use(home),
        begin_stage("backup"),
        hold_lock(home / ".backup"),
        contextlib.ExitStack() as stack,
    ):
        before = check_place(settings, place)
        _finish_swap(place)
        part = _path_beside(place, "part")
        remove_path(part)
        stack.callback(remove_path, part)  # a failed backup must not fill the disk
        make_folder(part)
        made_at = utc_now()
        for path, copy in _list_copies(settings, place, before):
            (part / path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            copy(home / path, part / path)
        files = {
            path.relative_to(part).as_posix(): path for path in part.rglob("*") if path.is_file()
        }
        digests = {name: _hash_file(path) for name, path in files.items()}
        for copied in part.rglob("*"):
            sync_disk(copied)
        _check_sealed(home, before, digests)
        size = sum(path.stat().st_size for path in files.values())
        snapshot = Snapshot(made_at, identity_of(home).home_id, digests, size)
        write_file(part / MANIFEST, msgspec.json.encode(snapshot))
        _swap_folders(part, place)
        return snapshot


def _path_beside(place: Path, suffix: str) -> Path:
    return place.with_name(f".{place.name}.{suffix}")


def _swap_folders(part: Path, place: Path) -> None:
    old = _path_beside(place, "old")
    remove_path(old)
    if place.exists():
        place.rename(old)
    part.rename(place)
    sync_disk(place.parent)
    remove_path(old)


def _finish_swap(place: Path) -> None:
    """After a kill between the two renames, the previous snapshot still has its other name."""
    if not place.exists():
        with contextlib.suppress(FileNotFoundError):
            _path_beside(place, "old").rename(place)


Copy = Callable[[Path, Path], object]


def _list_copies(
    settings: Settings, place: Path, before: Snapshot | None
) -> Iterator[tuple[str, Copy]]:
    """What is copied, and how. Files that refer to others come first: the archive may have more
    than the tables, never less."""
    home = settings.home
    if (home / _WAREHOUSE).exists():
        yield _WAREHOUSE, lambda source, target: _copy_warehouse(settings, source, target)
    if (home / _OUTBOX).exists():
        yield _OUTBOX, _copy_sqlite
    if archive_of(home).exists():
        with Archive(archive_of(home)) as archive:
            archive.seal_requests()
            _check_log(home, archive, place, before)
        yield _LEDGER, _copy_sqlite
    for patterns, copy in ((_SEALED, _link_file), (_CHANGING_FILES, _copy_file)):
        for pattern in patterns:
            for path in sorted(home.glob(pattern)):
                if path.is_file() and not path.is_symlink():
                    yield path.relative_to(home).as_posix(), copy


def _check_log(home: Path, archive: Archive, place: Path, before: Snapshot | None) -> None:
    """Read all of the log of loads, whose rows have checksums. It must begin like that of the
    previous snapshot, unless people were forgotten since: if a ledger is lost, the next run begins
    an empty one."""
    first, *_ = [*archive.ledger.list_loads(), None]
    files = before.files if before else {}
    checkpoints = {name for name in files if Path(name).match(f"archive/{CHECKPOINTS}")}
    is_forgotten = checkpoints != {
        f"archive/{name}" for name in archive.files.list_names(CHECKPOINTS)
    }
    if _LEDGER not in files or is_forgotten:
        return
    with contextlib.closing(
        sqlite3.connect(f"file:{place / _LEDGER}?immutable=1", uri=True)
    ) as connection:
        found = connection.execute("select event from loads order by number limit 1").fetchone()
    if found and msgspec.json.decode(found[0]) != first:
        raise _make_damage_error(home / _LEDGER, "it has a new log of loads")


def _copy_warehouse(settings: Settings, source: Path, target: Path) -> None:
    """Every value of the copy is read, since DuckDB compares each block with its checksum."""
    with open_database(source, read_only=True, **waiting_options(settings)):
        copy_locked(source, target)
    try:
        with open_database(target, read_only=True) as connection:
            tables = "select schema_name, table_name from duckdb_tables() where not temporary"
            for schema, name in fetch_rows(connection, tables):
                fetch_rows(
                    connection,
                    f"from {quote_name(schema)}.{quote_name(name)} as t select count(hash(t))",
                )
    except (duckdb.Error, WarehouseError) as error:
        raise _make_damage_error(source, error) from error


def _copy_sqlite(source: Path, target: Path) -> None:
    try:
        with (
            contextlib.closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as opened,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            opened.backup(copy)
            (found,) = copy.execute("pragma quick_check").fetchone()
    except sqlite3.Error as error:
        raise _make_damage_error(source, error) from error
    if found != "ok":
        raise _make_damage_error(source, found)
    target.chmod(0o600)


def _link_file(source: Path, target: Path) -> None:
    """A second name of the file, which takes no space; a copy if it is on another disk."""
    with contextlib.suppress(FileNotFoundError):  # the file was merged meanwhile
        try:
            os.link(source, target)
        except OSError:
            _copy_file(source, target)
        if target.suffix == ".parquet":
            try:
                pq.read_metadata(target)
            except (OSError, ValueError) as error:
                raise _make_damage_error(source, error) from error


def _copy_file(source: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _check_sealed(home: Path, before: Snapshot | None, digests: dict[str, str]) -> None:
    """Files that never change must be those of the previous snapshot."""
    gone = list_retired(archive_of(home))
    for path, digest in (before.files if before else {}).items():
        is_sealed = any(Path(path).match(pattern) for pattern in _SEALED)
        if is_sealed and path not in gone and digests.get(path) != digest:
            lost = "it is missing, unless another copy of this home has written the backup"
            what = "its content has changed" if path in digests else lost
            raise _make_damage_error(home / path, what)


def _make_damage_error(path: Path, damage: object) -> WarehouseError:
    return WarehouseError(
        f"{path} is damaged ({str(damage).splitlines()[0]}), so the backup was not replaced: "
        "restore it into an empty MARKETING_HOME with `marketing-sync restore`"
    )


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- after runs and pushes


def back_up_run(settings: Settings) -> str:
    """Back up after a run, if a folder is set. Returns why it failed, which is also posted, since
    Dagster shows such a run as a success."""
    try:
        if settings.backup_dir:
            back_up(settings)
        return ""
    except Exception as error:  # any error: the run itself is complete
        text = f"the run is done, but not backed up: {explain_error(error)[0]}"
        if settings.alert_url:
            try_to_post(settings, {"text": f"marketing-sync: {text}"})
        return text


def back_up_push(settings: Settings) -> None:
    """Back up after a push. A failure is logged and doesn't change the outcome of the push."""
    warning = back_up_run(settings)
    if warning:
        log.warning("%s", warning)


# ---- restore


def restore_backup(settings: Settings, folder: str = "") -> Snapshot:
    """Copy the snapshot into an empty home. Pushes are held, and all timelines count as unread, so
    that an activity is looked up before it is sent. If it is interrupted, the next call with the
    same snapshot resumes.

    Raises ForeignFolder for a home in use, SettingsError without a snapshot, and WarehouseError
    with the names of missing or damaged files; then the home cannot be used."""
    home = settings.home
    place = backup_folder(settings, folder)
    snapshot = read_snapshot(place)
    if snapshot is None:
        raise SettingsError(f"there is no backup in {place}")
    marker = home / RESTORING
    note = f"{snapshot.home_id} {snapshot.made_at}"
    resumes = marker.exists() and marker.read_text(encoding="utf-8") == note
    if not resumes and (used := [name for name in _IN_USE if (home / name).exists()]):
        raise ForeignFolder(
            f"{home} is in use ({', '.join(used)}): a backup can only be restored into an empty "
            "home; set MARKETING_HOME to one"
        )
    _finish_swap(place)
    make_folder(home)
    write_file(marker, note.encode())
    bad = [
        path
        for path, digest in snapshot.files.items()
        if not _bring_back(place, home, path, digest)
    ]
    if bad:
        named = ", ".join(bad[:20]) + (f" and {len(bad) - 20:,} more" if len(bad) > 20 else "")
        raise WarehouseError(
            f"{len(bad):,} files of {place} are missing or damaged: {named}. Put them back and run "
            "`marketing-sync restore` again"
        )
    check_not_newer(home)
    hold_open_items(outbox_of(home), snapshot.made_at, unix_now(), NOT_IDEMPOTENT)
    if settings.warehouse_path.exists():
        with open_database(settings.warehouse_path) as connection:
            fetch_rows(connection, "update sync.contact_coverage set timeline_asked_at = null")
    marker.unlink()
    return snapshot


def _bring_back(place: Path, home: Path, path: str, digest: str) -> bool:
    """Whether the file was restored unchanged. A path that leads out of either folder is
    refused."""
    source = place / path
    target = home / path
    is_inside = source.resolve().is_relative_to(place.resolve()) and ".." not in Path(path).parts
    if not is_inside or not source.is_file() or source.is_symlink() or _hash_file(source) != digest:
        return False
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, temporary)
    temporary.chmod(0o600)
    temporary.replace(target)
    return True
