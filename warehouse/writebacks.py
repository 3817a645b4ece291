"""Fills `sync.writebacks` from the outbox: what changed since the last time, in one transaction.

Not here: the outbox itself, which is the truth (`pipelines.write_back.outbox.outbox`); this is its copy for people who ask in SQL.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.sql import rows, transaction, value
from warehouse.sync_tables import WRITEBACKS

_SCHEMA = pa.schema([(column.name, column.arrow_type) for column in WRITEBACKS.columns])
_CHUNK = 50_000
_SAME = "outbox_begun_at = $begun_at"


def shown_revision(connection: duckdb.DuckDBPyConnection, begun_at: dt.datetime) -> int:
    """The revision of the newest change that the table shows of the outbox begun then; 0 when it shows nothing of it."""
    return int(value(connection, f"select coalesce(max(revision), 0) from sync.writebacks where {_SAME}", {"begun_at": begun_at}))


def write_changes(
    connection: duckdb.DuckDBPyConnection, begun_at: dt.datetime, changes: Iterable[Mapping[str, Any]], *, forget_before: dt.datetime
) -> int:
    """Replace what changed; returns how many rows that are. All of it or nothing: the revision tells what is shown.

    `changes` have the table's columns but for `outbox_begun_at`, each item once. Skipped rows planned before `forget_before` go, as they
    do in the outbox: a nightly push of 100,000 rows would fill the table with rows that had nothing to do.
    """
    written = 0
    with transaction(connection):
        for chunk in _chunks(changes):
            entries = [dict(change) | {"outbox_begun_at": begun_at} for change in chunk]
            connection.register("arrow_writebacks", pa.Table.from_pylist(entries, _SCHEMA))
            same = f"{_SAME} and item_id in (select item_id from arrow_writebacks)"
            rows(connection, f"delete from sync.writebacks where {same}", {"begun_at": begun_at})
            rows(connection, "insert into sync.writebacks by name from arrow_writebacks")
            connection.unregister("arrow_writebacks")
            written += len(entries)
        rows(connection, "delete from sync.writebacks where state = 'skipped' and planned_at < ?", [forget_before])
    return written


def _chunks(changes: Iterable[Mapping[str, Any]]) -> Iterable[list[Mapping[str, Any]]]:
    waiting = iter(changes)
    return iter(lambda: list(itertools.islice(waiting, _CHUNK)), [])
