"""Searches every byte of every file, also of what is compressed, without the program's own search."""

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


def found_in(folder: Path, tokens: Iterable[str]) -> list[tuple[str, str]]:
    """(file, token) of each token that stands whole somewhere, in any spelling: as it is, in JSON, in a link,
    in a page. An address within a longer one is somebody else's."""
    spelled = {text.lower().encode(): token for token in tokens for text in _spellings(token)}
    found = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            for data in map(bytes.lower, _bytes_of(path)):
                there = {text: token for text, token in spelled.items() if text in data}
                found |= {
                    (str(path.relative_to(folder)), token)
                    for text, token in there.items()
                    if _whole(text).search(data)
                }
    return sorted(found)


def _spellings(token: str) -> set[str]:
    plain = {token, token.lower(), token.upper()}
    escaped = (
        {json.dumps(each)[1:-1] for each in plain}
        | {quote(each, safe="") for each in plain}
        | {escape(each) for each in plain}
    )
    twice = {quote(quote(each, safe=""), safe="") for each in plain}
    return (
        plain
        | escaped
        | twice
        | {each.replace("@", at) for each in plain | escaped for at in ("%40", "%2540", "&#64;")}
    )


def _whole(text: bytes) -> re.Pattern[bytes]:
    """Whatever byte is part of an address may stand neither before nor behind it."""
    return re.compile(rb"(?<![\w.+\x80-\xff-])" + re.escape(text) + rb"(?![\w\x80-\xff]|[.-]\w)")


def _bytes_of(path: Path) -> Iterator[bytes]:
    raw = path.read_bytes()
    yield raw
    if raw.startswith(b"PAR1"):
        columns = pq.read_table(path).columns
        yield b"\n".join(
            _encoded(value) for column in columns for value in column.to_pylist() if value is not None
        )
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
        found[f"{schema}.{name}"] = connection.execute(
            f'select {shown} from "{schema}"."{name}" order by all'
        ).fetchall()
    return found


#: Columns of requests that tell of bodies, which also hold others.
_OF_BODIES = ("bytes", "body_sha256", "content_sha256", "body_file", "body_ref")
#: What an erasure itself adds or changes, and how the archive's files are called and measured.
_OWN = {"sync.erasures", "sync.archive_files", "sync.meta"}


def rows_of_others(home: Path, addresses: Collection[str], contacts: list[int]) -> dict[str, list[str]]:
    """Rows of `source` and `sync` that name an address or contact. Models have figures, which lose them."""
    numbers = "|".join(map(str, contacts)) or "no number"
    names = "|".join(re.escape(each).replace("@", "(?:@|%40)") for each in sorted(addresses)) or "no name"
    marks = re.compile(rf"(?<![\w.+-])(?:{names})(?![\w-]|\.\w)|\b({numbers})\b", re.IGNORECASE)
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        tables = _tables(connection)
    return {
        name: [text for row in rows if not marks.search(text := str(row))]
        for name, rows in tables.items()
        if name.startswith(("source.", "sync.")) and name not in _OWN
    }
