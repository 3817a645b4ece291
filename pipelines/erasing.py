"""Forgets people everywhere in a home and in the copies that it knows of, with a home's settings: for the command and Dagster's job alike.

A work list in the home says who is being forgotten: it is written first and removed last, so that whatever is interrupted goes on. The
list of fingerprints, by which nobody comes back, is durable before anything is taken out. Not here: what becomes of rows, texts and
responses (`warehouse.erasure`, `warehouse.forgetting`), how it is typed (`commands.forget`).
"""

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa

from marketing_api.clock import utc_now
from pipelines.backups import back_up_home
from pipelines.home import in_use, work_list
from pipelines.progress import report_waiting, stage
from pipelines.publishing import export_to_lake
from pipelines.report.render import write_report
from pipelines.settings import Settings
from pipelines.write_back.forgetting import forget_in_outbox, forget_in_pushes
from pipelines.write_back.kinds.moves_and_deletions import DELETIONS
from pipelines.write_back.order import Order
from pipelines.write_back.outbox.outbox import Outbox, outbox_path
from pipelines.write_back.outbox.store import copy_of
from pipelines.write_back.push_service import Watch, enqueue, finish_push, plan_push
from pipelines.write_back.result import Result, new_run
from warehouse.archive import Archive, suppression
from warehouse.archive.disk import Workspace, create, move_into_place, sweep
from warehouse.archive.rewriting import forget_in_archive
from warehouse.bookkeeping import refresh_requests, write_erasures
from warehouse.connection import MEMORY_LIMIT, connect
from warehouse.erased_files import forget_in_sqlite, hits, kind_of, mask
from warehouse.erasure import Erasing, forget_in_database, titles_of, tokens_of
from warehouse.errors import WarehouseError
from warehouse.forgetting import Forgotten
from warehouse.lake import export_parquet, known_exports
from warehouse.masking import personal_key
from warehouse.person import Person, find_person
from warehouse.policies import PersonalData
from warehouse.publish import earlier, facts, published_path, stamp, turn
from warehouse.schema import ensure_schema
from warehouse.sql import literal, rows
from warehouse.storage import shown
from warehouse.tables import TABLES

_REWRITTEN, _REMOVED = "rewritten", "removed"
#: Outcomes that keep an erasure from being over.
_NOT_REACHED, _FOUND = "not reached", "still found"
#: What has a step of its own.
_OWN_STEPS = (
    *("forgetting.json", "warehouse.duckdb", "outbox.sqlite", "outbox.copy.sqlite", "published/marketing.duckdb"),
    *("published/earlier/*", "archive/requests/*/*", "archive/bodies/*/*", "archive/loads.jsonl", "archive/index.sqlite", "tmp/*"),
    *("tmp/*/*", "tmp/*/*/*", "pushes/plan/*", "pushes/*/rows.parquet", "pushes/*/rejected.csv"),
)
#: What is no place of ours: models of the user's, and the memory of the sandbox, which is a service.
_OF_OTHERS = ("models", "sandbox.jsonl", "identity.json")


class WorkList(msgspec.Struct):
    """Who is being forgotten, by name: in the home for as long as that takes, for its owner only."""

    erasure_id: str
    addresses: tuple[str, ...]
    contacts: tuple[tuple[str, int], ...]
    tokens: tuple[str, ...] = ()
    done: list["Place"] = []

    @property
    def person(self) -> Person:
        return Person(self.addresses, self.contacts)


class Place(msgspec.Struct, frozen=True):
    """What was, or would be, taken out of one place. `outcome`: what became of it, in words."""

    place: str
    rows: int
    outcome: str = _REWRITTEN


def unfinished(home: Path) -> WorkList | None:
    """What an erasure that was interrupted has left to do."""
    path = work_list(home)
    return msgspec.json.decode(path.read_bytes(), type=WorkList) if path.exists() else None


def people(settings: Settings, account: str | None, addresses: Sequence[str], contacts: Sequence[int]) -> Person:
    """All contacts that have or had these addresses, and all addresses of these. Who is not known is kept away all the same."""
    with _reading(settings) as connection:
        found = [find_person(connection, account, address, None) for address in addresses]
        found += [find_person(connection, account, None, number) for number in contacts]
    return Person(
        tuple(sorted({address for each in found for address in each.addresses})),
        tuple(sorted({contact for each in found for contact in each.contacts} | {(account, number) for number in contacts if account})),
    )


def is_over(places: Sequence[Place]) -> bool:
    """Whether nothing is left of anybody."""
    return not any(each.outcome.startswith((_NOT_REACHED, _FOUND)) for each in places)


def dry_run(settings: Settings, person: Person) -> list[Place]:
    """What would be taken out where. Nothing is changed."""
    forgotten = suppression.load(settings.home / "archive").including(person.addresses, person.contacts)
    return [each for each in _Erasure(settings, _erasing(settings, person, forgotten), apply=False).steps() if each.rows]


def delete_at_service(settings: Settings, person: Person) -> list[Result]:
    """Delete their contacts there, by a push for each account; what became of it. Call it before `forget`: their ids are unknown then."""
    results = []
    for account in sorted({account for account, _ in person.contacts}):
        ids = ", ".join(str(number) for name, number in person.contacts if name == account)
        query = f"select contact_id, list_id from source.contacts where account = {literal(account)} and contact_id in ({ids})"  # noqa: S608
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
    home = settings.home
    work = unfinished(home) or WorkList(str(uuid.uuid4()), (), ())
    if set(person.addresses + person.contacts) - set(work.addresses + work.contacts):
        work.addresses, work.contacts = work.addresses + person.addresses, work.contacts + person.contacts
        _write(home, work)
    forgotten = suppression.add(home / "archive", work.addresses, work.contacts)
    erasing = _erasing(settings, work.person, forgotten)
    if set(erasing.tokens) - set(work.tokens):
        work.tokens += erasing.tokens
        _write(home, work)
    erasure = _Erasure(settings, replace(erasing, tokens=work.tokens), apply=True)
    done = []
    for place in erasure.steps():
        done.append(place)
        work.done.append(place)
        _write(home, work)
    left = [*(each for each in done if each.outcome.startswith(_NOT_REACHED)), *erasure.left()]
    receipt = _summed([*(each for each in work.done if each.outcome in (_REWRITTEN, _REMOVED)), *left])
    _note(settings, work.erasure_id, receipt)
    if not left:
        work_list(home).unlink()
    return receipt


def _write(home: Path, work: WorkList) -> None:
    with closing(Workspace(home / "tmp" / "forget")) as workspace:
        temporary = workspace.file("forgetting.json")
        with os.fdopen(create(temporary), "wb") as file:
            file.write(msgspec.json.encode(work))
        move_into_place(temporary, work_list(home))


def _reading(settings: Settings) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    path, wait_s = settings.warehouse_path, settings.lock_seconds
    return connect(path, read_only=True, deadline_s=wait_s, memory_limit=MEMORY_LIMIT, on_wait=report_waiting)


def _erasing(settings: Settings, person: Person, forgotten: Forgotten) -> Erasing:
    with _reading(settings) as connection:
        erasing = Erasing(person, replace(forgotten, titles=titles_of(connection)))
        return replace(erasing, tokens=tokens_of(connection, erasing))


def _summed(places: Sequence[Place]) -> list[Place]:
    """One of each place: what was interrupted and went on is counted together."""
    counts: dict[tuple[str, str], int] = {}
    for each in places:
        counts[each.place, each.outcome] = counts.get((each.place, each.outcome), 0) + each.rows
    return [Place(place, count, outcome) for (place, outcome), count in counts.items() if count or outcome.startswith(_NOT_REACHED)]


def _note(settings: Settings, erasure_id: str, places: Sequence[Place]) -> None:
    with connect(settings.warehouse_path, deadline_s=settings.lock_seconds, on_wait=report_waiting) as connection:
        ensure_schema(connection, TABLES.values())
        write_erasures(connection, [{"erasure_id": erasure_id, "erased_at": utc_now(), **msgspec.structs.asdict(each)} for each in places])


class _Erasure:
    def __init__(self, settings: Settings, erasing: Erasing, *, apply: bool) -> None:
        self._settings, self._home, self._erasing, self._apply = settings, settings.home, erasing, apply

    def steps(self) -> Iterator[Place]:
        """Each place in turn; what came of it, once it is durable."""
        yield from self._archive()
        yield from self._outbox()
        yield from self._warehouse()
        yield from self._published()
        yield from self._files()
        if self._apply:
            for place, copy in self._copies():
                try:
                    yield Place(place, copy())
                except (WarehouseError, OSError) as problem:
                    yield Place(place, 0, f"{_NOT_REACHED}: {problem}")

    def _archive(self) -> Iterator[Place]:
        with stage("archive"):
            counts = forget_in_archive(self._home / "archive", self._erasing.forgotten, apply=self._apply)
        yield from (Place(f"archive: {what}", count) for what, count in counts.items())

    def _outbox(self) -> Iterator[Place]:
        path = outbox_path(self._home)
        for each in (path, copy_of(path)):
            if each.exists():
                yield Place(each.name, forget_in_outbox(each, self._erasing, apply=self._apply))
        if path.exists():
            for file, count in forget_in_pushes(self._home, self._erasing, apply=self._apply):
                yield Place(str(file.relative_to(self._home)), count)

    def _warehouse(self) -> Iterator[Place]:
        path, wait_s = self._settings.warehouse_path, self._settings.lock_seconds
        with (
            stage("warehouse"),
            closing(Workspace(self._home / "tmp" / "forget")) as workspace,
            connect(path, deadline_s=wait_s, read_only=not self._apply, memory_limit=MEMORY_LIMIT, on_wait=report_waiting) as connection,
        ):
            rows(connection, "set timezone = 'UTC'")
            new = workspace.file("warehouse.duckdb") if self._apply else None
            if new:
                with Archive(self._home / "archive") as archive:
                    refresh_requests(connection, archive)
            counts = forget_in_database(connection, self._erasing, new)
            if new:
                rows(connection, "checkpoint")  # so that no log of the old file is left beside the new one
                new.chmod(0o600)
                move_into_place(new, path)
        yield from (Place(table, count) for table, count in counts.items())

    def _published(self) -> Iterator[Place]:
        paths = [path for path in (published_path(self._home), *earlier(self._home)) if path.exists()]
        if paths:
            with stage("published copies"), turn(self._home):
                for path in paths:
                    yield Place(str(path.relative_to(self._home)), self._copy(path, is_new=path == paths[0]))

    def _copy(self, path: Path, *, is_new: bool = False) -> int:
        """A DuckDB file that readers may have open: it is not changed, a new one takes its name. `is_new`: it is a publishing of now."""
        published, erasing = facts(path), self._erasing
        if published and published.personal_data is PersonalData.HASH:
            erasing = erasing.in_hashes(personal_key(self._home, self._settings.personal_key))
        with closing(Workspace(self._home / "tmp" / "forget")) as workspace, duckdb.connect() as connection:
            rows(connection, f"set memory_limit = '{MEMORY_LIMIT}'")
            rows(connection, f"set temp_directory = {literal(str(workspace.folder()))}")
            rows(connection, "set timezone = 'UTC'")
            rows(connection, f"attach {literal(str(path))} as copy (read_only)")
            rows(connection, "use copy")
            new = workspace.file("copy.duckdb") if self._apply else None
            counts = forget_in_database(connection, erasing, new)
            if new and is_new:
                stamp(connection, new)
            if new:
                new.chmod(0o600)
                os.utime(new, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
                move_into_place(new, path)
                Path(f"{path}.wal").unlink(missing_ok=True)  # of one that was set aside
        return sum(counts.values())

    def _files(self) -> Iterator[Place]:
        if self._apply:
            sweep(self._home)
        for path in self._all():
            is_log = path.suffix == ".wal" and path.with_suffix("").exists()  # of DuckDB, which reads it with its file
            if is_log or any(path.match(f"{self._home}/{pattern}") for pattern in _OWN_STEPS):
                continue
            count, outcome = self._file(path)
            if count:
                yield Place(str(path.relative_to(self._home)), count, outcome)

    def _file(self, path: Path) -> tuple[int, str]:
        try:
            match kind_of(path):
                case "sqlite":
                    return forget_in_sqlite(path, self._erasing.anywhere, apply=self._apply), _REWRITTEN
                case "duckdb":
                    return self._copy(path), _REWRITTEN
                case "parquet" | "zstd":
                    if count := hits(path, self._erasing):
                        self._remove(path)
                    return count, _REMOVED
        except (duckdb.Error, pa.ArrowException, OSError):
            self._remove(path)
            return 1, f"{_REMOVED}: it could not be read"
        except sqlite3.Error:
            pass  # a damaged one is looked through as it is
        return mask(path, self._erasing, apply=self._apply), _REWRITTEN

    def _remove(self, path: Path) -> None:
        if self._apply:
            path.unlink(missing_ok=True)
            Path(f"{path}.wal").unlink(missing_ok=True)

    def _all(self) -> Iterator[Path]:
        """Every file of the home that is ours."""
        for path in sorted(self._home.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.relative_to(self._home).parts[0] not in _OF_OTHERS:
                yield path

    def _copies(self) -> Iterator[tuple[str, Callable[[], int]]]:
        """What stands elsewhere, or is made of the published file: it is made anew, and what was there before goes at once."""
        settings, home = self._settings, self._home
        if published_path(home).exists():
            yield "report", lambda: int(write_report(home)[0].exists())
            for folder in known_exports(home):
                yield str(folder), partial(lambda folder: export_parquet(published_path(home), folder).files, folder)
            if settings.lake_url:
                place = f"lake {shown(settings.lake_url)}"
                yield place, lambda: len(export_to_lake(settings, keep_earlier=False).tables)
        if settings.backup_url:
            yield f"backup {shown(settings.backup_url)}", lambda: len(back_up_home(settings, is_only=True).manifest.files)

    def left(self) -> Iterator[Place]:
        """What is found of them in the end, where it should not be."""
        paths = [path for path in self._all() if path != work_list(self._home)]
        with stage("search"), ThreadPoolExecutor(os.cpu_count()) as pool:  # Arrow searches without Python's lock
            for path, count in zip(paths, pool.map(partial(hits, erasing=self._erasing), paths), strict=True):
                if count:
                    yield Place(str(path.relative_to(self._home)), count, _FOUND)
