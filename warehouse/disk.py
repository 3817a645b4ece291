"""Files as the archive and others need them: for the owner only, durable, claimed by one process at
a time.

A claim is a `flock` on the open file, which the system gives up with the process, however it ends:
unlike a process id it cannot outlive its owner nor be taken over by a stranger."""

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

from marketing_api.clock import utc_now
from warehouse.errors import ArchiveFull

log = logging.getLogger(__name__)

#: In a home that is being restored from a backup: nothing else may use it.
RESTORING = ".restoring"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def new_name() -> str:
    """A unique name; names sort by the time they were made."""
    return f"{utc_now():%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}"


def make_folder(path: Path) -> Path:
    """The folder, made for the owner only, with those above it, when it is not there."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def create_file(path: Path) -> int:
    """A new file for the owner only, open for writing."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)


def claim_file(path: Path) -> int | None:
    """An open descriptor that holds the lock on `path`; None when another has it or it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # not removed or replaced in between
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    os.close(descriptor)
    return None


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """The lock on a folder, or on a file, which is created and stays. Waits until it is free."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_disk(path: Path) -> None:
    """Make a file's content durable, or the names created, replaced or removed in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_into_place(temporary: Path, target: Path) -> None:
    """Move a finished, closed file to its place: after a crash it is there whole or not at all."""
    make_folder(target.parent)
    sync_disk(temporary)
    temporary.replace(target)
    sync_disk(target.parent)


def write_file(target: Path, content: bytes) -> None:
    """Put a small file for the owner only in its place, in the same way."""
    temporary = target.with_name(f".{target.name}-{new_name()}")
    try:
        with os.fdopen(create_file(temporary), "wb") as file:
            file.write(content)
        move_into_place(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


#: Opening the file otherwise than through DuckDB would give up DuckDB's lock, so another process
#: copies it.
_COPY = """
import errno, shutil, sys
try:
    shutil.copyfile(sys.argv[1], sys.argv[2])
except OSError as error:
    sys.exit(error.errno or errno.EIO)
"""


def copy_locked(source: Path, target: Path) -> None:
    """Copy a file of DuckDB, with the log beside it, while this process holds its lock, and keep
    the lock."""
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
    """Give a file (or folder) that cannot be used another name beside its own, which is free
    then."""
    aside = path.with_name(f"{path.name}.damaged-{new_name()}")
    path.rename(aside)
    return aside


def no_folder(path: Path) -> Path:
    """The path, where a file is or may be made: a folder of that name is set aside."""
    if path.is_dir():
        log.warning(
            "%s is a folder in the place of a file: it is %s now", path, set_aside(path).name
        )
    return path


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Turns "no space left" into ArchiveFull."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise ArchiveFull(path, os.strerror(error.errno)) from error
        raise


def published_path(home: Path) -> Path:
    return home / "published" / "marketing.duckdb"


class Workspace:
    """A folder of this process for work in progress, made when first needed, which has a `name`
    that nobody else has; those of dead processes can be swept."""

    def __init__(self, parent: Path, name: str = "") -> None:
        self._parent = parent
        self._name = name
        self._folder: Path | None = None
        self._claim: int | None = None
        self._lock = threading.Lock()

    def open_folder(self) -> Path:
        """Where this process may write."""
        with self._lock:
            while self._folder is None:
                folder = make_folder(self._parent / (self._name or new_name()))
                claimed = claim_file(folder)
                if claimed is not None:
                    self._folder = folder
                    self._claim = claimed
            return self._folder

    def place_file(self, name: str) -> Path:
        """Where a temporary file of that name may be written; a file left there by an attempt that
        failed is removed."""
        path = self.open_folder() / name
        path.unlink(missing_ok=True)
        return path

    def sweep_dead(self) -> list[str]:
        """Remove what dead processes left; the names of what others still have."""
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
    """A folder of this process for the length of some work."""
    return contextlib.closing(Workspace(home / "tmp" / work))


def sweep_home(home: Path) -> None:
    """Remove what dead processes left below `tmp` of the home: most of it is personal data."""
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
    """Bytes of the home's files and folders, by their names up to a dot; what has none before it,
    and locks, are `other`."""
    found: Counter[str] = Counter()
    for path in home.rglob("*"):
        with contextlib.suppress(OSError):  # removed meanwhile
            name, _, suffix = path.relative_to(home).parts[0].partition(".")
            part = "other" if suffix == "lock" else name or "other"
            found[part] += path.stat().st_size * path.is_file()
    return dict(found)
