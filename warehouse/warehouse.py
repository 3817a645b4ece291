"""The warehouse as the rest of the program sees it: apply loads, read tables.

Belongs here: opening, the order of log and transaction, recovery. Not here: what a load does to tables (`loads/`), what is
read for which purpose (`lookups`), starting anew (`rebuild`).
"""

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from marketing_api import parsing
from marketing_api.exchange import Response
from warehouse.archive import Archive
from warehouse.archive.disk import Workspace
from warehouse.connection import DEADLINE_S, MEMORY_LIMIT, OnWait, connect
from warehouse.errors import ArchiveDamaged, ArchiveError, ArchiveFull, NotArchived, WarehouseLocked
from warehouse.loads.apply import apply_tables
from warehouse.loads.load import APPLIED, Load, LoadReport, is_log_whole, logged_last, outcome_of, repair_log, write_load
from warehouse.loads.queue import LoadQueue
from warehouse.loads.staging import LastLoaded, ParseRows, Staged, are_current, contact_of, last_loaded, stage
from warehouse.loads.target import TableReport
from warehouse.lookups import Lookups
from warehouse.schema import ensure_schema
from warehouse.sql import Params, rows, transaction
from warehouse.tables import TABLES

log = logging.getLogger(__name__)

_UTC = "set timezone = 'UTC'"
_ONE_THREAD, _ALL_THREADS = "set threads = 1", "reset threads"
#: Not the fault of a load: nothing is to be remembered about it.
_PASSING = (
    OSError,
    MemoryError,
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.TransactionException,  # how a commit ends for which there is no room
    duckdb.FatalException,
    WarehouseLocked,
    ArchiveFull,
)


@dataclass
class _Session:
    """The open file, the last loads of the log as they were first logged, and what applying those did that nobody had applied."""

    connection: duckdb.DuckDBPyConnection
    logged: Mapping[str, Load]
    recovered: dict[str, LoadReport]


class Warehouse(Lookups):
    """The warehouse of one home. Safe for several threads and processes: loads take turns, readers of this process join."""

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
        self._connect = partial(connect, self.path, deadline_s=deadline_s, memory_limit=MEMORY_LIMIT, on_wait=on_wait)
        self._workspace = Workspace(home / "tmp" / "loads")
        self._workspace.sweep()
        self._numbers = itertools.count()
        self._queue = LoadQueue(self._session)
        self._is_prepared = self._is_log_checked = False

    # -- loading

    def apply(self, load: Load, responses: Sequence[Response] | None = None, *, urgency: int = 0) -> LoadReport:
        """Apply a load: log it, then one transaction. `responses` are those of `load.request_ids` in that order; by default
        they are read from the archive, so that not all of them need to be in memory.

        Loads that were logged but not applied (a run was killed) are applied first. A load that was applied before changes
        nothing. Whatever is raised, the tables are as before; a load that was logged is tried again by the next one. Of those that
        wait in this process the one of the highest `urgency` goes first.
        """
        staged: Staged | Exception
        try:
            staged = self.stage(load, responses)
        except _PASSING:
            raise
        except Exception as problem:  # logged all the same: a later version may read the responses
            staged = problem
        self.archive.flush()
        return self._queue.do(lambda session: self._apply(session, load, staged), urgency)

    def _apply(self, session: _Session, load: Load, staged: Staged | Exception) -> LoadReport:
        if (report := session.recovered.pop(load.load_id, None)) is not None:
            return report
        if outcome_of(session.connection, load.load_id) == APPLIED:
            return LoadReport(load.load_id, {name: TableReport(name) for name in load.tables}, is_repeat=True)
        logged = session.logged.get(load.load_id)
        if logged is None:
            self.archive.load_log.append(load.event())
        if isinstance(staged, Exception):
            raise staged
        if not are_current(session.connection, load.account, staged.assumed):
            staged.discard()
            staged = self.stage(load)
        return self.commit(session.connection, logged or load, staged)

    def finish_assets(self, finished: Iterable[tuple[str, str]]) -> None:
        """Note that all of these (account, asset) was read: responses from before need not be used again (`lookups.finished`)."""
        loads = [Load(account, asset, (), (), "UTC") for account, asset in finished]

        def note(session: _Session) -> None:
            self.archive.load_log.append(*(load.event() for load in loads))
            with transaction(session.connection):
                for load in loads:
                    write_load(session.connection, load, None, ())

        self.archive.flush()
        self._queue.do(note)

    # -- reading

    def read(self, sql: str, params: Params = None) -> pa.Table:
        """The rows of one query as an Arrow table."""
        with self.reading() as connection:
            return connection.sql(sql, params=params).to_arrow_table()

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Keep the file open for several `read`s of this thread, which then cost no opening each."""
        if not self._is_prepared:
            with self.writing():
                self._is_prepared = True
        return self._connect(read_only=True)

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The file, open for writing and with all its tables, while nobody else has it."""
        with self._connect() as connection:
            rows(connection, _UTC)
            ensure_schema(connection, TABLES.values())
            yield connection

    # -- the parts of apply

    def replay(self, connection: duckdb.DuckDBPyConnection, loads: Iterable[Load]) -> Iterator[LoadReport | None]:
        """Apply logged loads in their order from the archive; None for one that cannot be applied (sync.loads says why)."""
        done = {load_id for (load_id,) in rows(connection, "select load_id from sync.loads")}
        for load in loads:
            if load.load_id in done:
                continue
            try:
                try:
                    yield self.commit(connection, load, self.stage(load))
                except (ArchiveDamaged, NotArchived) as problem:
                    self._commit_rest(connection, load, problem)
                    yield None
            except _PASSING:
                raise
            except Exception as problem:  # a mistake in reading old responses must not keep new ones out
                log.exception("a logged load of %s cannot be applied; a rebuild tries it again", load.asset)
                with transaction(connection):
                    write_load(connection, load, None, (), error=f"{type(problem).__name__}: {problem}"[:500])
                yield None

    def _commit_rest(self, connection: duckdb.DuckDBPyConnection, load: Load, problem: ArchiveError) -> None:
        """Apply what is left of a load whose responses cannot all be read. It counts as failed. Raises `problem` when nothing is left."""
        left = self.archive.readable(load.request_ids)
        if not left:
            raise problem
        gone = (
            f"{len(load.request_ids) - len(left):,} of {len(load.request_ids):,} responses cannot be read any more, the others are applied"
        )
        log.warning("a load of %s: %s: %s", load.asset, gone, problem)
        rest = replace(load, request_ids=tuple(left), is_complete=False, scope={**load.scope, "reason": gone})
        self.commit(connection, rest, self.stage(rest), instead_of=load, error=f"{gone}: {problem}"[:500])

    @contextmanager
    def _session(self) -> Iterator[_Session]:
        """The file for as long as loads wait, with what was logged and not applied brought in first.

        Of a small load a second thread of DuckDB's would take a fifth more of the processor and none of the time.
        """
        with self.writing() as connection:
            rows(connection, _ONE_THREAD)
            logged = self._logged(connection)
            recovered = {}
            if waiting := [load for load_id, load in logged.items() if outcome_of(connection, load_id) is None]:
                log.warning("%d loads that were logged and not applied are applied from the archive", len(waiting))
                recovered = {report.load_id: report for report in self.replay(connection, waiting) if report is not None}
            yield _Session(connection, logged, recovered)
            rows(connection, _ALL_THREADS)  # readers of this process may stay at the file

    def _logged(self, connection: duckdb.DuckDBPyConnection) -> dict[str, Load]:
        """The last loads of the log, which is mended first where it is damaged; the first time all of it is looked at."""
        logged = logged_last(connection, self.archive.load_log.read_backwards())
        if not is_log_whole(connection, self.archive, logged, is_checked=self._is_log_checked):
            repair_log(connection, self.archive)
            logged = logged_last(connection, self.archive.load_log.read_backwards())
        self._is_log_checked = True
        return logged

    def commit(
        self, connection: duckdb.DuckDBPyConnection, load: Load, staged: Staged, *, instead_of: Load | None = None, error: str | None = None
    ) -> LoadReport:
        """The load's one transaction, on a connection whose temporary tables go with it. Its log entry is the caller's business.

        `instead_of`: the logged load of which this is what could be had, and that failed with the `error`.
        """
        try:
            with closing(connection.cursor()) as own:
                rows(own, _UTC)
                if staged.is_large:
                    rows(own, _ALL_THREADS)
                with transaction(own):
                    reports = apply_tables(own, load, staged)
                    write_load(own, instead_of or load, staged.as_of, reports, error)
        finally:
            staged.discard()
        return LoadReport(load.load_id, {report.table: report for report in reports})

    def stage(self, load: Load, responses: Sequence[Response] | None = None) -> Staged:
        """Read the load's responses: all of those in the archive, or these but for unchanged ones (`Accumulate.contact_parameter`)."""
        tables = [TABLES[name] for name in load.tables]
        last: dict[int, LastLoaded] = {}
        if responses is not None:
            if [response.request_id for response in responses] != list(load.request_ids):
                raise ValueError("the responses are not those of the load's request_ids, in that order: a rebuild would take others")
            contacts = {contact for response in responses if (contact := contact_of(response.call, tables)) is not None}
            if contacts:
                with self.reading() as connection:
                    last = last_loaded(connection, load.account, contacts)
        read = self.archive.responses(load.request_ids) if responses is None else responses

        def new_file(name: str) -> Path:
            return self._workspace.file(f"{next(self._numbers)}-{name}")

        return stage(read, tables, ZoneInfo(load.zone), self.parse_rows, new_file, last)
