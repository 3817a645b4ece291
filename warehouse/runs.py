"""Writes `sync.runs`: one row per run, with what it asked and what it could not have."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass

import duckdb

from warehouse.sql import rows, transaction

#: The outcome of a run in the copy that it publishes itself: the run goes on behind it.
PUBLISHING = "publishing"


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `sync.runs`; the columns' comments say what the fields mean."""

    run_id: str
    job: str
    started_at: dt.datetime
    ended_at: dt.datetime | None
    outcome: str | None
    request_count: int
    waited_s: float
    message: str


def write_run(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Add the run, or replace what was written of it before: it is written ahead of publishing, and once more when it has ended."""
    values = asdict(run)
    names = ", ".join(values)
    with transaction(connection):
        rows(connection, "delete from sync.runs where run_id = ?", [run.run_id])
        rows(connection, f"insert into sync.runs ({names}) values ({', '.join('?' * len(values))})", list(values.values()))
