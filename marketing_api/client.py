"""The client: asks questions of one account, as fast as its limit allows, until each has its answer or a reason.

Belongs here: what users of the package call, and when to try again. Not here: one request (`sender`), many questions at once
(`fan_out`), what an answer says (`wire`).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from marketing_api.crew import Crew
from marketing_api.errors import (
    BrokenResponse,
    GivenUp,
    InvalidCall,
    OutcomeUnknown,
    RateLimited,
    ServiceError,
    Stopped,
    TooLarge,
    Transient,
    Unreachable,
)
from marketing_api.exchange import Exchange, Response
from marketing_api.fan_out import Failure, FanOut
from marketing_api.operation import Call
from marketing_api.operations.account import ME
from marketing_api.outage import Outage
from marketing_api.rate_limit import RateLimiter, RequestBudget
from marketing_api.redaction import Secret
from marketing_api.sender import Sender, Statistics
from marketing_api.transport import Received, Transport

#: Bytes of one answer, unpacked: a listing of a million contacts has some hundred million.
BODY_LIMIT = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Connection:
    """One account and how to reach it. `url` up to and including `/1`; `max_rate` in requests per second; `body_limit` in bytes."""

    account: str
    url: str
    key: Secret
    max_rate: float | None = None
    timezone: str | None = None
    body_limit: int = BODY_LIMIT


__all__ = ["Client", "Connection", "Failure", "RequestBudget", "Secret", "Statistics", "Stopped"]

TRIES = 6  # of a read that meets time-outs, resets or broken answers
PATIENCE = 600.0  # seconds of one question, after which a second failure is the last
REFUSALS = 40  # 429s of one question: each costs a window, and none says that the next try will fail too
FIRST_PAUSE = 0.5  # seconds before the second try, then doubling
LONGEST_PAUSE = 15.0
SPARE_CONNECTIONS = 32  # for callers of `fetch` beside the workers


class Client:
    """Thread-safe. Every request becomes an Exchange, given to `record` before anything is made of its answer.

    `spool`: folder for bodies over 4 MiB, which then are files that belong to whoever keeps the exchange. `budget`: shared
    with other clients of the run. Use as a context manager, or call `close`.
    """

    def __init__(
        self,
        connection: Connection,
        limiter: RateLimiter,
        *,
        record: Callable[[Exchange], None],
        spool: Path,
        workers: int = 32,
        budget: RequestBudget | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self.connection = connection
        self._transport = Transport(
            connection.url,
            connection.key,
            spool=spool,
            connections=workers + SPARE_CONNECTIONS,
            most_bytes=connection.body_limit,
            on_look=lambda: self._sender.silence.say(),
        )
        self._sender = Sender(connection.account, connection.url, self._transport, limiter, record, budget)
        self.clock = self._sender.clock
        self._outage = Outage(lambda: self._sender.send(ME.bind()))
        self._crew = Crew(workers)
        self._first_pause = first_pause
        self._stop = threading.Event()

    def fetch(self, call: Call) -> Response:
        """The answer to a read, after as many tries as it takes; while the whole service is down, for two minutes more.

        Raises what the last try raised: Refused, NotAvailable, AuthenticationFailed (from then on for every question),
        Transient (GivenUp from then on), BudgetSpent; or Stopped.
        """
        return self._persist(call, self._stop, lambda: False)

    def fetch_xml(self, call: Call) -> Received:
        """The answer to a read as XML, as it came; one try. Its meaning is not read: everything else here works with JSON."""
        if not call.operation.is_read:
            raise InvalidCall(f"{call.operation.name} changes the account: its answer is read as JSON")
        return self._sender.fetch_xml(call)

    def fetch_many(
        self, calls: Iterable[Call], *, known: Callable[[Call], Response | Failure | None] | None = None
    ) -> Iterator[Response | Failure]:
        """Answers in order of arrival; a question without one becomes a Failure with its reason.

        `questions` is pulled as needed, about two per worker ahead; `known` may supply an answer, or a refusal, that is there already.
        An operation that is not available, or fails five times in a row, is not asked further: the rest of its questions fail
        with that reason. Raises AuthenticationFailed, BudgetSpent or Stopped, after which nothing more is asked.
        """
        return FanOut(self._persist, self._crew).responses(calls, known)

    def write(self, call: Call, *, before: Callable[[], object] = lambda: None) -> Response:
        """Send a write until it certainly arrived or cannot: what took no effect for certain is tried again, nothing else is.

        `before` is called once, when the first try has its turn under the rate limit: what must be noted before anything leaves.
        What it raises, is raised, and nothing was sent. Raises RateLimited, Refused, NotAvailable, AuthenticationFailed,
        BudgetSpent, Stopped, or Unreachable when it certainly took no effect, and OutcomeUnknown when that cannot be told: look
        before sending it again.
        """
        if call.operation.is_read:
            raise InvalidCall(f"{call.operation.name} changes nothing: use fetch()")
        announce: Callable[[], object] | None = before
        tries = refusals = 0
        is_refused = False
        while True:
            try:
                return self._sender.send(call, first=is_refused, before=announce)
            except RateLimited:  # refused before anything was done with it
                refusals, is_refused, announce = refusals + 1, True, None
                if refusals >= REFUSALS:
                    raise
                continue
            except GivenUp:
                raise
            except (Unreachable, BrokenResponse) as problem:
                if not isinstance(problem, Unreachable) or problem.was_sent:
                    raise OutcomeUnknown(f"{problem}; it was sent and may have taken effect") from problem
                tries, is_refused, announce = tries + 1, False, None
                if tries >= TRIES:
                    raise
            self._pause(tries)

    def stop(self) -> None:
        """Send nothing more: who waits raises Stopped, requests under way end. From any thread."""
        self._stop.set()
        self._sender.stop()

    @property
    def is_stopped(self) -> bool:
        return self._sender.is_stopped

    def close(self, grace: float = 2.0) -> None:
        """Stop, and give requests under way `grace` seconds to be recorded."""
        self.stop()
        self._crew.close(grace)
        self._transport.close()

    @property
    def statistics(self) -> Statistics:
        """A copy of the figures as of now."""
        return self._sender.statistics

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _persist(self, call: Call, stop: threading.Event, is_hopeless: Callable[[], bool]) -> Response:
        if not call.operation.is_read:
            raise InvalidCall(f"{call.operation.name} changes the account: use write()")
        tries = refusals = 0
        is_refused = False
        began = failed_at = time.monotonic()
        while True:
            try:
                response = self._sender.send(call, first=is_refused, is_given_up=stop.is_set)
                self._outage.answered()
                return response
            except ServiceError:
                self._outage.answered()
                raise
            except RateLimited:  # no pause: the pace holds everybody until the window resets, then this one goes first
                refusals, is_refused = refusals + 1, True
                if refusals >= REFUSALS or is_hopeless() or time.monotonic() - began > PATIENCE:
                    raise
                continue
            except (GivenUp, TooLarge):
                raise
            except Transient:
                tries, is_refused = tries + 1, False
                before, failed_at = failed_at, time.monotonic()
                is_enough = tries >= TRIES or (tries > 1 and failed_at - began > PATIENCE) or self._outage.is_given_up
                if is_hopeless() or (is_enough and not self._outage.lasts(before)):
                    raise
            self._pause(tries)

    def _pause(self, tries: int) -> None:
        pause = min(self._first_pause * 2 ** (tries - 1), LONGEST_PAUSE)
        self._stop.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311 (jitter, not secrecy)
