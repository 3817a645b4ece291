"""Fills the `sync` tables that no load fills: requests (from the archive), runs, plans, and
writebacks (from the outbox).

Not here: the tables themselves (`tables`), what loads write (`loads.coverage`, `loads.load`)."""

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.sql import fetch_rows, fetch_value, load_query, quote_text, transaction
from warehouse.tables import WRITEBACKS

if TYPE_CHECKING:  # they take a fifth of a second to import
    import pyarrow as pa

    from warehouse.archive.archive import Archive


def load_requests(connection: duckdb.DuckDBPyConnection, archive: "Archive") -> int:
    """Add the requests of archive files that the table does not have yet. A file and its requests
    are committed together. Returns the number of requests.

    A file of a past month is merged from others, whose requests are already in the table."""
    loaded = {
        row[0] for row in fetch_rows(connection, "select archive_file from sync.archive_files")
    }
    added = 0
    for name, exchanges in archive.list_exchanges(exclude=loaded):
        with transaction(connection):
            fetch_rows(connection, load_query("requests"), arrow_requests=exchanges)
            fetch_rows(
                connection,
                "insert into sync.archive_files values (?, ?)",
                [name, exchanges.num_rows],
            )
        added += exchanges.num_rows
    return added


#: The outcome of a run in the copy that the run itself publishes before it ends.
PUBLISHING = "publishing"


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `sync.runs`; the comments of its columns explain the fields."""

    run_id: str
    job: str
    started_at: dt.datetime
    ended_at: dt.datetime | None
    outcome: str | None
    request_count: int
    waited_s: float
    message: str


def write_run(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Add or replace the run. It is written before publishing, and again at its end."""
    with transaction(connection):
        fetch_rows(connection, "delete from sync.runs where run_id = ?", [run.run_id])
        fetch_rows(
            connection, "insert into sync.runs by name select unnest($row)", {"row": asdict(run)}
        )


def died_condition(running: Sequence[str]) -> str:
    """The SQL condition of runs that ended without being recorded. `running`: runs that a process
    is executing."""
    known = ", ".join(map(quote_text, ["", *running]))
    return f"ended_at is null and outcome is distinct from 'failed' and run_id not in ({known})"


def write_deaths(connection: duckdb.DuckDBPyConnection, running: Sequence[str]) -> None:
    """Mark runs that died as failed, with an unknown end."""
    death = "outcome = 'failed', message = 'its process was killed'"
    fetch_rows(connection, f"update sync.runs set {death} where {died_condition(running)}")


#: How each kind of call finds its contacts: (their column in sync.contact_coverage, the same column
#: for a key of the plan, prefix of its columns there).
_CALLS = {
    "timelines": ("contact_id", "key", "timeline"),
    "coupons": ("email_normalized", "normal_form(key)", "coupon"),
}


@dataclass(frozen=True)
class Planned:
    """The plan of one account, made `at`: by kind of call a table of `key` (contact id or address),
    `reason` and `chance` (of something new)."""

    account: str
    at: dt.datetime
    lines: Mapping[str, "pa.Table"]


def write_plan(connection: duckdb.DuckDBPyConnection, run_id: str, planned: Planned) -> None:
    """Add the plan's figures, or replace those that were written for this run before."""
    with transaction(connection):
        fetch_rows(
            connection,
            "delete from sync.plans where run_id = ? and account = ?",
            [run_id, planned.account],
        )
        for call, line in planned.lines.items():
            column, key, prefix = _CALLS[call]
            sql = load_query("plan").format(column=column, planned_key=key, prefix=prefix)
            params = {"run": run_id, "account": planned.account, "at": planned.at, "call": call}
            fetch_rows(connection, sql, params, arrow_planned=line)


_CHUNK = 50_000
_SAME = "outbox_begun_at = $begun_at"
#: Rows from versions without effects, and all later rows, are written again.
_NEWEST_REVISION = (
    "coalesce(min(revision) filter (effect is null and state <> 'skipped') - 1, max(revision), 0)"
)


def written_revision(connection: duckdb.DuckDBPyConnection, begun_at: dt.datetime) -> int:
    """The revision of the newest change in the table from the outbox that was begun then; 0 if it
    has none."""
    return int(
        fetch_value(
            connection,
            f"select {_NEWEST_REVISION} from sync.writebacks where {_SAME}",
            {"begun_at": begun_at},
        )
    )


def write_changes(
    connection: duckdb.DuckDBPyConnection,
    begun_at: dt.datetime,
    changes: Iterable[Mapping[str, Any]],
) -> int:
    """Replace changed rows; returns their number. Either all rows are written or none: the revision
    says which.

    `changes` have the table's columns except `outbox_begun_at`, each item once. Skipped rows are
    deleted after a while, as in the outbox (`retention.let_go`)."""
    import pyarrow as pa

    from warehouse.arrow_types import arrow_fields

    schema = pa.schema(arrow_fields(WRITEBACKS.columns))
    written = 0
    waiting = iter(changes)
    with transaction(connection):
        while chunk := list(itertools.islice(waiting, _CHUNK)):
            entries = [dict(change) | {"outbox_begun_at": begun_at} for change in chunk]
            changed = pa.Table.from_pylist(entries, schema)
            same = f"{_SAME} and item_id in (select item_id from arrow_writebacks)"
            fetch_rows(
                connection,
                f"delete from sync.writebacks where {same}",
                {"begun_at": begun_at},
                arrow_writebacks=changed,
            )
            rows = (
                "select * replace (nullif(normal_form(email), '') as email_normalized) from "
                "arrow_writebacks"
            )
            fetch_rows(
                connection, f"insert into sync.writebacks by name {rows}", arrow_writebacks=changed
            )
            written += len(entries)
    return written


@dataclass(frozen=True)
class ErasedPlace:
    """A row of `sync.erasures`."""

    erasure_id: str
    erased_at: dt.datetime
    place: str
    rows: int
    outcome: str


def write_erasures(connection: duckdb.DuckDBPyConnection, places: Sequence[ErasedPlace]) -> None:
    """Add the receipt of an erasure, or replace what an interrupted erasure wrote."""
    with transaction(connection):
        for place in places:
            fetch_rows(
                connection,
                "delete from sync.erasures where erasure_id = ? and place = ?",
                [place.erasure_id, place.place],
            )
            fetch_rows(
                connection,
                "insert into sync.erasures by name select unnest($row)",
                {"row": asdict(place)},
            )
