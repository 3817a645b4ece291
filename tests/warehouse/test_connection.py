"""A DuckDB file is open only for as long as it is needed, and who has to wait is told for whom."""

import contextlib
import os
import sqlite3
import stat
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.waiting import HANGS_S
from warehouse.connection import Holder, open_database
from warehouse.errors import NotAWarehouse, NoWarehouse, WarehouseError, WarehouseLocked, WarehouseTooNew
from warehouse.schema import SCHEMA_VERSION, schema_version, stamp_version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A warehouse with one table of numbers."""
    path = tmp_path / "home" / "warehouse.duckdb"
    with open_database(path) as connection:
        stamp_version(connection)
        connection.execute("create schema source; create table source.numbers as select 1 as n")
    return path


@contextlib.contextmanager
def somebody(
    path: Path, folder: Path, read_only: bool = False, name: str = "night-job", words: tuple[str, ...] = ()
) -> Iterator[int]:
    """Another process that has the file open, and lets go when the block ends; its process id."""
    script = folder / name
    script.write_text(
        textwrap.dedent(f"""
        import duckdb, sys
        connection = duckdb.connect({str(path)!r}, read_only={read_only})
        print("open", flush=True)
        sys.stdin.read()
        connection.close()
        """)
    )
    process = subprocess.Popen(
        [sys.executable, str(script), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        assert process.stdout.readline() == "open\n"
        yield process.pid
    process.wait()


def read(path: Path, sql: str, params: Any = None, **given: Any) -> pa.Table:
    """The rows of one query."""
    with open_database(path, read_only=True, **given) as connection:
        return connection.sql(sql, params=params).to_arrow_table()


def is_free(path: Path) -> bool:
    """Whether another process can open it for writing."""
    code = f"import duckdb; duckdb.connect({str(path)!r})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_the_file_is_free_again_afterwards_even_after_an_exception(path: Path) -> None:
    with pytest.raises(duckdb.CatalogException), open_database(path) as connection:
        connection.execute("begin; insert into source.numbers values (2); from source.nothing")
    assert is_free(path)
    assert read(path, "select * from source.numbers").to_pylist() == [{"n": 1}]


def test_a_new_file_is_for_the_owner_only(tmp_path: Path) -> None:
    with open_database(tmp_path / "new" / "warehouse.duckdb"):
        pass
    assert stat.S_IMODE((tmp_path / "new" / "warehouse.duckdb").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_large_queries_spill_inside_the_home(path: Path) -> None:
    with open_database(path, memory_limit="40MB") as connection:
        assert connection.execute("set threads = 1; select current_setting('temp_directory')").fetchall() == [
            (f"{path}.tmp",)
        ]
        connection.execute(
            "create table source.large as select n from range(2_000_000) t(n) order by hash(n)"
        )
    assert read(path, "select count(*) as n from source.large").to_pylist() == [{"n": 2_000_000}]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_nothing_is_downloaded_because_of_a_file(path: Path) -> None:
    assert read(path, "select current_setting('autoinstall_known_extensions') as may").to_pydict() == {
        "may": [False]
    }


def test_read_takes_parameters_and_returns_arrow(path: Path) -> None:
    assert read(path, "select n + ? as sum from source.numbers", [41]).to_pydict() == {"sum": [42]}
    assert read(path, "select n + $more as sum from source.numbers", {"more": 1}).to_pydict() == {"sum": [2]}


def test_reading_cannot_write(path: Path) -> None:
    with pytest.raises(duckdb.InvalidInputException), open_database(path, read_only=True) as connection:
        connection.execute("insert into source.numbers values (2)")


def test_an_unshared_connection_waits_until_the_process_has_the_file_closed(path: Path) -> None:
    with open_database(path, is_unshared=True), pytest.raises(WarehouseLocked, match="this program"):
        read(path, "select 1", deadline_s=0)
    with (
        open_database(path),
        pytest.raises(WarehouseLocked),
        open_database(path, is_unshared=True, deadline_s=0),
    ):
        pass
    with open_database(path, is_unshared=True) as connection, pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("insert into source.numbers values (2)")
    assert is_free(path)


# -- other processes


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.slow
def test_who_holds_the_file_is_named(
    path: Path, tmp_path: Path, read_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warehouse.connection._WORTH_REPORTING_S", 0)
    told: list[Holder] = []
    with somebody(path, tmp_path) as pid:
        began = time.monotonic()
        with (
            pytest.raises(WarehouseLocked) as refusal,
            open_database(path, deadline_s=0.5, read_only=read_only, on_wait=told.append),
        ):
            pass
        assert time.monotonic() - began >= 0.5
    assert refusal.value.holder == Holder(pid, "night-job")
    assert told in ([], [Holder(pid, "night-job")]), "one look may take all of the time"
    assert f"in use by night-job (process {pid}); waited 0.5 s" in str(refusal.value)


def test_the_holders_arguments_are_not_shown_they_may_be_secret(path: Path, tmp_path: Path) -> None:
    words = ("call", "register/createaccount", "password=hunter2")
    with (
        somebody(path, tmp_path, name="marketing-sync", words=words) as pid,
        pytest.raises(WarehouseLocked) as refusal,
    ):
        read(path, "select 1", deadline_s=0)
    assert str(refusal.value.holder) == f"marketing-sync call (process {pid})"
    assert "hunter2" not in str(refusal.value)


def test_a_writer_waits_until_the_holder_lets_go(path: Path, tmp_path: Path) -> None:
    waiting = threading.Event()

    def insert() -> None:
        with open_database(path, deadline_s=HANGS_S, on_wait=lambda holder: waiting.set()) as connection:
            connection.execute("insert into source.numbers values (2)")

    writer = threading.Thread(target=insert)
    with somebody(path, tmp_path):
        writer.start()
        assert waiting.wait(HANGS_S)
    writer.join()
    assert read(path, "select sum(n) as sum from source.numbers").to_pydict() == {"sum": [3]}


def test_readers_of_several_processes_do_not_wait_but_writers_wait_for_them(
    path: Path, tmp_path: Path
) -> None:
    with somebody(path, tmp_path, read_only=True) as pid:
        assert read(path, "select n from source.numbers", deadline_s=0).num_rows == 1
        with pytest.raises(WarehouseLocked) as refusal, open_database(path, deadline_s=0):
            pass
        assert refusal.value.holder.pid == pid


# -- threads of this process


def test_writers_take_turns(path: Path) -> None:
    """Each reads and then writes: without turns increments are lost or transactions conflict."""

    def increment() -> None:
        for _ in range(5):
            with open_database(path, deadline_s=HANGS_S) as connection:
                connection.execute("begin; update source.numbers set n = n + 1; commit")

    threads = [threading.Thread(target=increment) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(path, "select n from source.numbers").to_pydict() == {"n": [21]}


def test_a_second_writing_thread_is_told_that_it_waits_for_the_first(path: Path) -> None:
    refusals: list[WarehouseLocked] = []

    def insert() -> None:
        try:
            with open_database(path, deadline_s=0.2):
                pass
        except WarehouseLocked as refusal:
            refusals.append(refusal)

    with open_database(path):
        thread = threading.Thread(target=insert)
        thread.start()
        thread.join()
    assert refusals[0].holder == Holder(os.getpid(), "this program, MainThread")


def test_readers_join_a_writer_of_the_same_process_and_see_what_is_committed(path: Path) -> None:
    with open_database(path, memory_limit="200MB") as connection:
        connection.execute("begin; insert into source.numbers values (2)")
        assert read(path, "select count(*) as n from source.numbers", deadline_s=0).to_pydict() == {"n": [1]}
        connection.execute("commit")
        assert read(path, "select count(*) as n from source.numbers", deadline_s=0).to_pydict() == {"n": [2]}
    assert is_free(path)


def test_the_same_thread_may_write_inside_of_writing(path: Path) -> None:
    with open_database(path) as outer:
        with open_database(path, deadline_s=0) as inner:
            inner.execute("insert into source.numbers values (2)")
        outer.execute("insert into source.numbers values (3)")
    assert read(path, "select sum(n) as n from source.numbers").to_pydict() == {"n": [6]}


def test_a_writer_waits_for_readers_of_the_same_process(path: Path) -> None:
    reading, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with open_database(path, read_only=True):
            reading.set()
            may_end.wait(HANGS_S)

    reader = threading.Thread(target=hold)
    reader.start()
    assert reading.wait(HANGS_S)
    with open_database(path, deadline_s=HANGS_S, on_wait=lambda holder: may_end.set()) as connection:
        connection.execute("insert into source.numbers values (2)")
    reader.join()


def test_readers_that_relieve_one_another_do_not_keep_a_writer_out(path: Path) -> None:
    done, looking = threading.Event(), threading.Semaphore(0)

    def look() -> None:
        while not done.is_set():
            with (
                open_database(path, read_only=True),
                open_database(path, read_only=True, deadline_s=HANGS_S) as nested,
            ):
                nested.execute("select 1")
                looking.release()
                time.sleep(0.01)

    readers = [threading.Thread(target=look) for _ in range(6)]
    for reader in readers:
        reader.start()
    for _ in range(2 * len(readers)):
        assert looking.acquire(timeout=HANGS_S)
    try:
        with open_database(path, deadline_s=HANGS_S) as connection:
            connection.execute("insert into source.numbers values (2)")
    finally:
        done.set()
        for reader in readers:
            reader.join()


# -- files that are not for us


def with_storage_version(path: Path, version: int) -> None:
    """Change the file's main header (and its checksum) to what a newer DuckDB would write."""
    content = bytearray(path.read_bytes())
    content[12:20] = struct.pack("<Q", version)
    checksum = 5381
    for (word,) in struct.iter_unpack("<Q", bytes(content[8:4096])):
        checksum ^= word * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    content[:8] = struct.pack("<Q", checksum)
    path.write_bytes(content)


def test_a_file_of_a_newer_duckdb_is_refused(path: Path) -> None:
    with_storage_version(path, 1_000)
    with pytest.raises(WarehouseTooNew, match="by a newer DuckDB than"), open_database(path):
        pass


def test_a_file_of_a_newer_schema_is_refused_and_closed_again(path: Path) -> None:
    with open_database(path) as connection:
        assert schema_version(connection) == SCHEMA_VERSION
        stamp_version(connection, SCHEMA_VERSION + 1)
    with pytest.raises(WarehouseTooNew, match=f"schema version {SCHEMA_VERSION + 1}"), open_database(path):
        pass
    assert is_free(path)


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "header", "sqlite"])
def test_a_damaged_or_foreign_file_is_refused_and_left_as_it_is(path: Path, damage: str) -> None:
    whole = path.read_bytes()
    damaged = {
        "garbage": b"no database" * 1_000,
        "empty": b"",
        "cut": whole[:9_000],
        "header": whole[:20] + b"xxxx" + whole[24:],
    }
    path.write_bytes(damaged.get(damage, b""))
    if damage == "sqlite":
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("create table a (b)")
    before = path.read_bytes()
    with pytest.raises(NotAWarehouse, match="is damaged: restore the last backup"), open_database(path):
        pass
    assert path.read_bytes() == before


def test_a_duckdb_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with contextlib.closing(duckdb.connect(str(tmp_path / "theirs.duckdb"))) as connection:
        connection.execute("create table orders (id integer)")
    with (
        pytest.raises(NotAWarehouse, match="something else in main"),
        open_database(tmp_path / "theirs.duckdb"),
    ):
        pass


def test_reading_a_file_that_is_not_there_creates_none(tmp_path: Path) -> None:
    with pytest.raises(NoWarehouse, match="nothing has been synced"):
        read(tmp_path / "warehouse.duckdb", "select 1")
    assert list(tmp_path.iterdir()) == []


def test_another_trouble_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "warehouse.duckdb").mkdir()
    with pytest.raises(WarehouseError, match="directory"), open_database(tmp_path / "warehouse.duckdb"):
        pass
