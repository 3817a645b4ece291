"""`marketing-sync lake`, `status --fleet`, and the export behind each publishing."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from tests.fixtures import Command
from tests.pipelines.test_publish_command import empty_warehouse, say_of_models, warehouse
from warehouse.publish import published_path

__all__ = ["empty_warehouse", "warehouse"]  # fixtures


@pytest.fixture
def place(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARKETING_LAKE_URL", str(tmp_path / "lake"))
    return tmp_path / "lake"


@pytest.fixture
def published(warehouse: Path, place: Path, command: Command) -> Path:
    """A lake with one shard; its home."""
    say_of_models(warehouse, "")
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute(
            "insert into sync.coverage by name select 'main' account, 'lists' table_name, 'all' scope, "
            "true is_complete"
        )
    ran = command("publish")
    assert ran.code == 0, ran.text
    return warehouse.parent


def test_without_a_lake_it_is_said_what_to_set(command: Command, home: Path) -> None:
    for words in (("lake",), ("status", "--fleet")):
        ran = command(*words)
        assert (ran.code, ran.out) == (2, "")
        assert "set MARKETING_LAKE_URL" in ran.err


def test_an_empty_lake_is_no_mistake(command: Command, place: Path) -> None:
    ran = command("lake")
    assert (ran.code, ran.err) == (0, "")
    assert "is empty: every whole `marketing-sync sync` exports to it" in ran.out


def test_what_is_published_is_in_the_lake(command: Command, published: Path, tmp_path: Path) -> None:
    ran = command("lake", "--to", str(tmp_path / "all.duckdb"))
    assert (ran.code, ran.err) == (0, "")
    assert "just now" in ran.out
    with duckdb.connect(str(tmp_path / "all.duckdb"), read_only=True) as connection:
        assert connection.execute("select shard, full_name from source.managers").fetchall() == [
            ("main", "Ann Lee")
        ]


def test_the_statements_alone_make_the_same_views(command: Command, published: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(command("lake", "--sql").out)
        assert connection.execute("select full_name from source.managers").fetchall() == [("Ann Lee",)]
        assert connection.execute("select account from fleet.accounts").fetchall() == [("main",)]


def test_a_shard_that_lacks_files_is_left_out_of_the_views_and_said(
    command: Command, published: Path, place: Path, tmp_path: Path
) -> None:
    next(place.glob("shards/main/*/source.managers.*.parquet")).unlink()
    ran = command("lake", "--to", str(tmp_path / "all.duckdb"))
    assert (ran.code, ran.err) == (1, "")
    assert "shard main: 1 files are missing or cut" in ran.out
    assert "views over 0 shards" in ran.out
    ran = command("lake", "--sql")
    assert (ran.code, "read_parquet" in ran.out) == (1, False)
    assert "shard main: 1 files are missing or cut" in ran.err


def test_the_fleet_is_displayed_and_printed_as_a_document(command: Command, published: Path) -> None:
    (account,) = json.loads(command("status", "--fleet", "--json").out)["accounts"]
    assert (account["account"], account["shard"], account["contacts"], account["data_as_of"]) == (
        "main",
        "main",
        0,
        None,
    )
    assert "none" in command("status", "--fleet").out


@pytest.mark.parametrize(("url", "code"), [("gs://bucket/x", 2), ("/proc/none/lake", 2)])
def test_a_lake_that_cannot_be_used_leaves_what_is_published(
    command: Command, warehouse: Path, monkeypatch: pytest.MonkeyPatch, url: str, code: int
) -> None:
    monkeypatch.setenv("MARKETING_LAKE_URL", url)
    say_of_models(warehouse, "")
    ran = command("publish")
    assert ran.code == code
    assert f"published, but not exported to the lake: {url} cannot be used" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert published_path(warehouse.parent).exists()
