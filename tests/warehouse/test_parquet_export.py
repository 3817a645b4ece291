"""The Parquet export: the published rows, in partitions, swapped in as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse.connection import connect
from warehouse.errors import ForeignFolder, NothingPublished
from warehouse.lake import export_parquet
from warehouse.publish import publish, published_path


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, empty_tables: Path) -> Path:
    """A published file with two accounts and two months."""
    home = tmp_path_factory.mktemp("home")
    (home / "warehouse.duckdb").write_bytes(empty_tables.read_bytes())
    with connect(home / "warehouse.duckdb") as connection:
        connection.execute(
            "insert into source.timeline_events by name select a as account, n contact_id, 'k' || "
            "n event_key, "
            "timestamptz '2026-01-30 00:00+00' + interval (n) day occurred_at from (values ('main'), "
            "('har/bor')) as v(a), range(4) as t(n)"
        )
        connection.execute(
            "insert into source.timeline_events by name select 'main' account, 9 contact_id, "
            "'undated' event_key"
        )
    publish(home)
    return published_path(home)


def rows(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        return connection.execute(sql).fetchall()


def test_rows_come_back_with_the_account_as_partition(published: Path, tmp_path: Path) -> None:
    export = export_parquet(published, tmp_path / "out")
    events = tmp_path / "out" / "source" / "timeline_events"
    found = rows(
        f"select account, count(*) from read_parquet('{events}/*/*.parquet', hive_partitioning = true) "
        "group by all order by all"
    )
    assert found == [("har/bor", 4), ("main", 5)]
    with duckdb.connect(str(published), read_only=True) as connection:
        assert (export.tables,) == connection.execute("select count(*) from duckdb_tables()").fetchall()[0]
    assert export.files == len(list((tmp_path / "out").rglob("*.parquet")))


def test_an_empty_table_and_one_without_account_are_a_file_each(published: Path, tmp_path: Path) -> None:
    export_parquet(published, tmp_path / "out")
    assert rows(f"select count(*) from '{tmp_path}/out/source/contacts/*.parquet'") == [(0,)]
    assert rows(f"select personal_data from '{tmp_path}/out/sync/published/*.parquet'") == [("keep",)]


def test_a_rerun_replaces(published: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    other = tmp_path / "out-again"
    export_parquet(published, other)
    seen = [folder.resolve() for _ in range(3) if export_parquet(published, folder)]
    assert [path.exists() for path in seen] == [False, False, True]
    assert {path.name for path in tmp_path.iterdir()} == {
        folder.name,
        other.name,
        seen[2].name,
        other.resolve().name,
    }


def test_a_failure_leaves_the_old_export(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_parquet(published, tmp_path / "out")
    before = (tmp_path / "out").resolve()
    monkeypatch.setattr("warehouse.lake._show", lambda *_: (_ for _ in ()).throw(OSError("gone")))
    with pytest.raises(OSError, match="gone"):
        export_parquet(published, tmp_path / "out")
    assert (tmp_path / "out").resolve() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([before.name, "out"])


def test_what_a_killed_export_left_goes_with_the_next(published: Path, tmp_path: Path) -> None:
    left = tmp_path / ".out-20261122T104100117583Z-0123abcd"
    (left / "source").mkdir(parents=True)
    left.with_name(f"{left.name}.link").symlink_to(left.name)
    export_parquet(published, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out", (tmp_path / "out").resolve().name}


def test_a_folder_of_somebody_elses_is_left_alone(published: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    export_parquet(published, tmp_path / "empty")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    (tmp_path / "link").symlink_to("mine")
    for name in ("mine", "link"):
        with pytest.raises(ForeignFolder, match="is not an earlier export"):
            export_parquet(published, tmp_path / name)
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_there_is_nothing_to_export_before_something_is_published(tmp_path: Path) -> None:
    with pytest.raises(NothingPublished, match="a whole `marketing-sync sync` publishes it"):
        export_parquet(tmp_path / "marketing.duckdb", tmp_path / "out")


def test_what_is_beside_an_export_and_only_called_alike_stays(published: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    theirs = [
        tmp_path / name
        for name in (
            ".out-20260101T1Z-mine",
            ".out-20260101T000000000000Z-notes",
            ".out-20260101T000000000000Z-1a2b3c4d.txt",
        )
    ]
    for path in theirs:
        path.mkdir()
    export_parquet(published, folder)
    export_parquet(published, folder)
    assert all(path.exists() for path in theirs)
