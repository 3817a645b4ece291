"""Reads the chosen assets of all accounts in parallel, so that all of the rate limit is used from
the first second to the last.

The states of an asset of one account:

    state      means                                             ends when
    waiting    not in `results`                                 what it comes `after` has finished
    reading    in `results`, a thread fetches and loads it       its function returns or raises
    retrying   a transient error; waits `RETRY_AFTER_S` first    the second try ends, the run stops
    finished   `AccountResult.is_finished`; loaded or `error`    never: the run has one try of each
    stopped    the run stops; what came stays in the archive     the next run resumes it

Assets that others wait for go first, with their requests and their loads. Not here: what is fetched
(`sources`), how (`fetch`), how it is loaded (`warehouse`)."""

import datetime as dt
import logging
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from assets.account_session import AccountSession
from assets.checkpoint import Checkpoints
from assets.days import ChosenDays, DateRange
from assets.fetch import Fetcher, FetchSettings
from assets.result import AccountResult, Batch, group_lines
from assets.sources import SourceAsset
from marketing_api.clock import Clock, utc_now
from marketing_api.errors import BudgetSpent, MarketingApiError, OtherBusiness, Stopped
from warehouse.bookkeeping import (
    PUBLISHING,
    Run,
    load_requests,
    write_deaths,
    write_plan,
    write_run,
)
from warehouse.errors import WarehouseError
from warehouse.loads.load import Load, LoadReport
from warehouse.status_file import write_status
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: Assets that are read at the same time, each in a thread: for all accounts together, and at least
#: for one account. Assets that wait for others, or that others wait for, are not limited.
_AT_ONCE = 32
_AT_ONCE_LEAST = 4
#: How long stopping waits for each thread; a load takes seconds.
_STOP_SECONDS = 30.0
#: Tries after a transient error, and the pause before them.
RETRIES = 1
RETRY_AFTER_S = 30.0

#: When a batch is read again, unless it names another time.
_A_NIGHT = dt.timedelta(days=1)
_STOPPED = "the run was stopped; the next one resumes"
_READ_BEFORE = "read completely by the run that this one resumes"

_Key = tuple[str, str]  # asset, account


class Reader:
    """Reads the chosen assets of all accounts in the background, from `begin` on."""

    def __init__(
        self,
        sessions: Sequence[AccountSession],
        chosen: Iterable[SourceAsset],
        warehouse: Warehouse,
        checkpoints: Checkpoints,
        settings: FetchSettings,
        *,
        chosen_days: ChosenDays | None = None,
        shrink_limit: float | None = None,
        needed: Sequence[SourceAsset] = (),
        now: Clock = utc_now,
    ) -> None:
        self.sessions = tuple(sessions)
        self.needed = tuple(needed)  # not chosen but required, see `sources.with_needed`
        self.warehouse = warehouse
        self.results: dict[_Key, AccountResult] = {}  # of assets that were begun
        self.chosen_days = chosen_days
        self.now = now
        self._settings = settings
        self._shrink_limit = shrink_limit
        self._checkpoints = checkpoints
        self._chosen = {asset.name: asset for asset in chosen}
        self._urgency = {name: self._waiting_for(asset) for name, asset in self._chosen.items()}
        self._in_order = sorted(self._chosen.values(), key=lambda asset: -self._urgency[asset.name])
        self._at_once = max(_AT_ONCE_LEAST, _AT_ONCE // max(1, len(self.sessions)))
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_stopping = False
        self.began_at = self.ended_at = now()

    @property
    def chosen(self) -> Sequence[SourceAsset]:
        return tuple(self._chosen.values())

    def days_of_run(self) -> DateRange | None:
        """The days that a person chose; None: all due days."""
        if not self.chosen_days:
            return None
        today = max(session.today() for session in self.sessions)
        return self.chosen_days.limit_to(today)

    def begin_reading(self, read_before: Iterable[str] = ()) -> None:
        """Start reading. `read_before`: the assets that the resumed run has read; they are not read
        again."""
        for name in read_before:
            for session in self.sessions:
                result = AccountResult(session.account, learnt=[_READ_BEFORE], is_finished=True)
                self.results[name, session.account] = result
        self._checkpoints.begin_assets(self._chosen)
        with self._changed:
            self._start_ready()

    def as_loaded(self) -> Iterator[SourceAsset]:
        """Each asset when it was read and loaded for every account, or failed; never before the
        assets that it comes `after`. Raises Stopped."""
        waiting = list(self._in_order)
        while waiting:
            asset = self._next_loaded(waiting)
            waiting.remove(asset)
            yield asset

    def results_of(self, asset: SourceAsset) -> list[AccountResult]:
        """The results of all accounts for which it was begun."""
        keys = ((asset.name, session.account) for session in self.sessions)
        return [self.results[key] for key in keys if key in self.results]

    def finish_reading(self) -> None:
        """Wait for everything that was begun. Raises Stopped."""
        for _ in self.as_loaded():
            pass

    def _next_loaded(self, waiting: Sequence[SourceAsset]) -> SourceAsset:
        with self._changed:
            while True:
                for asset in waiting:
                    is_early = any(before in waiting for before in asset.after)
                    parts = [(asset.name, session.account) for session in self.sessions]
                    if not is_early and all(map(self._is_finished, parts)):
                        return asset
                if self._is_stopping:
                    raise Stopped(_STOPPED)
                self._changed.wait(0.5)  # in slices, so that an interrupt gets through

    def stop_fetching(self) -> None:
        """Send nothing more, and release all waiters. The responses so far are in the archive, and
        the next run uses them."""
        self._is_stopping = True
        for session in self.sessions:
            session.client.stop()
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Send nothing more, and wait for the loads under way, which would have to be repeated
        otherwise."""
        self.stop_fetching()
        for thread in list(self._threads):
            thread.join(_STOP_SECONDS)

    def note_begun(self, run_id: str, job: str, running: Sequence[str]) -> None:
        """Write that the run has begun, and that runs have died which had begun and are not
        `running`."""
        run = Run(run_id, job, self.began_at, None, None, 0, 0.0, "")
        # If the warehouse can't be written, the loads report it.
        with suppress(WarehouseError), self.warehouse.open_for_writing() as connection:
            write_deaths(connection, running)
            write_run(connection, run)

    def note_run(
        self, run_id: str, job: str, failed: Mapping[str, str] = {}, *, is_publishing: bool = False
    ) -> None:
        """Write the run, its plans and requests into the `sync` tables: before publishing, so that
        the copy has them, and at the end. `failed`: steps after the reading that failed, with the
        reasons."""
        is_cut_short = self._is_cut_short()
        run = self._make_run(run_id, job, is_publishing=is_publishing, is_cut_short=is_cut_short)
        if failed:
            run = _add_failures(run, failed)
        self.warehouse.archive.seal_requests()
        if not is_publishing:
            through = [
                (account, asset)
                for (asset, account), result in self.results.items()
                if result.is_finished and result.is_through
            ]
            self.warehouse.finish_assets(through)
        with self.warehouse.open_for_writing() as connection:
            write_run(connection, run)
            for session in self.sessions:
                planned = session.planner.export_plan()
                if planned is not None:
                    write_plan(connection, run_id, planned)
            load_requests(connection, self.warehouse.archive)
            write_status(connection, self.warehouse.path.parent, run)
        if is_publishing:
            return
        if not is_cut_short:
            self._checkpoints.end_assets(self._chosen)
        for notice in self.list_notices():
            log.warning("%s", notice)

    def _is_cut_short(self) -> bool:
        """Whether the run ended before everything was tried."""
        results = self.results.values()
        has_ended = any(isinstance(result.error, BudgetSpent | Stopped) for result in results)
        finished_count = sum(result.is_finished for result in results)
        return self._is_stopping or has_ended or finished_count < self._planned_count

    @property
    def _planned_count(self) -> int:
        return len(self._chosen) * len(self.sessions)

    def _make_run(self, run_id: str, job: str, *, is_publishing: bool, is_cut_short: bool) -> Run:
        reasons = self.list_missing_lines()
        if is_cut_short:
            reasons.append("it ended before everything was read; the next run resumes")
        outcome = "partial" if reasons else "done"
        if reasons and all(result.error is not None for result in self.results.values()):
            outcome = "failed"
        return Run(
            run_id=run_id,
            job=job,
            started_at=self.began_at,
            ended_at=None if is_publishing else self.ended_at,
            outcome=PUBLISHING if is_publishing else outcome,
            request_count=self.requests_sent(),
            waited_s=sum(session.client.statistics.waited_s for session in self.sessions),
            message="\n".join(reasons),
        )

    def progress(self) -> tuple[str, int, int, str]:
        """The progress: `reading`, or `loading` at the end; requests with a response; requests
        known so far; the assets that are being read."""
        with self._changed:
            results = dict(self.results)
        at_work = {asset for (asset, _), result in results.items() if not result.is_finished}
        done = sum(result.fetched for result in results.values())
        total = sum(result.planned for result in results.values())
        # making a crawl plan takes a while, in which no requests of its assets are known
        are_planned = all(result.planned or result.is_finished for result in results.values())
        is_fetching = done < total or len(results) < self._planned_count or not are_planned
        stage = "reading" if is_fetching else "loading"
        return stage, done, total, ", ".join(sorted(at_work))

    def requests_sent(self) -> int:
        """Requests that left this process, retries included."""
        return sum(session.client.statistics.requests for session in self.sessions)

    def list_missing_reasons(self) -> dict[_Key, list[str]]:
        """What is missing: (asset, account) → reasons."""
        return {
            key: result.missing_reasons
            for key, result in self.results.items()
            if result.missing_reasons
        }

    def list_missing_lines(self, assets: Container[str] | None = None) -> list[str]:
        """The reasons of these assets (default: all), a line for each."""
        chosen = {
            (asset, account): lines
            for (asset, account), lines in self.list_missing_reasons().items()
            if assets is None or asset in assets
        }
        return list(group_lines(chosen))

    def list_notices(self) -> list[str]:
        """What a person should know although nothing is missing: wrong clocks, responses that came
        too late to be loaded."""
        found = list(filter(None, (session.clock_notice() for session in self.sessions)))
        for (asset, account), result in self.results.items():
            found += [f"{asset}, account {account}: {line}" for line in result.notices]
        return found

    def _is_finished(self, key: _Key) -> bool:
        return key in self.results and self.results[key].is_finished

    def _start_ready(self) -> None:
        """Start the assets that wait for nothing; those that others wait for go first. Called with
        `_changed` held."""
        if self._is_stopping:
            return
        for session in self.sessions:
            for asset in self._in_order:
                is_begun = (asset.name, session.account) in self.results
                if not is_begun and self._may_start(asset, session.account):
                    self._start_asset(asset, session)

    def _may_start(self, asset: SourceAsset, account: str) -> bool:
        upstream = (*asset.after, *asset.informed_by)
        before = [other for other in upstream if other.name in self._chosen]
        if before or self._urgency[asset.name]:
            return all(self._is_finished((other.name, account)) for other in before)
        under_way = [
            key
            for key, result in self.results.items()
            if key[1] == account and not result.is_finished
        ]
        return len(under_way) < self._at_once

    def _start_asset(self, asset: SourceAsset, session: AccountSession) -> None:
        self.results[asset.name, session.account] = AccountResult(session.account)
        name = f"{session.account}/{asset.name}"
        thread = threading.Thread(
            target=self._read_asset, args=(asset, session), name=name, daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _read_asset(self, asset: SourceAsset, session: AccountSession) -> None:
        result = self._try_asset(asset, session)
        for _ in range(RETRIES):
            if not result.is_worth_a_retry or self._is_stopping_within(RETRY_AFTER_S):
                break
            result = self._try_asset(asset, session)  # only what is missing is fetched
        with self._changed:
            result.is_finished = True
            self.ended_at = self.now()
            self._threads.remove(threading.current_thread())
            self._start_ready()
            self._changed.notify_all()

    def _is_stopping_within(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._is_stopping, seconds)

    def _try_asset(self, asset: SourceAsset, session: AccountSession) -> AccountResult:
        result = self.results[asset.name, session.account] = AccountResult(session.account)
        try:
            self._fetch_and_load(asset, session, result)
        except Exception as error:
            if not isinstance(error, MarketingApiError | WarehouseError | OSError):
                # an error in our code for one asset must not stop the others
                what = (asset.name, session.account, type(error).__name__)
                log.error("reading %s of account %s failed unexpectedly: %s", *what, exc_info=error)
            if isinstance(error, OtherBusiness):
                # nothing more is requested from this account or loaded
                session.error = error
            result.error = error
        return result

    def _fetch_and_load(
        self, asset: SourceAsset, session: AccountSession, result: AccountResult
    ) -> None:
        """Batch by batch: while one is loaded, the client sends the next requests. Batches before
        an error are loaded, too."""
        while not session.opened.wait(0.5):
            if self._is_stopping:
                raise Stopped("the run was stopped before the account had responded")
        if session.error is not None:
            raise session.error
        urgency = self._urgency[asset.name]
        fetch = Fetcher(
            session, asset.name, asset.tables, result, self._settings, self.chosen_days, urgency
        )
        try:
            for batch in asset.function(fetch):
                if isinstance(session.error, OtherBusiness):
                    raise session.error
                result.note_batch(batch)
                if batch.request_ids or batch.scope or batch.is_nothing_due:
                    result.reports.append(self._load_batch(asset, session, batch))
                if self._is_stopping:
                    raise Stopped(_STOPPED)
        finally:
            result.spent = session.count_spent(fetch.operations)

    def _load_batch(self, asset: SourceAsset, session: AccountSession, batch: Batch) -> LoadReport:
        scope = dict(batch.scope)
        if batch.days is not None:
            days = {"from_on": str(batch.days.first), "to_on": str(batch.days.last)}
            scope = days | scope
        load = Load(
            account=session.account,
            asset=asset.name,
            tables=tuple(table.name for table in asset.tables),
            request_ids=batch.request_ids,
            scope=scope,
            is_complete=batch.is_complete,
            service_count=batch.service_count,
            due_at=batch.due_at or session.now() + _A_NIGHT,
            logged_at=session.now(),
            zone=str(session.zone),
            # a batch without responses is that of a deleted list
            shrink_limit=self._shrink_limit if batch.request_ids else None,
        )
        return self.warehouse.apply_load(load)

    def _waiting_for(self, asset: SourceAsset) -> int:
        """How many assets cannot begin before this one is loaded: its requests go first."""
        count = 0
        for other in self._chosen.values():
            if asset in (*other.after, *other.informed_by):
                count += 1 + self._waiting_for(other)
        return count


def _add_failures(run: Run, failed: Mapping[str, str]) -> Run:
    lines = [run.message] if run.message else []
    lines += [f"{step}: {reason}" for step, reason in failed.items()]
    return replace(run, outcome="failed", message="\n".join(lines))
