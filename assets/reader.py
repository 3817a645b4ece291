"""Runs the asset functions ahead of whoever waits for them, so that the limit is busy from the first second to the last.

Every asset of every account runs in a thread of its own as soon as the assets it comes `after` are in the warehouse; the
accounts' budgets (`marketing_api.rate_limit`) put the requests in a row. A Dagster step only waits for its asset's result.
Not here: what is asked (`AREA.py`), how (`ask`), how it is loaded (`warehouse`).
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from assets.ask import Ask, AskSettings, Part
from assets.days import ChosenDays, DateRange, days_of_run
from assets.extract import SourceAsset
from assets.planning.plan import COUPONS, Line
from assets.result import AccountResult
from assets.session import Session
from assets.unfinished import Unfinished
from marketing_api.clock import Clock, SteadyClock, utc_now
from marketing_api.errors import BudgetSpent, MarketingApiError, Stopped
from warehouse.bookkeeping import PUBLISHING, Run, load_requests, write_plan, write_run
from warehouse.errors import WarehouseError
from warehouse.loads.load import Load, LoadReport
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: Parts that wait for their load while the next is asked for; they are in the archive, so none is lost.
_LOADS_AHEAD = 2
#: Seconds of a run for which loads that nobody waits for give way to those that decide what is asked next: the start of a run is short of
#: the processor, and later there is enough. What waits is in the archive.
_GIVE_WAY_S = 30.0
#: How long stopping waits for each thread; a load takes seconds.
_STOP_SECONDS = 30.0

#: A machine's clock that is moved by less is being kept right.
_JUMP = dt.timedelta(minutes=1)
#: What nothing else is said about is read again the next night.
_A_NIGHT = dt.timedelta(days=1)

_Key = tuple[str, str]  # asset, account


@dataclass(frozen=True)
class ReadingState:
    """How far it is: questions answered and known so far, and the assets at work. `phase`: reading, or loading when all was asked."""

    asked: int
    planned: int
    current: str
    phase: str = "reading"


class Reader:
    """Reads the chosen assets of all accounts in the background; `result` waits for one of them."""

    def __init__(
        self,
        sessions: Sequence[Session],
        chosen: Iterable[SourceAsset],
        warehouse: Warehouse,
        unfinished: Unfinished,
        settings: AskSettings,
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
        self._unfinished = unfinished
        self._started: set[_Key] = set()
        self._finished: set[_Key] = set()
        self._asked: set[_Key] = set()  # everything of it, though not all of it may be loaded
        self._through: list[tuple[str, str]] = []  # (account, asset) whose answers are all loaded
        self._urgency = {name: self._waiting_for(asset) for name, asset in self._chosen.items()}
        self._in_order = sorted(self._chosen.values(), key=lambda asset: -self._urgency[asset.name])
        self._urgent = {(name, session.account) for name, urgency in self._urgency.items() if urgency for session in self.sessions}
        self._is_way_clear = threading.Event()
        self._gives_way_until = time.monotonic() + _GIVE_WAY_S
        self._threads: list[threading.Thread] = []
        self._is_stopping = False
        self.began_at = self.ended_at = now()

    def days_of_run(self) -> DateRange:
        """The days that the run is about, over all accounts."""
        skew = max((session.client.clock.skew for session in self.sessions), key=abs, default=dt.timedelta())
        return days_of_run(
            self.began_at + skew, [session.zone for session in self.sessions], self._settings.lookback_days, self.chosen_days
        )

    @property
    def began_by_files(self) -> dt.datetime:
        """When it began as files are dated, which a clock that is set back during the run dates earlier."""
        return self.began_at + min(self.now.jump if isinstance(self.now, SteadyClock) else dt.timedelta(), dt.timedelta())

    def begin(self) -> None:
        """Start reading."""
        self._unfinished.begin(self._chosen)
        with self._changed:
            self._start_ready(*self.sessions)

    def again(self, asset: SourceAsset) -> None:
        """Read a failed asset once more for the accounts in which it failed: only what is missing is asked."""
        with self._changed:
            for session in self.sessions:
                key = (asset.name, session.account)
                if key in self._finished and self.results[key].is_failure:
                    self._finished.discard(key)
                    self._started.discard(key)
            self._start_ready(*self.sessions)

    def result(self, asset: SourceAsset) -> list[AccountResult]:
        """Wait until the asset is read and loaded for every account, whatever became of it. Raises Stopped."""
        keys = [(asset.name, session.account) for session in self.sessions]
        with self._changed:
            while not self._finished.issuperset(keys):
                if self._is_stopping:
                    raise Stopped("the run was stopped; the next one goes on from there")
                self._changed.wait(0.5)  # in slices, so that an interrupt gets through
        return [self.results[key] for key in keys]

    def finish(self) -> None:
        """Wait for everything that was begun. Raises Stopped."""
        for asset in list(self._chosen.values()):
            self.result(asset)

    def stop_asking(self) -> None:
        """Ask nothing more, and let nobody wait. What has come is in the archive, and the next run begins with it."""
        self._is_stopping = True
        self._is_way_clear.set()
        for session in self.sessions:
            session.client.stop()
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Ask nothing more, and wait for the loads under way."""
        self.stop_asking()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)  # a load under way is finished: ending it half-way would only repeat it

    def note_run(self, run_id: str, job: str, *, is_publishing: bool = False) -> None:
        """Write the run, its plans and requests into the `sync` tables: ahead of publishing, so that the copy has them, and in the end."""
        problems = [f"{asset}, account {account}: {reason}" for (asset, account), lines in self.problems().items() for reason in lines]
        failed = all(result.error is not None for result in self.results.values())
        if is_cut_short := self._is_cut_short():
            problems.append("it ended before everything was read; the next run goes on from there")
        statistics = [session.client.statistics for session in self.sessions]
        run = Run(
            run_id=run_id,
            job=job,
            started_at=self.began_at,
            ended_at=None if is_publishing else self.ended_at,
            outcome=PUBLISHING if is_publishing else ("failed" if failed else "partial") if problems else "done",
            request_count=sum(part.requests for part in statistics),
            waited_s=sum(part.waited_s for part in statistics),
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
            self._unfinished.end(self._chosen)
        if not is_publishing:
            for notice in self.notices():
                log.warning("%s", notice)

    def _is_cut_short(self) -> bool:
        """Whether the run was stopped before it had tried everything."""
        errors = [result.error for result in self.results.values()]
        return self._is_stopping or not self._is_through() or any(isinstance(error, BudgetSpent | Stopped) for error in errors)

    def _is_through(self) -> bool:
        return len(self._finished) == len(self._chosen) * len(self.sessions)

    def progress(self) -> ReadingState:
        """How far the reading is now."""
        with self._changed:
            at_work = [asset for asset, account in self._started if (asset, account) not in self._finished]
            is_asking = len(self._finished | self._asked) < len(self._chosen) * len(self.sessions)
        results = list(self.results.values())
        return ReadingState(
            sum(result.asked for result in results),
            sum(result.planned for result in results),
            ", ".join(sorted(set(at_work))),
            "reading" if is_asking else "loading",
        )

    def requests_sent(self) -> int:
        """Requests that left this process, retries included."""
        return sum(session.client.statistics.requests for session in self.sessions)

    def problems(self) -> dict[_Key, list[str]]:
        """What could not be had: (asset, account) → reasons."""
        return {key: result.problems for key, result in self.results.items() if result.problems}

    def notices(self) -> list[str]:
        """What a person should know although nothing is missing: clocks that are wrong, answers that came too late to be loaded."""
        found = [notice for session in self.sessions if (notice := session.clock_notice())]
        if isinstance(self.now, SteadyClock) and abs(self.now.jump) > _JUMP:
            found.append(f"this machine's clock was moved by {_in_words(self.now.jump)} during the run; times of the run do not show it")
        for (asset, account), result in self.results.items():
            stale = [line for report in result.reports for line in report.stale]
            found += [f"{asset}, account {account}: another run had loaded newer answers of {line}" for line in stale]
        return found

    def _start_ready(self, *sessions: Session) -> None:
        """Start what waits for nothing, what others wait for first. Called with `_changed` held."""
        if self._finished.issuperset(self._urgent):
            self._is_way_clear.set()
        for session in sessions:
            for asset in self._in_order:
                key = (asset.name, session.account)
                before = (*asset.after, *asset.informed_by)
                waits_for = [(other.name, session.account) for other in before if other.name in self._chosen]
                if self._is_stopping or key in self._started or not self._finished.issuperset(waits_for):
                    continue
                self._started.add(key)
                thread = threading.Thread(target=self._read, args=(asset, session), name=f"{session.account}/{asset.name}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _read(self, asset: SourceAsset, session: Session) -> None:
        key = (asset.name, session.account)
        result = self.results[key] = AccountResult(session.account)
        try:
            while not session.opened.wait(0.5):
                if self._is_stopping:
                    raise Stopped("the run was stopped before the account had answered")
            if session.problem is not None:
                raise session.problem
            self._run(asset, session, result)
        except (MarketingApiError, WarehouseError, OSError) as problem:
            result.error = problem
        except Exception as problem:  # a mistake of ours in one asset must not stop the others
            kind = type(problem).__name__
            log.exception("reading %s of account %s failed unexpectedly: %s", asset.name, session.account, kind)
            result.error = problem
        finally:
            with self._changed:
                self._finished.add(key)
                self.ended_at = self.now()
                self._start_ready(session)
                self._changed.notify_all()

    def _run(self, asset: SourceAsset, session: Session, result: AccountResult) -> None:
        def on_progress(asked: int, planned: int) -> None:
            result.asked += asked
            result.planned += planned

        def on_line(line: Line) -> None:
            result.line = line

        ask = Ask(
            session,
            asset.tables,
            settings=self._settings,
            chosen_days=self.chosen_days,
            reuse=session.reuse(asset.name),
            on_progress=on_progress,
            on_line=on_line,
            answered=session.answered(asset.name),
        )
        try:
            self._load_all(asset, session, asset.function(ask), result)
            if asset.name == COUPONS and result.failures:
                result.learn_refusals(session.known)
        finally:
            result.spent = session.spent(ask.operations)
        if self._is_stopping:
            return
        if result.is_through:
            self._through.append((session.account, asset.name))

    def _load_all(self, asset: SourceAsset, session: Session, parts: Iterable[Part], result: AccountResult) -> None:
        """Load each part while the next one is asked for. What came before an error is loaded all the same."""
        loads: deque[Future[LoadReport]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix=f"load/{asset.name}") as loader:
            try:
                for part in parts:
                    result.note(part)
                    if part.request_ids or part.scope or part.is_nothing_due:
                        loads.append(loader.submit(self._load, asset, session, part))
                    while len(loads) > _LOADS_AHEAD:
                        result.reports.append(loads.popleft().result())
                    if self._is_stopping:
                        break
                self._asked.add((asset.name, session.account))
            finally:
                result.reports += [load.result() for load in loads]

    def _load(self, asset: SourceAsset, session: Session, part: Part) -> LoadReport:
        urgency = self._urgency[asset.name]
        if not urgency:
            self._is_way_clear.wait(max(0.0, self._gives_way_until - time.monotonic()))
        load = Load(
            account=session.account,
            asset=asset.name,
            tables=tuple(table.name for table in asset.tables),
            request_ids=part.request_ids,
            scope=part.scope if part.days is None else {"from_on": str(part.days.first), "to_on": str(part.days.last), **part.scope},
            is_complete=part.is_complete,
            service_count=part.service_count,
            due_at=part.due_at or session.now() + _A_NIGHT,
            logged_at=session.now(),
            zone=str(session.zone),
            shrink_limit=self._limit_of(part),
        )
        return self.warehouse.apply(load, part.responses, urgency=urgency)

    def _limit_of(self, part: Part) -> float | None:
        """The share of its rows that the part's listing may lose: what we took away ourselves is not suspicious."""
        if part.may_shrink or self._shrink_limit is None:
            return None
        return 1 - (1 - self._shrink_limit) * (1 - part.taken_away)

    def _waiting_for(self, asset: SourceAsset) -> int:
        """How many assets cannot begin before this one is loaded: its loads go first."""
        direct = [other for other in self._chosen.values() if asset in (*other.after, *other.informed_by)]
        return len(direct) + sum(self._waiting_for(other) for other in direct)


def _in_words(jump: dt.timedelta) -> str:
    """E.g. `1 day, 0:00:00 ahead`."""
    return f"{dt.timedelta(seconds=round(abs(jump).total_seconds()))} {'ahead' if jump > dt.timedelta() else 'back'}"
