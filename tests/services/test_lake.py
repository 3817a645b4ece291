"""The lake in object storage: the same as in a folder, and DuckDB reads it where it stands."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb

from tests.warehouse.test_lake import NOW, all_of, exported, folders, publish
from warehouse import lake
from warehouse.storage import Storage


def test_shards_are_queried_where_they_stand_and_old_versions_go(bucket: str, tmp_path: Path) -> None:
    storage = Storage(bucket)
    for n, moment in enumerate((NOW, NOW + dt.timedelta(hours=1), NOW + 2 * lake.GRACE)):
        for shard in ("NORTH", "SOUTH"):
            current = lake.export(publish(tmp_path / shard, moment, contacts=n + 2), storage, shard, moment)
    assert len(folders(storage, "NORTH")) == 2
    assert current.version in folders(storage, "SOUTH")
    assert all_of(storage, "select shard, count(*) from source.contacts group by all order by all") == [
        ("NORTH", 4),
        ("SOUTH", 4),
    ]
    assert [row["account"] for row in lake.fleet(exported(storage))] == ["a", "a"]


def test_a_file_of_views_names_addresses_of_the_object_storage(bucket: str, tmp_path: Path) -> None:
    storage, file = Storage(bucket), tmp_path / "all.duckdb"
    lake.export(publish(tmp_path / "home"), storage, "NORTH", NOW)
    lake.write_views(file, storage, exported(storage))
    with duckdb.connect(str(file), read_only=True) as connection:
        ((sql,),) = connection.execute(
            "select sql from duckdb_views() where schema_name = 'source' and view_name = 'contacts'"
        ).fetchall()
        assert f"{bucket}/shards/NORTH/" in sql
        storage.register(connection)
        assert connection.execute("select count(*) from source.contacts").fetchall() == [(3,)]
