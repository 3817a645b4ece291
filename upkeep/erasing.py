"""Deletes people from a home permanently: `forget`.

The steps, in this order:
- Their fingerprints are added to the list, so that nothing about them is archived again.
- Rows about them are deleted from outbox, pushes and warehouse.
- A checkpoint of the tables replaces all bodies of responses.
- Logs are deleted, and everything that is made from the warehouse is made again.

A work list names the people. It is written first and removed last: if an erasure is interrupted,
all of it is repeated. Not here: which rows are about a person (`warehouse.person`)."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from pathlib import Path

import msgspec

from home.door import archive_of, open_tables, open_warehouse, outbox_of, pushes_of
from home.exits import HomeError
from home.folder import in_use, work_list
from home.loading import open_archive
from home.progress import begin_stage
from home.settings import Settings
from marketing_api.clock import utc_now
from warehouse.archive.suppression import add_people
from warehouse.bookkeeping import ErasedPlace, load_requests, write_erasures
from warehouse.connection import copy_database
from warehouse.disk import (
    DAMAGED_JSON,
    move_into_place,
    open_scratch,
    remove_path,
    sweep_home,
    write_file,
)
from warehouse.errors import WarehouseError
from warehouse.forgetting import Forgotten, Person
from warehouse.person import count_rows_about, delete_rows_about, find_person
from warehouse.retention import drop_all_bodies
from warehouse.sql import fetch_rows
from warehouse.warehouse import Warehouse
from write_back.forgetting import delete_from_outbox, delete_from_pushes
from write_back.outbox.outbox import open_outbox
from write_back.outbox.store import copy_of

#: Files that may name people and are only useful for a while; a killed erasure leaves the last one.
_LOGS = ("logs/*", "pushes/plan", "pushes/rejected", "**/*.damaged-*", ".forgetting.json-*")

#: The place that is not written again.
DAGSTER_RUNS = "runs in Dagster"
#: Steps after the warehouse, by place. Each returns the number of rows that the place has
#: afterwards, or of deleted runs.
Afterwards = Mapping[str, Callable[[], int]]


_DELETED = "deleted"
_WRITTEN = "written again"
_NOT_REACHED = "not reached"


class Place(msgspec.Struct, frozen=True):
    """The number of deleted rows about people in one place, or of all rows in a place that was
    written again. `outcome`: which of the two, in words."""

    place: str
    rows: int
    outcome: str = _DELETED

    @property
    def is_reached(self) -> bool:
        return not self.outcome.startswith(_NOT_REACHED)


class WorkList(msgspec.Struct):
    """The people who are being forgotten. `is_home_done`: only copies made from the warehouse are
    left, and the list names nobody any more."""

    erasure_id: str
    people: list[Person]
    places: list[Place] = []
    is_home_done: bool = False


def read_work_list(home: Path) -> WorkList | None:
    """What an interrupted erasure has left to do. Raises HomeError."""
    path = work_list(home)
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=WorkList)
    except DAMAGED_JSON as error:
        raise HomeError(
            f"{path} is damaged ({error}): delete it, and forget the same people again"
        ) from None


def find_people(
    settings: Settings, addresses: Sequence[str], contact: tuple[str, int] | None
) -> list[Person]:
    """The people with these addresses, or the contact (account, id), even if they are unknown; each
    with all contacts and addresses that the warehouse knows of them, in all accounts."""
    with open_warehouse(settings, read_only=True) as connection:
        found = [find_person(connection, None, address, None) for address in addresses]
        if contact:
            account, contact_id = contact
            own = find_person(connection, account, None, contact_id)
            parts = [own, *(find_person(connection, None, name, None) for name in own.addresses)]
            names = set[str]().union(*(part.addresses for part in parts))
            numbers = {contact}.union(*(part.contacts for part in parts))
            found.append(Person(tuple(names), tuple(numbers)))
    return found


def count_places(settings: Settings, people: Sequence[Person]) -> list[Place]:
    """What `forget_people` would delete. Nothing is changed."""
    anybody = Forgotten(b"")  # any key distinguishes them
    fingerprints = chain.from_iterable(map(anybody.fingerprints_of, people))
    forgotten = Forgotten(b"", frozenset(fingerprints))
    with in_use(settings.home):
        places = list(_erase_pushes(settings.home, forgotten, apply=False))
        with open_warehouse(settings, read_only=True) as connection:
            places += starmap(Place, count_rows_about(connection, people).items())
    return [place for place in places if place.rows]


def forget_people(
    settings: Settings, people: Sequence[Person], afterwards: Afterwards
) -> list[Place]:
    """Delete these people, and those of an interrupted erasure; returns what was deleted where. A
    place that was not reached is tried again by the next call. `afterwards` runs after the
    warehouse is done."""
    home = settings.home
    with in_use(home, alone=True, wait_s=settings.lock_seconds):
        work = read_work_list(home) or WorkList(str(uuid.uuid4()), [])
        if people:
            work.people = [*work.people, *people]
            work.is_home_done = False
        _write_work_list(home, work)
        if not work.is_home_done:
            forgotten = add_people(archive_of(home), work.people)
            for place in _delete_in_home(settings, forgotten, work.people):
                work.places = _add_count(work.places, place)
                _write_work_list(home, work)
            work.people = []
            work.is_home_done = True
            _write_work_list(home, work)
        done = [*work.places, *starmap(_run_step, afterwards.items())]
        erased_at = utc_now()
        erased = [
            ErasedPlace(work.erasure_id, erased_at, place.place, place.rows, place.outcome)
            for place in done
        ]
        with open_tables(settings) as connection:
            write_erasures(connection, erased)
        if all(place.is_reached for place in done):
            work_list(home).unlink()
    return done


def _delete_in_home(
    settings: Settings, forgotten: Forgotten, people: Sequence[Person]
) -> Iterator[Place]:
    home = settings.home
    sweep_home(home)
    with begin_stage("outbox"):
        yield from _erase_pushes(home, forgotten, apply=True)
    with begin_stage("warehouse and archive"), open_archive(home) as archive:
        Warehouse(home, archive).apply_logged()
        with open_tables(settings) as connection:
            yield from starmap(Place, delete_rows_about(connection, people).items())
        drop_all_bodies(home, archive, forgotten, utc_now())
        with open_tables(settings) as connection, open_scratch(home, "forget") as workspace:
            fetch_rows(connection, "delete from sync.requests; delete from sync.archive_files")
            load_requests(connection, archive)
            copied = workspace.place_file("warehouse.duckdb")
            copy_database(connection, copied)
            # so that no log of the old file is left with the new one
            fetch_rows(connection, "checkpoint")
            copied.chmod(0o600)
            move_into_place(copied, settings.warehouse_path)
    for pattern in _LOGS:
        for path in sorted(home.glob(pattern)):
            remove_path(path)


def _erase_pushes(home: Path, forgotten: Forgotten, *, apply: bool) -> Iterator[Place]:
    path = outbox_of(home)
    if not (path.exists() or pushes_of(home).exists()):
        return
    with open_outbox(home) as outbox:
        for copy in (path, copy_of(path)):
            if copy.exists():
                yield Place(copy.name, delete_from_outbox(copy, forgotten, apply=apply))
        for rows_file, count in delete_from_pushes(home, outbox, forgotten, apply=apply):
            yield Place(rows_file.relative_to(home).as_posix(), count)


def _add_count(places: Sequence[Place], added: Place) -> list[Place]:
    """Add what was deleted in one more place, or again after an interruption."""
    counts = Counter({place.place: place.rows for place in places})
    counts[added.place] += added.rows
    return [Place(place, count) for place, count in counts.items() if count]


def _run_step(place: str, step: Callable[[], int]) -> Place:
    try:
        rows = step()
    except (WarehouseError, HomeError, OSError) as error:
        return Place(place, 0, f"{_NOT_REACHED}: {error}")
    return Place(place, rows, _DELETED if place == DAGSTER_RUNS else _WRITTEN)


def _write_work_list(home: Path, work: WorkList) -> None:
    write_file(work_list(home), msgspec.json.encode(work))
