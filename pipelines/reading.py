"""Opens the reader of a run: sessions of all accounts, archive and warehouse of the home; closed
after it. Not here: which accounts."""

import datetime as dt
import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.account_session import AccountSession
from assets.checkpoint import Checkpoints
from assets.days import ChosenDays
from assets.fetch import FetchSettings
from assets.planning.crawl_plan import (
    COUPONS,
    TIMELINES,
    Planner,
    find_allowance,
    next_moment,
    share_night,
)
from assets.planning.order import Rules
from assets.reader import Reader
from assets.sources import SOURCE_ASSETS, SourceAsset, with_needed
from home.accounts import explain_refusal, open_connections
from home.door import open_archive, waiting_options, warehouse_of
from home.folder import in_use
from home.identity import Recognition
from home.settings import Settings, SettingsError, estimated_rate
from home.values import did_you_mean
from marketing_api.client import Connection, RequestBudget
from marketing_api.clock import Clock, SteadyClock, utc_now
from marketing_api.errors import AuthenticationFailed, MarketingApiError, OtherBusiness
from marketing_api.rate_limit import RateLimiter
from upkeep.backup import back_up_run, check_backup
from upkeep.retention import tidy_home
from warehouse.archive import Archive
from warehouse.disk import open_scratch
from warehouse.errors import WarehouseError
from warehouse.rebuild import can_rebuild, rebuild_warehouse
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: Once one account has responded, the others have so long before it is read without waiting for
#: them.
_OPENED_TOGETHER_S = 2.0


@contextmanager
def open_reader(
    settings: Settings,
    chosen: Sequence[SourceAsset],
    options: Mapping[str, Any] = {},
    *,
    chosen_days: ChosenDays | None = None,
    now: Clock = utc_now,
) -> Iterator[Reader]:
    """A reader of the chosen assets, and of what they need, over all accounts, by the chosen
    `options.SYNC`. Raises a MarketingApiError when none responds."""
    now, shrink_limit = (
        SteadyClock(now),
        None if options.get("accept_shrink") else settings.shrink_limit,
    )
    with in_use(settings.home), ExitStack() as stack:
        check_backup(settings)
        accounts = stack.enter_context(open_connections(settings))
        warehouse = _open_warehouse(settings, stack.enter_context(open_archive(settings.home)))
        picked, chosen = chosen, needed_too(chosen, accounts, warehouse)
        spool = stack.enter_context(open_scratch(settings.home, "spool")).open_folder()
        budget = budget_of(settings, options.get("max_requests"), options.get("until"), now)
        names = [connection.account for connection in accounts]
        planners = Planners(
            settings, warehouse, chosen, names, budget, bool(options.get("all")), now
        )
        checkpoints = Checkpoints(warehouse.archive)
        sessions = []
        for connection in accounts:
            limiter = RateLimiter.share_limit(connection)
            session = AccountSession(
                connection,
                warehouse,
                limiter=limiter,
                spool=spool,
                recognition=Recognition(settings, connection, notes=True),
                budget=budget,
                fallback_zone=settings.timezone,
                now=now,
                planner=planners.make_planner(connection.account, limiter),
                accounts=len(accounts),
                accepts_shrinking=shrink_limit is None,
            )
            stack.enter_context(session.client)
            session.prepare_reuse([asset.name for asset in chosen], checkpoints)
            sessions.append(session)
        _open_all(sessions)
        reader = Reader(
            sessions,
            chosen,
            warehouse,
            checkpoints,
            FetchSettings(settings.history_start, settings.lookback_days, settings.goal_domains),
            chosen_days=chosen_days,
            shrink_limit=shrink_limit,
            needed=[asset for asset in chosen if asset not in picked],
            now=now,
        )
        try:
            yield reader
        finally:
            reader.stop()
    tidy_home(settings, _prune_runs)
    if problem := back_up_run(settings):
        raise WarehouseError(problem)


def named_assets(names: Sequence[str]) -> list[SourceAsset]:
    """The assets of these names, or which fill tables of these names; all when none is named.
    Raises SettingsError."""
    by_name = {table.name: asset for asset in SOURCE_ASSETS.values() for table in asset.tables}
    by_name |= SOURCE_ASSETS
    wanted = [name.removeprefix("source.") for name in names]
    if unknown := [name for name in wanted if name not in by_name]:
        near = "".join(did_you_mean(name, by_name) for name in unknown)
        raise SettingsError(
            f"no asset or table is named {', '.join(unknown)}{near}; there are "
            f"{', '.join(sorted(by_name))}"
        )
    picked = {by_name[name].name for name in wanted or by_name}
    return [asset for asset in SOURCE_ASSETS.values() if asset.name in picked]


def needed_too(
    chosen: Sequence[SourceAsset], accounts: Sequence[Connection], warehouse: Warehouse
) -> list[SourceAsset]:
    """With what they need and was never read of one of the accounts."""
    names = {connection.account for connection in accounts}
    return with_needed(chosen, lambda asset: names <= warehouse.accounts_read(asset.tables[0]))


def _prune_runs(home: Path, before: dt.datetime) -> None:
    if os.environ.get("DAGSTER_HOME"):
        # Dagster takes seconds to import: a run that shows in it has done so
        from pipelines.dagster_internals import prune_runs

        prune_runs(home, before)


def _open_warehouse(settings: Settings, archive: Archive) -> Warehouse:
    """Made anew from the archive when its file is gone."""
    if not settings.warehouse_path.exists() and can_rebuild(archive):
        log.warning(
            "%s is gone: it is made anew from the archive, the models with this sync",
            settings.warehouse_path,
        )
        rebuild_warehouse(settings.home, archive=archive, **waiting_options(settings))
    return warehouse_of(settings, archive)


def budget_of(
    settings: Settings,
    max_requests: int | None = None,
    until: dt.time | None = None,
    now: Clock = utc_now,
) -> RequestBudget | None:
    """As chosen for this run, else the settings; None when neither limits it."""
    most, end = max_requests or settings.max_requests, until or settings.until
    if most is None and end is None:
        return None
    moment = next_moment(end, settings.schedule_timezone, now()) if end else None
    return RequestBudget(most, until=moment, now=now)


@dataclass(frozen=True)
class Planners:
    """The planners of a run's accounts, which share a budget and a machine."""

    settings: Settings
    warehouse: Warehouse
    chosen: Sequence[SourceAsset]
    accounts: Sequence[str]
    budget: RequestBudget | None
    requests_all: bool
    now: Clock = utc_now

    def make_planner(self, account: str, limiter: RateLimiter) -> Planner:
        planned = {asset.name for asset in self.chosen} & {TIMELINES, COUPONS}

        def find_rules() -> Rules:
            left, until = (self.budget.left, self.budget.until) if self.budget else (None, None)
            return Rules(
                self.settings.max_age_days,
                self._find_room(account, len(planned)),
                find_allowance(left, until, self.now(), limiter.rate, accounts=len(self.accounts)),
                requests_all=self.requests_all,
            )

        return Planner(self.warehouse, account, find_rules, planned, self.now)

    def _find_room(self, account: str, per_contact: int) -> float:
        wanted = {
            name: count * per_contact for name, count in self.warehouse.count_contacts().items()
        }
        rates = {name: estimated_rate(self.settings, name) for name in self.accounts}
        night_s = self.settings.night_minutes * 60
        return share_night(wanted, rates, night_s, self.warehouse.measure_rate())[account]


def _open_all(sessions: Sequence[AccountSession]) -> None:
    """Open all at once: one that takes long or fails holds up no other. Raises what is wrong with
    the home, or why none responds."""
    for session in sessions:
        threading.Thread(
            target=session.request_identity, name=f"{session.account}/open", daemon=True
        ).start()
    _wait_for(sessions)
    if all(session.error for session in sessions):
        raise _none_responds(sessions)


def _wait_for(sessions: Sequence[AccountSession]) -> None:
    """Until each has opened or failed; from the first that has opened on, only so long."""
    until = math.inf
    for session in sessions:
        while not session.opened.wait(0.05) and time.monotonic() < until:
            if until == math.inf and any(
                each.opened.is_set() and not each.error for each in sessions
            ):
                until = time.monotonic() + _OPENED_TOGETHER_S


def _none_responds(sessions: Sequence[AccountSession]) -> Exception:
    """What is wrong with the home, else why none responds."""
    problems = [session.error for session in sessions if session.error]
    for problem in problems:
        if not isinstance(problem, MarketingApiError):
            return problem
    text = "; ".join(
        f"account {each.account}: {explain_refusal(each.client.connection, problem)}"
        for each, problem in zip(sessions, problems, strict=True)
    )
    is_foreign = any(isinstance(problem, OtherBusiness) for problem in problems)
    is_refused = all(isinstance(problem, AuthenticationFailed) for problem in problems)
    return AuthenticationFailed(text) if is_foreign or is_refused else MarketingApiError(text)
