"""One sender per home and account at a time: a locked file, which goes with its process however that ends.

Not here: what the sender does.
"""

import fcntl
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.write_back.outbox.store import OutboxBusy, OutboxError

_LOOK_S = 0.2


@contextmanager
def sender_lock(
    folder: Path, account: str, *, wait_s: float = 0.0, on_wait: Callable[[str], object] = lambda holder: None
) -> Iterator[None]:
    """Held while the context lasts. `on_wait` is called once with who holds it. Raises OutboxBusy after `wait_s` seconds."""
    path = folder / f"sender-{_name(account)}.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise OutboxError(f"{path} cannot be used ({problem.strerror}): let this user write it, or move it away") from problem
    try:
        _take(handle, account, wait_s, on_wait)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {Path(sys.argv[0]).name or 'python'}".encode(), 0)
        yield
    finally:
        os.close(handle)


def _take(handle: int, account: str, wait_s: float, on_wait: Callable[[str], object]) -> None:
    deadline, is_first = time.monotonic() + wait_s, True
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            found = os.pread(handle, 200, 0).decode(errors="replace").split(" ", 1)
        holder = f"{found[1]} (process {found[0]})" if len(found) == 2 else "another process"  # it is just about to say
        if time.monotonic() >= deadline:
            raise OutboxBusy(f"{holder} is sending for account {account}: wait for it to end, or stop it")
        if is_first:
            on_wait(holder)
        is_first = False
        time.sleep(_LOOK_S)


def _name(account: str) -> str:
    """A file name for any account's name; the hash keeps names apart that look alike without their odd characters."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "", account)[:40]
    return plain if plain == account else f"{plain}-{hashlib.blake2b(account.encode(), digest_size=4).hexdigest()}"
