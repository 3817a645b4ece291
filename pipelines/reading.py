"""Opens the reader of a run: sessions of all accounts, archive and warehouse of the home; closed after it.
Not here: which accounts."""

import datetime as dt
import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from assets.account_session import AccountSession
from assets.checkpoint import Checkpoints
from assets.days import ChosenDays
from assets.fetch import FetchSettings
from assets.planning.crawl_plan import COUPONS, TIMELINES, Planner, Rules, allowance, next_moment
from assets.prefetch import Prefetcher
from assets.sources import SourceAsset
from home.accounts import connections, explained
from home.folder import in_use
from home.identity import Recognition
from home.progress import report_waiting
from home.settings import Settings
from marketing_api.client import RequestBudget
from marketing_api.clock import Clock, SteadyClock, utc_now
from marketing_api.errors import AuthenticationFailed, MarketingApiError, OtherBusiness
from marketing_api.rate_limit import RateLimiter
from upkeep.backups import back_up_run, check_places
from upkeep.retention import tidy
from warehouse.archive import Archive
from warehouse.archive.disk import Workspace
from warehouse.errors import WarehouseError
from warehouse.rebuild import rebuild
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: Once one account has responded, the others have so long before it is read without waiting for them.
_OPENED_TOGETHER_S = 2.0


@contextmanager
def open_reader(
    settings: Settings,
    chosen: Sequence[SourceAsset],
    options: Mapping[str, Any] = {},
    *,
    chosen_days: ChosenDays | None = None,
    now: Clock = utc_now,
) -> Iterator[Prefetcher]:
    """A reader of the chosen assets over all accounts, by the chosen `options.SYNC`. Raises a
    MarketingApiError when none responds."""
    now, shrink_limit = SteadyClock(now), None if options.get("accept_shrink") else settings.shrink_limit
    with in_use(settings.home), ExitStack() as stack:
        check_places(settings)
        accounts = stack.enter_context(connections(settings))
        warehouse = _warehouse(settings, stack.enter_context(Archive(settings.home / "archive")))
        spool = stack.enter_context(closing(Workspace(settings.home / "tmp" / "spool"))).folder()
        budget = budget_of(settings, options.get("max_requests"), options.get("until"), now)
        rules = Rules(dt.timedelta(days=settings.max_age_days), requests_all=bool(options.get("all")))
        checkpoints = Checkpoints(warehouse.archive)
        sessions = []
        for connection in accounts:
            limiter = RateLimiter.shared(connection)
            session = AccountSession(
                connection,
                warehouse,
                limiter=limiter,
                spool=spool,
                recognition=Recognition(settings, connection, notes=True),
                budget=budget,
                fallback_zone=settings.timezone,
                resume_hours=settings.resume_hours,
                now=now,
                planner=planner_of(
                    warehouse, connection.account, limiter, rules, chosen, budget, len(accounts), now
                ),
                accounts=len(accounts),
                accepts_shrinking=shrink_limit is None,
            )
            stack.enter_context(session.client)
            session.prepare([asset.name for asset in chosen], checkpoints)
            sessions.append(session)
        _open_all(sessions)
        days = settings.history_start, settings.lookback_days, settings.calendar_days_ahead
        fetch_settings = FetchSettings(*days, settings.goal_domains)
        reader = Prefetcher(
            sessions,
            chosen,
            warehouse,
            checkpoints,
            fetch_settings,
            chosen_days=chosen_days,
            shrink_limit=shrink_limit,
            now=now,
        )
        try:
            yield reader
        finally:
            reader.stop()
    tidy(settings)
    if problem := back_up_run(settings):
        raise WarehouseError(problem)


def _warehouse(settings: Settings, archive: Archive) -> Warehouse:
    """Made anew from the archive when its file is gone."""
    if not settings.warehouse_path.exists() and any(archive.ledger.loads()):
        log.warning(
            "%s is gone: it is made anew from the archive, the models with this sync", settings.warehouse_path
        )
        rebuild(settings.home, archive=archive, deadline_s=settings.lock_seconds, on_wait=report_waiting)
    return Warehouse(settings.home, archive, deadline_s=settings.lock_seconds, on_wait=report_waiting)


def budget_of(
    settings: Settings, max_requests: int | None = None, until: dt.time | None = None, now: Clock = utc_now
) -> RequestBudget | None:
    """As chosen for this run, else the settings; None when neither limits it."""
    most, end = max_requests or settings.max_requests, until or settings.until
    if most is None and end is None:
        return None
    return RequestBudget(
        most, until=next_moment(end, settings.schedule_timezone, now()) if end else None, now=now
    )


def planner_of(
    warehouse: Warehouse,
    account: str,
    limiter: RateLimiter,
    rules: Rules,
    chosen: Sequence[SourceAsset],
    budget: RequestBudget | None,
    accounts: int,
    now: Clock = utc_now,
) -> Planner:
    """The planner of one account, which shares the budget with the others."""

    def allowed() -> int | None:
        left, until = (budget.left, budget.until) if budget else (None, None)
        return allowance(left, until, now(), limiter.rate, accounts=accounts)

    planned = {asset.name for asset in chosen} & {TIMELINES, COUPONS}
    return Planner(warehouse, account, rules, planned, allowed, now)


def _open_all(sessions: list[AccountSession]) -> None:
    """Open all at once: one that takes long or fails holds up no other. Raises what is wrong with the home,
    or why none responds."""
    for session in sessions:
        threading.Thread(target=session.open, name=f"{session.account}/open", daemon=True).start()
    until = math.inf
    while (
        late := next((session for session in sessions if not session.opened.is_set()), None)
    ) is not None and time.monotonic() < until:
        late.opened.wait(0.05)
        if until == math.inf and any(session.opened.is_set() and not session.problem for session in sessions):
            until = time.monotonic() + _OPENED_TOGETHER_S
    problems = {session: session.problem for session in sessions if session.problem}
    if len(problems) < len(sessions):
        return
    if ours := next(
        (problem for problem in problems.values() if not isinstance(problem, MarketingApiError)), None
    ):
        raise ours
    text = "; ".join(
        f"account {each.account}: {explained(each.client.connection, problem)}"
        for each, problem in problems.items()
    )
    is_wrong = [isinstance(problem, AuthenticationFailed) for problem in problems.values()]
    is_foreign = any(isinstance(problem, OtherBusiness) for problem in problems.values())
    raise AuthenticationFailed(text) if is_foreign or all(is_wrong) else MarketingApiError(text)
