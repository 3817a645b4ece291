"""Exports the outbox to `sync.writebacks`, and a push's run to `sync.runs`. Not here: the tables
(`warehouse`)."""

import datetime as dt
import json
import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from home.door import open_tables, outbox_of
from home.folder import in_use
from home.loading import open_archive
from home.settings import Settings
from marketing_api.address import mask_addresses
from marketing_api.clock import utc_now
from warehouse.bookkeeping import Run, load_requests, write_changes, write_run, written_revision
from warehouse.errors import WarehouseError
from write_back.kinds import KINDS
from write_back.order import Ran
from write_back.outbox.outbox import Entry, open_outbox
from write_back.outbox.store import OutboxError

log = logging.getLogger(__name__)


def export_writebacks(writing: AbstractContextManager[DuckDBPyConnection], home: Path) -> int:
    """Write the outbox's changes to the tables that `writing` opens; returns how many rows. Opens
    nothing if nothing was ever pushed. Raises WarehouseLocked, OutboxError."""
    if not outbox_of(home).exists():
        return 0
    with writing as connection, open_outbox(home) as outbox:
        begun_at = outbox.begun_at
        if begun_at is None:
            return 0
        since = dt.datetime.fromtimestamp(begun_at, dt.UTC)
        changed = outbox.changed_since(written_revision(connection, since))
        return write_changes(connection, since, map(_make_row, changed))


def try_to_export(settings: Settings) -> None:
    """The same at the end of a sync or a rebuild, which must not fail because of the outbox."""
    try:
        export_writebacks(open_tables(settings), settings.home)
    except OutboxError as error:
        log.warning("sync.writebacks is not up to date: %s", error)


def export_run(settings: Settings, shortfall: int, ran: Ran) -> str | None:
    """Write a push's run, its requests and the outcomes of its rows; returns why that has to wait,
    if so. `shortfall`: rows not done."""
    outcome = "partial" if shortfall else "done"
    if ran.stopped and not ran.requests:
        outcome = "failed"
    not_done = f"{shortfall:,} rows not done" if shortfall else ""
    message = "\n".join(filter(None, (ran.stopped, not_done)))
    run = Run(
        ran.run, ran.job, ran.began_at, utc_now(), outcome, ran.requests, ran.waited_s, message
    )
    home = settings.home
    try:
        with in_use(home), open_archive(home) as archive, open_tables(settings) as connection:
            write_run(connection, run)
            load_requests(connection, archive)
            export_writebacks(nullcontext(connection), home)
    except WarehouseError as error:
        return str(error)
    return None


def _make_row(entry: Entry) -> dict[str, Any]:
    """The entry for `sync.writebacks`, which ignores values that it has no column for."""
    kind = KINDS[entry.kind]
    row = {column.name: getattr(entry, column.name) for column in fields(entry)}
    for name in ("planned_at", "sent_at", "done_at", "verified_at"):
        if row[name] is not None:
            row[name] = dt.datetime.fromtimestamp(row[name], dt.UTC)
    return row | {
        "effect": kind.effect.value,
        "state": entry.state.value,
        "row_numbers": list(entry.rows),
        "message": mask_addresses(entry.message) if entry.message else None,
        "params": json.dumps(entry.params, ensure_ascii=False) if entry.operation else None,
        "drift": None if entry.drift is None else json.dumps(entry.drift, ensure_ascii=False),
    }
