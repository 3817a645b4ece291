"""The list of those who asked to be forgotten, in `archive/forgotten.json`: keyed fingerprints, and the key,
for the owner only.

Nobody's address or id is in it. It is written whole, durably, and never loses anybody: without its key nobody
on it is recognised again. Not here: what is done with it (`warehouse.forgetting`)."""

import secrets
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from warehouse import disk
from warehouse.errors import ArchiveDamaged
from warehouse.forgetting import Forgotten

NAME = "forgotten.json"
_KEY_BYTES = 32


class _List(msgspec.Struct):
    key: str
    fingerprints: list[str]


#: Made once, ahead of the threads that use it: msgspec learning a type in several at once has crashed.
_decode = msgspec.json.Decoder(_List).decode


class Suppression:
    """The list of the archive at `root` as it stands: read again when it has changed. Safe for several
    threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: tuple[tuple[int, ...] | None, Forgotten] = (None, Forgotten(b""))

    def current(self) -> Forgotten:
        """Nobody without a list. ArchiveDamaged."""
        try:
            stat = (self._root / NAME).stat()
        except FileNotFoundError:
            return Forgotten(b"")
        version = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if self._read[0] != version:
            self._read = (version, load(self._root))
        return self._read[1]


def load(root: Path) -> Forgotten:
    """Who is forgotten in the archive at `root`; without a list nobody, with a key that counts once somebody
    is added.

    ArchiveDamaged when there is a list that cannot be read: nothing may be archived past it.
    """
    path = root / NAME
    try:
        kept = _decode(path.read_bytes())
        return Forgotten(bytes.fromhex(kept.key), frozenset(kept.fingerprints))
    except FileNotFoundError:
        return Forgotten(secrets.token_bytes(_KEY_BYTES))
    except ValueError as problem:
        raise ArchiveDamaged(
            f"{path}, the list of forgotten people, is damaged ({problem}): put it back from a backup"
        ) from None


def add(
    root: Path,
    addresses: Iterable[str] = (),
    contacts: Iterable[tuple[str, int]] = (),
    fingerprints: Iterable[str] = (),
) -> Forgotten:
    """Add people for good: their addresses, contacts as (account, id), or fingerprints of them. Who is on the
    list then. ArchiveFull, ArchiveDamaged."""
    path = disk.make_folder(root) / NAME
    with disk.exclusive(root), disk.room_for(path):
        before = load(root).including(addresses, contacts)
        forgotten = replace(before, fingerprints=before.fingerprints.union(fingerprints))
        disk.write_file(path, msgspec.json.encode(_List(forgotten.key.hex(), sorted(forgotten.fingerprints))))
    return forgotten
