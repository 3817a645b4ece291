"""Puts a reader together: clients, archive and warehouse of the home, opened for one run and closed after it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from assets.ask import AskSettings
from assets.days import ChosenDays
from assets.extract import SourceAsset
from assets.planning.budget import Allowance, allowance, next_moment
from assets.planning.plan import COUPONS, TIMELINES
from assets.planning.planner import Planner, PlanSettings
from assets.reader import Reader
from assets.session import Session
from assets.unfinished import Unfinished
from marketing_api.client import Budget, Connection
from marketing_api.clock import Clock, SteadyClock, utc_now
from marketing_api.errors import AuthenticationFailed, MarketingApiError
from marketing_api.pace import Pace, pace_path
from pipelines.service import connections, explained
from pipelines.settings import Settings
from pipelines.waiting import tell
from warehouse.archive import Archive
from warehouse.warehouse import Warehouse

#: Threads that ask, per account: 16 keep a limit of 15/s busy up to a second of latency, and many accounts make many threads.
WORKERS, FEW_ACCOUNTS = 32, 4


@contextmanager
def open_reader(
    settings: Settings,
    chosen: Sequence[SourceAsset],
    *,
    chosen_days: ChosenDays | None = None,
    max_requests: int | None = None,
    until: dt.time | None = None,
    asks_everybody: bool = False,
    shrink_limit: float | None = None,
    now: Clock = utc_now,
) -> Iterator[Reader]:
    """A reader of the chosen assets over all accounts. Raises AuthenticationFailed or another MarketingApiError when none answers."""
    now = SteadyClock(now)
    with ExitStack() as stack:
        accounts = stack.enter_context(connections(settings))
        archive = stack.enter_context(Archive(settings.home / "archive"))
        warehouse = Warehouse(settings.home, archive, deadline_s=settings.lock_seconds, on_wait=tell)
        budget = budget_of(settings, max_requests, until, now)
        plan_settings = PlanSettings(dt.timedelta(days=settings.max_age_days), asks_everybody)
        sessions = []
        for connection in accounts:
            pace = Pace(pace_path(connection.url, connection.key), cap=connection.max_rate)
            planner = planner_of(warehouse, connection, pace, plan_settings, chosen, budget, len(accounts), now)
            workers = WORKERS if len(accounts) <= FEW_ACCOUNTS else WORKERS // 2
            sessions.append(_session(settings, connection, archive, warehouse, budget, pace, planner, workers, now))
        for session in sessions:
            stack.enter_context(session.client)
        unfinished = Unfinished(settings.home / "archive" / "unfinished")
        stack.callback(unfinished.leave)
        for session in sessions:
            session.prepare([asset.name for asset in chosen], unfinished)
        _open_all(sessions)
        ask_settings = AskSettings(settings.history_start, settings.lookback_days, settings.calendar_days_ahead, settings.goal_domains)
        reader = Reader(sessions, chosen, warehouse, unfinished, ask_settings, chosen_days=chosen_days, shrink_limit=shrink_limit, now=now)
        try:
            yield reader
        finally:
            reader.stop()


def limits_of(settings: Settings, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What a person chose of `options.SYNC`, as `open_reader` takes it."""
    return {
        "max_requests": chosen["max_requests"],
        "until": chosen["until"],
        "asks_everybody": chosen["all"],
        "shrink_limit": None if chosen["accept_shrink"] else settings.shrink_limit,
    }


def budget_of(settings: Settings, max_requests: int | None = None, until: dt.time | None = None, now: Clock = utc_now) -> Budget | None:
    """What the person says, else the settings; None when neither limits a run."""
    most, end = max_requests or settings.max_requests, until or settings.until
    if most is None and end is None:
        return None
    return Budget(most, until=next_moment(end, settings.schedule_timezone, now()) if end else None, now=now)


def planner_of(
    warehouse: Warehouse,
    connection: Connection,
    pace: Pace,
    settings: PlanSettings,
    chosen: Sequence[SourceAsset],
    budget: Budget | None,
    accounts: int,
    now: Clock = utc_now,
) -> Planner:
    """The planner of one account, which shares the budget with the others."""

    def allowed() -> Allowance:
        left, until = (budget.left, budget.until) if budget else (None, None)
        return allowance(left, until, now(), pace.rate, accounts=accounts)

    questions = {asset.name for asset in chosen} & {TIMELINES, COUPONS}
    return Planner(warehouse, connection.account, settings, questions, allowed, now)


def _session(
    settings: Settings,
    connection: Connection,
    archive: Archive,
    warehouse: Warehouse,
    budget: Budget | None,
    pace: Pace,
    planner: Planner,
    workers: int,
    now: Clock,
) -> Session:
    return Session(
        connection,
        archive,
        warehouse,
        pace=pace,
        spool=settings.home / "tmp" / "spool",
        budget=budget,
        fallback_zone=settings.timezone,
        resume_hours=settings.resume_hours,
        now=now,
        planner=planner,
        workers=workers,
    )


def _open_all(sessions: list[Session]) -> None:
    """Ask every account who it is, all at once. One that does not answer is left to fail by itself, unless it is the last."""

    def attempt(session: Session) -> MarketingApiError | None:
        try:
            session.open()
        except MarketingApiError as problem:
            return problem
        return None

    with ThreadPoolExecutor(len(sessions)) as pool:
        problems = list(pool.map(attempt, sessions))
    if all(problems):
        reasons = [explained(session.client.connection, problem) for session, problem in zip(sessions, problems, strict=True) if problem]
        text = "; ".join(f"account {session.account}: {reason}" for session, reason in zip(sessions, reasons, strict=True))
        kinds = {type(problem) for problem in problems}
        raise AuthenticationFailed(text) if kinds == {AuthenticationFailed} else MarketingApiError(text)
