"""The lake: the published tables of every shard in one folder of object storage, as Parquet, for queries over all accounts.

    shards/SHARD/manifest.json                              the version that is current; swapped last
    shards/SHARD/VERSION/SCHEMA.TABLE.DIGEST.parquet        never written over

A shard writes below its own name only, so that nothing has to be locked. A version that was superseded stays for `GRACE`, for whoever is
reading it, unless it shows more of people. Not here: what is published (`publish`), the storage (`storage`).
"""

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from marketing_api.clock import utc_now
from warehouse.archive.disk import Workspace, exclusive, make_folder
from warehouse.publish import Published, published_path, read_facts, reading
from warehouse.schema import columns_of
from warehouse.sql import literal, qualified, query, quoted, records, rows, transaction, value
from warehouse.storage import Storage, sha256

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

    @property
    def folder(self) -> str:
        return f"{_SHARDS}/{self.shard}/{self.version}"

    @property
    def files(self) -> dict[str, int]:
        """Their names in the lake, with their bytes."""
        return {f"{self.folder}/{table.file}": table.bytes for table in self.tables}


#: Made once, ahead of the threads that use it: msgspec learning a type in several at once has crashed.
_decode = msgspec.json.Decoder(Manifest).decode


def export(home: Path, storage: Storage, shard: str, now: dt.datetime | None = None, *, keep_earlier: bool = True) -> Manifest:
    """Export what `home` has published; a version that is current already is not sent again, nor a file that got there before a failure.
    `keep_earlier`: versions that were superseded stay for a while.

    Raises NothingPublished and StorageUnavailable.
    """
    now = now or utc_now()
    with (
        exclusive(make_folder(home / "published") / ".lake"),
        closing(Workspace(home / "tmp" / "lake")) as workspace,
        reading(published_path(home), workspace.folder() / "spill") as connection,
    ):
        published = read_facts(connection)
        before, version = manifest(storage, shard), f"{published.published_at:%Y%m%dT%H%M%S%fZ}"
        current = before if before and before.version == version else None
        if current is None:
            known = before.earlier | {before.version: Superseded(now, before.published)} if before and keep_earlier else {}
            earlier = {
                name: each
                for name, each in known.items()
                if now - each.at < GRACE and not each.published.shows_more_than(published.personal_data, published.group_min)
            }
            earlier.pop(version, None)
            current = Manifest(shard, version, published, [], earlier)
            there, path = storage.names(current.folder), workspace.file("table.parquet")
            for table in _written(connection, shard, path):
                if there.get(place := f"{current.folder}/{table.file}") != table.bytes:
                    storage.upload(path, place)
                current.tables.append(table)
            storage.write(f"{_SHARDS}/{shard}/{_MANIFEST}", msgspec.json.encode(current))
        # what an export left that failed goes, too
        kept, own = {current.version, *current.earlier, _MANIFEST}, f"{_SHARDS}/{shard}/"
        storage.delete([name for name in storage.names(own) if name.removeprefix(own).partition("/")[0] not in kept])
    return current


def _written(connection: duckdb.DuckDBPyConnection, shard: str, path: Path) -> Iterator[LakeTable]:
    """Each table, which then stands in the file `path`, with the shard as its first column."""
    for relation, columns in sorted(columns_of(connection).items()):
        first = "" if "shard" in columns else f"{literal(shard)} as shard, "
        source = f"select {first}* from {qualified(relation)}"
        count = value(connection, f"copy ({source}) to {literal(str(path))} (format parquet, compression zstd)")
        digest, (schema, name) = sha256(path), relation.split(".", 1)
        yield LakeTable(schema, name, f"{relation}.{digest[:8]}.parquet", int(count), path.stat().st_size, digest, columns)


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


def problems(found: Mapping[str, Manifest | None], now: dt.datetime, there: Mapping[str, int] | None = None) -> Iterator[str]:
    """What a person should know of the lake, a sentence each; of missing files where those that are `there` are given."""
    for shard, each in found.items():
        if each is None:
            yield f"shard {shard} has no manifest that can be read: `marketing-sync publish` there writes one"
            continue
        if missing := [name for name, size in each.files.items() if there is not None and there.get(name) != size]:
            yield f"shard {shard}: {len(missing):,} files are missing or cut ({missing[0]}, …); `marketing-sync publish` there sends anew"
        if now - each.published.published_at > LATE:
            yield f"shard {shard} has not been exported since {each.published.published_at:%Y-%m-%d %H:%M} UTC: look at its runs"
    if len(modes := {str(each.published.personal_data) for each in found.values() if each}) > 1:
        yield f"shards differ in what they show of people ({', '.join(sorted(modes))}): set MARKETING_PERSONAL_DATA alike"


def views(storage: Storage, found: Iterable[Manifest]) -> Iterator[str]:
    """The statements that make the views over all shards: schemas and tables as published, and `fleet`."""
    files: dict[tuple[str, str], list[str]] = {}
    for shard in found:
        for table in shard.tables:
            files.setdefault((table.schema, table.name), []).append(literal(storage.address(f"{shard.folder}/{table.file}")))
    for schema in sorted({schema for schema, _ in files} | {"fleet"}):
        yield f"create schema if not exists {quoted(schema)}"
    for (schema, name), paths in sorted(files.items()):
        listed = ",\n    ".join(paths)
        yield f"create or replace view {quoted(schema)}.{quoted(name)} as from read_parquet([\n    {listed}\n], union_by_name = true)"
    yield "create or replace view fleet.shards as select shard, * exclude (shard) from sync.published"
    yield query("fleet_accounts")


def fleet(storage: Storage, found: Iterable[Manifest]) -> list[dict[str, Any]]:
    """The rows of `fleet.accounts`. Raises StorageUnavailable."""
    with duckdb.connect() as connection:
        rows(connection, "set timezone = 'UTC'")
        make_views(connection, storage, found)
        with storage.explained():
            return records(connection, "from fleet.accounts")


def make_views(connection: duckdb.DuckDBPyConnection, storage: Storage, found: Iterable[Manifest]) -> None:
    """In that database. Raises StorageUnavailable when a file cannot be read."""
    storage.register(connection)
    with storage.explained(), transaction(connection):
        for statement in views(storage, found):
            rows(connection, statement)


def write_views(path: Path, storage: Storage, found: Iterable[Manifest]) -> None:
    """In one step: who has the file before it open goes on reading."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with closing(duckdb.connect(str(unfinished))) as connection:
            make_views(connection, storage, found)
        unfinished.replace(path)
    finally:
        for suffix in ("", ".wal"):
            Path(f"{unfinished}{suffix}").unlink(missing_ok=True)
