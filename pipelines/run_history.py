"""Lets Dagster write its run history without waiting for the disk at every event.

Dagster opens, commits and closes a SQLite file for each event, which costs several disk flushes each: with a thousand events
that is the larger part of a short run. WAL mode with `synchronous = normal` cannot be corrupted by a power loss (the last
events may be missing), and a connection that stays open keeps each close from flushing. What must not be lost is in the
archive, not here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event
from sqlalchemy.engine import Engine


@contextmanager
def unhurried() -> Iterator[None]:
    """For as long as the context lasts, SQLite files opened through SQLAlchemy in this process are flushed less often."""
    kept: dict[str, sqlite3.Connection] = {}

    def opened(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("pragma synchronous = normal")
        _, _, path = connection.execute("pragma database_list").fetchone()
        if path and path not in kept:
            kept[path] = sqlite3.connect(path, check_same_thread=False)
            kept[path].execute("select 1 from sqlite_master").fetchone()  # a connection that never read holds nothing open

    event.listen(Engine, "connect", opened)
    try:
        yield
    finally:
        event.remove(Engine, "connect", opened)
        for connection in kept.values():
            connection.close()
