"""`sync.loads`: which loads were applied. Its row commits together with what the load changed."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import msgspec

from warehouse.load import Load
from warehouse.loads.target import TableReport
from warehouse.sql import rows, value

APPLIED, FAILED = "applied", "failed"


def outcome_of(connection: duckdb.DuckDBPyConnection, load_id: str) -> str | None:
    """`applied`, or `failed` for a load that was found impossible to apply; None when neither is known."""
    found: str | None = value(connection, "select outcome from sync.loads where load_id = ?", [load_id])
    return found


def logged_last(connection: duckdb.DuckDBPyConnection, backwards: Iterable[Mapping[str, Any]]) -> dict[str, Load]:
    """The last loads of the log in their order, by id: from the last one that has an outcome on, so that all without one are there."""
    loads: list[Load] = []
    for event in backwards:
        loads.append(Load.from_event(event))
        if outcome_of(connection, loads[-1].load_id):
            break
    return {load.load_id: load for load in reversed(loads)}


def done_ids(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The ids of all loads with an outcome."""
    return {row[0] for row in rows(connection, "select load_id from sync.loads")}


def applied_ids(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The ids of the loads that the tables are made of."""
    return {row[0] for row in rows(connection, "select load_id from sync.loads where outcome = $applied", {"applied": APPLIED})}


def write_load(
    connection: duckdb.DuckDBPyConnection,
    load: Load,
    as_of: dt.datetime | None,
    reports: Sequence[TableReport],
    error: str | None = None,
) -> None:
    """Note the load as applied, or as failed with its `error`; what was noted of it before is replaced."""
    event = load.event()
    rows(connection, "delete from sync.loads where load_id = ?", [load.load_id])
    rows(
        connection,
        "insert into sync.loads by name select unnest($row)",
        {
            "row": {
                "load_id": load.load_id,
                "logged_at": load.logged_at,
                "account": load.account,
                "asset": load.asset,
                "tables": list(load.tables),
                "scope": json.dumps(event["scope"]),
                "request_count": len(load.request_ids),
                "as_of": as_of,
                "outcome": FAILED if error else APPLIED,
                "error": error,
                "new_count": sum(report.new for report in reports),
                "changed_count": sum(report.changed for report in reports),
                "deleted_count": sum(report.deleted for report in reports),
                "rejected_count": sum(report.rejected for report in reports),
                "event": msgspec.json.encode(event).decode(),
            }
        },
    )
