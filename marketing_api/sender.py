"""One request with everything around it: budget, pace, sending, verdict, what the pace learns, and the record.

Not here: trying again (`client`), sockets (`transport`), what an answer says (`wire`).
"""

from __future__ import annotations

import copy
import datetime as dt
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from marketing_api import validation
from marketing_api.aliases import Aliases
from marketing_api.clock import ServiceClock
from marketing_api.errors import AuthenticationFailed, BrokenResponse, MarketingApiError, OtherSubject, RateLimited, Stopped, Unreachable
from marketing_api.exchange import Exchange, Outcome, Response, new_request_id, prepare
from marketing_api.operation import Call
from marketing_api.outage import Silence
from marketing_api.rate_limit import RateLimiter, RateReport, RequestBudget, rate_report
from marketing_api.rate_limit.windows import Slot
from marketing_api.transport import Received, Transport

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Statistics:
    """What a client has done so far."""

    requests: int = 0
    waited_s: float = 0.0  # for the rate limit, summed over all threads
    outcomes: Counter[Outcome] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Sending:
    """A request on its way: `sent_at` is the time of day, before it is put right; the others are of the monotonic clock."""

    request_id: int
    sent_at: dt.datetime
    began: float
    waited: float


class Sender:
    """Sends for one account. Thread-safe. `record` has every exchange before anything is made of its answer."""

    def __init__(
        self,
        account: str,
        url: str,
        transport: Transport,
        limiter: RateLimiter,
        record: Callable[[Exchange], None],
        budget: RequestBudget | None,
    ) -> None:
        self.clock = ServiceClock()
        self._account = account
        self.silence = Silence(account)
        self._url = url
        self._transport = transport
        self._limiter = limiter
        self._record = record
        self._budget = budget
        self._is_stopped = False
        self._lockout: AuthenticationFailed | None = None
        self._aliases = Aliases()
        self._statistics = Statistics()
        self._lock = threading.Lock()

    def send(
        self,
        call: Call,
        *,
        first: bool = False,
        is_given_up: Callable[[], bool] | None = None,
        before: Callable[[], object] | None = None,
    ) -> Response:
        """One request; `before` is called when it has its slot, and when that raises, nothing is sent.

        Raises what `validation.check` raises, Unreachable, BudgetSpent or Stopped; AuthenticationFailed from then on, GivenUp too.
        """
        slot, waited = self._wait(first, lambda: self._is_closed() or (is_given_up is not None and is_given_up()))
        if before is not None:
            self._announce(before)
        sending = _Sending(new_request_id(), self.clock.steady(), time.monotonic(), waited)
        self.silence.begin()
        try:
            received = self._exchange(call, sending)
        except BaseException:
            self._keep(call, sending, Received(), Unreachable(f"{call.operation.name}: interrupted", was_sent=True))
            raise
        problem = received.problem or self._verdict(call, received)
        if problem is None:
            self.clock.learn(received.headers, sending.sent_at)
        if received.status is not None:
            self._limiter.learn(slot, _rate_report(received), refused=isinstance(problem, RateLimited))
        self._keep(call, sending, received, problem)
        if isinstance(problem, AuthenticationFailed):
            self._lockout = problem
        if self._is_closed():
            self._limiter.wake()
        if problem is not None:
            raise problem
        return Response(sending.request_id, self._account, call, sending.sent_at + self.clock.skew, received.body)

    def fetch_xml(self, call: Call) -> Received:
        """One request for the answer as XML, which nobody here reads: as it came, for a person to look at."""
        slot, _ = self._wait(False, self._is_closed)
        prepared = prepare(call, self._url)
        prepared = replace(prepared, url=prepared.url.removesuffix(".json") + ".xml")
        received = self._transport.send(
            prepared, what=call.operation.name, spool_name=f"{new_request_id()}.xml", timeout=call.operation.timeout
        )
        if received.status is not None:
            self._limiter.learn(slot, rate_report(None, received.headers), refused=received.status == 429)
        if received.problem is not None:
            raise received.problem
        return received

    def stop(self) -> None:
        """Send nothing more; whoever waits raises Stopped."""
        self._is_stopped = True
        self._limiter.wake()

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    @property
    def statistics(self) -> Statistics:
        """A copy of the figures as of now."""
        with self._lock:
            return copy.deepcopy(self._statistics)

    def _wait(self, first: bool, is_given_up: Callable[[], bool]) -> tuple[Slot, float]:
        self._check_open()
        if self._budget is not None:
            self._budget.take()
        began = time.monotonic()
        try:
            slot = self._limiter.wait(first=first, is_given_up=is_given_up)
        except BaseException:
            if self._budget is not None:
                self._budget.give_back()
            self._check_open()
            raise
        return slot, time.monotonic() - began

    def _announce(self, before: Callable[[], object]) -> None:
        try:
            before()
        except BaseException:
            if self._budget is not None:
                self._budget.give_back()
            raise

    def _exchange(self, call: Call, sending: _Sending) -> Received:
        operation = call.operation
        send = self._transport.send if operation.is_read else self._transport.send_fresh
        return send(prepare(call, self._url), what=operation.name, spool_name=f"{sending.request_id}.json", timeout=operation.timeout)

    def _verdict(self, call: Call, received: Received) -> MarketingApiError | None:
        try:
            validation.check(call, received.status or 0, received.headers, received.body)
        except OtherSubject as problem:
            return None if self._aliases.confirm(call, problem.named) else problem
        except MarketingApiError as problem:
            return problem
        except (OSError, MemoryError):
            raise
        except Exception as problem:  # whatever a stranger's answer makes of a parser
            log.exception("an answer of %s cannot be judged", call.operation.name)
            said = f"HTTP {received.status} with something that cannot be read ({type(problem).__name__}) instead of an answer"
            return BrokenResponse(f"{call.operation.name}: {said}", status=received.status)
        return None

    def _keep(self, call: Call, sending: _Sending, received: Received, problem: MarketingApiError | None) -> None:
        self.silence.end(problem)
        outcome = _outcome(problem)
        with self._lock:
            self._statistics.requests += 1
            self._statistics.waited_s += sending.waited
            self._statistics.outcomes[outcome] += 1
        self._record(
            Exchange(
                sending.request_id,
                self._account,
                call,
                sending.sent_at + self.clock.skew,
                round(sending.waited * 1000),
                round((time.monotonic() - sending.began) * 1000),
                received.status,
                outcome,
                None if problem is None else str(problem),
                b"" if call.operation.is_secret else received.body,
            )
        )

    def _is_closed(self) -> bool:
        return self._is_stopped or self._lockout is not None or self.silence.is_over

    def _check_open(self) -> None:
        if self._lockout is not None:
            raise copy.copy(self._lockout).with_traceback(None)
        if self._is_stopped:
            raise Stopped("the client was stopped")
        self.silence.check()


def _rate_report(received: Received) -> RateReport | None:
    """Of a body in a file the headers must do."""
    return rate_report(received.body if isinstance(received.body, bytes) else None, received.headers)


_OUTCOMES: tuple[tuple[type[MarketingApiError], Outcome], ...] = (
    (RateLimited, Outcome.RATE_LIMITED),
    (Unreachable, Outcome.UNREACHABLE),
    (BrokenResponse, Outcome.BROKEN),
)


def _outcome(problem: MarketingApiError | None) -> Outcome:
    if problem is None:
        return Outcome.OK
    return next((outcome for kind, outcome in _OUTCOMES if isinstance(problem, kind)), Outcome.REFUSED)
