"""The published tables as Parquet: in a folder of the user's, and in the lake, those of every shard in one
folder of object storage.

    shards/SHARD/manifest.json                              the version that is current; swapped last
    shards/SHARD/VERSION/SCHEMA.TABLE.DIGEST.parquet        never written over

A shard writes below its own name only, so that nothing has to be locked. A version that was superseded stays
for `GRACE`, for whoever is reading it, unless it shows more of people. Not here: what is published
(`publish`), the storage (`storage`)."""

import datetime as dt
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, starmap
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import msgspec
from msgspec.structs import replace

from marketing_api.clock import utc_now
from warehouse.connection import private
from warehouse.disk import Workspace, exclusive, make_folder, new_name, remove, sync, write_file
from warehouse.errors import ForeignFolder
from warehouse.publish import Published, published_path, read_facts, reading
from warehouse.schema import columns_of
from warehouse.sql import literal, qualified, query, quoted, records, rows, transaction, value
from warehouse.storage import Storage, sha256, shown

#: Who makes a file of views once a night can query it until the next one.
GRACE = dt.timedelta(hours=36)
#: Nightly exports: a night may be missed.
LATE = dt.timedelta(days=2)
#: The shard of a home where none are declared.
UNNAMED = "main"
_SHARDS, _MANIFEST = "shards", "manifest.json"
#: Manifests are small: it is the way there that takes time.
_READ_AT_ONCE = 16


class LakeTable(msgspec.Struct):
    """One file: `file` is its name below the version, `columns` are types of DuckDB by name."""

    schema: str
    name: str
    file: str
    rows: int
    bytes: int
    sha256: str
    columns: dict[str, str]


class Superseded(msgspec.Struct):
    """A version that was current until `at`."""

    at: dt.datetime
    published: Published


class Manifest(msgspec.Struct):
    """What a shard shows; `earlier` are versions that are still there."""

    shard: str
    version: str
    published: Published
    tables: list[LakeTable]
    earlier: dict[str, Superseded] = {}
    home_id: str = ""
    accounts: list[dict[str, Any]] = []
    """rows of `queries/fleet_accounts.sql`"""

    @property
    def folder(self) -> str:
        return f"{_SHARDS}/{self.shard}/{self.version}"

    @property
    def files(self) -> dict[str, int]:
        """Their names in the lake, with their bytes."""
        return {f"{self.folder}/{table.file}": table.bytes for table in self.tables}


#: Made once, ahead of the threads that use it: msgspec learning a type in several at once has crashed.
_decode = msgspec.json.Decoder(Manifest).decode


def export(
    home: Path,
    storage: Storage,
    shard: str,
    now: dt.datetime | None = None,
    *,
    keep_earlier: bool = True,
    home_id: str = "",
) -> Manifest:
    """Export what `home` has published; a version that is current already is not sent again, nor a file that
    got there before a failure. `keep_earlier`: versions that were superseded stay for a while. `home_id`: no
    other home exports this shard.

    Raises NothingPublished, StorageUnavailable and ForeignFolder.
    """
    now = now or utc_now()
    with (
        exclusive(make_folder(home / "published") / ".lake"),
        closing(Workspace(home / "tmp" / "lake")) as workspace,
        reading(published_path(home), workspace.folder() / "spill") as connection,
    ):
        published = read_facts(connection)
        before, version = check_shard(storage, shard, home_id), f"{published.published_at:%Y%m%dT%H%M%S%fZ}"
        if before and before.version == version:
            current = before
        else:
            accounts = records(connection, query("fleet_accounts"), {"at": published.published_at})
            current = Manifest(shard, version, published, [], home_id=home_id, accounts=accounts)
            if before and keep_earlier:
                before.earlier[before.version] = Superseded(now, before.published)
                current.earlier = {
                    name: each
                    for name, each in before.earlier.items()
                    if name != version
                    and now - each.at < GRACE
                    and not each.published.shows_more_than(published.personal_data, published.group_min)
                }
            there, path = storage.names(current.folder), workspace.file("table.parquet")
            for table in _written(connection, shard, path):
                place = f"{current.folder}/{table.file}"
                if there.get(place) != table.bytes:
                    storage.upload(path, place)
                current.tables.append(table)
            storage.write(f"{_SHARDS}/{shard}/{_MANIFEST}", msgspec.json.encode(current))
        _sweep(storage, current)
    return current


def _sweep(storage: Storage, current: Manifest) -> None:
    """What nobody reads any more goes, and what an export left that failed."""
    kept, own = {current.version, *current.earlier}, f"{_SHARDS}/{current.shard}/"
    written = {name: _WRITTEN.fullmatch(name.removeprefix(own)) for name in storage.names(own)}
    storage.delete([name for name, version in written.items() if version and version[1] not in kept])


#: A file of a version, and one that a kill left of it; or of the manifest.
_WRITTEN = re.compile(
    r"(\d{8}T\d{12}Z)/[^/]+\.[0-9a-f]{8}\.parquet(?:\.[0-9a-f]{8}\.part)?|manifest\.json\.[0-9a-f]{8}\.part"
)


def check_shard(storage: Storage, shard: str, home_id: str) -> Manifest | None:
    """The shard's manifest. Raises ForeignFolder when it is another home's; StorageUnavailable."""
    found = manifest(storage, shard)
    if found and found.home_id not in ("", home_id):
        raise ForeignFolder(
            f"shard {shard} of {shown(storage.url)} is another home's: set another MARKETING_LAKE_URL; if "
            f"that home is gone for good, remove {_SHARDS}/{shard} there"
        )
    return found


def _written(connection: duckdb.DuckDBPyConnection, shard: str, path: Path) -> Iterator[LakeTable]:
    """Each table, which then stands in the file `path`, with the shard as its first column."""
    for relation, columns in sorted(columns_of(connection).items()):
        schema, name = relation.split(".", 1)
        first = "" if "shard" in columns else f"{literal(shard)} as shard, "
        count = _write_parquet(connection, f"select {first}* from {qualified(relation)}", path)
        digest = sha256(path)
        file = f"{relation}.{digest[:8]}.parquet"
        yield LakeTable(schema, name, file, count, path.stat().st_size, digest, columns)


def _write_parquet(connection: duckdb.DuckDBPyConnection, source: str, path: Path, options: str = "") -> int:
    target = f"{literal(str(path))} (format parquet, compression zstd{options})"
    return int(value(connection, f"copy ({source}) to {target}"))


def manifest(storage: Storage, shard: str) -> Manifest | None:
    """None when the shard has none, or one that cannot be read: its next export writes another."""
    try:
        return _decode(storage.read(f"{_SHARDS}/{shard}/{_MANIFEST}"))
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def manifests(storage: Storage) -> dict[str, Manifest | None]:
    shards = storage.folders(_SHARDS)
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        return dict(zip(shards, pool.map(lambda shard: manifest(storage, shard), shards), strict=True))


def missing(storage: Storage, found: Sequence[Manifest]) -> dict[str, set[tuple[str, int]]]:
    """The files of each shard that are not there, or are cut: their names and bytes."""
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        there = pool.map(storage.names, [each.folder for each in found])
        return {
            each.shard: each.files.items() - names.items() for each, names in zip(found, there, strict=True)
        }


def problems(
    found: Mapping[str, Manifest | None], now: dt.datetime, lacking: Mapping[str, set[tuple[str, int]]] = {}
) -> Iterator[str]:
    """What a person should know of the lake, a sentence each. `lacking`: what is `missing`."""
    for shard, each in found.items():
        if each is None:
            yield f"shard {shard} has no manifest that can be read: `marketing-sync publish` there writes one"
            continue
        if files := lacking.get(each.shard):
            yield (
                f"shard {shard}: {len(files):,} files are missing or cut ({min(files)[0]}, …): views leave "
                "the shard out; `marketing-sync publish` there sends anew"
            )
        at = each.published.published_at
        if now - at > LATE:
            yield f"shard {shard} has not been exported since {at:%Y-%m-%d %H:%M} UTC: look at its runs"
    if len(modes := {str(each.published.personal_data) for each in found.values() if each}) > 1:
        yield (
            f"shards differ in what they show of people ({', '.join(sorted(modes))}): set "
            "MARKETING_PERSONAL_DATA alike"
        )


def views(storage: Storage, found: Sequence[Manifest]) -> Iterator[str]:
    """The statements that make the views over all shards, schemas and tables as published, and `fleet`. What
    they need is in the manifests: no file is opened."""
    tables = sorted(
        (
            table.schema,
            table.name,
            tuple(table.columns.items()),
            storage.address(f"{shard.folder}/{table.file}"),
        )
        for shard in found
        for table in shard.tables
    )
    for schema, of_schema in groupby(tables, itemgetter(0)):
        yield f"create schema if not exists {quoted(schema)}"
        for name, of_table in groupby(of_schema, itemgetter(1)):
            scans = "\nunion all by name ".join(starmap(_scan, groupby(of_table, itemgetter(2))))
            yield f"create or replace view {quoted(schema)}.{quoted(name)} as {scans}"
    yield _fleet(found)


def _scan(columns: Sequence[tuple[str, str]], files: Iterable[tuple[Any, ...]]) -> str:
    """Of files with the same columns. DuckDB evaluates what a query wants of `shard` on the names of the
    files, and opens those that are left; 1.5 does where their column has its usual name."""
    kinds = ", ".join(
        f"{literal(name)}: {{name: {literal(name)}, type: {literal(kind)}, default_value: null}}"
        for name, kind in columns
        if name != "shard"
    )
    file = "shard" if "filename" in dict(columns) else "filename"
    return (
        f"select split_part({file}, '/', -3) as shard, * exclude ({file}) from read_parquet("
        f"[{', '.join(literal(address) for *_, address in files)}],\n"
        f"    schema = map {{{kinds}}}, filename = '{file}')"
    )


def _fleet(found: Iterable[Manifest]) -> str:
    shown = msgspec.json.encode([replace(each, tables=[]) for each in found]).decode()
    return query("fleet").replace("{manifests}", literal(shown))


def fleet(found: Iterable[Manifest]) -> list[dict[str, Any]]:
    """The rows of `fleet.accounts`."""
    with private() as connection:
        rows(connection, _fleet(found))
        return records(connection, "from fleet.accounts")


def write_views(path: Path, storage: Storage, found: Sequence[Manifest]) -> None:
    """In one step: who has the file before it open goes on reading. Raises StorageUnavailable."""
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        unfinished = Path(folder, path.name)
        with private(unfinished) as connection, storage.explained(), transaction(connection):
            storage.register(connection)
            for statement in views(storage, found):
                rows(connection, statement)
        unfinished.replace(path)


# ---- a folder of the user's, for other engines: FOLDER/SCHEMA/TABLE/account=…/*.parquet. It is a symbolic
# link to the export that it shows


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
    write_file(home / _KNOWN, "".join(lines).encode())


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: `folder` shows it."""

    folder: Path
    tables: int
    files: int
    bytes: int


def export_parquet(published: Path, folder: Path) -> Export:
    """Write every table of the published file at `published` to `folder`, in place of an earlier export,
    which goes.

    Raises NothingPublished without that file, ForeignFolder when `folder` is a folder or file that this did
    not make."""
    folder = folder.absolute()
    ours = re.compile(
        rf"\.{re.escape(folder.name)}-\d{{8}}T\d{{12}}Z-[0-9a-f]{{8}}(\.link)?"
    )  # exports, and links that a kill left
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not (ours.fullmatch(str(folder.readlink())) if folder.is_symlink() else is_free):
        raise ForeignFolder(
            f"{folder} is not an earlier export: name a folder that does not exist, or an empty one"
        )
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
    for other in folder.parent.iterdir():
        if other != target and ours.fullmatch(other.name):
            remove(other)
    files = [path.stat().st_size for path in target.rglob("*.parquet")]
    return Export(folder, len(tables), len(files), sum(files))


def _copy(connection: duckdb.DuckDBPyConnection, relation: str, target: Path, *, is_parted: bool) -> None:
    """Without an account among the columns, or without rows, it is one file."""
    place = make_folder(target.joinpath(*relation.split(".", 1)))
    source = f"from {qualified(relation)}"
    if is_parted and rows(connection, f"select 1 {source} limit 1"):
        _write_parquet(connection, source, place, ", partition_by (account), filename_pattern 'data_{i}'")
    else:
        _write_parquet(connection, source, place / "data.parquet")


def _show(target: Path, folder: Path) -> None:
    link = folder.with_name(f"{target.name}.link")
    link.symlink_to(target.name)
    if folder.exists() and not folder.is_symlink():
        folder.rmdir()
    link.replace(folder)
    sync(folder.parent)
