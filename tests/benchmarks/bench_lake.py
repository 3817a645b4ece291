"""A lake of 4 shards of 10 accounts with all published tables: seconds to export, and to query one account
and all of them.

python -m tests.benchmarks.bench_lake PUBLISHED.duckdb     # of a home; every account is a copy of its account
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from warehouse import lake
from warehouse.publish import published_path
from warehouse.schema import columns_of
from warehouse.sql import qualified
from warehouse.storage import Storage

_QUERIES = {
    "contacts by account": "select account, count(distinct contact_id) from source.contacts {where} "
    "group by all",
    "events by month": "select account, date_trunc('month', occurred_at), count(*) from "
    "source.timeline_events {where} group by all",
    "fleet.accounts": "from fleet.accounts {where}",
}


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


def measure(what: str, work: Callable[[], object]) -> None:
    began = time.perf_counter()
    work()
    print(f"{what:<50}{time.perf_counter() - began:7.2f} s")


def main(published: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage, file = Storage(f"{folder}/lake"), Path(folder, "all.duckdb")
        for shard in ("NORTH", "EAST", "SOUTH", "WEST"):
            home = Path(folder, shard)
            multiply(published, home, [f"{shard}-{n}" for n in range(10)])
            measure(
                f"export of {shard}, 10 accounts",
                lambda home=home, shard=shard: lake.export(home, storage, shard),
            )  # type: ignore[misc]
        found = [each for each in lake.manifests(storage).values() if each]
        rows, size = (
            sum(getattr(table, what) for each in found for table in each.tables) for what in ("rows", "bytes")
        )
        print(f"{sum(len(each.tables) for each in found)} files, {rows:,} rows, {size / 1e6:,.1f} MB")
        measure("views", lambda: lake.write_views(file, storage, found))
        with duckdb.connect(str(file), read_only=True) as connection:
            for name, sql in _QUERIES.items():
                for which, where in {"one account": "where account = 'SOUTH-7'", "all accounts": ""}.items():
                    query = sql.format(where=where)
                    measure(f"{name}, {which}", lambda query=query: connection.execute(query).fetchall())  # type: ignore[misc]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
