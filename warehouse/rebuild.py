"""Writes the warehouse again from log and archive, without a request, and replaces the old one.

Data that does not follow from the archive is copied from the old file: other schemas than `source`
(`history` cannot be read again) and the `sync` tables that are kept. Not here: applying loads
(`warehouse`)."""

import datetime as dt
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import duckdb

from warehouse.archive.archive import Archive
from warehouse.archive.file_store import CHECKPOINTS
from warehouse.bookkeeping import load_requests
from warehouse.connection import DEADLINE_S, OnWait
from warehouse.disk import Workspace
from warehouse.errors import ArchiveError
from warehouse.loads.load import APPLIED, Load
from warehouse.schema import columns_of, comment_statements, row_counts
from warehouse.sql import fetch_rows, fetch_value, quote_name, quote_text, transaction
from warehouse.tables import SYNC_TABLES, TABLES
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

_OWN = "database_name = current_database()"
#: Tables that a rebuild fills again; it copies all others.
_MADE_ANEW = {table.name for table in SYNC_TABLES if not table.is_kept} | {"meta"}


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """Loads that were applied and loads that could not be, and the rows of all `source` tables
    after the rebuild. `since`: for earlier responses, the tables of a checkpoint were used."""

    loads: int
    failed: int
    rows: int
    since: dt.date | None = None


def rebuild_warehouse(
    home: Path,
    *,
    archive: Archive | None = None,
    deadline_s: float = DEADLINE_S,
    on_wait: OnWait | None = None,
    accept_loss: bool = False,
) -> RebuildReport:
    """Replay every logged load into a new file, which replaces the old one when it is complete.

    The old file stays locked meanwhile, so that no load gets lost. Raises what
    `connection.open_database` raises. Raises ArchiveError if loads in the old file cannot be
    repeated, unless `accept_loss`."""
    with ExitStack() as stack:
        archive = archive or stack.enter_context(Archive(home / "archive"))
        workspace = Workspace(home / "tmp" / "rebuild")
        stack.callback(workspace.close)
        old = Warehouse(home, archive, deadline_s=deadline_s, on_wait=on_wait)
        new = Warehouse(home, archive, file_name=str(workspace.place_file("warehouse.duckdb")))
        return _rebuild_within(old, new, accept_loss)


def _rebuild_within(old: Warehouse, new: Warehouse, accept_loss: bool) -> RebuildReport:
    with old.open_for_writing(as_far_as_it_goes=True) as connection:
        # so that no log of the old file is left with the new one
        fetch_rows(connection, "checkpoint")
        since = begin_from_checkpoint(new)
        with new.open_for_writing() as empty:
            done = [
                report is not None
                for report in new.replay_loads(
                    empty, map(Load.from_event, old.archive.ledger.list_loads())
                )
            ]
            loads = done.count(True)
            failed = done.count(False)
            load_requests(empty, old.archive)
            total = sum(row_counts(empty, (table.qualified for table in TABLES.values())).values())
            applied, replayed = (
                set(fetch_rows(db, "select load_id from sync.loads where outcome = ?", [APPLIED]))
                for db in (connection, empty)
            )
        lost = applied - replayed
        if lost and not accept_loss:
            raise ArchiveError(
                f"{len(lost):,} loads of {old.path} can't be repeated: files of the archive "
                "are damaged or missing. Nothing was changed: put the files back, or run "
                "`marketing-sync rebuild --accept-loss`"
            )
        _take_over(connection, new.path)
        new.path.replace(old.path)
    return RebuildReport(loads, failed, total, since=since)


def can_rebuild(archive: Archive) -> bool:
    """Whether anything was ever loaded."""
    return any(archive.ledger.list_loads()) or bool(archive.files.list_names(CHECKPOINTS))


def begin_from_checkpoint(new: Warehouse) -> dt.date | None:
    """Begin the new file with the oldest checkpoint, which replaces deleted bodies. Returns its
    day; None without one."""
    checkpoints = new.archive.files.list_names(CHECKPOINTS)
    if not checkpoints:
        return None
    new.archive.files.fetch_file(checkpoints[0], new.path)
    return day_of(checkpoints[0])


def day_of(checkpoint: str) -> dt.date:
    """Bodies of responses from before this day may be deleted."""
    return dt.date.fromisoformat(checkpoint.partition("/")[2][:10])


def _take_over(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    own = fetch_value(connection, "select current_database()")
    tables = fetch_rows(
        connection,
        f"select schema_name, table_name from duckdb_tables() where {_OWN} and not temporary "
        "order by all",
    )
    views = fetch_rows(
        connection,
        f"select sql from duckdb_views() where {_OWN} and not internal",
    )
    kept = [
        (schema, name)
        for schema, name in tables
        if schema != "source" and not (schema == "sync" and name in _MADE_ANEW)
    ]
    columns = columns_of(connection)
    commented = comment_statements(
        connection, {relation: columns[relation] for relation in map(".".join, kept)}
    )
    fetch_rows(connection, f"attach {quote_text(str(path))} as rebuilt")
    for schema, name in kept:
        with transaction(connection):
            fetch_rows(connection, f"create schema if not exists rebuilt.{quote_name(schema)}")
            table = f"{quote_name(schema)}.{quote_name(name)}"
            fetch_rows(
                connection, f"create table if not exists rebuilt.{table} as from {table} limit 0"
            )
            fetch_rows(connection, f"insert into rebuilt.{table} by name from {table}")
    fetch_rows(connection, "use rebuilt")
    for statement in chain.from_iterable(commented.values()):
        fetch_rows(connection, statement)
    _make_views(connection, [sql for (sql,) in views])
    fetch_rows(connection, f"use {quote_name(own)}")
    fetch_rows(connection, "detach rebuilt")


def _make_views(connection: duckdb.DuckDBPyConnection, views: Sequence[str]) -> None:
    """Views may need one another, in any order. Views that no longer fit the new tables are left
    out; the model build makes them again."""
    left = []
    for sql in views:
        try:
            fetch_rows(connection, sql)
        except duckdb.Error:
            left.append(sql)
    if left and len(left) < len(views):
        _make_views(connection, left)
    elif left:
        log.warning("%d views were not copied: build the models again", len(left))
