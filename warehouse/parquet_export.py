"""Writes the published file's tables as Parquet for other engines: partitioned by account, large event tables by month as well.

`FOLDER/SCHEMA/TABLE/account=…/month=…/*.parquet`. FOLDER is a symbolic link to the export it shows; a new one is written beside it and
takes its place in one step. The one before stays until the next, for whoever is reading it. Not here: what is published
(`publish`), what became of personal data (`masking`): the file has it as it may be shown.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.archive.disk import create, make_folder, move_into_place, new_name, sync
from warehouse.errors import ForeignFolder, NothingPublished
from warehouse.publish import read_facts
from warehouse.sql import literal, quoted, rows
from warehouse.tables import TABLES, Accumulate

MEMORY_LIMIT = "400MB"
#: Files that are written at the same time; each keeps its rows in memory until it has enough of them.
_OPEN_FILES = 24

#: Large event tables: the time that their month goes by. Timelines have it as their only time.
MONTHS = {
    ("source", table.name): next(column.name for column in table.record_columns if column.name.endswith("_at"))
    for table in TABLES.values()
    if isinstance(table.load, Accumulate) and table.area == "contacts"
} | {("sync", "requests"): "requested_at"}


#: Where exports of a home were written, a folder a line.
_KNOWN = "exports.txt"


def known_exports(home: Path) -> list[Path]:
    """The folders that exports of this home were written to and that are there."""
    note = home / _KNOWN
    lines = note.read_text(encoding="utf-8").splitlines() if note.exists() else []
    return [folder for folder in map(home.joinpath, lines) if folder.is_symlink()]


def note_export(home: Path, folder: Path) -> None:
    """Remember that one was written there. A folder in the home moves with it."""
    folder = folder.absolute()
    known = dict.fromkeys([*known_exports(home), folder])
    lines = [f"{each.relative_to(home) if each.is_relative_to(home) else each}\n" for each in known]
    temporary = home / f".{_KNOWN}-{new_name()}"
    with os.fdopen(create(temporary), "w", encoding="utf-8") as file:
        file.writelines(lines)
    move_into_place(temporary, home / _KNOWN)


def remove_earlier_exports(folder: Path) -> None:
    """All but the one that `folder` shows."""
    for other in folder.parent.iterdir():
        if _is_ours(folder, other.name) and other.name != folder.readlink().name:
            other.unlink() if other.is_symlink() else shutil.rmtree(other)


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: `folder` shows it."""

    folder: Path
    tables: int
    files: int
    bytes: int


def export_parquet(published: Path, folder: Path) -> Export:
    """Write every table of the published file at `published` to `folder`, in place of an earlier export.

    Raises NothingPublished without that file, ForeignFolder when `folder` is a folder or file that this did not make.
    """
    folder = folder.absolute()
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not (_is_ours(folder, folder.readlink().name) if folder.is_symlink() else is_free):
        raise ForeignFolder(f"{folder} is not an earlier export: name a folder that does not exist, or an empty one")
    target = make_folder(folder.parent) / f".{folder.name}-{new_name()}"
    target.mkdir(mode=0o700)
    try:
        tables = _write(published, target)
        _show(target, folder)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    files = [path.stat().st_size for path in target.rglob("*.parquet")]
    return Export(folder, tables, len(files), sum(files))


def _is_ours(folder: Path, name: str) -> bool:
    """Whether that is the name of an export that `folder` shows or showed, or of a link to one that a kill left."""
    return bool(re.fullmatch(rf"\.{re.escape(folder.name)}-\d{{8}}T\d{{12}}Z-[0-9a-f]{{8}}(\.link)?", name))


def _write(published: Path, target: Path) -> int:
    with reading(published, target / ".tmp") as connection:
        rows(connection, f"set partitioned_write_max_open_files = {_OPEN_FILES}")
        rows(connection, "set preserve_insertion_order = false")
        tables = list(tables_of(connection))
        for schema, name, columns in tables:
            is_empty = not rows(connection, f"select 1 from {quoted(schema)}.{quoted(name)} limit 1")
            rows(connection, _copy(schema, name, {} if is_empty else columns, target))
    shutil.rmtree(target / ".tmp", ignore_errors=True)
    return len(tables)


@contextmanager
def reading(published: Path, scratch: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The published file, for large copies out of it. Raises NothingPublished without that file."""
    if not published.exists():
        raise NothingPublished(f"there is no {published} yet: run `marketing-sync publish`")
    config = {"memory_limit": MEMORY_LIMIT, "temp_directory": str(scratch), "autoinstall_known_extensions": False}
    with duckdb.connect(str(published), read_only=True, config=config) as connection:  # type: ignore[arg-type]
        rows(connection, "set timezone = 'UTC'")
        yield connection


def tables_of(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Schema, name and columns with their types of every table and view."""
    found = "select schema_name, table_name, list((column_name, data_type) order by column_index) from duckdb_columns()"
    own = "where database_name = current_database() and not internal group by all order by all"
    for schema, name, columns in rows(connection, f"{found} {own}"):
        yield schema, name, dict(columns)


def _copy(schema: str, name: str, columns: Collection[str], target: Path) -> str:
    """Without an account among the columns it is one file."""
    place = make_folder(target / schema / name)
    source = f"from {quoted(schema)}.{quoted(name)}"
    if "account" not in columns:
        return f"copy ({source}) to {literal(str(place / 'data.parquet'))} (format parquet, compression zstd)"
    by = ["account"]
    if (time := MONTHS.get((schema, name))) is not None:
        source, by = f"select *, strftime({quoted(time)}, '%Y-%m') as month {source}", ["account", "month"]
    return (
        f"copy ({source}) to {literal(str(place))} "
        f"(format parquet, compression zstd, partition_by ({', '.join(by)}), filename_pattern 'data_{{i}}', overwrite)"
    )


def _show(target: Path, folder: Path) -> None:
    """Point the link at the new export; of the others only the one before stays, unless it shows more of people."""
    link = folder.with_name(f"{target.name}.link")
    link.symlink_to(target.name)
    before = folder.readlink().name if folder.is_symlink() else None
    if before is None and folder.exists():
        folder.rmdir()
    link.replace(folder)
    sync(folder.parent)
    for other in folder.parent.iterdir():
        stays = other.name == target.name or (other.name == before and not _shows_more(other, target))
        if _is_ours(folder, other.name) and not stays:
            other.unlink() if other.is_symlink() else shutil.rmtree(other, ignore_errors=True)


def _shows_more(export: Path, newer: Path) -> bool:
    with duckdb.connect() as connection:
        try:
            old, new = (read_facts(connection, literal(str(folder / "sync/published/data.parquet"))) for folder in (export, newer))
        except duckdb.Error:  # nobody can tell
            return True
    return old.shows_more_than(new.personal_data, new.group_min)
