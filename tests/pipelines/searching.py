"""Searches every byte of every file, also of what is compressed, without the program's own search."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


def found_in(folder: Path, tokens: Iterable[str]) -> list[tuple[str, str]]:
    """(file, token) of each token in any spelling: as it is, in JSON, in a link."""
    spelled = {text.lower().encode(): token for token in tokens for text in (token, json.dumps(token)[1:-1], token.replace("@", "%40"))}
    found = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            for data in map(bytes.lower, _bytes_of(path)):
                found |= {(str(path.relative_to(folder)), token) for text, token in spelled.items() if text in data}
    return sorted(found)


def _bytes_of(path: Path) -> Iterator[bytes]:
    raw = path.read_bytes()
    yield raw
    if raw.startswith(b"PAR1"):
        columns = pq.read_table(path).columns
        yield b"\n".join(_encoded(value) for column in columns for value in column.to_pylist() if value is not None)
    elif raw.startswith(b"\x28\xb5\x2f\xfd"):
        yield pa.input_stream(str(path), compression="zstd").read()
    elif raw.startswith(b"SQLite format 3\0"):
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path)) as connection:
            yield "\n".join(connection.iterdump()).encode()
    elif raw[8:12] == b"DUCK":
        with suppress(duckdb.Error), duckdb.connect(str(path), read_only=True) as connection:
            yield "\n".join(str(row) for rows in _tables(connection).values() for row in rows).encode()


def _encoded(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _tables(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    names = connection.execute("select schema_name, table_name from duckdb_tables()").fetchall()
    found = {}
    for schema, name in names:
        shown = f"columns(lambda name: name not in {_OF_BODIES})" if name == "requests" else "*"
        found[f"{schema}.{name}"] = connection.execute(f'select {shown} from "{schema}"."{name}" order by all').fetchall()
    return found


#: Columns of requests that tell of bodies, which also hold others.
_OF_BODIES = ("bytes", "body_sha256", "content_sha256")
#: What an erasure itself adds or changes, and how the archive's files are called and measured.
_OWN = {"sync.erasures", "sync.archive_files"}


def rows_of_others(home: Path, address: str, contacts: list[int]) -> dict[str, list[str]]:
    """Rows of all tables that name neither the address nor a contact."""
    numbers = "|".join(map(str, contacts)) or "no number"
    marks = re.compile(
        rf"{re.escape(address)}|{re.escape(address.replace('@', '%40'))}|forgotten\.invalid|\b({numbers})\b|-\d{{10,}}", re.I
    )
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        tables = _tables(connection)
    return {name: [text for row in rows if not marks.search(text := str(row))] for name, rows in tables.items() if name not in _OWN}
