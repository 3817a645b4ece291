"""One account during one run: its client, its time zone, the cost of its requests, and the archived
responses that it may reuse."""

import datetime as dt
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

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

#: Requests that may be under way at the same time: for all accounts together, and at most and at
#: least for one account. 16 use a limit of 15/s up to a latency of one second.
_WORKERS = 256
_MOST_WORKERS = 32
_FEWEST_WORKERS = 8
#: A resumed sync reuses responses that are not older than this.
_RESUMED = dt.timedelta(hours=12)
#: How far in the future a response may be dated, after the clock was set back.
_AT_ONCE = dt.timedelta(minutes=5)
#: Listings that distinguish accounts if the service does not name the business. They are short, and
#: every night reads them.
_TELLING: tuple[tuple[Table, Operation, dict[str, str]], ...] = (
    (LISTS, lists.GETLISTS, {}),
    (CAMPAIGNS, campaigns.CAMPAIGNS, {"filter": "all"}),
)


def make_other_business_error(what: str) -> OtherBusiness:
    """The error of listings without any known row; `what` names the known rows."""
    return OtherBusiness(
        f"none of the {what}: the key or address belongs to another account, or all of them were "
        "replaced at the service. Nothing was loaded. If the service really replaced them, run "
        "`marketing-sync sync --accept-shrink`"
    )


class Recognition(Protocol):
    """Recognizes the business whose data the home holds."""

    is_known: bool

    def __call__(self, response: Response) -> None: ...
    def note_identity(self) -> None: ...


class AccountSession:
    """`request_identity` makes the first request; it must succeed before anything else is fetched.
    Meanwhile other accounts may be read.

    `recognition` raises OtherBusiness if a response is of another business than the home's.
    `accounts`: how many share the process; `accepts_shrinking`: a person confirmed that listings
    may have lost their rows."""

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
        self.warehouse = warehouse
        self.planner = planner
        planner.now = self.now
        self.accepts_shrinking = accepts_shrinking
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
        self.refused: dict[str, Failure] = {}  # in this run, by the call's key
        self.unavailable: dict[str, NotAvailable] = {}  # operations, in this run
        self.unfinished: set[str] = set()  # assets that a run was reading when it died
        self._recognition = recognition
        self._now = now
        self._me: Response | None = None
        # by asset: the first request id whose response it may reuse
        self._reusable_since: dict[str, int] = {}
        self._archived: Reusable  # for all assets, set by `prepare_reuse`
        self._spent: dict[str, Spent] = defaultdict(Spent)
        self._counting = threading.Lock()

    def prepare_reuse(self, assets: Iterable[str], checkpoints: Checkpoints) -> None:
        """Find the archived responses that these assets may reuse. Called before anything is
        requested."""
        now = self._now()
        for asset in assets:
            died = checkpoints.resume_from(asset)
            if died is not None:
                self.unfinished.add(asset)
            self._reusable_since[asset] = checkpoints.since if died is None else died
        since = min(self._reusable_since.values(), default=new_request_id())
        self._archived = self.warehouse.archive.find_reusable(
            self.account, since, (now - _RESUMED, now + _AT_ONCE)
        )

    def now(self) -> dt.datetime:
        """The time by the service's clock, if it is known."""
        return self._now() + self.client.clock.skew

    def today(self) -> dt.date:
        return today_in(self.zone, self.now())

    def clock_notice(self) -> str:
        """A warning that the clocks of machine and service differ, with both times; empty if they
        agree."""
        if not self.client.clock.skew:
            return ""
        return (
            f"account {self.account}: this machine's clock shows {self._now():%Y-%m-%d %H:%M} UTC, "
            f"the service's {self.now():%Y-%m-%d %H:%M} UTC. Reads have the service's time; "
            "correct this machine's clock"
        )

    def request_identity(self) -> None:
        """Request who the account is. Without this response nothing else is requested, and `error`
        is the reason."""
        try:
            self._me = self.client.fetch(account.ME.bind())
            self.business = business_of(self._me)
            zone = self.business.timezone if self.business else None
            if zone and not self.client.connection.timezone:
                self.zone = ZoneInfo(zone)
            if not (self.accepts_shrinking or self._recognition.is_known):
                self._recognise_account()
            self._recognition.note_identity()
        # OSError: such as a full disk, or an archive that is closed by now
        except (MarketingApiError, WarehouseError, OSError) as error:
            self.error = error
        finally:
            self.opened.set()

    def _recognise_account(self) -> None:
        """Recognize the account by its listings before anything else, so that nothing of another
        account is loaded. The assets that read the listings reuse these responses.

        No response is taken from the archive, which may have another account's.
        """
        is_listed = Counter[bool]()
        for table, operation, params in _TELLING:
            keys = list(self.warehouse.known_keys(table, self.account, params, str(self.zone)))
            listing = paging.Listing(operation, params)
            if keys:
                with suppress(Refused, NotAvailable):
                    deque(listing.pages(self.client.fetch), 0)
            is_listed.update(key in listing.keys for key in keys)
        if is_listed and not is_listed[True]:
            known = f"{is_listed.total():,} known lists and campaigns"
            raise make_other_business_error(f"{known} is listed")

    def record_exchange(self, exchange: Exchange) -> Exchange:
        """Archive one request and count it for its operation; returns it as archived, since that is
        loaded."""
        exchange = self.warehouse.archive.record_exchange(exchange)
        name = exchange.call.operation.name
        with self._counting:
            self._spent[name].requests += 1
            self._spent[name].waited_s += exchange.waited_ms / 1000
        return exchange

    def count_spent(self, operations: Iterable[Operation]) -> Spent:
        """Requests, including retries, and waiting of these operations in this run."""
        total = Spent()
        with self._counting:
            for operation in operations:
                spent = self._spent[operation.name]
                total.requests += spent.requests
                total.waited_s += spent.waited_s
        return total

    def find_response(self, asset: str, call: Call) -> Response | None:
        """A whole response of this run, or of a run that died while it read `asset`; or the
        account's identity."""
        if self._me is not None and call.key == self._me.call.key:
            return self._me
        since = self._reusable_since.get(asset, sys.maxsize)
        return self._archived.get(call.key, since)

    def left_behind(self, asset: str, call: Call) -> int | None:
        """The id of the archived response to the call from a run that died while it read `asset`;
        None without one."""
        return self._archived.request_id(call.key, self._reusable_since[asset])
