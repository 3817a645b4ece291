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

from marketing_api import wire
from marketing_api.aliases import Aliases
from marketing_api.budget import Budget
from marketing_api.errors import AuthenticationFailed, BrokenAnswer, MarketingApiError, OtherSubject, RateLimited, Stopped, Unreachable
from marketing_api.exchange import Answer, Exchange, Outcome, new_request_id
from marketing_api.operation import Question
from marketing_api.outage import Silence
from marketing_api.pace import Pace
from marketing_api.pacing.windows import Slot
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
    """A request on its way; times are of the steady clock except the first."""

    request_id: int
    requested_at: dt.datetime
    began: float
    waited: float


class Sender:
    """Sends for one account. Thread-safe. `record` has every exchange before anything is made of its answer."""

    def __init__(
        self, account: str, url: str, transport: Transport, pace: Pace, record: Callable[[Exchange], None], budget: Budget | None
    ) -> None:
        self._account = account
        self.silence = Silence(account)
        self._url = url
        self._transport = transport
        self._pace = pace
        self._record = record
        self._budget = budget
        self._is_stopped = False
        self._lockout: AuthenticationFailed | None = None
        self._aliases = Aliases()
        self._statistics = Statistics()
        self._lock = threading.Lock()

    def send(
        self,
        question: Question,
        *,
        first: bool = False,
        is_given_up: Callable[[], bool] | None = None,
        before: Callable[[], object] | None = None,
    ) -> Answer:
        """One request; `before` is called when it has its slot, and when that raises, nothing is sent.

        Raises what `wire.check` raises, Unreachable, BudgetSpent or Stopped; AuthenticationFailed from then on, GivenUp too.
        """
        slot, waited = self._wait(first, lambda: self._is_closed() or (is_given_up is not None and is_given_up()))
        if before is not None:
            self._announce(before)
        sending = _Sending(new_request_id(), dt.datetime.now(dt.UTC), time.monotonic(), waited)
        self.silence.begin()
        try:
            received = self._exchange(question, sending)
        except BaseException:
            self._keep(question, sending, Received(), Unreachable(f"{question.operation.name}: interrupted", was_sent=True))
            raise
        problem = received.problem or self._verdict(question, received)
        if received.status is not None:
            self._pace.learn(slot, _rate_report(received), refused=isinstance(problem, RateLimited))
        self._keep(question, sending, received, problem)
        if isinstance(problem, AuthenticationFailed):
            self._lockout = problem
        if self._is_closed():
            self._pace.wake()
        if problem is not None:
            raise problem
        return Answer(sending.request_id, self._account, question, sending.requested_at, received.body)

    def fetch_xml(self, question: Question) -> Received:
        """One request for the answer as XML, which nobody here reads: as it came, for a person to look at."""
        slot, _ = self._wait(False, self._is_closed)
        prepared = wire.prepare(question, self._url)
        prepared = replace(prepared, url=prepared.url.removesuffix(".json") + ".xml")
        received = self._transport.send(
            prepared, what=question.operation.name, spool_name=f"{new_request_id()}.xml", timeout=question.operation.timeout
        )
        if received.status is not None:
            self._pace.learn(slot, wire.rate_report(None, received.headers), refused=received.status == 429)
        if received.problem is not None:
            raise received.problem
        return received

    def stop(self) -> None:
        """Send nothing more; whoever waits raises Stopped."""
        self._is_stopped = True
        self._pace.wake()

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
            slot = self._pace.wait(first=first, is_given_up=is_given_up)
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

    def _exchange(self, question: Question, sending: _Sending) -> Received:
        operation = question.operation
        send = self._transport.send if operation.is_read else self._transport.send_fresh
        return send(
            wire.prepare(question, self._url), what=operation.name, spool_name=f"{sending.request_id}.json", timeout=operation.timeout
        )

    def _verdict(self, question: Question, received: Received) -> MarketingApiError | None:
        try:
            wire.check(question, received.status or 0, received.headers, received.body)
        except OtherSubject as problem:
            return None if self._aliases.confirm(question, problem.named) else problem
        except MarketingApiError as problem:
            return problem
        except (OSError, MemoryError):
            raise
        except Exception as problem:  # whatever a stranger's answer makes of a parser
            log.exception("an answer of %s cannot be judged", question.operation.name)
            said = f"HTTP {received.status} with something that cannot be read ({type(problem).__name__}) instead of an answer"
            return BrokenAnswer(f"{question.operation.name}: {said}", status=received.status)
        return None

    def _keep(self, question: Question, sending: _Sending, received: Received, problem: MarketingApiError | None) -> None:
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
                question,
                sending.requested_at,
                round(sending.waited * 1000),
                round((time.monotonic() - sending.began) * 1000),
                received.status,
                outcome,
                None if problem is None else str(problem),
                b"" if question.operation.is_secret else received.body,
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


def _rate_report(received: Received) -> wire.RateReport | None:
    """Of a body in a file the headers must do."""
    return wire.rate_report(received.body if isinstance(received.body, bytes) else None, received.headers)


_OUTCOMES: tuple[tuple[type[MarketingApiError], Outcome], ...] = (
    (RateLimited, Outcome.RATE_LIMITED),
    (Unreachable, Outcome.UNREACHABLE),
    (BrokenAnswer, Outcome.BROKEN),
)


def _outcome(problem: MarketingApiError | None) -> Outcome:
    if problem is None:
        return Outcome.OK
    return next((outcome for kind, outcome in _OUTCOMES if isinstance(problem, kind)), Outcome.REFUSED)
