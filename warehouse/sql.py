"""The few terms in which SQL is put together and run. Not here: any query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

Params = Sequence[Any] | Mapping[str, Any] | None


def quoted(name: str) -> str:
    """An SQL identifier; names such as `key`, `type` and `rows` are columns here."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


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
