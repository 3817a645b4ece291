"""`status.json` of a home: its status after the last read, for monitoring. Monitoring reads it
every minute, without opening a warehouse that a sync may be writing. Not here: its content
(`queries/account_status.sql`)."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import duckdb
import msgspec

from warehouse.bookkeeping import Run
from warehouse.disk import DAMAGED_JSON, write_file
from warehouse.sql import fetch_records, load_query

NAME = "status.json"


class AccountStatus(msgspec.Struct):
    """`read_at`: the newest complete read of a part; None if there was none."""

    account: str
    read_at: dt.datetime | None = None
    contacts: int = 0
    rejected_records: int = 0
    incomplete_parts: int = 0
    requests_last_night: int = 0
    rate_limited_last_night: int = 0


class HomeStatus(msgspec.Struct):
    """`run`: the last run that read; None if unknown. `home_id`: in an uploaded file, the home that
    it is from."""

    accounts: list[AccountStatus] = []
    run: Run | None = None
    home_id: str = ""


decode = msgspec.json.Decoder(HomeStatus).decode


def write_status(connection: duckdb.DuckDBPyConnection, home: Path, run: Run) -> None:
    """Called at the end of a run. The run's message is left out, since it may quote the service."""
    if run.ended_at:
        accounts = fetch_records(connection, load_query("account_status"), {"at": run.ended_at})
        content = {"accounts": accounts, "run": replace(run, message="")}
        write_file(home / NAME, msgspec.json.encode(content))


def read_status(home: Path) -> HomeStatus | None:
    """None without a home; an empty one until a run of this version has read."""
    try:
        return decode((home / NAME).read_bytes())
    except (OSError, *DAMAGED_JSON):
        return HomeStatus() if home.is_dir() else None
