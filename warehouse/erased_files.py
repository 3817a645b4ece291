"""Takes people who asked to be forgotten out of files that no table of ours describes, by their kind, and searches any file for them.

A file of SQLite is written anew by SQLite. Of others the bytes are masked where they stand, so that whoever writes to them goes on; what
is compressed and read by nobody else is removed. Not here: DuckDB files (`erasure`), the archive (`archive.rewriting`).
"""

import contextlib
import mmap
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.connection import MEMORY_LIMIT
from warehouse.erasure import ROWS_AT_ONCE, Erasing, fitting
from warehouse.sql import literal, quoted, rows

_KINDS = {"sqlite": (0, b"SQLite format 3\0"), "duckdb": (8, b"DUCK"), "parquet": (0, b"PAR1"), "zstd": (0, b"\x28\xb5\x2f\xfd")}
_BUSY_S = 60


def kind_of(path: Path) -> str:
    """sqlite, duckdb, parquet, zstd; empty for anything else."""
    with path.open("rb") as file:
        head = file.read(16)
    return next((kind for kind, (place, mark) in _KINDS.items() if head[place:].startswith(mark)), "")


def mask(path: Path, erasing: Erasing, *, apply: bool) -> int:
    """How often the file has something of theirs; with `apply` there are asterisks now, as many bytes."""
    if not path.stat().st_size:
        return 0
    with (
        path.open("r+b" if apply else "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if apply else mmap.ACCESS_READ) as data,
    ):
        spans = list(erasing.found(data))
        for begin, end in spans if apply else ():
            data[begin:end] = b"*" * (end - begin)
        if spans and apply:
            data.flush()
    return len(spans)


def forget_in_sqlite(path: Path, clean: Callable[[str], str], *, apply: bool) -> int:
    """How many values `clean` changes in the database; with `apply` it holds none of them any more, nor does a free page."""
    with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
        connection.create_function("clean", 1, lambda text: clean(text) if isinstance(text, str) else text, deterministic=True)
        begin_erasing(connection)
        count = 0
        for table, column in _columns(connection):
            named = f"{quoted(table)} where typeof({quoted(column)}) = 'text' and clean({quoted(column)}) <> {quoted(column)}"
            found = connection.execute(f"select count(*) from {named}").fetchone()[0]
            if found and apply:
                connection.execute(
                    f"update or replace {named.replace(' where', f' set {quoted(column)} = clean({quoted(column)}) where', 1)}"
                )
            count += found
        if apply:
            finish_erasing(connection)
    return count


def begin_erasing(connection: sqlite3.Connection) -> None:
    """What is changed from now on leaves no bytes behind."""
    connection.execute("pragma secure_delete = on")


def finish_erasing(connection: sqlite3.Connection) -> None:
    """Write the file anew; its log is empty then."""
    connection.execute("vacuum")
    connection.execute("pragma wal_checkpoint(truncate)")


def _columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    sql = "select t.name, c.name from pragma_table_list as t, pragma_table_info(t.name) as c where t.type = 'table' and t.schema = 'main'"
    return [(table, column) for table, column in connection.execute(sql).fetchall() if not table.startswith("sqlite_")]


def hits(path: Path, erasing: Erasing) -> int:
    """How often something of theirs stands in the file, also where it is compressed. A file that cannot be read is searched as it is."""
    try:
        match kind_of(path):
            case "parquet":
                batches = pq.ParquetFile(path).iter_batches(ROWS_AT_ONCE)
                return sum(_count(column, erasing) for batch in batches for column in batch.columns)
            case "duckdb":
                return sum(_count(column, erasing) for column in _columns_of_duckdb(path))
            case "zstd":
                return len(list(erasing.found(pa.input_stream(str(path), compression="zstd").read())))
    except (duckdb.Error, pa.ArrowException, OSError):
        pass
    return mask(path, erasing, apply=False)


def _count(column: pa.Array, erasing: Erasing) -> int:
    """In a text that stands in many rows it counts once."""
    if pa.types.is_list(column.type):
        column = column.flatten()
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return 0
    return sum(1 for text in fitting(column, erasing.patterns) for _ in erasing.found(text))


def _columns_of_duckdb(path: Path) -> Iterator[pa.Array]:
    """The columns that may hold text, as text, in parts."""
    with duckdb.connect(config={"memory_limit": MEMORY_LIMIT}) as connection:
        rows(connection, f"attach {literal(str(path))} as searched (read_only)")
        sql = (
            "select schema_name, table_name, column_name from duckdb_columns() semi join duckdb_tables() using (table_oid) "
            "where database_name = 'searched' and not regexp_matches(data_type, '^(BOOLEAN|.*INT|DOUBLE|DATE|TIME.*|DECIMAL.*)$')"
        )
        for schema, name, column in rows(connection, sql):
            text = f"select {quoted(column)}::varchar as text from searched.{quoted(schema)}.{quoted(name)}"
            for batch in connection.sql(text).to_arrow_reader(ROWS_AT_ONCE):
                yield batch.column(0)
