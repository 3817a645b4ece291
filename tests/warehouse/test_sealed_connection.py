"""A sealed connection reads one DuckDB file and reaches nothing else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from warehouse.sealed_connection import open_sealed
from warehouse.sealed_query import SealedQuery


def query_of(database: Path, folder: Path, memory_bytes: int = 100_000_000) -> SealedQuery:
    return SealedQuery(
        database=str(database), sql="select 1", result=str(folder / "result"), memory_bytes=memory_bytes
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "numbers.duckdb"
    path.parent.mkdir()
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table numbers as select 1 as n")
    return path


@pytest.mark.parametrize(
    "sql",
    [
        "from read_csv('{folder}/night-job')",
        "from '{folder}/x.csv'",
        "copy numbers to '{folder}/x.csv'",
        "attach '{folder}/x'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "load httpfs",
        "insert into numbers values (2)",
        "from names",
    ],
)
def test_it_reaches_nothing_but_the_file(path: Path, tmp_path: Path, sql: str) -> None:
    names = [1]
    assert names
    with open_sealed(query_of(path, path.parent)) as connection:
        with pytest.raises(duckdb.Error):
            connection.execute(sql.format(folder=tmp_path))
        assert connection.execute("from numbers").fetchall() == [(1,)]


def test_it_spills_into_the_folder_of_the_result(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "query"
    folder.mkdir()
    with open_sealed(query_of(path, folder, memory_bytes=40_000_000)) as connection:
        connection.execute("select current_setting('temp_directory')")
        assert connection.fetchone() == (str(folder),)
        assert connection.execute(
            "select count(*) from (from range(4_000_000) t(n) order by hash(n) limit 3_900_000)"
        ).fetchall()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
