"""One account during one run: its client, its time zone, and which archived answers it need not ask again."""

from __future__ import annotations

import datetime as dt
import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from assets.days import today_in
from assets.known import Known
from assets.planning.planner import Planner
from assets.unfinished import Unfinished
from marketing_api.client import Client, Connection, Failure, RequestBudget
from marketing_api.clock import Clock
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Exchange, Outcome, Response, new_request_id
from marketing_api.operation import Call, Operation
from marketing_api.operations import account as operations
from marketing_api.parsing import parse_rows
from marketing_api.rate_limit import RateLimiter
from marketing_api.records.account import Business
from warehouse.archive import Archive, Reusable
from warehouse.errors import WarehouseError
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

#: So many operations one after the other that are not available are more likely a key that is refused.
_UNKNOWN_IN_A_ROW = 3
#: How far the clock may have been set back since an answer was requested for it to count as recent.
_AT_ONCE = dt.timedelta(minutes=5)

Reuse = Callable[[Call], Response | None]
#: The request of the archived answer that a run that died has left to a question; None without one.
Answered = Callable[[Call], int | None]


@dataclass
class Spent:
    """What asking cost: requests sent, and seconds that they waited for the limit, summed over threads."""

    requests: int = 0
    waited_s: float = 0.0


def business_of(response: Response) -> Business | None:
    """The business that an answer of `app/me` names."""
    for rows in parse_rows(response, dt.UTC, response.requested_at.date()):
        for record in rows.records:
            if isinstance(record, Business):
                return record
    return None


class Session:
    """`open` makes the first request; it must succeed before anything else is asked. It may be under way while other accounts are read."""

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
        workers: int = 32,
    ) -> None:
        self.account = connection.account
        self.limiter = limiter
        self.client = Client(connection, limiter, record=self.record, spool=spool, workers=workers, budget=budget)
        self.zone = ZoneInfo(connection.timezone or fallback_zone)
        self.business: Business | None = None
        self.problem: Exception | None = None  # MarketingApiError, WarehouseError or OSError
        self.opened = threading.Event()  # or failed to
        self.known = Known(warehouse, self.account)
        self.planner = planner
        self.refused: dict[str, Failure] = {}  # in this run, by question key
        self._archive = archive
        self._now = now
        planner.now = self.now
        self._resume = dt.timedelta(hours=resume_hours)
        self._me: Response | None = None
        self._unused_since: dict[str, int] = {}  # by asset: the first request id whose answer it may use again
        self._archived: Reusable | None = None
        self._left_behind: set[str] = set()  # assets that a run was reading when it died
        self._spent: dict[str, Spent] = defaultdict(Spent)
        self._counting = threading.Lock()
        self._answered: set[str] = set()  # operations, in this run
        self._unknown: set[str] = set()  # operations that are not available, since anything was answered
        self._confirmed: set[str] = set()  # operations that are not available although the key is accepted
        self._confirming = threading.Lock()

    def prepare(self, assets: Iterable[str], unfinished: Unfinished) -> None:
        """Find out from which request on archived answers have not been used by these assets. Call it before `open` and `reuse`.

        Those dated in the future are not used: nobody knows how old they are.
        """
        finished, now = self.known.finished(), self._now()
        for asset in assets:
            died = unfinished.since(asset)
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
        """Ask who the account is. Without this answer nothing else is worth asking, and `problem` says why there is none."""
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
        """Ask once more who the account is, when an operation is not available and that may be for want of a key.

        A key that is refused looks like an operation that does not exist (api-observed row 1). It is suspected when the
        operation was answered before in this run, or when several others in a row are not available. Raises
        AuthenticationFailed: then nothing else is worth asking.
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
        log.debug("%s: %s, %d ms", exchange.call.operation.name, exchange.outcome.value, exchange.took_ms)
        with self._counting:
            if exchange.outcome is Outcome.OK:
                self._answered.add(exchange.call.operation.name)
                self._unknown.clear()
            spent = self._spent[exchange.call.operation.name]
            spent.requests += 1
            spent.waited_s += exchange.waited_ms / 1000

    def spent(self, operations: Iterable[Operation]) -> Spent:
        """Requests, retries included, and waiting of these operations in this run."""
        with self._counting:
            parts = [self._spent[operation.name] for operation in operations]
            return Spent(sum(part.requests for part in parts), sum(part.waited_s for part in parts))

    def reuse(self, asset: str) -> Reuse:
        """Finds whole answers that came after `asset` was last read to the end: a run that died left them.

        The account's own answer of this run is among them, so that it is asked once.
        """
        since = self._unused_since.get(asset, sys.maxsize)

        def find(call: Call) -> Response | None:
            if self._me is not None and call.key == self._me.call.key:
                return self._me
            return self._archived.get(call.key, since) if self._archived else None

        return find

    def answered(self, asset: str) -> Answered | None:
        """Says which request archived answers are of that a run left which died reading `asset`; None when none did."""
        archived, since = self._archived, self._unused_since.get(asset)
        if asset not in self._left_behind or archived is None or since is None:
            return None
        return lambda call: archived.request_id(call.key, since)
