"""Where the state of an account's limit is kept: a small locked file that all processes of the machine share.

Belongs here: locking, reading, writing, and what happens when the file is damaged or gone. Not here: what the
numbers mean (`pacing`), sharing between machines (`redis_state`). Needs `fcntl`, so Linux or macOS."""

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from marketing_api.rate_limit.pacing import Schedule
from marketing_api.redaction import Secret

_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Schedule).decode
# bytes of the file, checksum included, whatever the numbers: a kill between writing and cutting must not
# damage it
_SIZE = 1024


T = TypeVar("T")


class StateFile:
    """A store of one account's `Schedule`, used by one thread at a time. Changes are made under the file's
    lock."""

    now = staticmethod(
        time.monotonic
    )  # the clock that the schedule's times are of; all processes of the machine share it

    def __init__(self, path: Path) -> None:
        self._path = path

    def apply(self, change: Callable[[Schedule], T]) -> T:
        """Change the schedule as if nobody else did, and return what `change` does."""
        with self._locked() as descriptor:
            stored = os.pread(descriptor, _SIZE + 1, 0)
            schedule = unpacked(stored)
            result = change(schedule)
            os.pwrite(descriptor, packed(schedule), 0)
            if len(stored) > _SIZE:
                os.ftruncate(descriptor, _SIZE)
            return result

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The file is opened for each change: a descriptor that were kept, a forked child would share
        together with its lock."""
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.fstat(
                    descriptor
                ).st_nlink:  # or somebody removed the file, and others are on a new one already
                    yield descriptor
                    return
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # for a child that was forked meanwhile, too
                os.close(descriptor)


def packed(schedule: Schedule) -> bytes:
    content = _encode(schedule).ljust(_SIZE - 4)
    return zlib.crc32(content).to_bytes(4) + content


def unpacked(stored: bytes) -> Schedule:
    """What is empty, cut, damaged or of another version is as good as nothing: the limit is then learnt
    afresh, which takes seconds."""
    try:
        if zlib.crc32(stored[4:]).to_bytes(4) == stored[:4]:
            return _decode(stored[4:])
    except msgspec.MsgspecError:
        pass
    return Schedule()


def shared_path(url: str, key: Secret | str) -> Path:
    """The file of an account's limit, in a folder of the temp directory that only its owner can open.

    Processes share a limit when they run as the same user with the same temp directory. The name is a hash of
    both values."""
    secret = key.reveal() if isinstance(key, Secret) else key
    name = hashlib.blake2b(f"{url.rstrip('/').lower()}\0{secret}".encode(), digest_size=16).hexdigest()
    return private_folder() / name


def private_folder() -> Path:
    """A folder of the temp directory that only its owner can open, made when it is not there: what processes
    of one user share.

    What is kept in it can be made again. Raises PermissionError when somebody else has one of that name.
    """
    folder = Path(tempfile.gettempdir()) / f"marketing-sync-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; remove it, or set TMPDIR")
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder
