"""The log of loads and `sync.loads` hold the same events, so that one damaged is written anew from the other.

Not here: the file and its checksums (`archive.load_log`), the other direction (`rebuild`).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Container

import duckdb
import msgspec

from warehouse.archive import Archive
from warehouse.archive.load_log import Event
from warehouse.load import Load
from warehouse.sql import rows, transaction, value

log = logging.getLogger(__name__)


def is_log_whole(connection: duckdb.DuckDBPyConnection, archive: Archive, logged: Container[str], *, is_checked: bool) -> bool:
    """Whether no line is damaged (not looked for again once `is_checked`), the log ends with the load that was applied last, as do the
    `logged` at its end, and the warehouse has all events that it can have.
    """
    newest = value(connection, "select load_id from sync.loads order by rowid desc limit 1")
    if newest is not None and newest not in logged:
        return False
    return is_checked or not (archive.damaged_loads() or value(connection, "select 1 from sync.loads where event is null limit 1"))


def repair_log(connection: duckdb.DuckDBPyConnection, archive: Archive) -> int:
    """Write what the log lacks from the warehouse, in its place, and into the warehouse what that lacks; returns the damaged lines.

    What is damaged is kept beside the log. What neither has stays lost: a rebuild says so.
    """
    damaged = archive.damaged_loads()
    _fill_in(connection, archive)
    logged = {Load.from_event(event).load_id for event in archive.loads()}
    following: defaultdict[str | None, list[Event]] = defaultdict(list)
    before, missing = None, 0
    for load_id, event in rows(connection, "select load_id, event from sync.loads where event is not null order by rowid"):
        if load_id in logged:
            before = load_id
        else:
            following[before].append(msgspec.json.decode(event))
            missing += 1
    if damaged or missing:
        aside = archive.rewrite_loads(lambda event: following.pop(Load.from_event(event).load_id if event else None, ()))
        kept = f"; what was damaged is in {aside.name}" if aside else ""
        log.warning("the log of loads had %d damaged lines: %d loads were written anew from the warehouse%s", damaged, missing, kept)
    return damaged


def _fill_in(connection: duckdb.DuckDBPyConnection, archive: Archive) -> None:
    """Warehouses of earlier versions do not hold the events."""
    lacking = {load_id for (load_id,) in rows(connection, "select load_id from sync.loads where event is null")}
    if not lacking:
        return
    with transaction(connection):
        for event in archive.loads():
            if (load_id := Load.from_event(event).load_id) in lacking:
                encoded = msgspec.json.encode(event).decode()
                rows(connection, "update sync.loads set event = ? where load_id = ?", [encoded, load_id])
