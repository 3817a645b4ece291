"""The client of one account: every request to the service goes through it.

One request goes through these states, in `Client._send_once`:

| state    | left through        | errors                                   |
|----------|---------------------|------------------------------------------|
| waiting  | `_wait_for_slot`    | BudgetSpent, Stopped, an earlier lockout |
| sending  | `Transport.send`    | Unreachable, BrokenResponse, TooLarge    |
| received | `_open_response`    | BrokenResponse                           |
| opened   | `_find_error`       | what `check_response` and `accept` raise |
| judged   | `RateLimiter.learn` | none; skipped without an HTTP status     |
| learned  | `_record_exchange`  | what `record` raises                     |
| recorded | `_confirm_key`      | AuthenticationFailed; after NotAvailable |

Every request that was sent is recorded, with the outcome that its error means (`_OUTCOMES`); then
the error is raised. AuthenticationFailed is a lockout: later requests raise it before they are
sent.

Not here: when to try again (`retry`), many calls at once (`worker_pool`), sockets (`transport`)."""

import contextlib
import copy
import dataclasses
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Self

from marketing_api import validation
from marketing_api.clock import ServiceClock
from marketing_api.envelope import SUFFIX, Envelope, read_envelope
from marketing_api.errors import (
    AuthenticationFailed,
    BrokenResponse,
    MarketingApiError,
    NotAvailable,
    OtherBusiness,
    OtherSubject,
    RateLimited,
    Refused,
    Stopped,
    Transient,
    Unreachable,
)
from marketing_api.exchange import Connection, Exchange, Outcome, Response, new_request_id
from marketing_api.operation import Call, Operation
from marketing_api.pacing import Slot
from marketing_api.rate_limit import RateLimiter, RequestBudget, read_rate_report
from marketing_api.records.account import ME
from marketing_api.redaction import Secret
from marketing_api.retry import FIRST_PAUSE, Retry, Silence
from marketing_api.service_address import advise_on_refused_key
from marketing_api.transport import Received, Transport
from marketing_api.worker_pool import Failure, FanOut, WorkerPool

__all__ = ["Client", "Connection", "Failure", "RequestBudget", "Secret", "Statistics", "Stopped"]

log = logging.getLogger(__name__)

SPARE_CONNECTIONS = 32  # for callers of `fetch` beside the workers


@dataclass(slots=True)
class Statistics:
    requests: int = 0
    waited_s: float = 0.0  # for the rate limit, summed over all threads
    outcomes: Counter[Outcome] = field(default_factory=Counter)


class Client:
    """Thread-safe. Use it as a context manager, or call `close`.

    Each whole response is passed to `accept`, which raises an error if it must not be used. For
    OtherBusiness the body is not recorded, and nothing more is sent. Then `record` receives the
    request and its response as an Exchange, before the response is used. If `record` returns
    another Exchange (what it kept), the response is taken from that one.

    `spool`: folder for bodies over 4 MiB, which then are files that belong to the owner of the
    exchange. `budget`: shared with other clients of the run."""

    def __init__(
        self,
        connection: Connection,
        limiter: RateLimiter,
        *,
        record: Callable[[Exchange], Exchange | None],
        spool: Path,
        accept: Callable[[Response], object] = lambda response: None,
        workers: int = 32,
        budget: RequestBudget | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self.connection = connection
        self.clock = ServiceClock()
        self._limiter = limiter
        self._record = record
        self._accept = accept
        self._budget = budget or RequestBudget()
        self._silence = Silence(connection.account)
        self._transport = Transport(
            connection.url,
            connection.key,
            spool=spool,
            connections=workers + SPARE_CONNECTIONS,
            most_bytes=connection.body_limit,
            on_look=self._silence.log_when_due,
        )
        self._pool = WorkerPool(workers)
        self._stop = threading.Event()
        self._retry = Retry(self._send_once, self._silence, self._stop, first_pause=first_pause)
        self._lockout = connection.key_error
        self._is_key_accepted = False  # `app/me` has responded
        # operations that are not available although the key is accepted
        self._confirmed: set[str] = set()
        self._confirming = threading.Lock()
        #: By key of a call: the id that its last response named instead of the requested one.
        self._named: dict[str, int] = {}
        self._statistics = Statistics()
        self._lock = threading.Lock()

    def fetch(self, call: Call) -> Response:
        """The response to a read, which is repeated as often as useful. While the whole service is
        down, it is repeated for two minutes more.

        Raises what the last try raised: Refused, NotAvailable, AuthenticationFailed (from then on
        for every call), Transient (GivenUp from then on), BudgetSpent; or Stopped."""
        return self._retry.send_read(call, self._stop, lambda: False)

    def fetch_many(
        self,
        calls: Iterable[Call],
        *,
        known: Callable[[Call], Response | Failure | None] | None = None,
        urgency: int = 0,
    ) -> Iterator[Response | Failure]:
        """Responses in order of arrival; a call without one becomes a Failure with its reason.

        `calls` is pulled as needed, about two per worker ahead. `known` may return a response or a
        refusal that exists already; then the call is not sent. Callers with a higher `urgency` are
        served first, equal ones in turn. An operation that is not available, or fails five times in
        a row, is not requested again: the rest of its calls fail with that reason. Raises
        AuthenticationFailed, BudgetSpent or Stopped, after which nothing more is sent."""
        fan_out = FanOut(self._retry.send_read, self._pool, urgency)
        return fan_out.responses(calls, known)

    def write(self, call: Call, *, before: Callable[[], object] = lambda: None) -> Response:
        """Send a write. It is repeated only if the last try certainly had no effect.

        `before` is called once, when the first try has its turn under the rate limit: use it to
        note what must be noted before the request leaves. If it raises, nothing is sent. Raises
        RateLimited, Refused, NotAvailable, AuthenticationFailed, BudgetSpent, Stopped or
        Unreachable if the write certainly had no effect. Raises OutcomeUnknown if it may have had
        one: check that before you send it again."""
        return self._retry.send_write(call, before)

    def stop(self) -> None:
        """Send nothing more: waiting calls raise Stopped, requests under way end. Thread-safe."""
        self._stop.set()
        self._limiter.wake_waiting()

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    def close(self, grace: float = 2.0) -> None:
        """Stop, and give requests under way `grace` seconds to be recorded."""
        self.stop()
        self._pool.close(grace)
        self._transport.close()

    @property
    def statistics(self) -> Statistics:
        with self._lock:
            return copy.copy(self._statistics)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_once(
        self,
        call: Call,
        *,
        first: bool = False,
        is_cancelled: Callable[[], bool] = lambda: False,
        before: Callable[[], object] = lambda: None,
    ) -> Response:
        """One request; `before` is called when it has its slot, and when that raises, nothing is
        sent.

        Raises what `validation.check_response` raises, Unreachable, BudgetSpent or Stopped. Once
        it has raised AuthenticationFailed or GivenUp, it raises that for every later call."""
        slot, waited = self._wait_for_slot(first, is_cancelled, before)
        request_id = new_request_id()
        sent = Response(request_id, self.connection.account, call, self.clock.steady(), b"")
        self._silence.begin_request()
        try:
            received = self._transport.send(call, f"{request_id}{SUFFIX}")
        except BaseException:
            interrupted = Unreachable(f"{call.operation.name}: interrupted", was_sent=True)
            self._record_exchange(sent, waited, Received(), interrupted)
            raise
        response, error = self._open_response(sent, received)
        if error is None:
            self.clock.learn(received.headers, sent.requested_at)
        if received.status is not None:
            report = read_rate_report(response.opened, received.headers)
            self._limiter.learn(slot, report, refused=isinstance(error, RateLimited))
        kept = self._record_exchange(response, waited, received, error)
        if isinstance(error, AuthenticationFailed):
            self._lockout = error
        if self._is_closed():
            self._limiter.wake_waiting()
        if isinstance(error, NotAvailable):
            self._confirm_key(call.operation)
        if error is not None:
            raise error
        return kept

    def _confirm_key(self, operation: Operation) -> None:
        """Request once more who the account is: a key that was revoked looks like an operation that
        is not there.

        See observations 1 and 41. Raises AuthenticationFailed, BudgetSpent or Stopped.
        """
        with self._confirming:
            if not self._is_key_accepted or operation.name in self._confirmed:
                return
            with contextlib.suppress(Transient, Refused):
                self.fetch(ME.bind())
            self._confirmed.add(operation.name)

    def _wait_for_slot(
        self, first: bool, is_cancelled: Callable[[], bool], before: Callable[[], object]
    ) -> tuple[Slot, float]:
        """A slot, and how many seconds the request waited for it."""
        self._check_open()
        self._budget.take_request()
        began = time.monotonic()
        try:
            slot = self._limiter.wait_for_slot(
                first=first, is_cancelled=lambda: self._is_closed() or is_cancelled()
            )
            waited = time.monotonic() - began
            before()
        except BaseException as error:
            self._budget.give_back()
            if isinstance(error, Stopped):
                self._check_open()  # raises the reason
            raise
        return slot, waited

    def _open_response(
        self, sent: Response, received: Received
    ) -> tuple[Response, MarketingApiError | None]:
        """What came back, opened, and what is wrong with it."""
        operation = sent.call.operation
        response = dataclasses.replace(sent, body=received.body)
        if received.error is not None:
            return response, received.error
        try:
            envelope = read_envelope(received.body)
            response = dataclasses.replace(response, opened=envelope)
            return response, self._find_error(response, received, envelope)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a response from outside may make a parser raise anything
            log.exception("a response of %s cannot be judged", operation.name)
            what = f"something that cannot be read ({type(error).__name__})"
            text = f"{operation.name}: HTTP {received.status} with {what} instead of a response"
            return response, BrokenResponse(text)

    def _find_error(
        self, response: Response, received: Received, envelope: Envelope
    ) -> MarketingApiError | None:
        call = response.call
        try:
            validation.check_response(call, received.status or 0, received.headers, envelope)
            self._accept(response)
            self._is_key_accepted |= call.operation.name == ME.name
        except OtherSubject as error:
            # A contact on several lists may be named by another of its ids. Then the same id comes
            # again; a mix-up would not return the same one twice.
            before = self._named.pop(call.key, None)
            if before == error.named:
                return None
            self._named[call.key] = error.named
            return error
        except OtherBusiness as error:
            return error
        except AuthenticationFailed as error:
            if self._is_key_accepted:
                return validation.make_operation_refusal(call.operation, error)
            advice = advise_on_refused_key(self.connection.url)
            return AuthenticationFailed(f"{error}{advice}", code=error.code, detail=error.detail)
        except MarketingApiError as error:
            return error
        return None

    def _record_exchange(
        self,
        response: Response,
        waited: float,
        received: Received,
        error: MarketingApiError | None,
    ) -> Response:
        """Record the exchange; returns the response as it was recorded."""
        self._silence.end_request(error)
        call = response.call
        is_secret = call.operation.is_secret
        is_hidden = is_secret or isinstance(error, OtherBusiness)
        took = self.clock.steady() - response.requested_at
        outcomes = (outcome for kind, outcome in _OUTCOMES.items() if isinstance(error, kind))
        exchange = Exchange(
            response.request_id,
            response.account,
            call,
            response.requested_at + self.clock.skew,
            waited_ms=round(waited * 1000),
            took_ms=round(took.total_seconds() * 1000),
            http_status=received.status,
            outcome=next(outcomes),
            error=None if error is None else str(error),
            body=b"" if is_hidden else response.body,
            headers=received.headers,
            opened=None if is_hidden else response.opened,
        )
        log.debug(
            "account %s: %r: HTTP %s, %s after %d ms, waited %d ms",
            *(exchange.account, call, exchange.http_status),
            *(exchange.outcome.value, exchange.took_ms, exchange.waited_ms),
        )
        with self._lock:
            self._statistics.requests += 1
            self._statistics.waited_s += exchange.waited_ms / 1000
            self._statistics.outcomes[exchange.outcome] += 1
        kept = self._record(exchange) or exchange
        source = response if is_secret else kept
        # an opened envelope would hold a body's file open
        opened = source.opened if isinstance(source.body, bytes) else None
        return Response(
            kept.request_id, kept.account, kept.call, kept.requested_at, source.body, opened
        )

    def _is_closed(self) -> bool:
        return self._stop.is_set() or self._lockout is not None or self._silence.is_over

    def _check_open(self) -> None:
        if self._lockout is not None:
            raise copy.copy(self._lockout).with_traceback(None)
        if self._stop.is_set():
            raise Stopped("the client was stopped")
        self._silence.raise_if_over()


#: How a request ended, the more special kinds first.
_OUTCOMES: dict[type[MarketingApiError | None], Outcome] = {
    NoneType: Outcome.OK,
    RateLimited: Outcome.RATE_LIMITED,
    Unreachable: Outcome.UNREACHABLE,
    BrokenResponse: Outcome.BROKEN,
    MarketingApiError: Outcome.REFUSED,
}
