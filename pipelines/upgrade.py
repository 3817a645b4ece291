"""Brings a home of an earlier version to this one, and back to what it was.

Before anything is changed, the files that will be are copied to `upgrades/TIME-VERSIONS` of the home; then each is changed in one
transaction. Killed at any moment, the next command goes on, or begins anew with a home as it was.

`version` in the home says what its files are versions of, so that nothing has to be opened to know. Not here: how tables change
(`warehouse.schema`, `outbox.store`).
"""

import contextlib
import logging
import re
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import duckdb
import msgspec

from marketing_api.clock import utc_now
from pipelines.failures import HomeError
from pipelines.progress import report_waiting
from pipelines.write_back.outbox.store import VERSION as OUTBOX_VERSION
from pipelines.write_back.outbox.store import Store, copy_of
from warehouse.archive.archive import ARCHIVE_VERSION
from warehouse.archive.disk import Workspace, copy_locked, exclusive, make_folder, no_folder, sync, write_file
from warehouse.connection import MEMORY_LIMIT, connect
from warehouse.errors import NotAWarehouse
from warehouse.schema import SCHEMA_VERSION, columns_of, differences, ensure_schema, schema_version
from warehouse.sql import quoted, rows, value
from warehouse.tables import TABLES

log = logging.getLogger(__name__)

#: Each number goes up when a program of the version before could no longer go on with what it counts.
VERSIONS = {"warehouse": SCHEMA_VERSION, "outbox": OUTBOX_VERSION, "archive": ARCHIVE_VERSION, "dagster": 2}
_DAGSTER_YAML = Path(__file__).with_name("dagster.yaml")
VERSION_FILE = "version"
#: As earlier versions wrote it: with the place of the home then, with the module that the class was in → as it is written now.
_OUTDATED = {
    re.compile(r'^( +base_dir: )"[^"\n]*/dagster/history/runs"$', re.MULTILINE): r"\1history/runs",
    re.compile(r"^( +module: )pipelines\.run_history$", re.MULTILINE): r"\1pipelines.dagster_internals",
}

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
    return sorted((home / "upgrades").glob(f"{'[0-9]' * 8}T*Z-*"), reverse=True)


def open_warehouse(home: Path, lock_seconds: float, *, read_only: bool = False) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """The home's warehouse, as `connect` opens it."""
    path = home / _WAREHOUSE
    return connect(path, deadline_s=lock_seconds, read_only=read_only, memory_limit=MEMORY_LIMIT, on_wait=report_waiting)


def outdated(home: Path, lock_seconds: float) -> Iterator[Outdated]:
    """Looks and changes nothing. Files that cannot be read are left to whoever uses them, and says what to do."""
    if (home / _WAREHOUSE).exists():
        with contextlib.suppress(NotAWarehouse), open_warehouse(home, lock_seconds, read_only=True) as connection:
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
    with open_warehouse(home, 0, read_only=True) as connection:
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
                rows(held.enter_context(open_warehouse(home, lock_seconds)), "checkpoint")  # so that the file alone is all of it
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
                with open_warehouse(home, lock_seconds, read_only=True):
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
        complete_tables(home, lock_seconds)
    if _OUTBOX in files:
        Store(home / _OUTBOX).close()
    if _YAML in files:
        write_yaml(home)


def complete_tables(home: Path, lock_seconds: float) -> None:
    """Those of the warehouse, as this version declares them."""
    with open_warehouse(home, lock_seconds) as connection:
        rows(connection, "set timezone = 'UTC'")
        ensure_schema(connection, TABLES.values())


def roll_back(home: Path, lock_seconds: float, *, accept_loss: bool = False) -> str:
    """Put back the newest copies, for the version that they are of to go on; what was done in a sentence. Typed again when it was killed.

    Raises HomeError when there are none, or when something came since that would be lost, unless `accept_loss`.
    """
    with exclusive(home), ExitStack() as held:
        if not (copies := next(iter(upgrade_copies(home)), None)):
            raise HomeError(f"there is nothing to go back to: {home / 'upgrades'} holds no copies of files as they were before an upgrade")
        lost = list(_lost_of_outbox(home, copies))
        if (copies / _WAREHOUSE).exists() and (home / _WAREHOUSE).exists():
            connection = held.enter_context(open_warehouse(home, lock_seconds))
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
    with open_warehouse(copies, 0, read_only=True) as earlier:
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


# -- which versions there are


def noted_versions(home: Path) -> dict[str, int]:
    """Those that `version` in the home names; none where it is not there or cannot be read: its files have to be looked into."""
    try:
        return msgspec.json.decode((home / VERSION_FILE).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}


def note_versions(home: Path) -> None:
    """That all of it is of this program's versions."""
    write_file(no_folder(home / VERSION_FILE), msgspec.json.encode(VERSIONS))


def check_not_newer(home: Path) -> None:
    """Raises HomeError."""
    if newer := {name: number for name, number in noted_versions(home).items() if number > VERSIONS.get(name, 0)}:
        raise HomeError(
            f"the home {home} is of a newer version of marketing-sync than this one ({versions_in_words(newer)}; known here: "
            f"{versions_in_words(VERSIONS)}): upgrade this installation, or `marketing-sync upgrade --rollback` with the newer one. If it "
            f"never was of a newer version, move {home / VERSION_FILE} away"
        )


def versions_in_words(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


# -- Dagster's settings


def write_yaml(home: Path) -> None:
    """Dagster's settings, as of now where an earlier version wrote them; what a person wrote into them is left alone."""
    path = home / "dagster" / "dagster.yaml"
    text = path.read_text(encoding="utf-8", errors="replace") if no_folder(path).exists() else ""
    current = yaml_of_now(text or _DAGSTER_YAML.read_text(encoding="utf-8"))
    if current != text:
        write_file(path, current.encode())  # whole: half of it would pass for what a person wrote


def yaml_of_now(text: str) -> str:
    for outdated, now in _OUTDATED.items():
        text = outdated.sub(now, text)
    return text
