"""`sync.loads`: which loads were applied. Its row commits together with what the load changed."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence

import duckdb

from warehouse.load import Load
from warehouse.loads.target import TableReport
from warehouse.sql import rows, value


def is_applied(connection: duckdb.DuckDBPyConnection, load_id: str) -> bool:
    """Whether the load has been applied (or found impossible to apply)."""
    return value(connection, "select 1 from sync.loads where load_id = ?", [load_id]) is not None


def applied_ids(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The ids of all of these."""
    return {row[0] for row in rows(connection, "select load_id from sync.loads")}


def write_load(
    connection: duckdb.DuckDBPyConnection,
    load: Load,
    as_of: dt.datetime | None,
    reports: Sequence[TableReport],
    error: str | None = None,
) -> None:
    """Note the load as applied, or as failed with its `error`."""
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
                "scope": json.dumps(load.event()["scope"]),
                "request_count": len(load.request_ids),
                "as_of": as_of,
                "outcome": "failed" if error else "applied",
                "error": error,
                "new_count": sum(report.new for report in reports),
                "changed_count": sum(report.changed for report in reports),
                "deleted_count": sum(report.deleted for report in reports),
                "rejected_count": sum(report.rejected for report in reports),
            }
        },
    )
