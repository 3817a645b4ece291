"""A lake of many shards with all published tables: seconds and opened files of an export, of writing the views,
and of queries. One shard of 4 accounts is exported, the others are copies of it under names of their own.

python -m tests.benchmarks.bench_lake PUBLISHED.duckdb [3 30 300]     # of a home with one account; shards
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import msgspec
from fsspec.implementations.local import LocalFileSystem

from warehouse import lake
from warehouse.publish import published_path
from warehouse.schema import columns_of
from warehouse.sql import qualified
from warehouse.storage import Storage

_ACCOUNTS = 4
_QUERIES = {
    "one account, with its shard": "select count(distinct email) from source.contacts where account = 'S1-0' "
    "and shard in fleet.shards_of('S1-0')",
    "one account": "select count(distinct email) from source.contacts where account = 'S1-0'",
    "all accounts": "select count(*) from source.contacts",
    "fleet.accounts": "from fleet.accounts",
}


class CountedFiles(LocalFileSystem):
    """A folder as if it were object storage: DuckDB reads it through this alone."""

    protocol = ("counted",)
    local_file = False
    opened: set[str] = set()  # noqa: RUF012 - of all instances

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(LocalFileSystem._strip_protocol(path.removeprefix("counted:/")))

    def open(self, path: str, *args: Any, **options: Any) -> Any:
        self.opened.add(path)
        return super().open(path, *args, **options)


class CountedStorage(Storage):
    def address(self, name: str) -> str:
        return f"counted:/{super().address(name)}"

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.register_filesystem(CountedFiles())


def multiply(published: Path, home: Path, accounts: list[str]) -> None:
    """A published file in `home` in which each of the accounts has the rows of the only one of
    `published`."""
    target = published_path(home)
    target.parent.mkdir(parents=True)
    shutil.copy(published, target)
    with duckdb.connect(str(target)) as connection:
        views = {
            name
            for (name,) in connection.execute(
                "select view_name from duckdb_views() where not internal"
            ).fetchall()
        }
        for relation, columns in columns_of(connection).items():
            if "account" in columns and relation.partition(".")[2] not in views:
                table = qualified(relation)
                for account in accounts[1:]:
                    connection.execute(
                        f"insert into {table} select * replace (? as account) from {table} where "
                        "account = 'main'",
                        [account],
                    )
                connection.execute(f"update {table} set account = ? where account = 'main'", [accounts[0]])


def copy_shard(storage: Storage, original: lake.Manifest, shard: str) -> None:
    """Its files are further names of the original's; its accounts are called after it."""
    accounts = [{**account, "account": f"{shard}-{n}"} for n, account in enumerate(original.accounts)]
    copy = msgspec.structs.replace(original, shard=shard, accounts=accounts)
    for name, other in zip(original.files, copy.files, strict=True):
        target = Path(storage.url, other)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(Path(storage.url, name))
    storage.write(f"shards/{shard}/manifest.json", msgspec.json.encode(copy))


def measure(what: str, work: Callable[[], Any]) -> Any:
    CountedFiles.opened.clear()
    began = time.perf_counter()
    result = work()
    print(f"{what:<50}{time.perf_counter() - began:7.2f} s, {len(CountedFiles.opened):,} files opened")
    return result


def main(published: Path, sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage, home, file = (
            CountedStorage(f"{folder}/lake"),
            Path(folder, "home"),
            Path(folder, "all.duckdb"),
        )
        multiply(published, home, [f"S0-{n}" for n in range(_ACCOUNTS)])
        original = measure("export", lambda: lake.export(home, storage, "S0"))
        size = sum(original.files.values())
        print(
            f"{len(original.tables)} tables, {sum(each.rows for each in original.tables):,} rows, {size / 1e6:,.1f} MB"
        )
        for n in range(1, max(sizes)):
            copy_shard(storage, original, f"S{n}")
            if n + 1 in sizes:
                compare(n + 1, storage, file)


def compare(shards: int, storage: Storage, file: Path) -> None:
    print(f"\n{shards} shards")
    found = [each for each in measure("manifests", lambda: lake.manifests(storage)).values() if each]
    measure("missing files", lambda: lake.missing(storage, found))
    measure("views", lambda: lake.write_views(file, storage, found))
    for what, sql in _QUERIES.items():
        with opened(storage, file) as connection:
            measure(what, lambda connection=connection, sql=sql: connection.execute(sql).fetchall())  # type: ignore[misc]


@contextmanager
def opened(storage: Storage, file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(file), read_only=True) as connection:
        storage.register(connection)
        yield connection


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]] or [3, 30, 300])
