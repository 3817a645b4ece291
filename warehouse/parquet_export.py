"""Writes the published file's tables as Parquet for other engines: `FOLDER/SCHEMA/TABLE/account=…/*.parquet`.

FOLDER is a symbolic link to the export it shows; a new one is written beside it and takes its place in one step. Not here: what is
published (`publish`), what became of personal data (`masking`): the file has it as it may be shown.
"""

import glob
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.archive.disk import create, make_folder, move_into_place, new_name, remove, sync
from warehouse.errors import ForeignFolder
from warehouse.publish import reading
from warehouse.schema import columns_of
from warehouse.sql import literal, qualified, rows

#: Files that are written at the same time; each keeps its rows in memory until it has enough of them.
_OPEN_FILES = 24
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


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: `folder` shows it."""

    folder: Path
    tables: int
    files: int
    bytes: int


def export_parquet(published: Path, folder: Path) -> Export:
    """Write every table of the published file at `published` to `folder`, in place of an earlier export, which goes.

    Raises NothingPublished without that file, ForeignFolder when `folder` is a folder or file that this did not make.
    """
    folder = folder.absolute()
    ours = f".{glob.escape(folder.name)}-{'[0-9]' * 8}T*Z-*"  # exports, and links to them that a kill left
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not (folder.readlink().match(ours) if folder.is_symlink() else is_free):
        raise ForeignFolder(f"{folder} is not an earlier export: name a folder that does not exist, or an empty one")
    target = make_folder(folder.parent) / f".{folder.name}-{new_name()}"
    target.mkdir(mode=0o700)
    try:
        with reading(published, target / ".tmp") as connection:
            rows(connection, f"set partitioned_write_max_open_files = {_OPEN_FILES}")
            rows(connection, "set preserve_insertion_order = false")
            tables = columns_of(connection)
            for relation, columns in tables.items():
                _copy(connection, relation, target, is_parted="account" in columns)
        _show(target, folder)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    for other in folder.parent.glob(ours):
        if other != target:
            remove(other)
    files = [path.stat().st_size for path in target.rglob("*.parquet")]
    return Export(folder, len(tables), len(files), sum(files))


def _copy(connection: duckdb.DuckDBPyConnection, relation: str, target: Path, *, is_parted: bool) -> None:
    """Without an account among the columns, or without rows, it is one file."""
    place = make_folder(target.joinpath(*relation.split(".", 1)))
    source = f"from {qualified(relation)}"
    if is_parted and rows(connection, f"select 1 {source} limit 1"):
        where, options = place, "partition_by (account), filename_pattern 'data_{i}', overwrite"
    else:
        where, options = place / "data.parquet", "overwrite"
    rows(connection, f"copy ({source}) to {literal(str(where))} (format parquet, compression zstd, {options})")


def _show(target: Path, folder: Path) -> None:
    link = folder.with_name(f"{target.name}.link")
    link.symlink_to(target.name)
    if folder.exists() and not folder.is_symlink():
        folder.rmdir()
    link.replace(folder)
    sync(folder.parent)
