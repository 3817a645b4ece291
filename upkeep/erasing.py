"""Forgets people everywhere in a home and in the copies that it knows of, with a home's settings: for the
command and Dagster's job alike.

By record: each place that holds any is declared here or has a step of its own, and everything else of the
home is only looked at. The warehouse goes last, since its rows tell who they are; what is derived from it is
made anew behind it. A work list of fingerprints says that people are being forgotten: it is written first and
removed last, so that whatever is interrupted goes on. Not here: what becomes of rows, texts and responses
(`warehouse.erasure`, `warehouse.forgetting`), how it is typed (`commands.forget`)."""

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import msgspec

from home.folder import in_use, work_list
from home.progress import report_waiting, stage
from home.settings import Settings
from marketing_api.clock import utc_now
from pipelines.publishing import export_to_lake, publish_home
from pipelines.report.render import write_report
from upkeep.backups import back_up_home
from warehouse.archive import Archive, suppression
from warehouse.archive.disk import Workspace, move_into_place, remove, sweep, write_file
from warehouse.archive.rewriting import UNREADABLE, forget_in_archive
from warehouse.bookkeeping import refresh_requests, write_erasures
from warehouse.connection import MEMORY_LIMIT, connect
from warehouse.erasure import forget_in_database, forget_in_sqlite, found_in, numbers_of, people_in, titles_of
from warehouse.errors import WarehouseError
from warehouse.forgetting import Forgotten
from warehouse.lake import export_parquet, known_exports
from warehouse.person import Person, find_person
from warehouse.publish import earlier, published_path
from warehouse.schema import ensure_schema
from warehouse.sql import literal, rows
from warehouse.storage import shown
from write_back.forgetting import forget_in_outbox, forget_in_pushes
from write_back.kinds.moves_and_deletions import DELETIONS
from write_back.order import Order
from write_back.outbox.outbox import Outbox, outbox_path
from write_back.outbox.store import copy_of
from write_back.push_service import Watch, enqueue, finish_push, plan_push
from write_back.result import Result, new_run

_REWRITTEN, _REMOVED = "rewritten", "removed"
#: Outcomes that keep people from being forgotten everywhere.
_NOT_REACHED, _NOT_READ = "not reached", "could not be read, and stays"
_FOUND = "still found: look at it, and remove it or what it has of them"
#: Places of the home whose texts lose what names people, and copies of earlier days, which go as a whole.
#: Nothing else of the home is changed but the archive, the outbox, pushes and the warehouse.
_TEXTS = ("logs/*.log*", "dagster/storage/**/*.out", "dagster/storage/**/*.err")
_SQLITE = ("dagster/**/*.db",)
_DATABASES = ("archive/checkpoints/*.duckdb",)
_COPIES = ("pushes/plan/*", "**/*.damaged-*")
#: What is no place of ours (models of the user's, and the memory of the sandbox, which is a service), has a
#: step that knows more of it, or is made anew.
_NOT_LOOKED_AT = (
    *("models/**/*", "sandbox.jsonl", "forgetting.json", "warehouse.duckdb", "outbox*.sqlite"),
    *(*_DATABASES, *_SQLITE, "archive/requests/**/*", "archive/bodies/**/*"),
    *("published/**/*", "report/*", "tmp/**/*"),
)


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
    with _reading(settings) as connection:
        found = [find_person(connection, account, address, None) for address in addresses]
        found += [find_person(connection, account, None, number) for number in contacts]
    ids = {contact for each in found for contact in each.contacts} | {
        (account, number) for number in contacts if account
    }
    return Person(
        tuple(sorted({address for each in found for address in each.addresses})), tuple(sorted(ids))
    )


def is_over(places: Sequence[Place]) -> bool:
    """Whether nothing is left of anybody."""
    return all(each.outcome.startswith((_REWRITTEN, _REMOVED)) for each in places)


def dry_run(settings: Settings, person: Person) -> list[Place]:
    """What would be taken out where. Nothing is changed."""
    forgotten = _known(
        settings,
        suppression.load(settings.home / "archive").including(person.addresses, person.contacts),
        person,
    )
    steps = _Steps(settings, forgotten, apply=False)
    return [each for each in (*steps.all(), *steps.warehouse()) if each.rows]


def delete_at_service(settings: Settings, person: Person) -> list[Result]:
    """Delete their contacts there, by a push for each account; what became of it. Call it before `forget`:
    their ids are unknown then."""
    results = []
    for account in sorted({account for account, _ in person.contacts}):
        ids = ", ".join(str(number) for name, number in person.contacts if name == account)
        their = f"account = {literal(account)} and contact_id in ({ids})"
        query = f"select contact_id, list_id from source.contacts where {their}"  # noqa: S608
        planned = plan_push(settings, Order(DELETIONS, account, query=f"{query} and _deleted_at is null"))
        if planned.plan.items or planned.plan.bad:  # too many bad rows end it with a sentence
            ran = new_run("forget", account)
            ran = replace(ran, push_id=enqueue(settings, planned, run=ran.run))
            with Outbox(outbox_path(settings.home)) as outbox:
                results += finish_push(settings, outbox, ran, Watch())
    return results


def forget(settings: Settings, person: Person) -> list[Place]:
    """Take them out everywhere, with those whom an interrupted erasure has left. What was taken out where."""
    with in_use(settings.home, alone=True, wait_s=settings.lock_seconds):
        return _forget(settings, person)


def _forget(settings: Settings, person: Person) -> list[Place]:
    home, work = settings.home, unfinished(settings.home) or WorkList(str(uuid.uuid4()))
    if person.addresses or person.contacts:
        added = replace(suppression.add(home / "archive"), fingerprints=frozenset()).including(
            person.addresses, person.contacts
        )
        work.fingerprints, work.is_home_done = work.fingerprints | added.fingerprints, False
    _note_work(home, work)
    forgotten = suppression.add(home / "archive", fingerprints=work.fingerprints)
    left = (
        []
        if work.is_home_done
        else _forget_in_home(settings, _known(settings, forgotten, person, work.fingerprints), work)
    )
    work.is_home_done = True
    _note_work(home, work)
    for place in _derived(settings):
        (left if place.outcome.startswith(_NOT_REACHED) else work.done).append(place)
    receipt = _summed([*work.done, *left])
    _write_receipt(settings, work.erasure_id, receipt)
    if not any(each.outcome.startswith(_NOT_REACHED) for each in left):
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


def _known(
    settings: Settings, forgotten: Forgotten, person: Person, wanted: frozenset[str] = frozenset()
) -> Forgotten:
    """With all that the warehouse knows of them, by which they are found faster; their telephone numbers are
    known from it alone. `wanted`: fingerprints of whom nobody knows the name, if the warehouse does not:
    everything is looked at then."""
    with _reading(settings) as connection:
        found = people_in(connection, forgotten)
        addresses, contacts = {*found.addresses, *person.addresses}, {*found.contacts, *person.contacts}
        numbers = numbers_of(connection, Person(tuple(addresses), tuple(contacts)))
        known = replace(forgotten.including(addresses, contacts, numbers), titles=titles_of(connection))
    names = replace(forgotten, fingerprints=frozenset()).including(addresses, contacts).fingerprints
    return known if wanted <= names else replace(known, likely=None)


def _note_work(home: Path, work: WorkList) -> None:
    write_file(work_list(home), msgspec.json.encode(work))


def _reading(settings: Settings) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    path, wait_s = settings.warehouse_path, settings.lock_seconds
    return connect(path, read_only=True, deadline_s=wait_s, memory_limit=MEMORY_LIMIT, on_wait=report_waiting)


def _summed(places: Sequence[Place]) -> list[Place]:
    """One of each place: what was interrupted and went on is counted together."""
    counts: dict[tuple[str, str], int] = {}
    for each in places:
        counts[each.place, each.outcome] = counts.get((each.place, each.outcome), 0) + each.rows
    return [
        Place(place, count, outcome)
        for (place, outcome), count in counts.items()
        if count or outcome.startswith(_NOT_REACHED)
    ]


def _write_receipt(settings: Settings, erasure_id: str, places: Sequence[Place]) -> None:
    with connect(
        settings.warehouse_path, deadline_s=settings.lock_seconds, on_wait=report_waiting
    ) as connection:
        ensure_schema(connection)
        write_erasures(
            connection,
            [
                {"erasure_id": erasure_id, "erased_at": utc_now(), **msgspec.structs.asdict(each)}
                for each in places
            ],
        )


class _Steps:
    """Each place in turn: what is there of them and, with `apply`, was taken out."""

    def __init__(self, settings: Settings, forgotten: Forgotten, *, apply: bool) -> None:
        self._settings, self._home, self._forgotten, self._apply = settings, settings.home, forgotten, apply

    def all(self) -> Iterator[Place]:
        """But for the warehouse."""
        with stage("archive"):
            counts = forget_in_archive(self._home / "archive", self._forgotten, apply=self._apply)
        for what, count in counts.items():
            yield Place(f"archive: {what}", count, _NOT_READ if what == UNREADABLE else _REWRITTEN)
        yield from self._files(_DATABASES, self._database)
        if (outbox := outbox_path(self._home)).exists():
            yield from self._files(
                [outbox.name, copy_of(outbox).name],
                partial(forget_in_outbox, forgotten=self._forgotten, apply=self._apply),
            )
            for path, count in forget_in_pushes(self._home, self._forgotten, apply=self._apply):
                yield Place(self._name(path), count)
        yield from self._files(
            _SQLITE, partial(forget_in_sqlite, forgotten=self._forgotten, apply=self._apply)
        )
        yield from self._files(_TEXTS, self._text)
        yield from self._files(_COPIES, self._copy, _REMOVED)

    def _files(
        self, patterns: Sequence[str], work: Callable[[Path], int], outcome: str = _REWRITTEN
    ) -> Iterator[Place]:
        for path in sorted({path for pattern in patterns for path in self._home.glob(pattern)}):
            if not path.is_symlink() and (path.is_file() or outcome == _REMOVED):
                try:
                    yield Place(self._name(path), work(path), outcome)
                except (duckdb.Error, sqlite3.Error, OSError) as problem:
                    yield Place(self._name(path), 1, f"{_NOT_READ} ({type(problem).__name__})")

    def _name(self, path: Path) -> str:
        return path.relative_to(self._home).as_posix()

    def warehouse(self) -> Iterator[Place]:
        path, wait_s = self._settings.warehouse_path, self._settings.lock_seconds
        with (
            stage("warehouse"),
            connect(
                path,
                deadline_s=wait_s,
                read_only=not self._apply,
                memory_limit=MEMORY_LIMIT,
                on_wait=report_waiting,
            ) as connection,
        ):
            rows(connection, "set timezone = 'UTC'")
            if self._apply:
                with Archive(self._home / "archive") as archive:
                    refresh_requests(connection, archive)
            yield from (Place(table, count) for table, count in self._rewritten(connection, path).items())

    def _database(self, path: Path) -> int:
        with closing(Workspace(self._home / "tmp" / "forget")) as workspace, duckdb.connect() as connection:
            rows(connection, f"set memory_limit = '{MEMORY_LIMIT}'")
            rows(connection, f"set temp_directory = {literal(str(workspace.folder()))}")
            rows(connection, "set timezone = 'UTC'")
            rows(connection, f"attach {literal(str(path))} as copy (read_only)")
            rows(connection, "use copy")
            return sum(self._rewritten(connection, path).values())

    def _rewritten(self, connection: duckdb.DuckDBPyConnection, path: Path) -> dict[str, int]:
        """A file of DuckDB that others may have open is not changed: a new one takes its name."""
        with closing(Workspace(self._home / "tmp" / "forget")) as workspace:
            new = workspace.file(path.name) if self._apply else None
            counts = forget_in_database(connection, self._forgotten, new)
            if new and (counts or path == self._settings.warehouse_path):
                if path == self._settings.warehouse_path:
                    rows(
                        connection, "checkpoint"
                    )  # so that no log of the old file is left beside the new one
                new.chmod(0o600)
                move_into_place(new, path)
        return counts

    def _text(self, path: Path) -> int:
        """Where it stands: whoever writes to it goes on."""
        if (count := found_in(path, self._forgotten)) and self._apply:
            with path.open("r+b") as file:
                text = self._forgotten.text(file.read().decode("utf-8", "surrogateescape"))
                file.seek(0)
                file.write(text.encode("utf-8", "surrogateescape"))
                file.truncate()
        return count

    def _copy(self, path: Path) -> int:
        """A file or folder of earlier days goes as a whole when it has anything of them, or cannot be
        read."""
        count = sum(
            self._found(each) for each in ([path] if path.is_file() else path.rglob("*")) if each.is_file()
        )
        if count and self._apply:
            remove(path)
        return count

    def _found(self, path: Path) -> int:
        looking = _Steps(self._settings, self._forgotten, apply=False)
        with path.open("rb") as file:
            head = file.read(16)
        try:
            if head[8:12] == b"DUCK":
                return looking._database(path)
            if head.startswith(b"SQLite format 3\0"):
                return forget_in_sqlite(path, self._forgotten, apply=False)
        except (duckdb.Error, sqlite3.Error):
            return 1
        return found_in(path, self._forgotten)

    def others(self) -> Iterator[Place]:
        """Every other file of the home: it is only looked at."""
        known = {path for pattern in _NOT_LOOKED_AT for path in self._home.glob(pattern)}
        for path in sorted(set(self._home.rglob("*")) - known):
            if path.is_file() and not path.is_symlink():
                yield Place(self._name(path), found_in(path, self._forgotten))


def _derived(settings: Settings) -> Iterator[Place]:
    """What is made of the warehouse, or stands elsewhere: it is made anew, and what was there before goes at
    once."""
    home, published = settings.home, published_path(settings.home)
    made: list[tuple[str, Callable[[], int]]] = []
    if published.parent.exists():
        made += [
            ("published/marketing.duckdb", partial(_publish, settings)),
            ("report", lambda: int(write_report(home)[0].exists())),
        ]
        made += [(str(folder), partial(_export, published, folder)) for folder in known_exports(home)]
    if published.parent.exists() and settings.lake_url:
        made.append((f"lake {shown(settings.lake_url)}", partial(_export_to_lake, settings)))
    if settings.backup_url:
        made.append(
            (
                f"backup {shown(settings.backup_url)}",
                lambda: len(back_up_home(settings, is_only=True).manifest.files),
            )
        )
    for place, make in made:
        try:
            yield Place(place, make())
        except (WarehouseError, OSError) as problem:
            yield Place(place, 0, f"{_NOT_REACHED}: {problem}")


def _publish(settings: Settings) -> int:
    """Anew, and of what was published before nothing stays: neither to go back to nor where models do not let
    it be published."""
    try:
        return publish_home(settings).row_count
    except WarehouseError as problem:
        published_path(settings.home).unlink(missing_ok=True)
        raise WarehouseError(f"what was published before had them and is removed; {problem}") from None
    finally:
        for copy in earlier(settings.home):
            copy.unlink()


def _export(published: Path, folder: Path) -> int:
    return export_parquet(published, folder).files


def _export_to_lake(settings: Settings) -> int:
    return len(export_to_lake(settings, keep_earlier=False).tables)
