"""One account during one run: its client, its time zone, what its requests cost, and which archived
responses it may reuse."""

import datetime as dt
import logging
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from assets.checkpoint import Checkpoints
from assets.days import today_in
from assets.planning.crawl_plan import Planner
from assets.result import Spent
from marketing_api import paging
from marketing_api.client import Client, Connection, Failure, RequestBudget
from marketing_api.clock import Clock
from marketing_api.errors import MarketingApiError, NotAvailable, OtherBusiness, Refused
from marketing_api.exchange import Exchange, Response, new_request_id
from marketing_api.operation import Call, Operation
from marketing_api.operations import account, campaigns, lists
from marketing_api.parsing import business_of
from marketing_api.rate_limit import RateLimiter
from marketing_api.records.account import Business
from warehouse.archive.reader import Reusable
from warehouse.errors import WarehouseError
from warehouse.tables import CAMPAIGNS, LISTS, Table
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: Requests under way of all accounts together, and of one at most and at least: 16 keep a limit of
#: 15/s busy up to a second of latency.
_WORKERS = 256
_MOST_WORKERS = 32
_FEWEST_WORKERS = 8
#: An unfinished sync uses its responses again unless they are older.
_RESUMED = dt.timedelta(hours=12)
#: How far the clock may have been set back since a response was requested for it to count as
#: recent.
_AT_ONCE = dt.timedelta(minutes=5)
#: What tells one account from another where the service names nobody: listings that are short, and
#: that every night reads.
_TELLING: tuple[tuple[Table, Operation, dict[str, str]], ...] = (
    (LISTS, lists.GETLISTS, {}),
    (CAMPAIGNS, campaigns.CAMPAIGNS, {"filter": "all"}),
)


def make_other_business_error(what: str) -> OtherBusiness:
    """The error of listings in which nothing is left that is known; `what` is."""
    return OtherBusiness(
        f"none of the {what}: key or address are another account's, or all of them were replaced "
        "there. Nothing of it was loaded. If it is right, `marketing-sync sync --accept-shrink` "
        "loads it"
    )


class Recognition(Protocol):
    """By what a session knows the business whose data the home holds."""

    is_known: bool

    def __call__(self, response: Response) -> None: ...
    def note_identity(self) -> None: ...


class AccountSession:
    """`open` makes the first request; it must succeed before anything else is fetched. It may be
    under way while other accounts are read.

    `recognition` raises OtherBusiness when that is not the business whose data the home holds.
    `accounts`: how many share the process; `accepts_shrinking`: a person said that listings which
    lost their rows are right."""

    def __init__(
        self,
        connection: Connection,
        warehouse: Warehouse,
        *,
        limiter: RateLimiter,
        spool: Path,
        recognition: Recognition,
        budget: RequestBudget | None,
        fallback_zone: str,
        now: Clock,
        planner: Planner,
        accounts: int = 1,
        accepts_shrinking: bool = False,
    ) -> None:
        workers = max(_FEWEST_WORKERS, min(_MOST_WORKERS, _WORKERS // accounts))
        self.account = connection.account
        self.accepts_shrinking = accepts_shrinking
        self._recognition = recognition
        self.listings_at_once = max(2, workers // 4)
        self.limiter = limiter
        self.client = Client(
            connection,
            limiter,
            record=self.record_exchange,
            spool=spool,
            accept=recognition,
            workers=workers,
            budget=budget,
        )
        self.zone = ZoneInfo(connection.timezone or fallback_zone)
        self.business: Business | None = None
        self.error: Exception | None = None  # MarketingApiError, WarehouseError or OSError
        self.opened = threading.Event()  # or failed to
        self.warehouse = warehouse
        self.planner = planner
        self.refused: dict[str, Failure] = {}  # in this run, by the call's key
        self.unavailable: dict[str, NotAvailable] = {}  # operations, in this run
        self._now = now
        planner.now = self.now
        self._me: Response | None = None
        self._unused_since: dict[
            str, int
        ] = {}  # by asset: the first request id whose response it may use again
        self._archived: Reusable  # of all assets, once it is prepared
        self.unfinished: set[str] = set()  # assets that a run was reading when it died
        self._spent: dict[str, Spent] = defaultdict(Spent)
        self._counting = threading.Lock()

    def prepare_reuse(self, assets: Iterable[str], checkpoints: Checkpoints) -> None:
        """Find out from which request on these assets may use archived responses: before `open` and
        `reuse`."""
        now = self._now()
        for asset in assets:
            died = checkpoints.resume_from(asset)
            if died is not None:
                self.unfinished.add(asset)
            self._unused_since[asset] = checkpoints.since if died is None else died
        since = min(self._unused_since.values(), default=new_request_id())
        self._archived = self.warehouse.archive.find_reusable(
            self.account, since, (now - _RESUMED, now + _AT_ONCE)
        )

    def now(self) -> dt.datetime:
        """The moment by the service's clock, as far as it is known."""
        return self._now() + self.client.clock.skew

    def today(self) -> dt.date:
        return today_in(self.zone, self.now())

    def clock_notice(self) -> str:
        """That the clocks of machine and service differ, with both times; empty while they
        agree."""
        if not self.client.clock.skew:
            return ""
        machine_time, service_time = (
            f"{moment:%Y-%m-%d %H:%M} UTC" for moment in (self._now(), self.now())
        )
        return (
            f"account {self.account}: this machine's clock shows {machine_time}, the service's "
            f"{service_time}. What was read is dated by the service's: correct the machine's clock"
        )

    def request_identity(self) -> None:
        """Request who the account is. Without this response nothing else is worth a request, and
        `problem` is why there is none."""
        try:
            self._me = self.client.fetch(account.ME.bind())
            self.business = business_of(self._me)
            if self.business and self.business.timezone and not self.client.connection.timezone:
                self._move_to(self.business.timezone)
            if not (self.accepts_shrinking or self._recognition.is_known):
                self._recognise_account()
            self._recognition.note_identity()
        except (
            MarketingApiError,
            WarehouseError,
            OSError,
        ) as error:  # such as a full disk, or an archive that is closed by now
            self.error = error
        finally:
            self.opened.set()

    def _recognise_account(self) -> None:
        """By its listings, ahead of all else, so that nothing of another account is loaded; who
        reads them has these responses again.

        None is taken from the archive: it may be what another account's key brought last.
        """
        is_listed = Counter[bool]()
        for table, operation, params in _TELLING:
            keys = list(self.warehouse.known_keys(table, self.account, params, str(self.zone)))
            listing = paging.Listing(operation, params)
            with suppress(Refused, NotAvailable):
                deque(listing.pages(self.client.fetch) if keys else (), 0)
            is_listed.update(key in listing.keys for key in keys)
        if is_listed and not is_listed[True]:
            raise make_other_business_error(
                f"{is_listed.total():,} lists and campaigns known is listed"
            )

    def _move_to(self, timezone: str) -> None:
        try:
            self.zone = ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError):
            log.warning(
                "account %s names a time zone that is not known; %s is used",
                self.account,
                self.zone,
            )

    def record_exchange(self, exchange: Exchange) -> Exchange:
        """Archive one request and count it for its operation; returns it as it is archived, which
        is what is loaded."""
        exchange = self.warehouse.archive.record_exchange(exchange)
        name = exchange.call.operation.name
        with self._counting:
            self._spent[name].requests += 1
            self._spent[name].waited_s += exchange.waited_ms / 1000
        return exchange

    def count_spent(self, operations: Iterable[Operation]) -> Spent:
        """Requests, retries included, and waiting of these operations in this run."""
        with self._counting:
            costs = [self._spent[operation.name] for operation in operations]
            return Spent(
                sum(spent.requests for spent in costs), sum(spent.waited_s for spent in costs)
            )

    def find_response(self, asset: str, call: Call) -> Response | None:
        """A whole response of this run, or of one that died reading `asset`; or the account's
        own."""
        if self._me is not None and call.key == self._me.call.key:
            return self._me
        return self._archived.get(call.key, self._unused_since.get(asset, sys.maxsize))

    def left_behind(self, asset: str, call: Call) -> int | None:
        """The request of the archived response that a run which died reading `asset` has left to
        the call; None without one."""
        return self._archived.request_id(call.key, self._unused_since[asset])
