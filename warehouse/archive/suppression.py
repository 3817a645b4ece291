"""The list of people who asked to be forgotten, in `archive/forgotten.json`: keyed fingerprints,
and the key.

It holds no address and no id. It is written as a whole and durably. Without its key, nobody on it
can be recognized again. Not here: its use (`warehouse.forgetting`)."""

import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from warehouse import disk
from warehouse.errors import ArchiveDamaged
from warehouse.forgetting import Forgotten, Person

NAME = "forgotten.json"
_KEY_BYTES = 32

People = list[list[str]]


class _List(msgspec.Struct):
    """`people` has the fingerprints of each person."""

    key: str
    people: People

    def as_forgotten(self) -> Forgotten:
        return Forgotten(bytes.fromhex(self.key), frozenset().union(*self.people))


#: Made once, before the threads that use it: msgspec has crashed when several threads learned a
#: type at the same time.
_decode = msgspec.json.Decoder(_List).decode


def load_forgotten(root: Path) -> Forgotten:
    """The forgotten people of the archive at `root`.

    Raises ArchiveDamaged if the list cannot be read: nothing may be archived without it."""
    return _load_list(root).as_forgotten()


def add_people(root: Path, people: Iterable[Person]) -> Forgotten:
    """Add people permanently; returns everyone who is forgotten then. Raises ArchiveFull,
    ArchiveDamaged."""

    def add_to(forgotten: Forgotten, listed: People) -> People:
        added = [sorted(forgotten.fingerprints_of(person)) for person in people]
        return [*listed, *(fingerprint for fingerprint in added if fingerprint not in listed)]

    return _change_list(root, add_to).as_forgotten()


def lift_person(root: Path, person: Person) -> int:
    """Remove people with one of these addresses or ids from the list; returns their number. Raises
    ArchiveFull, ArchiveDamaged."""
    lifted = 0

    def lift_from(forgotten: Forgotten, listed: People) -> People:
        nonlocal lifted
        removed = frozenset(forgotten.fingerprints_of(person))
        left = [entry for entry in listed if removed.isdisjoint(entry)]
        lifted = len(listed) - len(left)
        return left

    _change_list(root, lift_from)
    return lifted


def _load_list(root: Path) -> _List:
    path = root / NAME
    try:
        found = _decode(path.read_bytes())
        found.as_forgotten()  # raises ValueError if the key is damaged
        return found
    except FileNotFoundError:
        return _List(secrets.token_hex(_KEY_BYTES), [])
    except ValueError as error:
        raise ArchiveDamaged(
            f"{path}, the list of forgotten people, is damaged ({error}): put it back from a backup"
        ) from None


def _change_list(root: Path, work: Callable[[Forgotten, People], People]) -> _List:
    path = disk.make_folder(root) / NAME
    with disk.hold_lock(root), disk.room_for(path):
        found = _load_list(root)
        found.people = work(found.as_forgotten(), found.people)
        disk.write_file(path, msgspec.json.encode(found))
    return found
