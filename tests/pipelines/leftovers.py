"""Everything in a run's home, opened: compressed and columnar content as well as raw bytes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.archive.file_store import Files
from warehouse.archive.ledger import NAME, Ledger


def contents(home: Path) -> Iterator[tuple[str, bytes]]:
    """(where, what) of every file below `home`, and of everything that is packed in it."""
    paths = sorted(path for path in home.rglob("*") if path.is_file())
    for path, content in [(path, path.read_bytes()) for path in paths]:  # to look into some changes others
        where = str(path.relative_to(home))
        yield where, content
        for inner, unpacked in _unpacked(path):
            yield f"{where}: {inner}", unpacked


def _unpacked(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.suffix == ".parquet":
        rows = (
            duckdb.connect()
            .execute("select rows::varchar from read_parquet(?) as rows", [str(path)])
            .fetchall()
        )
        yield "rows", "\n".join(row for (row,) in rows).encode()
        if "requests" in path.parts:
            bodies = duckdb.connect().execute("select body from read_parquet(?)", [str(path)]).fetchall()
            yield "bodies", b"\n".join(body for (body,) in bodies if body)
    elif path.name == NAME:
        with closing(Ledger(path.parent, Files(path.parent))) as ledger:
            recorded = ledger.find_recorded().values()
            yield "rows", "\n".join(str(entry.row) for entry in recorded).encode()
            yield "bodies", b"\n".join(entry.unpack_body() for entry in recorded)
            yield "loads", repr(list(ledger.list_loads())).encode()
    elif path.suffix == ".zst":
        with pa.input_stream(str(path), compression="zstd") as stream:
            yield "content", stream.read()
    elif path.suffix == ".duckdb":
        yield from _tables(path)


def _tables(path: Path) -> Iterator[tuple[str, bytes]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        for schema, name in connection.execute(
            "select schema_name, table_name from duckdb_tables()"
        ).fetchall():
            rows = connection.execute(f'select t::varchar from "{schema}"."{name}" as t').fetchall()
            yield f"{schema}.{name}", "\n".join(row for (row,) in rows).encode()
