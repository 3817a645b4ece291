"""The few terms in which SQL is put together and run. Not here: any query (`queries/`, or where it is run)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

Params = Sequence[Any] | Mapping[str, Any] | None


def quoted(name: str) -> str:
    """An SQL identifier; names such as `key`, `type` and `rows` are columns here."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


@cache
def query(name: str) -> str:
    """The longer queries stand in `queries/`, a file each."""
    return (Path(__file__).parent / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def rows(connection: duckdb.DuckDBPyConnection, sql: str, params: Params = None) -> list[tuple[Any, ...]]:
    """Every row of the result, so that the connection is free for the next statement."""
    found: list[tuple[Any, ...]] = connection.execute(sql, params).fetchall()
    return found


def value(connection: duckdb.DuckDBPyConnection, sql: str, params: Params = None) -> Any:
    """The first column of the first row; None without one."""
    found = rows(connection, sql, params)
    return found[0][0] if found else None


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit at the end, roll back when something is raised."""
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
