"""Deletes data that a home no longer keeps: bodies of responses (a checkpoint of the tables
replaces them), old requests, rows of tables.

Everything can be killed at any moment; the next run repeats it. Not here: how long data is kept
(`policies`), how files of the archive are rewritten (`archive.compaction`)."""

import datetime as dt
from pathlib import Path

import duckdb

from marketing_api.exchange import id_at
from warehouse.archive.archive import Archive
from warehouse.archive.compaction import retire_files
from warehouse.archive.file_store import CHECKPOINTS
from warehouse.archive.ledger import month_of
from warehouse.connection import open_database
from warehouse.disk import hold_lock, measure_sizes, new_name, open_scratch
from warehouse.forgetting import Forgotten
from warehouse.loads.load import APPLIED, Load
from warehouse.policies import Kept
from warehouse.rebuild import day_of
from warehouse.sql import fetch_rows, load_query, quote_name, quote_text, transaction
from warehouse.tables import ARCHIVE_FILES, COUPONS, REQUESTS, SYNC_TABLES, TABLES, SyncTable, Table
from warehouse.warehouse import Warehouse

#: After this time, everything that began in a month is in the archive.
_SETTLED_DAYS = 2
#: Days for which `sync.requests` keeps requests whose response did not change. There are many,
#: since nights read every timeline.
UNCHANGED_DAYS = 90


def compact_archive(home: Path, kept: Kept, now: dt.datetime) -> None:
    """Merge the archive's files of past months. Every `kept.bodies` days, drop the bodies from
    before the last checkpoint, and make another one. So a rebuild, which starts at the oldest one,
    reads the responses of at least the last `kept.bodies` days from the second one on, and at most
    of twice as many."""
    with hold_lock(home / ".backup"), Archive(home / "archive") as archive:
        checkpoints = archive.files.list_names(CHECKPOINTS)
        if not _is_due(archive, checkpoints, kept, now):
            archive.compact_files(now)
            return
        if checkpoints:
            _drop_bodies(home, archive, checkpoints[-1], kept, now)
            retire_files(home / "archive", archive.files, *checkpoints[:-1])
        make_checkpoint(home, archive, now)


def _is_due(archive: Archive, checkpoints: list[str], kept: Kept, now: dt.datetime) -> bool:
    """Whether the last checkpoint (or the oldest request, without one) is older than bodies are
    kept."""
    if kept.bodies is None or not (names := archive.ledger.list_names()):
        return False
    last = (
        day_of(checkpoints[-1])
        if checkpoints
        else dt.date.fromisoformat(f"{month_of(names[0])}-01")
    )
    return last <= (now - dt.timedelta(max(kept.bodies, _SETTLED_DAYS))).date()


def _drop_bodies(
    home: Path, archive: Archive, checkpoint: str, kept: Kept, now: dt.datetime
) -> None:
    """Drop the bodies from before the checkpoint, except those of loads that it does not
    contain."""
    before = _id_on(day_of(checkpoint))
    with open_scratch(home, "checkpoint") as workspace:
        path = archive.files.fetch_file(checkpoint, workspace.place_file("checkpoint.duckdb"))
        with open_database(path, read_only=True) as connection:
            sql = "select load_id from sync.loads where outcome = ?"
            applied = {load_id for (load_id,) in fetch_rows(connection, sql, [APPLIED])}
    loads = map(Load.from_event, archive.ledger.list_loads())
    needed = [
        id_
        for load in loads
        if load.load_id not in applied
        for id_ in load.request_ids
        if id_ < before
    ]
    rows_before = 0
    if kept.requests is not None:
        first = (now - dt.timedelta(max(kept.requests, _SETTLED_DAYS))).date().replace(day=1)
        rows_before = min(_id_on(first), before)
    archive.compact_files(now, bodies_before=before, rows_before=rows_before, needed=needed)


def make_checkpoint(home: Path, archive: Archive, now: dt.datetime) -> str:
    """Copy the tables that follow from responses into the archive; returns the name of the copy."""
    with open_scratch(home, "checkpoint") as workspace:
        new = Warehouse(home, archive, file_name=str(workspace.place_file("checkpoint.duckdb")))
        with new.open_for_writing():
            pass  # this creates its tables
        with Warehouse(home, archive).open_for_writing() as connection:
            fetch_rows(connection, f"attach {quote_text(str(new.path))} as checkpoint")
            for table in _list_tables():
                names = ", ".join(quote_name(column.name) for column in table.columns)
                copied = f"select {names} from {table.qualified}"
                fetch_rows(connection, f"insert into checkpoint.{table.qualified} by name {copied}")
            # a rebuild tries failed loads again
            fetch_rows(
                connection, "delete from checkpoint.sync.loads where outcome <> ?", [APPLIED]
            )
            fetch_rows(connection, "detach checkpoint")
        name = f"checkpoints/{now.astimezone(dt.UTC):%Y-%m-%d}-{new_name()}.duckdb"
        archive.files.put_file(new.path, name)
    return name


def _list_tables() -> list[Table | SyncTable]:
    """Tables that a rebuild fills by applying loads."""
    noted = [
        table
        for table in SYNC_TABLES
        if not table.is_kept and table not in (REQUESTS, ARCHIVE_FILES)
    ]
    return [*TABLES.values(), *noted]


def drop_all_bodies(home: Path, archive: Archive, forgotten: Forgotten, now: dt.datetime) -> None:
    """Make a checkpoint, then drop every body and every earlier checkpoint."""
    with hold_lock(home / ".backup"):
        made = make_checkpoint(home, archive, now)
        archive.drop_bodies(forgotten, now)
        retire_files(
            home / "archive", archive.files, *({*archive.files.list_names(CHECKPOINTS)} - {made})
        )


def _id_on(day: dt.date) -> int:
    """About the first request id of the day, UTC."""
    return id_at(dt.datetime.combine(day, dt.time(), dt.UTC))


def let_go(connection: duckdb.DuckDBPyConnection, kept: Kept, now: dt.datetime) -> None:
    """Delete rows that are no longer kept: requests, entries of timelines, rows of pushes without a
    request, contacts that the service has deleted, with everything under their ids."""
    old = [
        ("sync.requests", kept.requests, "requested_at"),
        ("sync.requests", UNCHANGED_DAYS, "body_ref >= 0 and requested_at"),
        ("sync.writebacks", kept.skipped, "state = 'skipped' and planned_at"),
        (COUPONS.qualified, kept.deleted, "_deleted_at"),
    ]
    for table in TABLES.values():
        if table.load.contact_parameter:
            moment = next(
                column.name for column in table.record_columns if column.sql_type == "TIMESTAMPTZ"
            )
            old.append((table.qualified, kept.timelines, moment))
    with transaction(connection):
        for name, days, is_before in old:
            if days is not None:
                fetch_rows(
                    connection,
                    f"delete from {name} where {is_before} < ?",
                    [now - dt.timedelta(days)],
                )
        if kept.deleted is not None:
            fetch_rows(connection, load_query("gone_contacts"), [now - dt.timedelta(kept.deleted)])
            for schema, name in fetch_rows(connection, load_query("tables_of_contacts")):
                which = "(account, contact_id) in (from gone)"
                fetch_rows(
                    connection, f"delete from {quote_name(schema)}.{quote_name(name)} where {which}"
                )
            fetch_rows(connection, "drop table gone")


def note_sizes(connection: duckdb.DuckDBPyConnection, home: Path, now: dt.datetime) -> None:
    """Record the sizes of the home's parts, to report how they grow."""
    for part, size in measure_sizes(home).items():
        fetch_rows(connection, "insert into sync.home_sizes values (?, ?, ?)", [now, part, size])
