"""Brings a home of an earlier version to this one, and back to what it was.

Before anything is changed, the files that will be are copied to `upgrades/TIME-VERSIONS` of the home; then each is changed in one
transaction. Killed at any moment, the next command goes on, or begins anew with a home as it was. Not here: which versions there are
(`home`), how tables change (`warehouse.schema`, `outbox.store`).
"""

import contextlib
import logging
import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb

from marketing_api.clock import utc_now
from pipelines.home import (
    VERSION_FILE,
    VERSIONS,
    HomeError,
    note_versions,
    noted_versions,
    prepare_home,
    versions_in_words,
    write_yaml,
    yaml_of_now,
)
from pipelines.progress import report_waiting
from pipelines.write_back.outbox.store import Store, copy_of
from warehouse.archive.disk import Workspace, copy_locked, exclusive, make_folder, sync
from warehouse.connection import connect
from warehouse.errors import NotAWarehouse
from warehouse.schema import columns_of, differences, ensure_schema, is_current, schema_version
from warehouse.sql import quoted, rows, value
from warehouse.tables import TABLES
from warehouse.warehouse import MEMORY_LIMIT

log = logging.getLogger(__name__)

_KEPT = 2
#: Behind the name of copies whose files are not all upgraded yet.
_BEGUN = ".begun"
_WAREHOUSE, _OUTBOX, _YAML = "warehouse.duckdb", "outbox.sqlite", "dagster/dagster.yaml"


class Outdated(NamedTuple):
    """A `file` of the home that is of an earlier version of what `VERSIONS` counts as `name`."""

    name: str
    file: str
    version: int


def upgrade_copies(home: Path) -> list[Path]:
    """The folders with files as they were before an upgrade, newest first. They hold personal data."""
    return sorted((home / "upgrades").glob("*"), reverse=True)


def _open(home: Path, lock_seconds: float, *, read_only: bool = False) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    path = home / _WAREHOUSE
    return connect(path, deadline_s=lock_seconds, read_only=read_only, memory_limit=MEMORY_LIMIT, on_wait=report_waiting)


@contextmanager
def reading(home: Path, lock_seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The warehouse, open for reading, with all tables of this version. Raises what `connect` and `prepare_home` raise."""
    with _open(home, lock_seconds, read_only=True) as connection:
        if is_current(connection, TABLES.values()):
            yield connection
            return
    prepare_home(home, lock_seconds)
    _change(home, [_WAREHOUSE], lock_seconds)
    with _open(home, lock_seconds, read_only=True) as connection:
        yield connection


def outdated(home: Path, lock_seconds: float) -> Iterator[Outdated]:
    """Looks and changes nothing. Files that cannot be read are left to whoever uses them, and says what to do."""
    if (home / _WAREHOUSE).exists():
        with contextlib.suppress(NotAWarehouse), _open(home, lock_seconds, read_only=True) as connection:
            if (version := schema_version(connection)) is not None and version < VERSIONS["warehouse"]:
                yield Outdated("warehouse", _WAREHOUSE, version)
    if (path := home / _OUTBOX).is_file():
        with path.open("rb") as file:
            version = int.from_bytes(file.read(64)[60:])  # where SQLite has it: opening the file would make others beside it
        if 0 < version < VERSIONS["outbox"]:
            yield Outdated("outbox", _OUTBOX, version)
    if (path := home / _YAML).is_file() and yaml_of_now(text := path.read_text(encoding="utf-8", errors="replace")) != text:
        yield Outdated("dagster", _YAML, VERSIONS["dagster"] - 1)


def try_upgrade(home: Path, lock_seconds: float) -> Iterator[str]:
    """What an upgrade changes, a line each: it is carried out on copies, which are removed. Raises what `upgrade` raises."""
    if not (found := list(outdated(home, lock_seconds))):
        yield f"nothing has to be upgraded: {versions_in_words(VERSIONS)}"
        return
    with closing(Workspace(home / "tmp" / "upgrade")) as workspace:
        files = [each.file for each in found]
        copies = _copy(home, files, workspace.folder(), lock_seconds)
        before = _tables(copies)
        _change(copies, files, lock_seconds)
        for each in found:
            yield f"{each.name}: version {each.version} becomes {VERSIONS[each.name]}; {each.file} is copied before"
        yield from differences(before, _tables(copies))
    yield "this was tried on copies: `marketing-sync upgrade` does it, as does the next command that uses the home"


def _tables(home: Path) -> dict[str, dict[str, str]]:
    if not (home / _WAREHOUSE).exists():
        return {}
    with _open(home, 0, read_only=True) as connection:
        return columns_of(connection)


def upgrade(home: Path, lock_seconds: float) -> None:
    """Upgrade what is outdated, and say so. Raises what `connection.connect` raises, OutboxError, OSError."""
    with exclusive(home), ExitStack() as held:
        found = list(outdated(home, lock_seconds))
        versions = [f"{each.name}-{each.version}" for each in found]
        files = [each.file for each in found]
        begun = next((copies for copies in upgrade_copies(home) if copies.suffix == _BEGUN), None)
        if begun and not all(version in begun.name and (begun / file).exists() for version, file in zip(versions, files, strict=True)):
            begun = None  # of another upgrade, or put back in part
        if found or begun:
            if _WAREHOUSE in files:  # to the end: what is loaded between copy and change would be in neither
                rows(held.enter_context(_open(home, lock_seconds)), "checkpoint")  # so that the file alone is all of it
            copies = begun or _keep_copy(home, files, f"{utc_now():%Y%m%dT%H%M%SZ}-{'-'.join(versions)}{_BEGUN}", lock_seconds)
            _change(home, files, lock_seconds)
            done = copies.rename(copies.with_suffix(""))
            log.warning(
                "the home was of an earlier version (%s): it is upgraded, and the files as they were are in %s; "
                "`marketing-sync upgrade --rollback` puts them back",
                done.name.partition("-")[2],
                done,
            )
        note_versions(home)
        for older in upgrade_copies(home)[_KEPT:]:
            shutil.rmtree(older)


def _keep_copy(home: Path, files: Collection[str], name: str, lock_seconds: float) -> Path:
    """The folder in `upgrades`, there whole or not at all."""
    with closing(Workspace(home / "tmp" / "upgrade")) as workspace:
        folder = _copy(home, files, make_folder(workspace.folder() / name), lock_seconds)
        copies = folder.rename(make_folder(home / "upgrades") / name)
        sync(copies.parent)
        return copies


def _copy(home: Path, files: Collection[str], folder: Path, lock_seconds: float) -> Path:
    """The files, and the version that is noted, in the `folder`."""
    for file in (*files, VERSION_FILE):
        source, target = home / file, folder / file
        if source.exists():
            make_folder(target.parent)
            if file == _WAREHOUSE:
                with _open(home, lock_seconds, read_only=True):
                    copy_locked(source, target)
            elif file == _OUTBOX:
                with closing(sqlite3.connect(source)) as before, closing(sqlite3.connect(target)) as copy:
                    before.backup(copy)
            else:
                shutil.copyfile(source, target)
            sync(target)
    return folder


def _change(home: Path, files: Collection[str], lock_seconds: float) -> None:
    """Each in one transaction, or not at all."""
    if _WAREHOUSE in files:
        with _open(home, lock_seconds) as connection:
            rows(connection, "set timezone = 'UTC'")
            ensure_schema(connection, TABLES.values())
    if _OUTBOX in files:
        Store(home / _OUTBOX).close()
    if _YAML in files:
        write_yaml(home)


def roll_back(home: Path, lock_seconds: float, *, accept_loss: bool = False) -> str:
    """Put back the newest copies, for the version that they are of to go on; what was done in a sentence. Typed again when it was killed.

    Raises HomeError when there are none, or when something came since that would be lost, unless `accept_loss`.
    """
    with exclusive(home), ExitStack() as held:
        if not (copies := next(iter(upgrade_copies(home)), None)):
            raise HomeError(f"there is nothing to go back to: {home / 'upgrades'} holds no copies of files as they were before an upgrade")
        lost = list(_lost_of_outbox(home, copies))
        if (copies / _WAREHOUSE).exists() and (home / _WAREHOUSE).exists():
            connection = held.enter_context(_open(home, lock_seconds))
            rows(connection, "checkpoint")  # so that no log of the newer file is left beside the earlier one
            lost += _lost_of_warehouse(connection, copies)
        if lost and not accept_loss:
            raise HomeError(f"nothing is put back, since this would be lost: {'; '.join(lost)}. `--accept-loss` puts it back all the same")
        (home / VERSION_FILE).unlink(missing_ok=True)  # whoever comes next looks into the files
        for file in (_WAREHOUSE, _OUTBOX, _YAML, VERSION_FILE):
            if (copies / file).exists():
                (copies / file).replace(home / file)
                for beside in (copy_of(home / file), *home.glob(f"{file}-*")) if file == _OUTBOX else ():
                    beside.unlink(missing_ok=True)
        sync(home)
        shutil.rmtree(copies)
    versions = copies.name.removesuffix(_BEGUN).partition("-")[2]
    return f"the files are as they were before the upgrade ({versions}): go on with that version, since this one would upgrade them again"


def _lost_of_warehouse(connection: duckdb.DuckDBPyConnection, copies: Path) -> Iterator[str]:
    """What was loaded since is loaded again from the archive, if the earlier version can read it; history is in no archive."""
    with _open(copies, 0, read_only=True) as earlier:
        loads, before = (int(value(each, "select count(*) from sync.loads")) for each in (connection, earlier))
        if loads > before and noted_versions(copies).get("archive") != VERSIONS["archive"]:
            yield f"{loads - before:,} loads, which the earlier version cannot read in the archive"
        had = columns_of(earlier)
        for table in (each for each in columns_of(connection) if each.startswith("history.")):
            names = ", ".join(map(quoted, had[table])) if table in had else "*"
            content = f"select count(*), sum(hash(each)) from (select {names} from {table}) as each"  # noqa: S608
            now, then = rows(connection, content)[0], rows(earlier, content)[0] if table in had else (0, None)
            if now != then:
                yield f"changes in {table} ({now[0]:,} rows, {then[0]:,} before)"


def _lost_of_outbox(home: Path, copies: Path) -> Iterator[str]:
    if (copies / _OUTBOX).exists() and (home / _OUTBOX).exists():
        revisions = set()
        for path in (home / _OUTBOX, copies / _OUTBOX):
            with closing(sqlite3.connect(path)) as connection:
                revisions.add(connection.execute("select value from revision").fetchone()[0])
        if len(revisions) > 1:
            yield "what was pushed since, which would be sent twice"
