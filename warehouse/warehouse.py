"""The warehouse for the rest of the program: applying loads, looking up facts in tables.

Belongs here: opening, the order of log and transaction, recovery; look-ups, of which the longer
ones are in `queries/`. Not here: what a load does to tables (`loads/`), what is requested next
(`assets.planning`), rebuilding (`rebuild`)."""

import datetime as dt
import itertools
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from marketing_api import parsing
from warehouse.archive.archive import Archive
from warehouse.connection import DEADLINE_S, MEMORY_LIMIT, OnWait, open_database
from warehouse.disk import Workspace
from warehouse.errors import (
    ArchiveFull,
    WarehouseError,
    WarehouseLocked,
)
from warehouse.loads.apply import apply_tables
from warehouse.loads.listing import Key, row_hash
from warehouse.loads.load import (
    APPLIED,
    Load,
    LoadReport,
    TableReport,
    logged_last,
    outcome_of,
    write_load,
)
from warehouse.loads.queue import LoadQueue
from warehouse.loads.scopes import known_keys
from warehouse.loads.staging import ParseRows, Staged, stage_responses
from warehouse.schema import ensure_schema, is_current
from warehouse.sql import (
    Params,
    add_normal_form,
    fetch_rows,
    load_query,
    load_statements,
    quote_name,
    transaction,
)
from warehouse.tables import SOCIAL_POSTS, TABLES, Table, Window

log = logging.getLogger(__name__)

_SHORT = load_statements(Path(__file__).parent / "queries" / "lookups.sql")
_LIVE = "account = $account and _deleted_at is null"
#: A service may refuse every address without coupons. A refusal is taken for that if at least this
#: many different addresses are refused with it, and if it is at least this share of all refusals.
FEWEST = 20
SHARE = 0.9
#: The share of these addresses that may have coupons. With more, the refusal has another meaning.
CONTRADICTING = 0.01
#: SQL of the errorCode of a refusal in a row of sync.requests; NULL without one.
REFUSAL_CODE = (
    r"try_cast(nullif(regexp_extract(error, 'refused with errorCode (-?\d{1,18})', 1), '') as "
    r"bigint)"
)
#: Days of a contact's dated history that show how active it is.
HISTORY_DAYS = 90

_UTC = "set timezone = 'UTC'"
_ONE_THREAD = "set threads = 1"
_ALL_THREADS = "reset threads"
#: Errors that are not the fault of a load, so nothing is noted about it.
_PASSING = (
    OSError,
    MemoryError,
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.TransactionException,  # a commit that fails because the disk is full
    duckdb.FatalException,
    WarehouseLocked,
    ArchiveFull,
)


@dataclass
class _Session:
    """The open file, the last loads of the log as they were first logged, and the results of those
    that had to be applied first."""

    connection: duckdb.DuckDBPyConnection
    logged: Mapping[str, Load]
    recovered: dict[str, LoadReport]


class Warehouse:
    """The warehouse of one home. Safe for several threads and processes: loads take turns, readers
    of this process share the file."""

    def __init__(
        self,
        home: Path,
        archive: Archive,
        *,
        deadline_s: float = DEADLINE_S,
        on_wait: OnWait | None = None,
        file_name: str = "warehouse.duckdb",
    ) -> None:
        self.path = home / file_name
        self.archive = archive
        self.parse_rows: ParseRows = parsing.parse_rows
        self._connect = partial(
            open_database,
            self.path,
            deadline_s=deadline_s,
            memory_limit=MEMORY_LIMIT,
            on_wait=on_wait,
        )
        self._workspace = Workspace(home / "tmp" / "loads")
        self._workspace.sweep_dead()
        self._numbers = itertools.count()
        self._queue = LoadQueue(self._open_session)
        self._is_prepared = False

    # -- loading

    def apply_load(self, load: Load) -> LoadReport:
        """Apply a load: log it, then apply it in one transaction. Its responses are read from the
        archive.

        Loads that were logged but not applied (a run was killed) are applied first. A load that was
        applied before changes nothing. If an error is raised, the tables are unchanged; a load that
        was logged is tried again by the next one."""
        staged: Staged | Exception
        try:
            staged = self.stage_load(load)
        except _PASSING:
            raise
        # logged nevertheless: a later version may be able to read the responses
        except Exception as error:
            staged = error
        return self._queue.run_in_turn(lambda session: self._apply_staged(session, load, staged))

    def _apply_staged(
        self, session: _Session, load: Load, staged: Staged | Exception
    ) -> LoadReport:
        report = session.recovered.pop(load.load_id, None)
        if report is not None:
            return report
        if outcome_of(session.connection, load.load_id) == APPLIED:
            return LoadReport(load.load_id, {name: TableReport(name) for name in load.tables})
        logged = session.logged.get(load.load_id)
        if logged is None:
            self.archive.ledger.log_loads(load.to_event())
        if isinstance(staged, Exception):
            raise staged
        return self.commit_load(session.connection, logged or load, staged)

    def finish_assets(self, finished: Iterable[tuple[str, str]]) -> None:
        """Note that all of each (account, asset) was read: later differences are reported
        (`loads.drift`)."""
        loads = [Load(account, asset, (), (), "UTC") for account, asset in finished]

        def note_assets(session: _Session) -> None:
            self.archive.ledger.log_loads(*(load.to_event() for load in loads))
            with transaction(session.connection):
                for load in loads:
                    write_load(session.connection, load, None, ())

        self._queue.run_in_turn(note_assets)

    # -- reading

    def run_query(self, sql: str, params: Params = None) -> pa.Table:
        with self.open_for_reading() as connection:
            return connection.sql(sql, params=params).to_arrow_table()

    @contextmanager
    def open_for_reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Keep the file open for several look-ups of this thread, so that each needs no opening."""
        with ExitStack() as stack:
            if not self._is_prepared and self.path.exists():
                # kept open, so that the file is opened once
                first = stack.enter_context(self._connect(read_only=True))
                self._is_prepared = is_current(first)
            if not self._is_prepared:
                stack.close()
                with self.open_for_writing():
                    self._is_prepared = True
            with self._connect(read_only=True) as connection:
                add_normal_form(connection)
                yield connection

    @contextmanager
    def open_for_writing(
        self, *, as_far_as_it_goes: bool = False
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """The file, open for writing and with all its tables, while no other process has it.
        `as_far_as_it_goes`: with the tables that it has."""
        with self._connect() as connection:
            fetch_rows(connection, _UTC)
            with suppress(WarehouseError) if as_far_as_it_goes else nullcontext():
                ensure_schema(connection)
            yield connection

    # -- facts that decide what is requested next, from the tables of one account; empty results if
    # nothing is loaded yet

    def list_ids(self, account: str) -> list[int]:
        return self._fetch_column(_SHORT["list_ids"], account=account)

    def vanished_list_ids(self, account: str) -> list[int]:
        """Lists that are gone or unknown although contacts of them still count as existing (loading
        lists prevents it)."""
        return self._fetch_column(_SHORT["vanished_list_ids"], account=account)

    def refused_as_nothing(self, account: str, operation: str) -> set[int]:
        """The errorCodes of refusals that mean "nothing there". At least FEWEST addresses were
        refused with it, and SHARE of all refusals of the operation. The operation returned data for
        other addresses, and (nearly) none of the refused addresses has coupons."""
        limits = {"fewest": FEWEST, "share": SHARE, "contradicting": CONTRADICTING}
        sql = load_query("refused_as_nothing").format(refusal_code=REFUSAL_CODE)
        return set(self._fetch_column(sql, account=account, operation=operation, **limits))

    def domain_ids(self, account: str) -> list[int]:
        """Tracked domains that webhooks name."""
        return self._fetch_column(_SHORT["domain_ids"], account=account)

    def listing_hashes(self, table: Table, account: str) -> dict[Key, str]:
        """Key of each existing row → hash of its listing entry when its detail was requested
        (`loads.listing.needs_detail`)."""
        sql = (
            f"select {', '.join(table.key)}, _listing_hash from {table.qualified} where {_LIVE} "
            "and _listing_hash is not null"
        )
        return {tuple(key): hash_ for *key, hash_ in self._fetch_rows(sql, account=account)}

    def accounts_read(self, table: Table) -> set[str]:
        """Accounts for which the table was read at least once, even if there were no rows."""
        sql = "select distinct account from sync.coverage where table_name = $table"
        return set(self._fetch_column(sql, table=table.name))

    def has_rows(self, table: Table, account: str) -> bool:
        """Whether the table has existing rows of the account."""
        sql = (
            f"select 1 from {table.qualified} where account = $account and {table.is_there} limit 1"
        )
        return bool(self._fetch_column(sql, account=account))

    def known_keys(
        self, table: Table, account: str, params: Mapping[str, Any], zone: str
    ) -> Iterator[str]:
        """The rows that a listing with these parameters should show, by key
        (`parsing.item_keys`)."""
        found = self.run_query(known_keys(table, params, zone), {"account": account}).column(0)
        return itertools.chain.from_iterable(chunk.to_pylist() for chunk in found.chunks)

    def posts_needing_detail(self, account: str, networks: Sequence[str]) -> list[tuple[int, str]]:
        """(post_id, network) of posts on these networks that are new or have changed since their
        detail was requested; newest first.

        The calendar does not show when a post is published, but its detail does: the network's id.
        The detail is requested until it has one."""
        sql = load_query("posts_needing_detail").format(row_hash=row_hash(SOCIAL_POSTS, "p"))
        return self._fetch_rows(sql, account=account, networks=list(networks))

    def covered_days(
        self, table: Table, account: str, zone: str = "UTC", *, is_complete: bool = True
    ) -> list[tuple[dt.date, dt.date]]:
        """The ranges of days that were read completely (or not), including both ends, in order. A
        day counts as read if it was over in the account's zone when it was requested. Any later
        request proves that, too, even if the clock was wrong."""
        return self._fetch_rows(
            load_query("covered_days"),
            account=account,
            table=table.name,
            zone=zone,
            is_complete=is_complete,
        )

    def listed_days(
        self, table: Table, account: str, first: dt.date, last: dt.date
    ) -> list[dt.date]:
        """The days from `first` to `last` for which a table of daily entries has rows."""
        assert isinstance(table.load, Window)
        day = quote_name(table.load.column)
        sql = (
            f"select distinct {day} from {table.qualified} where {_LIVE} and {day} between $first "
            "and $last"
        )
        return self._fetch_column(sql, account=account, first=first, last=last)

    # -- each call that could be requested next: a row per call, cheap for a million contacts

    def find_rows(self, name: str, account: str, **params: Any) -> pa.Table:
        """The rows of `queries/NAME.sql` for one account; the file explains its columns."""
        return self.run_query(load_query(name), {"account": account, **params})

    def timeline_candidates(self, account: str, now: dt.datetime) -> pa.Table:
        """One row per contact that exists."""
        today = int(now.timestamp() // 86_400)
        return self.find_rows("timeline_candidates", account, today=today, days=HISTORY_DAYS)

    def coupon_candidates(self, account: str, nothing: Collection[int] = ()) -> pa.Table:
        """One row per e-mail address of contacts that exist. A refusal with an errorCode among
        `nothing` counts as requested."""
        sql = load_query("coupon_candidates").format(refusal_code=REFUSAL_CODE)
        return self.run_query(sql, {"account": account, "nothing": list(nothing)})

    def count_contacts(self) -> dict[str, int]:
        """Contacts that exist, by account."""
        rows = self.run_query(load_query("contact_counts"))
        return dict(
            zip(rows["account"].to_pylist(), rows["contact_count"].to_pylist(), strict=True)
        )

    def measure_rate(self) -> float | None:
        """The most requests per second that this home sent over a minute in the last days; None if
        it sent none."""
        rate: float | None = self._fetch_column(load_query("busiest_minute"))[0]
        return rate

    # -- checks of one table

    def _count_rows(self, rows: str, **params: Any) -> int:
        return int(self._fetch_column(f"select count(*) from {rows}", **params)[0])

    def row_count(self, table: Table) -> int:
        return self._count_rows(f"{table.qualified} where {table.is_there}")

    def duplicate_keys(self, table: Table) -> int:
        """Keys of more than one row. Uniqueness is checked, not enforced."""
        key = ", ".join(["account", *map(quote_name, table.key)])
        return self._count_rows(
            f"(select 1 from {table.qualified} group by {key} having count(*) > 1)"
        )

    def rejected_count(self, table: Table) -> int:
        """Entries that were rejected because they could not be read."""
        return self._count_rows("sync.rejected_records where table_name = $table", table=table.name)

    def list_incomplete(self, table: Table) -> list[str]:
        """Scopes that were not read completely, or have fewer rows than the service counts: one
        line each.

        A range of days is left out if a later complete read includes it."""
        return self._fetch_column(load_query("incomplete"), table=table.name)

    def _fetch_rows(self, sql: str, **params: Any) -> list[Any]:
        return list(zip(*self.run_query(sql, params or None).to_pydict().values(), strict=True))

    def _fetch_column(self, sql: str, **params: Any) -> list[Any]:
        found: list[Any] = self.run_query(sql, params or None).column(0).to_pylist()
        return found

    # -- the parts of apply

    def replay_loads(
        self, connection: duckdb.DuckDBPyConnection, loads: Iterable[Load]
    ) -> Iterator[LoadReport | None]:
        """Apply logged loads in their order from the archive; None for a load that cannot be
        applied (`sync.loads` says why)."""
        done = {load_id for (load_id,) in fetch_rows(connection, "select load_id from sync.loads")}
        for load in loads:
            if load.load_id in done:
                continue
            try:
                yield self.commit_load(connection, load, self.stage_load(load))
            except _PASSING:
                raise
            # an error in reading old responses must not keep new ones out
            except Exception as error:
                log.exception(
                    "a logged load of %s cannot be applied; a rebuild tries it again", load.asset
                )
                with transaction(connection):
                    write_load(
                        connection,
                        load,
                        None,
                        (),
                        error=f"{type(error).__name__}: {error}"[:500],
                    )
                yield None

    def apply_logged(self) -> None:
        """Apply the loads that were logged but interrupted before they were applied."""
        with self._open_session():
            pass

    @contextmanager
    def _open_session(self) -> Iterator[_Session]:
        """The file for as long as loads wait. Logged loads that were not applied are applied first.

        For a small load, a second thread of DuckDB would use a fifth more processor time and save
        none."""
        with self.open_for_writing() as connection:
            fetch_rows(connection, _ONE_THREAD)
            logged = logged_last(connection, self.archive)
            waiting = [
                load for load_id, load in logged.items() if outcome_of(connection, load_id) is None
            ]
            if waiting:
                log.warning(
                    "%d loads that were logged and not applied are applied from the archive",
                    len(waiting),
                )
            reports = filter(None, self.replay_loads(connection, waiting) if waiting else ())
            yield _Session(connection, logged, {report.load_id: report for report in reports})
            fetch_rows(connection, _ALL_THREADS)  # readers of this process may keep the file open

    def commit_load(
        self, connection: duckdb.DuckDBPyConnection, load: Load, staged: Staged
    ) -> LoadReport:
        """The load's one transaction, on a connection whose temporary tables are dropped with it.
        The caller writes its log entry."""
        try:
            with closing(connection.cursor()) as own:
                fetch_rows(own, _UTC)
                if staged.is_large:
                    fetch_rows(own, _ALL_THREADS)
                with transaction(own):
                    reports = apply_tables(own, load, staged)
                    write_load(own, load, staged.as_of, reports)
        finally:
            staged.discard_files()
        return LoadReport(load.load_id, {report.table: report for report in reports})

    def stage_load(self, load: Load) -> Staged:
        """Read the load's responses."""

        def new_file(name: str) -> Path:
            return self._workspace.place_file(f"{next(self._numbers)}-{name}")

        responses = self.archive.responses(load.request_ids)
        tables = [TABLES[name] for name in load.tables]
        return stage_responses(responses, tables, ZoneInfo(load.zone), self.parse_rows, new_file)
