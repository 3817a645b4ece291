"""Files for the owner only, written durably, and claimed by one process at a time.

A claim is a `flock` on the open file. The system releases it when the process ends, in whatever
way. Unlike a process id, it cannot outlive its owner, and no other process can take it over."""

import contextlib
import errno
import fcntl
import logging
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from marketing_api.clock import utc_now
from warehouse.errors import ArchiveFull

log = logging.getLogger(__name__)

#: A file with this name marks a home that is being restored from a backup: no other process may use
#: it.
RESTORING = ".restoring"
#: Error numbers of a disk or quota that is full.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def new_name() -> str:
    """A unique name; names sort by the time of their creation."""
    return f"{utc_now():%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}"


def make_folder(path: Path) -> Path:
    """Create the folder and its parents, for the owner only, if they do not exist."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def create_file(path: Path) -> int:
    """A new file for the owner only, open for writing."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)


def claim_file(path: Path) -> int | None:
    """An open descriptor that holds the lock on `path`; None if another process has it, or if the
    file is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # the file was not removed or replaced meanwhile
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    os.close(descriptor)
    return None


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock on a folder, or on a file, which is created if necessary. Waits until it is
    free."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_disk(path: Path) -> None:
    """Make a file's content durable; for a folder, the names that were created, replaced or removed
    in it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_into_place(temporary: Path, target: Path) -> None:
    """Move a finished, closed file to its place. After a crash it is there completely or not at
    all."""
    make_folder(target.parent)
    sync_disk(temporary)
    temporary.replace(target)
    sync_disk(target.parent)


def write_file(target: Path, content: bytes) -> None:
    """Write a small file for the owner only, in the same safe way."""
    temporary = target.with_name(f".{target.name}-{new_name()}")
    try:
        with os.fdopen(create_file(temporary), "wb") as file:
            file.write(content)
        move_into_place(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


#: DuckDB loses its lock if this process opens the file in another way, so another process copies
#: it.
_COPY = """
import errno, shutil, sys
try:
    shutil.copyfile(sys.argv[1], sys.argv[2])
except OSError as error:
    sys.exit(error.errno or errno.EIO)
"""


def copy_locked(source: Path, target: Path) -> None:
    """Copy a DuckDB file and its log while this process holds and keeps its lock."""
    for suffix in ("", ".wal"):
        if Path(f"{source}{suffix}").exists():
            command = [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _COPY,
                f"{source}{suffix}",
                f"{target}{suffix}",
            ]
            copied = subprocess.run(command, check=False, umask=0o077)  # noqa: S603 (our own words)
            code = copied.returncode
            if code:
                raise OSError(code, f"{source} cannot be copied to {target}: {os.strerror(code)}")


def set_aside(path: Path) -> Path:
    """Rename an unusable file or folder, so that its name is free."""
    aside = path.with_name(f"{path.name}.damaged-{new_name()}")
    path.rename(aside)
    return aside


#: What decoding a damaged JSON file raises.
DAMAGED_JSON = (msgspec.DecodeError, UnicodeDecodeError)


def no_folder(path: Path) -> Path:
    """The path of a file that exists or will be created. A folder with that name is renamed."""
    if path.is_dir():
        log.warning(
            "%s is a folder in the place of a file: it is %s now", path, set_aside(path).name
        )
    return path


def no_folders_beside(database: Path) -> None:
    """Rename folders with the names of the files that SQLite creates beside a database."""
    for suffix in ("-wal", "-shm"):
        no_folder(Path(f"{database}{suffix}"))


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Turns "no space left" into ArchiveFull."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise ArchiveFull(path, os.strerror(error.errno)) from error
        raise


def published_path(home: Path) -> Path:
    return home / "published" / "marketing.duckdb"


class Workspace:
    """A folder of this process for temporary files, created when it is first needed. Its `name` is
    unique; `sweep_dead` removes those of dead processes."""

    def __init__(self, parent: Path, name: str = "") -> None:
        self._parent = parent
        self._name = name
        self._folder: Path | None = None
        self._claim: int | None = None
        self._lock = threading.Lock()

    def open_folder(self) -> Path:
        """The folder, created if necessary."""
        with self._lock:
            while self._folder is None:
                folder = make_folder(self._parent / (self._name or new_name()))
                claimed = claim_file(folder)
                if claimed is not None:
                    self._folder = folder
                    self._claim = claimed
            return self._folder

    def place_file(self, name: str) -> Path:
        """The path of a temporary file with that name. A file from an earlier failed attempt is
        removed."""
        path = self.open_folder() / name
        path.unlink(missing_ok=True)
        return path

    def sweep_dead(self) -> list[str]:
        """Remove the folders of dead processes; returns the names of the others."""
        kept = []
        for folder in self._parent.iterdir() if self._parent.is_dir() else ():
            claimed = claim_file(folder)
            if claimed is None:
                kept.append(folder.name)
            else:
                remove_path(folder)
                os.close(claimed)
        return kept

    def close(self) -> None:
        """Remove the folder with everything in it."""
        with self._lock:
            if self._folder is not None and self._claim is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                os.close(self._claim)
            self._folder = self._claim = None


def open_scratch(home: Path, work: str) -> contextlib.AbstractContextManager[Workspace]:
    """A folder for temporary files, removed at the end of the context."""
    return contextlib.closing(Workspace(home / "tmp" / work))


def sweep_home(home: Path) -> None:
    """Remove temporary files of dead processes below the home's `tmp`: most are personal data."""
    for parent in (home / "tmp").glob("*"):
        Workspace(parent).sweep_dead()


def remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def measure_sizes(home: Path) -> dict[str, int]:
    """Bytes of the home's files and folders, by their names up to a dot. Hidden files and locks are
    `other`."""
    found: Counter[str] = Counter()
    for path in home.rglob("*"):
        with contextlib.suppress(OSError):  # removed meanwhile
            name, _, suffix = path.relative_to(home).parts[0].partition(".")
            part = "other" if suffix == "lock" else name or "other"
            found[part] += path.stat().st_size * path.is_file()
    return dict(found)
