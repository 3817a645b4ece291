"""Opens the reader of a run, with the sessions of all accounts and the home's archive and
warehouse, and closes them after it. Not here: the list of accounts (`home.accounts`)."""

import datetime as dt
import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from assets.account_session import AccountSession
from assets.checkpoint import Checkpoints
from assets.days import ChosenDays, next_moment
from assets.fetch import FetchSettings
from assets.planning.crawl_plan import (
    COUPONS,
    TIMELINES,
    Planner,
    find_allowance,
    share_night,
)
from assets.planning.order import Rules
from assets.reader import Reader
from assets.sources import SOURCE_ASSETS, SourceAsset, with_needed
from home.accounts import explain_refusal, open_connections
from home.door import waiting_options
from home.folder import in_use
from home.identity import Recognition
from home.loading import open_archive, warehouse_of
from home.settings import Settings, SettingsError, estimated_rate
from home.values import did_you_mean
from marketing_api.client import Connection, RequestBudget
from marketing_api.clock import Clock, SteadyClock, utc_now
from marketing_api.errors import AuthenticationFailed, MarketingApiError, OtherBusiness
from marketing_api.rate_limit import RateLimiter
from upkeep.backup import back_up_run, check_backup
from upkeep.tidying import tidy_home
from warehouse.archive.archive import Archive
from warehouse.disk import open_scratch
from warehouse.errors import WarehouseError
from warehouse.rebuild import can_rebuild, rebuild_warehouse
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: After the first account has responded, reading begins without the others when this time is over.
_OPENED_TOGETHER_S = 2.0


class ReadOptions(NamedTuple):
    """The options of a sync that its reader takes; None where the settings apply."""

    requests_all: bool = False
    accept_shrink: bool = False
    max_requests: int | None = None
    until: dt.time | None = None

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """`values`: by name of the options in `home.options.SYNC`."""
        return cls(values["all"], values["accept_shrink"], values["max_requests"], values["until"])


_NO_OPTIONS = ReadOptions()


@contextmanager
def open_reader(
    settings: Settings,
    chosen: Sequence[SourceAsset],
    options: ReadOptions = _NO_OPTIONS,
    *,
    chosen_days: ChosenDays | None = None,
    now: Clock = utc_now,
) -> Iterator[Reader]:
    """A reader of the chosen assets, and of the assets that they need, for all accounts. Raises a
    MarketingApiError when no account responds."""
    now = SteadyClock(now)
    with in_use(settings.home), ExitStack() as stack:
        check_backup(settings)
        accounts = stack.enter_context(_open_accounts(settings, now))
        archive = stack.enter_context(open_archive(settings.home))
        warehouse = _open_warehouse(settings, archive)
        assets = add_needed_assets(chosen, accounts, warehouse)
        checkpoints = Checkpoints(archive)
        sessions = []
        for session in _make_sessions(settings, options, accounts, assets, warehouse, stack, now):
            stack.enter_context(session.client)
            session.prepare_reuse([asset.name for asset in assets], checkpoints)
            sessions.append(session)
        _open_all(sessions)
        reader = Reader(
            sessions,
            assets,
            warehouse,
            checkpoints,
            FetchSettings(settings.history_start, settings.lookback_days, settings.goal_domains),
            chosen_days=chosen_days,
            shrink_limit=None if options.accept_shrink else settings.shrink_limit,
            needed=[asset for asset in assets if asset not in chosen],
            now=now,
        )
        try:
            yield reader
        finally:
            reader.stop()
    _end_run(settings)


def _open_accounts(settings: Settings, now: Clock) -> AbstractContextManager[Sequence[Connection]]:
    """A new home reads the sandbox as of yesterday, so that the next sync has a day's changes to
    show."""
    is_new = not settings.warehouse_path.exists()
    yesterday = now() - dt.timedelta(days=1)
    return open_connections(settings, sandbox_now=yesterday if is_new else None)


def _make_sessions(
    settings: Settings,
    options: ReadOptions,
    accounts: Sequence[Connection],
    assets: Sequence[SourceAsset],
    warehouse: Warehouse,
    stack: ExitStack,
    now: Clock,
) -> Iterator[AccountSession]:
    """A session for each account; they share a budget, a night and a folder for large responses."""
    budget = make_budget(settings, options, now)
    night = read_night_limits(settings, accounts)
    planners = Planners(warehouse, assets, night, budget, options.requests_all, now)
    spool = stack.enter_context(open_scratch(settings.home, "spool")).open_folder()
    for connection in accounts:
        limiter = RateLimiter.share_limit(connection)
        yield AccountSession(
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
            accepts_shrinking=options.accept_shrink or settings.shrink_limit is None,
        )


def _end_run(settings: Settings) -> None:
    tidy_home(settings, _prune_runs)
    reason = back_up_run(settings)
    if reason:
        raise WarehouseError(reason)


def named_assets(names: Sequence[str]) -> list[SourceAsset]:
    """The assets with one of these names, or that fill a table with one; all when `names` is empty.
    Raises SettingsError."""
    by_name = {table.name: asset for asset in SOURCE_ASSETS.values() for table in asset.tables}
    by_name |= SOURCE_ASSETS
    requested = [name.removeprefix("source.") for name in names]
    unknown = [name for name in requested if name not in by_name]
    if unknown:
        near = "".join(did_you_mean(name, by_name) for name in unknown)
        raise SettingsError(
            f"no asset or table is named {', '.join(unknown)}{near}; there are "
            f"{', '.join(sorted(by_name))}"
        )
    asset_names = {by_name[name].name for name in requested or by_name}
    return [asset for asset in SOURCE_ASSETS.values() if asset.name in asset_names]


def add_needed_assets(
    chosen: Sequence[SourceAsset], accounts: Sequence[Connection], warehouse: Warehouse
) -> list[SourceAsset]:
    """The chosen assets, and the assets they need that were never read for one of the accounts."""
    names = {connection.account for connection in accounts}
    return with_needed(chosen, lambda asset: names <= warehouse.accounts_read(asset.tables[0]))


def _prune_runs(home: Path, before: dt.datetime) -> None:
    if os.environ.get("DAGSTER_HOME"):
        # Dagster takes seconds to import; a run that it records has imported it already
        from pipelines.dagster_internals import prune_runs

        prune_runs(home, before)


def _open_warehouse(settings: Settings, archive: Archive) -> Warehouse:
    """The home's warehouse, rebuilt from the archive when its file is gone."""
    if not settings.warehouse_path.exists() and can_rebuild(archive):
        log.warning(
            "%s is gone: it is rebuilt from the archive, the models with this sync",
            settings.warehouse_path,
        )
        rebuild_warehouse(settings.home, archive=archive, **waiting_options(settings))
    return warehouse_of(settings, archive)


def make_budget(
    settings: Settings, options: ReadOptions = _NO_OPTIONS, now: Clock = utc_now
) -> RequestBudget | None:
    """The budget of a run, from its options or else the settings; None when neither sets one."""
    request_limit = options.max_requests or settings.max_requests
    end_time = options.until or settings.until
    if request_limit is None and end_time is None:
        return None
    ends_at = next_moment(end_time, settings.schedule_timezone, now()) if end_time else None
    return RequestBudget(request_limit, until=ends_at, now=now)


class NightLimits(NamedTuple):
    """The limits of a night's plan. `rates`: account → the expected requests per second, for all
    accounts of the run."""

    minutes: int
    max_age_days: int
    rates: Mapping[str, float]


def read_night_limits(settings: Settings, accounts: Sequence[Connection]) -> NightLimits:
    names = [connection.account for connection in accounts]
    rates = {name: estimated_rate(settings, name) for name in names}
    return NightLimits(settings.night_minutes, settings.max_age_days, rates)


@dataclass(frozen=True)
class Planners:
    """Makes the planners of a run's accounts, which share a budget and a night."""

    warehouse: Warehouse
    assets: Sequence[SourceAsset]
    night: NightLimits
    budget: RequestBudget | None
    requests_all: bool
    now: Clock = utc_now

    def make_planner(self, account: str, limiter: RateLimiter) -> Planner:
        planned = [asset.name for asset in self.assets if asset.name in (TIMELINES, COUPONS)]

        def find_rules() -> Rules:
            left = self.budget.left if self.budget else None
            until = self.budget.until if self.budget else None
            allowance = find_allowance(
                left, until, self.now(), limiter.rate, accounts=len(self.night.rates)
            )
            room = self._find_room(account, len(planned))
            return Rules(self.night.max_age_days, room, allowance, requests_all=self.requests_all)

        return Planner(self.warehouse, account, find_rules, planned, self.now)

    def _find_room(self, account: str, per_contact: int) -> float:
        """How many requests for timelines and coupons fit into the account's part of the night."""
        request_counts = {
            name: count * per_contact for name, count in self.warehouse.count_contacts().items()
        }
        shares = share_night(
            request_counts, self.night.rates, self.night.minutes * 60, self.warehouse.measure_rate()
        )
        return shares[account]


def _open_all(sessions: Sequence[AccountSession]) -> None:
    """Open all sessions in parallel, so that a slow or failing one delays no other. Raises what is
    wrong with the home, or why no account responds."""
    for session in sessions:
        threading.Thread(
            target=session.request_identity, name=f"{session.account}/open", daemon=True
        ).start()
    _wait_for(sessions)
    if all(session.error for session in sessions):
        raise _explain_silence(sessions)


def _wait_for(sessions: Sequence[AccountSession]) -> None:
    """Wait until every session has opened or failed, but only `_OPENED_TOGETHER_S` after the first
    has opened."""
    until = math.inf
    for session in sessions:
        while not session.opened.wait(0.05) and time.monotonic() < until:
            if until == math.inf and any(
                other.opened.is_set() and not other.error for other in sessions
            ):
                until = time.monotonic() + _OPENED_TOGETHER_S


def _explain_silence(sessions: Sequence[AccountSession]) -> Exception:
    """The error of a damaged home, or one with the reasons of all accounts."""
    errors = [session.error for session in sessions if session.error]
    for error in errors:
        if not isinstance(error, MarketingApiError):
            return error
    text = "; ".join(
        f"account {session.account}: {explain_refusal(session.client.connection, error)}"
        for session, error in zip(sessions, errors, strict=True)
    )
    is_foreign = any(isinstance(error, OtherBusiness) for error in errors)
    is_refused = all(isinstance(error, AuthenticationFailed) for error in errors)
    return AuthenticationFailed(text) if is_foreign or is_refused else MarketingApiError(text)
