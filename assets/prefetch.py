"""Runs the asset functions ahead of the steps that wait for them, so that the limit is busy from the first
second to the last.

An asset of an account is begun when the assets it comes `after` are in the warehouse; what others wait for
goes first, its requests and its loads. Not here: what is fetched (`sources`), how (`fetch`), how it is loaded
(`warehouse`)."""

import datetime as dt
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from assets.account_session import AccountSession
from assets.checkpoint import Checkpoints
from assets.days import ChosenDays, DateRange, days_of_run
from assets.fetch import Fetcher, FetchSettings
from assets.planning.crawl_plan import COUPONS
from assets.result import AccountResult, Batch
from assets.sources import SourceAsset
from marketing_api.clock import Clock, SteadyClock, utc_now
from marketing_api.errors import BudgetSpent, MarketingApiError, OtherBusiness, Stopped
from marketing_api.operation import Operation
from marketing_api.worker_pool import Lane, WorkerPool
from warehouse.bookkeeping import PUBLISHING, Run, load_requests, write_plan, write_run
from warehouse.errors import WarehouseError
from warehouse.loads.load import Load, LoadReport
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: Batches that wait for their load while the next is fetched; they are in the archive, so none is lost.
_LOADS_AHEAD = 2
#: Seconds of a run for which loads that nothing waits for give way: its start is short of the processor. What
#: waits is in the archive.
_GIVE_WAY_S = 30.0
#: Threads that parse responses and have them loaded, for all accounts: one works while another waits for the
#: file.
_LOADERS = 4
#: Readings under way that nothing waits for and that wait for nothing, of all accounts together, and of one
#: at least.
_ALONE, _ALONE_LEAST = 32, 4
#: How long stopping waits for each thread; a load takes seconds.
_STOP_SECONDS = 30.0

#: A machine's clock that is moved by less is being kept right.
_JUMP = dt.timedelta(minutes=1)
#: When a batch is read again that names no other time.
_A_NIGHT = dt.timedelta(days=1)

_Key = tuple[str, str]  # asset, account


@dataclass(eq=False)
class _Reading:
    """One asset of one account on its way. `parts`: the fetching and the batches that are not loaded yet, in
    the order of `lane`."""

    asset: SourceAsset
    session: AccountSession
    result: AccountResult
    lane: Lane
    is_alone: bool
    parts: int = 1
    operations: Collection[Operation] = ()


class Prefetcher:
    """Reads the chosen assets of all accounts in the background; `result` waits for one of them."""

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
        now: Clock = utc_now,
    ) -> None:
        self.sessions = tuple(sessions)
        self.warehouse = warehouse
        self.results: dict[_Key, AccountResult] = {}
        self._settings = settings
        self.chosen_days = chosen_days
        self.now = now
        self._shrink_limit = shrink_limit
        self._changed = threading.Condition()
        self._chosen = {asset.name: asset for asset in chosen}
        self._checkpoints = checkpoints
        self._started: set[_Key] = set()
        self._finished: set[_Key] = set()
        self._through: list[tuple[str, str]] = []  # (account, asset) whose responses are all loaded
        self._urgency = {name: self._waiting_for(asset) for name, asset in self._chosen.items()}
        self._in_order = sorted(self._chosen.values(), key=lambda asset: -self._urgency[asset.name])
        self._urgent = {
            (name, session.account)
            for name, urgency in self._urgency.items()
            if urgency
            for session in self.sessions
        }
        self._is_way_clear = False
        self._gives_way_until = time.monotonic() + _GIVE_WAY_S
        self._threads: list[threading.Thread] = []
        self._loads = WorkerPool(
            _LOADERS,
            name="load",
            is_served=lambda lane: (
                bool(lane.urgency) or self._is_way_clear or time.monotonic() >= self._gives_way_until
            ),
        )
        self._alone: Counter[str] = (
            Counter()
        )  # readings under way that nothing waits for and that wait for nothing, by account
        self._alone_at_once = max(_ALONE_LEAST, _ALONE // max(1, len(self.sessions)))
        self._is_stopping = False
        self.began_at = self.ended_at = now()

    def days_of_run(self) -> DateRange:
        """The days that the run is about, over all accounts."""
        skew = max((session.client.clock.skew for session in self.sessions), key=abs, default=dt.timedelta())
        return days_of_run(
            self.began_at + skew,
            [session.zone for session in self.sessions],
            self._settings.lookback_days,
            self.chosen_days,
        )

    @property
    def began_by_files(self) -> dt.datetime:
        """When it began as files are dated, which a clock that is set back during the run dates earlier."""
        return self.began_at + min(
            self.now.jump if isinstance(self.now, SteadyClock) else dt.timedelta(), dt.timedelta()
        )

    def begin(self) -> None:
        self._checkpoints.begin(self._chosen)
        with self._changed:
            self._start_ready(*self.sessions)

    def again(self, asset: SourceAsset) -> None:
        """Read a failed asset once more for the accounts in which it failed: only what is missing is
        fetched."""
        with self._changed:
            for session in self.sessions:
                key = (asset.name, session.account)
                if key in self._finished and self.results[key].is_failure:
                    self._finished.discard(key)
                    self._started.discard(key)
            self._start_ready(*self.sessions)

    def result(self, asset: SourceAsset) -> list[AccountResult]:
        """Wait until the asset is read and loaded for every account, whatever became of it. Raises
        Stopped."""
        keys = [(asset.name, session.account) for session in self.sessions]
        with self._changed:
            while not self._finished.issuperset(keys):
                if self._is_stopping:
                    raise Stopped("the run was stopped; the next one goes on from there")
                self._changed.wait(0.5)  # in slices, so that an interrupt gets through
        return [self.results[key] for key in keys]

    def finish(self) -> None:
        """Wait for everything that was begun. Raises Stopped."""
        for asset in self._in_order:
            self.result(asset)

    def stop_fetching(self) -> None:
        """Send nothing more, and release all waiters. What has come is in the archive, and the next run
        begins with it."""
        self._is_stopping = True
        self._is_way_clear = True
        for session in self.sessions:
            session.client.stop()
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Send nothing more, and wait for the loads under way."""
        self.stop_fetching()
        for thread in list(self._threads):
            thread.join(_STOP_SECONDS)
        self._loads.close(
            _STOP_SECONDS
        )  # a load under way is finished: ending it half-way would only repeat it

    def note_run(self, run_id: str, job: str, *, is_publishing: bool = False) -> None:
        """Write the run, its plans and requests into the `sync` tables: ahead of publishing, so that the copy
        has them, and in the end."""
        problems = [
            f"{asset}, account {account}: {reason}"
            for (asset, account), lines in self.problems().items()
            for reason in lines
        ]
        failed = all(result.error is not None for result in self.results.values())
        is_tried = len(self._finished) == len(self._chosen) * len(self.sessions)
        is_ended = any(isinstance(result.error, BudgetSpent | Stopped) for result in self.results.values())
        if is_cut_short := self._is_stopping or not is_tried or is_ended:
            problems.append("it ended before everything was read; the next run goes on from there")
        statistics = [session.client.statistics for session in self.sessions]
        run = Run(
            run_id=run_id,
            job=job,
            started_at=self.began_at,
            ended_at=None if is_publishing else self.ended_at,
            outcome=PUBLISHING
            if is_publishing
            else ("failed" if failed else "partial")
            if problems
            else "done",
            request_count=sum(each.requests for each in statistics),
            waited_s=sum(each.waited_s for each in statistics),
            message="\n".join(problems),
        )
        self.warehouse.archive.seal()
        if not is_publishing:
            self.warehouse.finish_assets(self._through)
        with self.warehouse.writing() as connection:
            write_run(connection, run)
            for session in self.sessions:
                if (planned := session.planner.planned()) is not None:
                    write_plan(connection, run_id, planned)
            load_requests(connection, self.warehouse.archive)
        if not (is_publishing or is_cut_short):
            self._checkpoints.end(self._chosen)
        if not is_publishing:
            for notice in self.notices():
                log.warning("%s", notice)

    def progress(self) -> tuple[str, int, int, str]:
        """How far it is now: reading, in the end loading; requests with a response and known so far; the
        assets at work."""
        with self._changed:
            at_work = {asset for asset, account in self._started if (asset, account) not in self._finished}
            results = list(self.results.values())
        is_fetching = sum(result.is_fetched for result in results) < len(self._chosen) * len(self.sessions)
        done, total = (sum(getattr(result, name) for result in results) for name in ("fetched", "planned"))
        return "reading" if is_fetching else "loading", done, total, ", ".join(sorted(at_work))

    def requests_sent(self) -> int:
        """Requests that left this process, retries included."""
        return sum(session.client.statistics.requests for session in self.sessions)

    def problems(self) -> dict[_Key, list[str]]:
        """What is missing: (asset, account) → reasons."""
        return {key: result.problems for key, result in self.results.items() if result.problems}

    def notices(self) -> list[str]:
        """What a person should know although nothing is missing: clocks that are wrong, responses that came
        too late to be loaded."""
        found = [notice for session in self.sessions if (notice := session.clock_notice())]
        if isinstance(self.now, SteadyClock) and abs(self.now.jump) > _JUMP:
            moved = dt.timedelta(seconds=round(abs(self.now.jump).total_seconds()))
            way = "ahead" if self.now.jump > dt.timedelta() else "back"
            found.append(
                f"this machine's clock was moved by {moved} {way} during the run; times of the run "
                "do not show it"
            )
        for (asset, account), result in self.results.items():
            found += [f"{asset}, account {account}: {line}" for line in result.notices]
        return found

    def _start_ready(self, *sessions: AccountSession) -> None:
        """Start what waits for nothing, what others wait for first. Called with `_changed` held."""
        if self._finished.issuperset(self._urgent):
            self._is_way_clear = True
        for session in sessions:
            for asset in self._in_order:
                key = (asset.name, session.account)
                before = (*asset.after, *asset.informed_by)
                waits_for = [(other.name, session.account) for other in before if other.name in self._chosen]
                if self._is_stopping or key in self._started or not self._finished.issuperset(waits_for):
                    continue
                if is_alone := not before and not self._urgency[asset.name]:
                    if self._alone[session.account] >= self._alone_at_once:
                        continue
                    self._alone[session.account] += 1
                self._started.add(key)
                reading = _Reading(
                    asset,
                    session,
                    AccountResult(session.account),
                    Lane(self._urgency[asset.name], width=1),
                    is_alone,
                )
                self.results[key] = reading.result
                thread = threading.Thread(
                    target=self._read, args=(reading,), name=f"{session.account}/{asset.name}", daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def _read(self, reading: _Reading) -> None:
        """Fetch everything; the loads go on behind."""
        asset, session, result = reading.asset, reading.session, reading.result
        try:
            while not session.opened.wait(0.5):
                if self._is_stopping:
                    raise Stopped("the run was stopped before the account had responded")
            if session.problem is not None:
                raise session.problem
            fetch = Fetcher(
                session,
                asset.name,
                asset.tables,
                result,
                self._settings,
                self.chosen_days,
                reading.lane.urgency,
            )
            reading.operations = fetch.operations
            for batch in asset.function(fetch):
                if isinstance(session.problem, OtherBusiness):
                    raise session.problem
                result.note(batch)
                if batch.request_ids or batch.scope or batch.is_nothing_due:
                    self._load_behind(reading, batch)
                if self._is_stopping or result.error is not None:
                    break
        except Exception as problem:
            result.error = result.error or self._noted(reading, problem)
        finally:
            with self._changed:
                result.is_fetched = True
                self._threads.remove(threading.current_thread())
                self._alone[session.account] -= reading.is_alone
                self._start_ready(session)
            self._end_part(reading)

    @staticmethod
    def _noted(reading: _Reading, problem: Exception) -> Exception:
        """A mistake of ours in one asset must not stop the others: it is logged."""
        if not isinstance(problem, MarketingApiError | WarehouseError | OSError):
            name, account, kind = reading.asset.name, reading.session.account, type(problem).__name__
            log.error(
                "reading %s of account %s failed unexpectedly: %s", name, account, kind, exc_info=problem
            )
        if isinstance(problem, OtherBusiness):  # nothing more of the account is worth a request, or believed
            reading.session.problem = problem
        return problem

    def _load_behind(self, reading: _Reading, batch: Batch) -> None:
        """Load the batch while the next one is fetched. What came before an error is loaded all the same."""

        def load(leave: Callable[[], None]) -> None:
            leave()
            try:
                reading.result.reports.append(self._load(reading.asset, reading.session, batch))
            except Exception as problem:
                reading.result.error = reading.result.error or self._noted(reading, problem)
            self._end_part(reading)

        with self._changed:
            reading.parts += 1
            self._loads.put(reading.lane, load)
            while reading.parts > 1 + _LOADS_AHEAD:
                self._changed.wait()

    def _end_part(self, reading: _Reading) -> None:
        """Whoever comes last, the fetching or a load, ends the reading."""
        with self._changed:
            reading.parts -= 1
            self._changed.notify_all()
            if reading.parts:
                return
        asset, session, result = reading.asset, reading.session, reading.result
        try:
            if asset.name == COUPONS and result.failures and result.error is None:
                result.nothing = session.planner.refused_as_nothing()
                if result.unexplained and len(result.failures) < result.fetched:
                    self.warehouse.archive.seal()
                    with self.warehouse.writing() as connection:
                        load_requests(connection, self.warehouse.archive)
                    result.learn_refusals(session.planner.refused_as_nothing())
        except Exception as problem:
            result.error = self._noted(reading, problem)
        result.spent = session.spent(reading.operations)
        with self._changed:
            if result.is_through and not self._is_stopping:
                self._through.append((session.account, asset.name))
            self._finished.add((asset.name, session.account))
            self.ended_at = self.now()
            self._start_ready(session)
            self._changed.notify_all()

    def _load(self, asset: SourceAsset, session: AccountSession, batch: Batch) -> LoadReport:
        shrink_limit = None if batch.may_shrink else self._shrink_limit
        if shrink_limit is not None:  # what we took away ourselves is not suspicious
            shrink_limit = 1 - (1 - shrink_limit) * (1 - batch.taken_away)
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
            shrink_limit=shrink_limit,
        )
        return self.warehouse.apply(load, batch.responses, urgency=self._urgency[asset.name])

    def _waiting_for(self, asset: SourceAsset) -> int:
        """How many assets cannot begin before this one is loaded: its loads go first."""
        direct = [other for other in self._chosen.values() if asset in (*other.after, *other.informed_by)]
        return len(direct) + sum(self._waiting_for(other) for other in direct)
