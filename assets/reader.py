"""Reads the chosen assets of all accounts at once, so that the limit is busy from the first second
to the last.

The states of an asset of one account:

    state      means                                             ends when
    waiting    not in `results`                                 what it comes `after` has finished
    reading    in `results`, a thread fetches and loads it       its function returns or raises
    retrying   a transient error; waits `RETRY_AFTER_S` first    the second try ends, the run stops
    finished   `AccountResult.is_finished`; loaded or `error`    never: the run has one try of each
    stopped    the run stops; what came stays in the archive     the next run resumes it

What other assets wait for goes first, its requests and its loads. Not here: what is fetched
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

#: Readings under way of all accounts together, and of one at least, before another begins that
#: nothing waits for and that waits for nothing: each has a thread.
_AT_ONCE = 32
_AT_ONCE_LEAST = 4
#: How long stopping waits for each thread; a load takes seconds.
_STOP_SECONDS = 30.0
#: One more try, after so many seconds, for what a person would simply run again.
RETRIES = 1
RETRY_AFTER_S = 30.0

#: When a batch is read again that names no other time.
_A_NIGHT = dt.timedelta(days=1)
_STOPPED = "the run was stopped; the next one goes on from there"
_READ_BEFORE = "read whole by the run that this one resumes"

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
        self.needed = tuple(needed)  # which nobody chose, see `sources.with_needed`
        self.warehouse = warehouse
        self.results: dict[_Key, AccountResult] = {}  # of what was begun
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
        """Those that a person chose; None: all that are due."""
        today = max(session.today() for session in self.sessions)
        if self.chosen_days:
            return self.chosen_days.limit_to(today)
        return None

    def begin_reading(self, read_before: Iterable[str] = ()) -> None:
        """The assets that the run which this one resumes has read are as if this one had, and not
        read again."""
        for name in read_before:
            for session in self.sessions:
                result = AccountResult(session.account, learnt=[_READ_BEFORE], is_finished=True)
                self.results[name, session.account] = result
        self._checkpoints.begin_assets(self._chosen)
        with self._changed:
            self._start_ready()

    def as_loaded(self) -> Iterator[SourceAsset]:
        """Each asset when it is read and loaded for every account, whatever became of it, behind
        those that it comes `after`. Raises Stopped."""
        waiting = list(self._in_order)
        while waiting:
            asset = self._next_loaded(waiting)
            waiting.remove(asset)
            yield asset

    def results_of(self, asset: SourceAsset) -> list[AccountResult]:
        """Of all accounts in which it was begun."""
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
                    if self._is_loaded(asset) and not any(
                        before in waiting for before in asset.after
                    ):
                        return asset
                if self._is_stopping:
                    raise Stopped(_STOPPED)
                self._changed.wait(0.5)  # in slices, so that an interrupt gets through

    def _is_loaded(self, asset: SourceAsset) -> bool:
        return all(self._is_finished((asset.name, session.account)) for session in self.sessions)

    def stop_fetching(self) -> None:
        """Send nothing more, and release all waiters. What has come is in the archive, and the next
        run begins with it."""
        self._is_stopping = True
        for session in self.sessions:
            session.client.stop()
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Send nothing more, and wait for the loads under way: ending one half-way would only
        repeat it."""
        self.stop_fetching()
        for thread in list(self._threads):
            thread.join(_STOP_SECONDS)

    def note_begun(self, run_id: str, job: str, running: Sequence[str]) -> None:
        """Write that the run has begun, and that those have died which had, and are not
        `running`."""
        with (
            suppress(WarehouseError),
            self.warehouse.open_for_writing() as connection,
        ):  # loads say what is wrong
            write_deaths(connection, running)
            write_run(connection, Run(run_id, job, self.began_at, None, None, 0, 0.0, ""))

    def note_run(
        self, run_id: str, job: str, failed: Mapping[str, str] = {}, *, is_publishing: bool = False
    ) -> None:
        """Write the run, its plans and requests into the `sync` tables: ahead of publishing, so
        that the copy has them, and in the end. `failed`: steps behind the reading, with the
        reasons."""
        is_cut_short = self._is_cut_short()
        run = self._make_run(run_id, job, is_publishing=is_publishing, is_cut_short=is_cut_short)
        if failed:
            run = _add_failures(run, failed)
        self.warehouse.archive.seal_requests()
        if not is_publishing:
            through = [
                key
                for key, result in self.results.items()
                if result.is_finished and result.is_through
            ]
            self.warehouse.finish_assets([(account, asset) for asset, account in through])
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
        """It ended before everything was tried."""
        ends = [isinstance(result.error, BudgetSpent | Stopped) for result in self.results.values()]
        tried = sum(map(self._is_finished, self.results))
        return self._is_stopping or any(ends) or tried < len(self._chosen) * len(self.sessions)

    def _make_run(self, run_id: str, job: str, *, is_publishing: bool, is_cut_short: bool) -> Run:
        reasons = self.list_missing_lines()
        if is_cut_short:
            reasons.append("it ended before everything was read; the next run goes on from there")
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
        """How far it is now: reading, in the end loading; requests with a response and known so
        far; the assets at work."""
        with self._changed:
            results = dict(self.results)
        at_work = sorted(
            {asset for (asset, _), result in results.items() if not result.is_finished}
        )
        done, total = (
            sum(getattr(result, name) for result in results.values())
            for name in ("fetched", "planned")
        )
        is_fetching = done < total or len(results) < len(self._chosen) * len(self.sessions)
        return "reading" if is_fetching else "loading", done, total, ", ".join(at_work)

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
        """What a person should know although nothing is missing: clocks that are wrong, responses
        that came too late to be loaded."""
        found = [notice for session in self.sessions if (notice := session.clock_notice())]
        for (asset, account), result in self.results.items():
            found += [f"{asset}, account {account}: {line}" for line in result.notices]
        return found

    def _is_finished(self, key: _Key) -> bool:
        return key in self.results and self.results[key].is_finished

    def _start_ready(self) -> None:
        """Start what waits for nothing, what others wait for first. Called with `_changed` held."""
        for session in self.sessions if not self._is_stopping else ():
            for asset in self._in_order:
                if (asset.name, session.account) not in self.results and self._may_start(
                    asset, session.account
                ):
                    self._start_asset(asset, session)

    def _may_start(self, asset: SourceAsset, account: str) -> bool:
        before = [
            other for other in (*asset.after, *asset.informed_by) if other.name in self._chosen
        ]
        if before or self._urgency[asset.name]:
            return all(self._is_finished((other.name, account)) for other in before)
        mine = [result for (_, its), result in self.results.items() if its == account]
        return sum(not result.is_finished for result in mine) < self._at_once

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
                # a mistake of ours in one asset must not stop the others
                what = (asset.name, session.account, type(error).__name__)
                log.error("reading %s of account %s failed unexpectedly: %s", *what, exc_info=error)
            if isinstance(error, OtherBusiness):
                # nothing more of the account is worth a request, or believed
                session.error = error
            result.error = error
        return result

    def _fetch_and_load(
        self, asset: SourceAsset, session: AccountSession, result: AccountResult
    ) -> None:
        """Batch by batch: while one is loaded, the client goes on with the next requests. What came
        before an error is loaded all the same."""
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
        load = Load(
            account=session.account,
            asset=asset.name,
            tables=tuple(table.name for table in asset.tables),
            request_ids=batch.request_ids,
            scope=batch.scope
            if batch.days is None
            else {"from_on": str(batch.days.first), "to_on": str(batch.days.last), **batch.scope},
            is_complete=batch.is_complete,
            service_count=batch.service_count,
            due_at=batch.due_at or session.now() + _A_NIGHT,
            logged_at=session.now(),
            zone=str(session.zone),
            # a batch without responses is about a list that is gone
            shrink_limit=self._shrink_limit if batch.request_ids else None,
        )
        return self.warehouse.apply_load(load)

    def _waiting_for(self, asset: SourceAsset) -> int:
        """How many assets cannot begin before this one is loaded: its requests go first."""
        direct = [
            other for other in self._chosen.values() if asset in (*other.after, *other.informed_by)
        ]
        return len(direct) + sum(self._waiting_for(other) for other in direct)


def _add_failures(run: Run, failed: Mapping[str, str]) -> Run:
    lines = [run.message, *(f"{step}: {reason}" for step, reason in failed.items())]
    return replace(run, outcome="failed", message="\n".join(filter(None, lines)))
