"""Brings a home of an earlier version to this one, and back to what it was.

Before anything is changed, the files that will be are copied to `upgrades/TIME-VERSIONS` of the home; then each is changed in one
transaction. Killed at any moment, the next command goes on, or begins anew with a home as it was. Not here: which versions there are
(`home`), how tables change (`warehouse.schema`, `outbox.store`).
"""

import contextlib
import logging
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import duckdb

from marketing_api.clock import utc_now
from pipelines.home import VERSION_FILE, VERSIONS, HomeError, note_versions, noted_versions, versions_in_words, write_yaml, yaml_of_now
from pipelines.progress import report_waiting
from pipelines.write_back.outbox.outbox import outbox_path
from pipelines.write_back.outbox.store import Store, copy_of
from warehouse.archive.disk import Workspace, copy_locked, exclusive, make_folder, sync
from warehouse.connection import connect
from warehouse.errors import NotAWarehouse
from warehouse.schema import changes, ensure_schema, schema_version
from warehouse.sql import literal, quoted, rows, value
from warehouse.tables import TABLES

log = logging.getLogger(__name__)

_KEPT = 2
#: Behind the name of copies whose files are not all upgraded yet.
_BEGUN = ".begun"
_WAREHOUSE, _OUTBOX, _YAML = "warehouse.duckdb", "outbox.sqlite", "dagster/dagster.yaml"


@dataclass(frozen=True, slots=True)
class Outdated:
    """A `file` of the home that is of an earlier version of what `VERSIONS` counts as `name`; `changes` in words."""

    name: str
    file: str
    version: int
    changes: Sequence[str]


def outdated(home: Path) -> Iterator[Outdated]:
    """Looks and changes nothing. Files that cannot be read are left to whoever uses them, and says what to do."""
    if (path := home / _WAREHOUSE).exists():
        with contextlib.suppress(NotAWarehouse), connect(path, read_only=True, on_wait=report_waiting) as connection:
            version = schema_version(connection)
            if version is not None and version < VERSIONS["warehouse"]:
                yield Outdated("warehouse", _WAREHOUSE, version, list(changes(connection, TABLES.values())))
    if (path := outbox_path(home)).is_file():
        with path.open("rb") as file:
            version = int.from_bytes(file.read(64)[60:])  # where SQLite has it: opening the file would make others beside it
        if 0 < version < VERSIONS["outbox"]:
            yield Outdated("outbox", _OUTBOX, version, [f"{_OUTBOX}: tables of version {VERSIONS['outbox']}"])
    if (path := home / _YAML).is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        if yaml_of_now(text) != text:
            yield Outdated("dagster", _YAML, VERSIONS["dagster"] - 1, [f"{_YAML}: names of now"])


def upgrade(home: Path) -> None:
    """Upgrade what is outdated, and say so. Raises what `connection.connect` raises, OutboxError, OSError."""
    with exclusive(home), ExitStack() as stack:
        found = list(outdated(home))
        names = {each.name for each in found}
        begun = next((copies for copies in upgrade_copies(home) if copies.suffix == _BEGUN), None)
        if begun and not all(f"{each.name}-{each.version}" in begun.name and (begun / each.file).exists() for each in found):
            begun = None  # of another upgrade, or put back in part
        if found or begun:
            warehouse = None
            if "warehouse" in names:  # held to the end: what is loaded between copy and change would be in neither
                warehouse = stack.enter_context(connect(home / _WAREHOUSE, on_wait=report_waiting))
            copies = begun or _copy(home, found, warehouse)
            if warehouse is not None:
                rows(warehouse, "set timezone = 'UTC'")
                ensure_schema(warehouse, TABLES.values())
            if "outbox" in names:
                Store(outbox_path(home)).close()
            if "dagster" in names:
                write_yaml(home)
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


def upgrade_copies(home: Path) -> list[Path]:
    """The folders with files as they were before an upgrade, newest first. They hold personal data."""
    return sorted((home / "upgrades").glob("*"), reverse=True)


def _copy(home: Path, found: Sequence[Outdated], warehouse: duckdb.DuckDBPyConnection | None) -> Path:
    """The folder, whole or not at all; `warehouse` is the open file, if that is outdated."""
    with closing(Workspace(home / "tmp" / "upgrade")) as workspace:
        folder = make_folder(workspace.folder() / "copies")
        for file in (*(each.file for each in found), VERSION_FILE):
            source, target = home / file, folder / file
            if not source.exists():
                continue
            make_folder(target.parent)
            if file == _WAREHOUSE and warehouse is not None:
                if Path(f"{source}.wal").exists():
                    rows(warehouse, "checkpoint")  # so that the file alone is all of it
                copy_locked(source, target)
            elif file == _OUTBOX:
                with closing(sqlite3.connect(source)) as before, closing(sqlite3.connect(target)) as copy:
                    before.backup(copy)
            else:
                shutil.copyfile(source, target)
            target.chmod(0o600)
            sync(target)
        versions = "-".join(f"{each.name}-{each.version}" for each in found)
        parent = make_folder(home / "upgrades")
        copies = folder.rename(parent / f"{utc_now():%Y%m%dT%H%M%SZ}-{versions}{_BEGUN}")
        sync(parent)
        return copies


def roll_back(home: Path, *, accept_loss: bool = False) -> str:
    """Put back the newest copies, for the version that they are of to go on; what was done in a sentence. Typed again when it was killed.

    Raises HomeError when there are none, or when something came since that would be lost, unless `accept_loss`.
    """
    with exclusive(home), ExitStack() as stack:
        copies = next(iter(upgrade_copies(home)), None)
        if copies is None:
            raise HomeError(f"there is nothing to go back to: {home / 'upgrades'} holds no copies of files as they were before an upgrade")
        if (copies / _WAREHOUSE).exists() and (home / _WAREHOUSE).exists():
            connection = stack.enter_context(connect(home / _WAREHOUSE, on_wait=report_waiting))
            lost = [*_lost_of_warehouse(connection, copies), *_lost_of_outbox(home, copies)]
            rows(connection, "checkpoint")  # so that no log of the newer file is left beside the earlier one
        else:
            lost = list(_lost_of_outbox(home, copies))
        if lost and not accept_loss:
            raise HomeError(f"nothing is put back, since this would be lost: {'; '.join(lost)}. `--accept-loss` puts it back all the same")
        (home / VERSION_FILE).unlink(missing_ok=True)  # whoever comes next looks into the files
        for file in (_WAREHOUSE, _OUTBOX, _YAML, VERSION_FILE):
            if (copy := copies / file).exists():
                copy.replace(home / file)
                if file == _OUTBOX:
                    for beside in (copy_of(home / file), *(home.glob(f"{file}-*"))):
                        beside.unlink(missing_ok=True)
        sync(home)
        versions = copies.name.removesuffix(_BEGUN).partition("-")[2]
        shutil.rmtree(copies)
    return f"the files are as they were before the upgrade ({versions}): go on with that version, since this one would upgrade them again"


def _lost_of_warehouse(connection: duckdb.DuckDBPyConnection, copies: Path) -> Iterator[str]:
    """What was loaded since is loaded again from the archive, if the earlier version can read it; history is in no archive."""
    own = quoted(str(value(connection, "select current_database()")))
    rows(connection, f"attach {literal(str(copies / _WAREHOUSE))} as earlier (read_only)")
    try:
        loads, before = (int(value(connection, f"select count(*) from {of}.sync.loads")) for of in (own, "earlier"))  # noqa: S608
        if loads > before and noted_versions(copies).get("archive") != VERSIONS["archive"]:
            yield f"{loads - before:,} loads, which the earlier version cannot read in the archive"
        names = "select table_name from duckdb_tables() where schema_name = 'history' and database_name = {} order by all"
        had = {name for (name,) in rows(connection, names.format("'earlier'"))}
        for (name,) in rows(connection, names.format("current_database()")):
            count = f"select count(*), sum(hash(each)) from {{}}.history.{quoted(name)} as each"  # noqa: S608
            now, then = (rows(connection, count.format(of))[0] if of == own or name in had else (0, None) for of in (own, "earlier"))
            if now != then:
                yield f"changes in history.{name} ({now[0]:,} rows, {then[0]:,} before)"
    finally:
        rows(connection, "detach earlier")


def _lost_of_outbox(home: Path, copies: Path) -> Iterator[str]:
    if (copy := copies / _OUTBOX).exists() and (home / _OUTBOX).exists():
        revisions = []
        for path in (home / _OUTBOX, copy):
            with closing(sqlite3.connect(path)) as connection:
                revisions.append(connection.execute("select value from revision").fetchone()[0])
        if revisions[0] != revisions[1]:
            yield "what was pushed since, which would be sent twice"


def in_words(found: Sequence[Outdated]) -> Iterator[str]:
    """What an upgrade would do, a line each."""
    if not found:
        yield f"nothing has to be upgraded: {versions_in_words(VERSIONS)}"
    for each in found:
        yield f"{each.name}: version {each.version} becomes {VERSIONS[each.name]}; {each.file} is copied before"
        yield from (f"  {change}" for change in each.changes)
