"""Forgets people everywhere in a home and in the copies that it knows of, with a home's settings: for the
command and Dagster's job alike.

By record: each place that holds any is declared here or has a step of its own, and everything else of the
home is only looked at. The warehouse goes last, since its rows tell who they are; what is derived from it is
made anew behind it. A work list of fingerprints says that people are being forgotten: it is written first and
removed last, so that whatever is interrupted goes on. Not here: what becomes of rows, texts and responses
(`warehouse.erasure`, `warehouse.forgetting`), how it is typed (`commands.forget`)."""

import sqlite3
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from home.door import archive_of, open_archive, open_tables, open_warehouse, outbox_of
from home.folder import in_use, work_list
from home.progress import stage
from home.settings import Settings
from marketing_api.clock import utc_now
from warehouse.archive import suppression
from warehouse.archive.file_store import CHECKPOINTS, PATTERNS, Files
from warehouse.archive.rewriting import UNREADABLE, forget_in_archive
from warehouse.bookkeeping import refresh_requests, write_erasures
from warehouse.connection import private
from warehouse.disk import move_into_place, remove, scratch, sweep, write_file
from warehouse.erasure import forget_in_database, forget_in_sqlite, found_in, numbers_of, people_in, titles_of
from warehouse.errors import WarehouseError
from warehouse.forgetting import Forgotten
from warehouse.person import Person, find_person
from warehouse.sql import literal, rows
from write_back.forgetting import forget_in_outbox, forget_in_pushes
from write_back.outbox.store import copy_of

_REWRITTEN, _REMOVED = "rewritten", "removed"
#: Outcomes that keep people from being forgotten everywhere.
_NOT_REACHED, _NOT_READ = "not reached", "could not be read, and stays"
_FOUND = "still found: look at it, and remove it or what it has of them"
#: Places of the home whose texts lose what names people, and copies of earlier days, which go as a whole.
#: Nothing else of the home is changed but the archive, the outbox, pushes and the warehouse.
_TEXTS = ("logs/*.log*", "dagster/storage/**/*.out", "dagster/storage/**/*.err")
_SQLITE = ("dagster/**/*.db",)
_COPIES = ("pushes/plan/*", "**/*.damaged-*")
#: What is no place of ours (the user's queries, and the memory of the sandbox, which is a service), has a
#: step that knows more of it, or is made anew.
_NOT_LOOKED_AT = (
    *("models/**/*", "sandbox.jsonl", "forgetting.json", "warehouse.duckdb", "outbox*.sqlite"),
    *(*_SQLITE, *(f"archive/{pattern}" for pattern in PATTERNS)),
    *("published/**/*", "report/*", "tmp/**/*"),
)


#: Places that are made anew, each by a call that returns how much is there then.
Derived = Mapping[str, Callable[[], int]]


class Place(msgspec.Struct, frozen=True):
    """What was, or would be, taken out of one place. `outcome`: what became of it, in words."""

    place: str
    rows: int
    outcome: str = _REWRITTEN


class WorkList(msgspec.Struct):
    """That people are being forgotten, by fingerprints, and what is done. `is_home_done`: only copies are
    left to be made anew."""

    erasure_id: str
    fingerprints: frozenset[str] = frozenset()
    done: list[Place] = []
    is_home_done: bool = False


def unfinished(home: Path) -> WorkList | None:
    """What an erasure that was interrupted has left to do."""
    path = work_list(home)
    return msgspec.json.decode(path.read_bytes(), type=WorkList) if path.exists() else None


def people(
    settings: Settings, account: str | None, addresses: Sequence[str], contacts: Sequence[int]
) -> Person:
    """All contacts that have or had these addresses, and all addresses of these. Who is not known is kept
    away all the same."""
    with open_warehouse(settings, read_only=True) as connection:
        found = [find_person(connection, account, address, None) for address in addresses]
        found += [find_person(connection, account, None, number) for number in contacts]
    ids = {contact for each in found for contact in each.contacts}
    ids |= {(account, number) for number in contacts if account}
    names = {address for each in found for address in each.addresses}
    return Person(tuple(sorted(names)), tuple(sorted(ids)))


def is_over(places: Iterable[Place]) -> bool:
    """Whether nothing is left of anybody."""
    return all(each.outcome.startswith((_REWRITTEN, _REMOVED)) for each in places)


def dry_run(settings: Settings, person: Person) -> list[Place]:
    """What would be taken out where. Nothing is changed."""
    forgotten = suppression.load(archive_of(settings.home)).including(person.addresses, person.contacts)
    steps = _Steps(settings, _known(settings, forgotten, person), apply=False)
    return [each for each in (*steps.all(), *steps.warehouse()) if each.rows]


def forget(settings: Settings, person: Person, derived: Derived) -> list[Place]:
    """Take them out everywhere, with those whom an interrupted erasure has left. What was taken out where.
    `derived`: what is made anew behind the warehouse, or stands elsewhere."""
    home, archive = settings.home, archive_of(settings.home)
    with in_use(home, alone=True, wait_s=settings.lock_seconds):
        work = unfinished(home) or WorkList(str(uuid.uuid4()))
        if person.addresses or person.contacts:
            work.fingerprints |= _fingerprints(suppression.add(archive), person)
            work.is_home_done = False
        _note_work(home, work)
        forgotten = suppression.add(archive, fingerprints=work.fingerprints)
        left = []
        if not work.is_home_done:
            left = _forget_in_home(settings, _known(settings, forgotten, person, work.fingerprints), work)
        work.is_home_done = True
        _note_work(home, work)
        not_reached = list[Place]()
        for place in _made_anew(derived):
            (work.done if is_over([place]) else not_reached).append(place)
        receipt = _summed([*work.done, *left, *not_reached])
        erasure = {"erasure_id": work.erasure_id, "erased_at": utc_now()}
        with open_tables(settings) as connection:
            write_erasures(connection, [erasure | msgspec.structs.asdict(each) for each in receipt])
        if not not_reached:
            work_list(home).unlink()
    return receipt


def _forget_in_home(settings: Settings, forgotten: Forgotten, work: WorkList) -> list[Place]:
    """What is left. The search comes before the warehouse is written anew: nobody knows them any more
    then."""
    steps, search = _Steps(settings, forgotten, apply=True), _Steps(settings, forgotten, apply=False)
    sweep(settings.home)
    for place in steps.all():
        if is_over([place]):
            work.done.append(place)
            _note_work(settings.home, work)
    with stage("search"):
        left = [each for each in (*search.all(), *search.others()) if each.rows]
    work.done += steps.warehouse()
    left += search.warehouse()
    return [msgspec.structs.replace(each, outcome=_FOUND) if is_over([each]) else each for each in left]


def _made_anew(derived: Derived) -> Iterator[Place]:
    for place, make in derived.items():
        try:
            yield Place(place, make())
        except (WarehouseError, OSError) as problem:
            yield Place(place, 0, f"{_NOT_REACHED}: {problem}")


def _known(
    settings: Settings, forgotten: Forgotten, person: Person, wanted: frozenset[str] = frozenset()
) -> Forgotten:
    """With all that the warehouse knows of them, by which they are found faster; their telephone numbers are
    known from it alone. `wanted`: fingerprints of whom nobody knows the name, if the warehouse does not:
    everything is looked at then."""
    with open_warehouse(settings, read_only=True) as connection:
        found = people_in(connection, forgotten)
        named = Person((*found.addresses, *person.addresses), (*found.contacts, *person.contacts))
        known = forgotten.including(named.addresses, named.contacts, numbers_of(connection, named))
        known = replace(known, titles=titles_of(connection))
    return known if wanted <= _fingerprints(forgotten, named) else replace(known, likely=None)


def _fingerprints(forgotten: Forgotten, person: Person) -> frozenset[str]:
    """Of these people alone."""
    nobody = replace(forgotten, fingerprints=frozenset())
    return nobody.including(person.addresses, person.contacts).fingerprints


def _note_work(home: Path, work: WorkList) -> None:
    write_file(work_list(home), msgspec.json.encode(work))


def _summed(places: Iterable[Place]) -> list[Place]:
    """One of each place: what was interrupted and went on is counted together."""
    counts = Counter[tuple[str, str]]()
    for each in places:
        counts[each.place, each.outcome] += each.rows
    found = [Place(place, count, outcome) for (place, outcome), count in counts.items()]
    return [each for each in found if each.rows or each.outcome.startswith(_NOT_REACHED)]


@dataclass(frozen=True)
class _Steps:
    """Each place in turn: what is there of them and, with `apply`, was taken out."""

    settings: Settings
    forgotten: Forgotten
    apply: bool

    def all(self) -> Iterator[Place]:
        """But for the warehouse."""
        home = self.settings.home
        how: dict[str, Any] = {"forgotten": self.forgotten, "apply": self.apply}
        with stage("archive"):
            counts = forget_in_archive(archive_of(home), self.forgotten, apply=self.apply)
        for what, count in counts.items():
            yield Place(f"archive: {what}", count, _NOT_READ if what == UNREADABLE else _REWRITTEN)
        files = Files.of(archive_of(home))
        for name in files.names(CHECKPOINTS):
            yield self._place(f"archive/{name}", partial(self._checkpoint, files, name))
        if (outbox := outbox_of(home)).exists():
            yield from self._files([outbox.name, copy_of(outbox).name], partial(forget_in_outbox, **how))
            for path, count in forget_in_pushes(home, self.forgotten, apply=self.apply):
                yield Place(self._name(path), count)
        yield from self._files(_SQLITE, partial(forget_in_sqlite, **how))
        yield from self._files(_TEXTS, self._text)
        yield from self._files(_COPIES, self._copy, _REMOVED)

    def _files(
        self, patterns: Sequence[str], work: Callable[[Path], int], outcome: str = _REWRITTEN
    ) -> Iterator[Place]:
        for path in sorted({path for pattern in patterns for path in self.settings.home.glob(pattern)}):
            if not path.is_symlink() and (path.is_file() or outcome == _REMOVED):
                yield self._place(self._name(path), partial(work, path), outcome)

    def _place(self, name: str, work: Callable[[], int], outcome: str = _REWRITTEN) -> Place:
        try:
            return Place(name, work(), outcome)
        except (duckdb.Error, sqlite3.Error, OSError) as problem:
            return Place(name, 1, f"{_NOT_READ} ({type(problem).__name__})")

    def _name(self, path: Path) -> str:
        return path.relative_to(self.settings.home).as_posix()

    def warehouse(self) -> Iterator[Place]:
        with stage("warehouse"), open_warehouse(self.settings, read_only=not self.apply) as connection:
            rows(connection, "set timezone = 'UTC'")
            if self.apply:
                with open_archive(self.settings.home) as archive:
                    refresh_requests(connection, archive)
            path = self.settings.warehouse_path
            counts = self._rewritten(connection, lambda new: move_into_place(new, path), is_warehouse=True)
            yield from (Place(table, count) for table, count in counts.items())

    def _checkpoint(self, files: Files, name: str) -> int:
        with scratch(self.settings.home, "forget") as workspace:
            copy = files.fetch(name, workspace.file("checkpoint.duckdb"))
            return self._database(copy, lambda new: files.put(new, name))

    def _database(self, path: Path, put: Callable[[Path], None] | None = None) -> int:
        with (
            scratch(self.settings.home, "forget") as workspace,
            private(spill=workspace.folder()) as connection,
        ):
            rows(connection, f"attach {literal(str(path))} as copy (read_only)")
            rows(connection, "use copy")
            return sum(self._rewritten(connection, put).values())

    def _rewritten(
        self,
        connection: duckdb.DuckDBPyConnection,
        put: Callable[[Path], None] | None,
        *,
        is_warehouse: bool = False,
    ) -> dict[str, int]:
        """A file of DuckDB that others may have open is not changed: a new one is `put` in its place."""
        with scratch(self.settings.home, "forget") as workspace:
            new = workspace.file("new.duckdb") if put and self.apply else None
            counts = forget_in_database(connection, self.forgotten, new)
            if put and new and (counts or is_warehouse):
                if is_warehouse:  # so that no log of the old file is left beside the new one
                    rows(connection, "checkpoint")
                new.chmod(0o600)
                put(new)
        return counts

    def _text(self, path: Path) -> int:
        """Where it stands: whoever writes to it goes on."""
        if (count := found_in(path, self.forgotten)) and self.apply:
            with path.open("r+b") as file:
                text = self.forgotten.text(file.read().decode("utf-8", "surrogateescape"))
                file.seek(0)
                file.write(text.encode("utf-8", "surrogateescape"))
                file.truncate()
        return count

    def _copy(self, path: Path) -> int:
        """A file or folder of earlier days goes as a whole when it has anything of them, or cannot be
        read."""
        files = [path] if path.is_file() else filter(Path.is_file, path.rglob("*"))
        if (count := sum(map(self._found, files))) and self.apply:
            remove(path)
        return count

    def _found(self, path: Path) -> int:
        with path.open("rb") as file:
            head = file.read(16)
        try:
            if head[8:12] == b"DUCK":
                return self._database(path)
            if head.startswith(b"SQLite format 3\0"):
                return forget_in_sqlite(path, self.forgotten, apply=False)
        except (duckdb.Error, sqlite3.Error):
            return 1
        return found_in(path, self.forgotten)

    def others(self) -> Iterator[Place]:
        """Every other file of the home: it is only looked at."""
        home = self.settings.home
        known = {path for pattern in _NOT_LOOKED_AT for path in home.glob(pattern)}
        for path in sorted(set(home.rglob("*")) - known):
            if path.is_file() and not path.is_symlink():
                yield Place(self._name(path), found_in(path, self.forgotten))
