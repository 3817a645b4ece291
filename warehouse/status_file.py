"""`status.json` of a home: what monitoring reads of it, as of its last reading. It is read every
minute, and opens no warehouse for that, which a sync may be writing. Not here: what is in it
(`queries/account_status.sql`)."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import duckdb
import msgspec

from warehouse.bookkeeping import Run
from warehouse.disk import write_file
from warehouse.sql import fetch_records, load_query

NAME = "status.json"


class AccountStatus(msgspec.Struct):
    """`read_at`: the newest complete reading of a part; None: there was none."""

    account: str
    read_at: dt.datetime | None = None
    contacts: int = 0
    rejected_records: int = 0
    incomplete_parts: int = 0
    requests_last_night: int = 0
    rate_limited_last_night: int = 0


class HomeStatus(msgspec.Struct):
    """`run`: the last one that read; None: not known. `home_id`: in an uploaded one, whose it
    is."""

    accounts: list[AccountStatus] = []
    run: Run | None = None
    home_id: str = ""


decode = msgspec.json.Decoder(HomeStatus).decode


def write_status(connection: duckdb.DuckDBPyConnection, home: Path, run: Run) -> None:
    """When the run has ended. Its message may quote the service, and stays in the warehouse."""
    if run.ended_at:
        accounts = fetch_records(connection, load_query("account_status"), {"at": run.ended_at})
        content = {"accounts": accounts, "run": replace(run, message="")}
        write_file(home / NAME, msgspec.json.encode(content))


def read_status(home: Path) -> HomeStatus | None:
    """None where there is no home; an empty one until a run of this version has read."""
    try:
        return decode((home / NAME).read_bytes())
    except (OSError, msgspec.DecodeError):
        return HomeStatus() if home.is_dir() else None
