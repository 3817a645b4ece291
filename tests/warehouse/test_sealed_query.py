"""A sealed connection reads one DuckDB file and reaches nothing else."""

from pathlib import Path

import duckdb
import pytest

from warehouse.connection import open_private
from warehouse.sealed_query import QueryLimits, seal_connection


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
    with open_private(path, read_only=True) as connection:
        seal_connection(connection, QueryLimits())
        with pytest.raises(duckdb.Error):
            connection.execute(sql.format(folder=tmp_path))
        assert connection.execute("from numbers").fetchall() == [(1,)]


def test_it_spills_into_the_folder_that_is_named(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "query"
    with open_private(path, read_only=True, spill=folder) as connection:
        seal_connection(connection, QueryLimits(memory_bytes=40_000_000))
        assert connection.execute(
            "select count(*) from (from range(4_000_000) t(n) order by hash(n) limit 3_900_000)"
        ).fetchall()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
