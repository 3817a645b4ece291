"""Lets go of what a home keeps no longer: bodies of responses (tables as of then stand in for them), old
requests, rows of tables.

Everything can be killed at any moment and is then done by the next run. Not here: how long what is kept
(`policies`), how files of the archive are written anew (`archive.compaction`)."""

import datetime as dt
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import duckdb

from marketing_api.exchange import id_at
from warehouse.archive import Archive
from warehouse.archive.compaction import retire
from warehouse.archive.file_store import CHECKPOINTS
from warehouse.archive.ledger import month_of
from warehouse.connection import connect
from warehouse.disk import Workspace, exclusive, new_name
from warehouse.loads.load import APPLIED, Load
from warehouse.policies import Kept
from warehouse.rebuild import begin, checkpoint_of, day_of
from warehouse.sql import query, quoted, rows, transaction
from warehouse.tables import COUPONS, TABLES
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: Whatever began in a month is in the archive then.
_SETTLED_DAYS = 2


def compact(home: Path, kept: Kept, now: dt.datetime) -> None:
    """Merge the archive's files of past months, and drop whole months of bodies, which a checkpoint covers:
    the tables as of the first month that is kept, made by replaying the loads before it. So a rebuild still
    reads anew what is kept."""
    with exclusive(home / ".backup"), Archive(home / "archive") as archive:
        dropping = home / "archive" / "dropping"  # until it is done
        before = first_day(now, kept.bodies)
        found = _advance(home, archive, before, dropping) if before else checkpoint_of(archive)
        if found is None or not dropping.exists():
            archive.compact(now)
        else:
            rows_from = first_day(now, kept.requests)
            of_bodies = id_on(day_of(found))
            of_rows = min(id_on(rows_from), of_bodies) if rows_from else 0
            with closing(Workspace(home / "tmp" / "checkpoint")) as workspace:
                copy = archive.files.fetch(found, workspace.file("checkpoint.duckdb"))
                applied = _applied(copy, of_bodies)
            loads = (load for load in _logged(archive) if load.load_id not in applied)
            needed = [id_ for load in loads for id_ in load.request_ids if id_ < of_bodies]
            archive.compact(now, bodies_before=of_bodies, rows_before=of_rows, needed=needed)
            others = {*archive.files.names(CHECKPOINTS)} - {found}
            retire(home / "archive", archive.files, *others)
        dropping.unlink(missing_ok=True)


def _advance(home: Path, archive: Archive, before: dt.date, dropping: Path) -> str | None:
    """The checkpoint as of that day, or how far it could be made: month by month, so that the years before
    need not go in one night."""
    found = checkpoint_of(archive)
    begins = before
    if found:
        begins = day_of(found)
    elif names := archive.ledger.names():
        begins = dt.date.fromisoformat(f"{month_of(names[0])}-01")
    with closing(Workspace(home / "tmp" / "checkpoint")) as workspace:
        while begins < before:
            dropping.touch(mode=0o600)
            begins = (begins + dt.timedelta(31)).replace(day=1)
            if (made := _make_checkpoint(home, archive, workspace, begins)) is None:
                break
            retire(home / "archive", archive.files, *filter(None, [found]))
            found = made
    return found


def first_day(now: dt.datetime, days: int | None) -> dt.date | None:
    """Of the first month that is kept; None: all are."""
    if days is None:
        return None
    return (now.astimezone(dt.UTC) - dt.timedelta(max(days, _SETTLED_DAYS))).date().replace(day=1)


def id_on(day: dt.date) -> int:
    """About the first request of the day, UTC."""
    return id_at(dt.datetime.combine(day, dt.time(), dt.UTC))


def _make_checkpoint(home: Path, archive: Archive, workspace: Workspace, day: dt.date) -> str | None:
    """From the one before it, by replaying the loads since. None when something that the warehouse has cannot
    be made again."""
    new, before = Warehouse(home, archive, file_name=str(workspace.file("checkpoint.duckdb"))), id_on(day)
    begin(new)
    with new.writing() as connection:
        for _ in new.replay(connection, (load for load in _logged(archive) if load.last_request < before)):
            pass
        rows(connection, "delete from sync.loads where outcome <> ?", [APPLIED])  # a rebuild tries them again
        rows(connection, "checkpoint")
    if lacking := _applied(home / "warehouse.duckdb", before) - _applied(new.path, before):
        log.warning(
            "bodies are kept for now: %d loads cannot be made again, see `marketing-sync rebuild`",
            len(lacking),
        )
        return None
    made = f"checkpoints/{day}-{new_name()}.duckdb"
    archive.files.put(new.path, made)
    return made


def _applied(path: Path, before: int) -> set[str]:
    """The loads of a warehouse that rest on requests before that one."""
    if not path.exists():
        return set()
    sql = (
        "select load_id from sync.loads where outcome = ? and coalesce(last_request, "
        "epoch_us(logged_at) * 1024) < ?"
    )
    with connect(path, read_only=True) as connection:
        return {load_id for (load_id,) in rows(connection, sql, [APPLIED, before])}


def _logged(archive: Archive) -> Iterator[Load]:
    return map(Load.from_event, archive.ledger.loads())


def let_go(connection: duckdb.DuckDBPyConnection, kept: Kept, now: dt.datetime) -> None:
    """Delete rows of tables that are kept no longer: requests, entries of timelines, rows of pushes with
    nothing to send, contacts that are gone at the service, with everything under their numbers."""
    old = [
        ("sync.requests", kept.requests, "requested_at"),
        ("sync.writebacks", kept.skipped, "state = 'skipped' and planned_at"),
        (COUPONS.qualified, kept.deleted, "_deleted_at"),
    ]
    for table in TABLES.values():
        if table.load.contact_parameter:
            moment = next(column.name for column in table.record_columns if column.sql_type == "TIMESTAMPTZ")
            old.append((table.qualified, kept.timelines, moment))
    with transaction(connection):
        for name, days, is_before in old:
            if days is not None:
                rows(connection, f"delete from {name} where {is_before} < ?", [now - dt.timedelta(days)])
        if kept.deleted is not None:
            rows(connection, query("gone_contacts"), [now - dt.timedelta(kept.deleted)])
            for schema, name in rows(connection, query("tables_of_contacts")):
                which = "(account, contact_id) in (from gone)"
                rows(connection, f"delete from {quoted(schema)}.{quoted(name)} where {which}")
            rows(connection, "drop table gone")


def sizes(home: Path) -> dict[str, int]:
    """Bytes of the home's files and folders, by their names up to a dot; what has none before it, and locks,
    are `other`."""
    found: Counter[str] = Counter()
    for path in home.rglob("*"):
        with suppress(OSError):  # removed meanwhile
            name, _, suffix = path.relative_to(home).parts[0].partition(".")
            part = "other" if suffix == "lock" else name or "other"
            found[part] += path.stat().st_size * path.is_file()
    return dict(found)


def note_sizes(connection: duckdb.DuckDBPyConnection, home: Path, now: dt.datetime) -> None:
    """Write down how large the parts are, for telling how they grow."""
    for part, size in sizes(home).items():
        rows(connection, "insert into sync.home_sizes values (?, ?, ?)", [now, part, size])
