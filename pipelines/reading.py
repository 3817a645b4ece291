"""Puts a reader together: clients, archive and warehouse of the home, opened for one run and closed after it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from assets.ask import AskSettings
from assets.days import DateRange
from assets.extract import SourceAsset
from assets.reader import Reader
from assets.session import Session
from assets.unfinished import Unfinished
from marketing_api.client import Budget, Connection
from marketing_api.errors import AuthenticationFailed, MarketingApiError
from marketing_api.pace import Pace, pace_path
from pipelines.service import connections, explained
from pipelines.settings import Settings
from pipelines.waiting import tell
from warehouse.archive import Archive
from warehouse.warehouse import Warehouse


@contextmanager
def open_reader(
    settings: Settings,
    chosen: Sequence[SourceAsset],
    *,
    chosen_days: DateRange | None = None,
    budget: Budget | None = None,
    shrink_limit: float | None = None,
) -> Iterator[Reader]:
    """A reader of the chosen assets over all accounts. Raises AuthenticationFailed or another MarketingApiError when none answers."""
    with ExitStack() as stack:
        accounts = stack.enter_context(connections(settings))
        archive = stack.enter_context(Archive(settings.home / "archive"))
        warehouse = Warehouse(settings.home, archive, deadline_s=settings.lock_seconds, on_wait=tell)
        sessions = [_session(settings, connection, archive, warehouse, budget) for connection in accounts]
        for session in sessions:
            stack.enter_context(session.client)
        unfinished = Unfinished(settings.home / "archive" / "unfinished", dt.datetime.now(dt.UTC))
        stack.callback(unfinished.leave)
        for session in sessions:
            session.prepare([asset.name for asset in chosen], unfinished)
        _open_all(sessions)
        ask_settings = AskSettings(settings.history_start, settings.lookback_days, settings.calendar_days_ahead, settings.goal_domains)
        reader = Reader(sessions, chosen, warehouse, unfinished, ask_settings, chosen_days=chosen_days, shrink_limit=shrink_limit)
        try:
            yield reader
        finally:
            reader.stop()


def _session(settings: Settings, connection: Connection, archive: Archive, warehouse: Warehouse, budget: Budget | None) -> Session:
    return Session(
        connection,
        archive,
        warehouse,
        pace=Pace(pace_path(connection.url, connection.key), cap=connection.max_rate),
        spool=settings.home / "tmp" / "spool",
        budget=budget,
        fallback_zone=settings.timezone,
        resume_hours=settings.resume_hours,
        now=lambda: dt.datetime.now(dt.UTC),
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
