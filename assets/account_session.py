"""One account during one run: its client, its time zone, what the warehouse knows of it, and which archived responses it may reuse."""

from __future__ import annotations

import datetime as dt
import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from assets.checkpoint import Checkpoints
from assets.days import DateRange, today_in
from assets.planning.crawl_plan import Planner
from assets.result import Spent
from marketing_api.client import Client, Connection, Failure, RequestBudget
from marketing_api.clock import Clock
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Exchange, Outcome, Response, new_request_id
from marketing_api.operation import Call, Operation
from marketing_api.operations import account as operations
from marketing_api.parsing import parse_rows
from marketing_api.rate_limit import RateLimiter
from marketing_api.records.account import Business
from marketing_api.records.fields import Record
from warehouse.archive import Archive, Reusable
from warehouse.errors import WarehouseError
from warehouse.loads.listing import needs_detail
from warehouse.tables import TABLES, Table
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: So many operations one after the other that are not available are more likely a key that is refused.
_UNKNOWN_IN_A_ROW = 3
#: Requests under way of all accounts together at most, and of one account at most and at least whatever the others do: 16 keep a
#: limit of 15/s busy up to a second of latency. A thread is started for each only when it is needed.
_WORKERS, _MOST_WORKERS, _FEWEST_WORKERS = 256, 32, 8
#: How far the clock may have been set back since a response was requested for it to count as recent.
_AT_ONCE = dt.timedelta(minutes=5)
#: Rows of a daily series from so long before the days in call show whether it lists every day.
_SERIES_BEFORE = dt.timedelta(days=28)

R = TypeVar("R", bound=Record)
Reuse = Callable[[Call], Response | None]
#: The request of the archived response that a run that died has left to a call; None without one.
LeftBehind = Callable[[Call], int | None]


def business_of(response: Response) -> Business | None:
    """The business that a response of `app/me` names."""
    for rows in parse_rows(response, dt.UTC, response.requested_at.date()):
        for record in rows.records:
            if isinstance(record, Business):
                return record
    return None


class AccountSession:
    """`open` makes the first request; it must succeed before anything else is fetched. It may be under way while other accounts are read.

    `accounts`: how many share the process.
    """

    def __init__(
        self,
        connection: Connection,
        archive: Archive,
        warehouse: Warehouse,
        *,
        limiter: RateLimiter,
        spool: Path,
        budget: RequestBudget | None,
        fallback_zone: str,
        resume_hours: float,
        now: Clock,
        planner: Planner,
        accounts: int = 1,
    ) -> None:
        workers = max(_FEWEST_WORKERS, min(_MOST_WORKERS, _WORKERS // accounts))
        self.account = connection.account
        self.listings_at_once = max(2, workers // 4)
        self.limiter = limiter
        self.client = Client(connection, limiter, record=self.record, spool=spool, workers=workers, budget=budget)
        self.zone = ZoneInfo(connection.timezone or fallback_zone)
        self.business: Business | None = None
        self.problem: Exception | None = None  # MarketingApiError, WarehouseError or OSError
        self.opened = threading.Event()  # or failed to
        self.warehouse = warehouse
        self.planner = planner
        self.refused: dict[str, Failure] = {}  # in this run, by the call's key
        self._archive = archive
        self._now = now
        planner.now = self.now
        self._resume = dt.timedelta(hours=resume_hours)
        self._me: Response | None = None
        self._unused_since: dict[str, int] = {}  # by asset: the first request id whose response it may use again
        self._archived: Reusable | None = None
        self._left_behind: set[str] = set()  # assets that a run was reading when it died
        self._spent: dict[str, Spent] = defaultdict(Spent)
        self._counting = threading.Lock()
        self._answered: set[str] = set()  # operations, in this run
        self._unknown: set[str] = set()  # operations that are not available, since anything was answered
        self._confirmed: set[str] = set()  # operations that are not available although the key is accepted
        self._confirming = threading.Lock()

    @property
    def known(self) -> Known:
        """What the warehouse already knows of the account."""
        return Known(self.warehouse, self.account, self.zone)

    def prepare(self, assets: Iterable[str], checkpoints: Checkpoints) -> None:
        """Find out from which request on archived responses have not been used by these assets. Call it before `open` and `reuse`.

        Those dated in the future are not used: nobody knows how old they are.
        """
        finished, now = self.warehouse.finished(self.account), self._now()
        for asset in assets:
            died = checkpoints.resume_from(asset)
            if died is not None:
                self._left_behind.add(asset)
            self._unused_since[asset] = finished.get(asset, 0) if died is None else died
        since = min(self._unused_since.values(), default=new_request_id())
        self._archived = self._archive.reusable(self.account, since, (now - self._resume, now + _AT_ONCE))

    def now(self) -> dt.datetime:
        """The moment by the service's clock, as far as it is known."""
        return self._now() + self.client.clock.skew

    def today(self) -> dt.date:
        """The account's local date."""
        return today_in(self.zone, self.now())

    def clock_notice(self) -> str:
        """That the clocks of machine and service differ, with both times; empty while they agree."""
        if not self.client.clock.skew:
            return ""
        ours, theirs = (f"{moment:%Y-%m-%d %H:%M} UTC" for moment in (self._now(), self.now()))
        return (
            f"account {self.account}: this machine's clock shows {ours}, the service's {theirs}. "
            "What was read is dated by the service's; set the machine's clock right"
        )

    def open(self) -> None:
        """Request who the account is. Without this response nothing else is worth a request, and `problem` says why there is none."""
        try:
            self._open()
        except (MarketingApiError, WarehouseError, OSError) as problem:  # such as a full disk, or an archive that is closed by now
            self.problem = problem
        finally:
            self.opened.set()

    def _open(self) -> None:
        self._me = self.client.fetch(operations.ME.bind())
        self.business = business_of(self._me)
        if self.business and self.business.timezone and not self.client.connection.timezone:
            try:
                self.zone = ZoneInfo(self.business.timezone)
            except (ZoneInfoNotFoundError, ValueError):
                log.warning("account %s names a time zone that is not known; %s is used", self.account, self.zone)

    def confirm_key(self, operation: Operation) -> None:
        """Request once more who the account is, when an operation is not available and that may be for want of a key.

        A key that is refused looks like an operation that does not exist (api-observed row 1). It is suspected when the
        operation was answered before in this run, or when several others in a row are not available. Raises
        AuthenticationFailed: then nothing else is worth a request.
        """
        with self._confirming:
            with self._counting:
                self._unknown.add(operation.name)
                is_sudden = operation.name in self._answered or len(self._unknown) >= _UNKNOWN_IN_A_ROW
            if operation.name not in self._confirmed and is_sudden:
                self.client.fetch(operations.ME.bind())
            self._confirmed.add(operation.name)

    def record(self, exchange: Exchange) -> None:
        """Archive one request and count it for its operation."""
        self._archive.record(exchange)
        name = exchange.call.operation.name
        log.debug("%s: %s, %d ms", name, exchange.outcome.value, exchange.took_ms)
        with self._counting:
            if exchange.outcome is Outcome.OK:
                self._answered.add(name)
                self._unknown.clear()
            self._spent[name].requests += 1
            self._spent[name].waited_s += exchange.waited_ms / 1000

    def spent(self, operations: Iterable[Operation]) -> Spent:
        """Requests, retries included, and waiting of these operations in this run."""
        with self._counting:
            each = [self._spent[operation.name] for operation in operations]
            return Spent(sum(spent.requests for spent in each), sum(spent.waited_s for spent in each))

    def reuse(self, asset: str) -> Reuse:
        """Finds whole responses that came after `asset` was last read to the end: a run that died left them.

        The account's own response of this run is among them, so that it is requested once.
        """
        since = self._unused_since.get(asset, sys.maxsize)

        def find(call: Call) -> Response | None:
            if self._me is not None and call.key == self._me.call.key:
                return self._me
            return self._archived.get(call.key, since) if self._archived else None

        return find

    def left_behind(self, asset: str) -> LeftBehind | None:
        """Finds the archived responses that a run left which died reading `asset`; None when none did."""
        archived, since = self._archived, self._unused_since.get(asset)
        if asset not in self._left_behind or archived is None or since is None:
            return None
        return lambda call: archived.request_id(call.key, since)


class Known:
    """The warehouse as one account's assets see it: what decides what is fetched next. Empty tables give empty results."""

    def __init__(self, warehouse: Warehouse, account: str, zone: ZoneInfo) -> None:
        self._warehouse = warehouse
        self._account = account
        self._zone = zone

    def list_ids(self) -> list[int]:
        """Lists that exist."""
        return self._warehouse.list_ids(self._account)

    def vanished_list_ids(self) -> list[int]:
        """Lists that are gone while contacts of theirs still count as existing."""
        return self._warehouse.vanished_list_ids(self._account)

    def taken_away(self) -> dict[int, float]:
        """List id → share of its contacts that our own pushes took away since it was last read."""
        return self._warehouse.taken_away(self._account)

    def with_coupons(self) -> set[str]:
        """The addresses that have coupons, in lower case."""
        return self._warehouse.with_coupons(self._account)

    def domain_ids(self) -> list[int]:
        """Tracked domains that webhooks name."""
        return self._warehouse.domain_ids(self._account)

    def posts_needing_detail(self, networks: Sequence[str]) -> list[tuple[int, str]]:
        """(post_id, network) of posts that are new or changed since their detail was fetched."""
        return self._warehouse.posts_needing_detail(self._account, networks)

    def covered(self, table: Table, *, is_complete: bool = True) -> list[DateRange]:
        """Ranges of days that were read completely, after they had ended in the account's zone; or that were not."""
        found = self._warehouse.covered_days(table, self._account, str(self._zone), is_complete=is_complete)
        return [DateRange(first, last) for first, last in found]

    def listed(self, tables: Sequence[Table], days: DateRange) -> list[set[dt.date]]:
        """The days that each table has rows of, in the range and the weeks before it."""
        since = days.first - _SERIES_BEFORE
        return [set(self._warehouse.listed_days(table, self._account, since, days.last)) for table in tables]

    def responses(self, request_ids: Sequence[int]) -> Iterable[Response]:
        """From the archive."""
        return self._warehouse.archive.responses(request_ids)

    def new_or_changed(self, request_ids: Sequence[int], record: type[R]) -> list[R]:
        """Entries of the listing in these responses that are new, or differ from when their detail was last fetched."""
        table = next(table for table in TABLES.values() if table.record is record)
        hashes = self._warehouse.listing_hashes(table, self._account)
        stale = needs_detail(table, self.responses(request_ids), hashes, self._zone, parse_rows)
        return [entry for entry in stale if isinstance(entry, record)]
