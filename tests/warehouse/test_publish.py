"""The published file: its content, that it is whole or absent, that nobody waits, and going back."""

import datetime as dt
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.waiting import HANGS_S
from warehouse.connection import open_database
from warehouse.errors import NotPublished, NoWarehouse, PublishedLocked
from warehouse.masking import INTERNAL_TABLES, Masking, internal_columns
from warehouse.policies import PersonalData
from warehouse.publish import (
    publish_copy,
    published_path,
    read_published_facts,
)
from warehouse.tables import SYNC_TABLES, TABLES


@contextmanager
def opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("set timezone = 'UTC'")
        yield connection


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with opened(path) as connection:
        return connection.execute(sql).fetchall()


def change(home: Path, name: str) -> None:
    with open_database(home / "warehouse.duckdb") as connection:
        connection.execute("update source.lists set name = ?", [name])


def name_in(path: Path) -> str:
    return str(ask(path, "select name from source.lists")[0][0])


def test_all_that_analysts_may_see_is_published_with_its_comments(filled: Path) -> None:
    published = publish_copy(filled)
    path = published_path(filled)
    names = {
        f"{schema}.{name}"
        for schema, name in ask(path, "select schema_name, table_name from duckdb_tables()")
    }
    expected = {table.qualified for table in (*TABLES.values(), *SYNC_TABLES)} - INTERNAL_TABLES
    of_the_copy = {"sync.published", "sync.questions", "sync.custom_tables"}
    assert names == expected | of_the_copy | {"marts.sizes", "marts.sizes_again"}
    assert ask(path, "select contact_count from marts.sizes_again") == [(3,)]
    comments = dict(
        ask(path, "select column_name, comment from duckdb_columns() where table_name = 'contacts'")
    )
    assert comments == {column.name: column.comment for column in TABLES["contacts"].columns}
    assert ask(path, "select comment from duckdb_tables() where table_name = 'sizes'") == [
        ("One row per list; it's small.",)
    ]
    assert ask(
        path, "select count(*) from duckdb_tables() where comment is null and table_name <> 'sizes_again'"
    ) == [(0,)]
    ((question_count,),) = ask(path, "select count(*) from sync.questions")
    assert question_count > 50
    assert (published.table_count, published.row_count) == (
        len(names) - 1,
        1 + 3 + 1 + 1 + 1 + question_count,
    )
    assert published.data_as_of == dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)


def test_rows_and_types_are_those_of_the_warehouse(filled: Path) -> None:
    publish_copy(filled)
    sql = "from source.contacts order by all"
    assert ask(published_path(filled), sql) == ask(filled / "warehouse.duckdb", sql)
    types = (
        "select table_name, column_name, data_type from duckdb_columns() where schema_name = "
        "'source' and "
        "column_name <> '_listing_hash'"
    )
    assert sorted(ask(published_path(filled), types)) == sorted(ask(filled / "warehouse.duckdb", types))


def test_what_only_loading_needs_is_not_published(filled: Path) -> None:
    publish_copy(filled)
    found = ask(
        published_path(filled), "select schema_name || '.' || table_name, column_name from duckdb_columns()"
    )
    assert {"sync.meta", "sync.archive_files"} <= INTERNAL_TABLES
    declared = {
        ("sync.requests", "question_key"),
        ("source.lists", "_listing_hash"),
    }
    assert declared <= set(internal_columns())
    assert not set(internal_columns()) & set(found)
    assert ("marts.sizes", "_stamp") in found  # a name says nothing


def test_the_file_is_of_a_version_that_duckdb_1_5_reads(filled: Path) -> None:
    publish_copy(filled)
    assert ask(
        published_path(filled), "select tags['storage_version'] from duckdb_databases() where not internal"
    ) == [("v1.5.0+",)]


def test_what_looks_at_the_clock_goes_on_ageing_whatever_the_file_is_called(
    filled: Path, tmp_path: Path
) -> None:
    with open_database(filled / "warehouse.duckdb") as connection:
        connection.execute(
            "create table marts.data_coverage as select account, as_of, 'ann@example.com' as email from "
            "sync.coverage"
        )
        connection.execute(
            "create view marts.ages as select account, as_of, email, epoch(now()) - epoch(as_of) as age_s "
            "from marts.data_coverage"
        )
        connection.execute("comment on view marts.ages is 'Ages by the clock.'")
        connection.execute("comment on column marts.ages.age_s is 'Seconds.'")
    published = publish_copy(filled, Masking(PersonalData.DROP))
    copy = tmp_path / "elsewhere.duckdb"
    copy.write_bytes(published_path(filled).read_bytes())
    first, email = ask(copy, "select age_s, email from marts.ages")[0]
    time.sleep(0.05)
    assert first + 0.05 <= ask(copy, "select age_s from marts.ages")[0][0]
    assert email is None, "it shows what is published, not what the warehouse holds"
    assert ask(copy, "select comment from duckdb_views() where view_name = 'ages'") == [
        ("Ages by the clock.",)
    ]
    assert ask(
        copy, "select comment from duckdb_columns() where table_name = 'ages' and column_name = 'age_s'"
    ) == [("Seconds.",)]
    assert (
        published.table_count
        == ask(
            copy, "select count(distinct (schema_name, table_name)) from duckdb_columns() where not internal"
        )[0][0]
        - 1
    )
    with duckdb.connect() as connection:
        connection.execute(f"attach '{copy}' as other (read_only)")
        assert connection.execute("select count(*) from other.marts.ages").fetchall() == [(1,)]


@pytest.mark.slow
def test_the_file_is_its_owners_alone_and_nothing_else_is_left(filled: Path) -> None:
    publish_copy(filled)
    publish_copy(filled)
    folder = published_path(filled).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*.duckdb")} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == [
        ".turn",
        "marketing.duckdb",
    ]
    assert [path for path in (filled / "tmp").rglob("*") if path.is_file()] == []


def test_a_doubt_publishes_nothing_and_says_what_stays(filled: Path) -> None:
    with pytest.raises(NotPublished, match=r"^nothing was published: keys occur twice$"):
        publish_copy(filled, check=lambda _: ["keys occur twice"])
    assert not published_path(filled).exists()
    publish_copy(filled)
    change(filled, "Bad news")
    with pytest.raises(NotPublished, match=r"^nothing was published: a; b$"):
        publish_copy(
            filled,
            check=lambda connection: [
                row[0] for row in connection.execute("from (values ('a'), ('b'))").fetchall()
            ],
        )
    assert name_in(published_path(filled)) == "News"


def test_nothing_is_published_of_a_home_without_a_warehouse(tmp_path: Path) -> None:
    with pytest.raises(NoWarehouse):
        publish_copy(tmp_path)
    assert not published_path(tmp_path).exists()


def test_a_failure_while_writing_leaves_the_old_file_and_no_debris(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_copy(filled)
    change(filled, "Newer")
    monkeypatch.setattr(
        "warehouse.publish.utc_now", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space left"):
        publish_copy(filled)
    assert name_in(published_path(filled)) == "News"
    assert sorted(path.name for path in published_path(filled).parent.iterdir()) == [
        ".turn",
        "marketing.duckdb",
    ]


@pytest.mark.slow
def test_an_open_reader_keeps_what_it_has_and_the_next_one_sees_the_new_file(filled: Path) -> None:
    publish_copy(filled)
    path = published_path(filled)
    command = [sys.executable, "-c", _READER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "News\n"
        for name in ("One", "Two", "Three"):
            change(filled, name)
            publish_copy(filled)
        print(file=reader.stdin, flush=True)
        assert reader.stdout.readline() == "News\n"
    assert reader.returncode == 0
    assert name_in(path) == "Three"


_READER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1], read_only=True)
print(connection.execute("select name from source.lists").fetchall()[0][0], flush=True)
sys.stdin.readline()
print(connection.execute("select name from source.lists").fetchall()[0][0], flush=True)
"""


@pytest.mark.slow
def test_who_opens_it_for_writing_keeps_nobody_from_publishing(filled: Path) -> None:
    publish_copy(filled)
    path = published_path(filled)
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(PublishedLocked, match="open it read-only there"):
            read_published_facts(path)
        change(filled, "Next")
        publish_copy(filled)
        assert name_in(path) == "Next"
        assert writer.stdin is not None
        writer.stdin.close()


_WRITER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


def test_the_warehouse_is_not_held_while_the_copy_is_written(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(connection: duckdb.DuckDBPyConnection) -> list[str]:
        change(filled, "Written meanwhile")
        return []

    publish_copy(filled, check=look)
    assert name_in(published_path(filled)) == "News"
    assert name_in(filled / "warehouse.duckdb") == "Written meanwhile"


def test_publishing_waits_for_a_load_and_takes_what_it_committed(filled: Path) -> None:
    is_open, done = threading.Event(), []

    def load() -> None:
        with open_database(filled / "warehouse.duckdb") as connection:
            connection.execute("update source.lists set name = 'Loaded'")  # in the log beside the file
            is_open.set()
            time.sleep(0.3)
            done.append(True)

    thread = threading.Thread(target=load)
    thread.start()
    assert is_open.wait(HANGS_S)
    publish_copy(filled)
    assert done
    thread.join()
    assert name_in(published_path(filled)) == "Loaded"
