"""When a request is sent again: exponential back-off with jitter, and how long we wait for a
service that is down.

Reads are retried until they have a response, a permanent error or too many tries. Writes are not
idempotent: a write is only repeated if it certainly had no effect. Not here: one request
(`client`), how fast requests may leave (`rate_limit`)."""

import logging
import random
import threading
import time
from collections.abc import Callable

from marketing_api.errors import (
    GivenUp,
    InvalidCall,
    OutcomeUnknown,
    RateLimited,
    Refused,
    TooLarge,
    Transient,
    Unreachable,
)
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.records.account import ME

log = logging.getLogger(__name__)

#: Seconds without any whole response for which a run waits: enough for a restart or a deployment.
LONGEST_OUTAGE = 120.0
_PROBE_INTERVAL_S = 10.0
#: Seconds without any whole response after which nothing more is sent to an account, even if its
#: service asks to wait longer.
SILENCE = 600.0
_PATIENCE = f"{SILENCE / 60:g} minutes"
#: When a time without responses is first logged, and how often after that.
FIRST_LOG_S = 15.0
LOG_INTERVAL_S = 30.0
_IDLE_S = 120.0  # after so long without a request, a time without responses starts again


class Silence:
    """How long an account has had neither a whole response nor a refusal, and whether its service
    is down. Thread-safe."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._under_way = 0
        self._since: float | None = None  # all on the steady clock
        self._answered_at = self._last = self._logged_at = self._probed_at = -float("inf")
        self._is_down = self._is_refused = False
        self._why = ""
        self._lock = threading.Lock()
        self._probing = threading.Lock()

    def begin_request(self) -> None:
        with self._lock:
            now = time.monotonic()
            was_idle = not self._under_way and now - self._last > _IDLE_S
            if self._since is None or was_idle:
                self._since = now
            self._under_way += 1
            self._last = now

    def end_request(self, error: Exception | None) -> None:
        with self._lock:
            self._under_way -= 1
            self._last = now = time.monotonic()
            if not isinstance(error, Transient):
                self._answered_at = now
                self._since = now if self._under_way else None
                self._why = ""
                return
            is_first = isinstance(error, Unreachable) and self._answered_at < 0 and not self._why
            self._why = str(error)
            self._is_refused = isinstance(error, RateLimited)
        if is_first:  # most likely the address is wrong, so say it immediately
            log.warning(
                "account %s: no response yet (%s); retrying. Is the address right, and the "
                "service up?",
                self._account,
                error,
            )

    @property
    def is_over(self) -> bool:
        """It has lasted for `SILENCE`: nothing more is sent."""
        if self._since is None or not self._why:
            return False
        return self._last - self._since > SILENCE

    def raise_if_over(self) -> None:
        if self.is_over:
            raise GivenUp(
                f"no complete response for {_PATIENCE} ({self._why}); this run sends no more "
                "requests to the account"
            )

    def log_when_due(self) -> None:
        since = self._since
        now = time.monotonic()
        if since is None or now - since < FIRST_LOG_S:
            return
        if now - self._logged_at < LOG_INTERVAL_S:
            return
        self._logged_at = now
        why = self._why or f"{self._under_way} under way"
        log.warning(
            "account %s: no response for %.0f s (%s); %s",
            self._account,
            now - since,
            why,
            self._describe_limit(),
        )

    def _describe_limit(self) -> str:
        """The limit that will end the wait first."""
        if self._is_refused:
            return f"a request is given up after {REFUSALS} refusals or {_PATIENCE}"
        if self._has_lasted():
            return f"a request is given up after {TRIES} tries"
        return f"an outage is waited for {LONGEST_OUTAGE / 60:g} minutes"

    def _has_lasted(self) -> bool:
        """Longer than we wait for an outage, or since the start of the run."""
        return time.monotonic() - self._answered_at > LONGEST_OUTAGE

    @property
    def has_outage_lasted(self) -> bool:
        """We waited for its end in vain. Until a whole response comes again, each call has one
        try."""
        return self._is_down and self._has_lasted()

    def is_outage(self, since: float, probe: Callable[[], object]) -> bool:
        """Whether the service is down: no whole response came `since` (steady clock), although one
        came before, and `probe` gets none now.

        False at the start of a run and after `LONGEST_OUTAGE`, when waiting is useless. Raises
        Stopped, BudgetSpent or AuthenticationFailed if the probe does."""
        with self._probing:
            now = time.monotonic()
            if self._answered_at > since or self._has_lasted():
                return False
            if now - self._probed_at > _PROBE_INTERVAL_S or not self._is_down:
                is_down = False
                try:
                    probe()
                except Transient:
                    is_down = True
                except Refused:
                    pass
                self._probed_at = now
                self._is_down = is_down
            return self._is_down


TRIES = 6  # of a read that meets time-outs, resets or broken responses
LONGEST_CALL_S = 600.0  # seconds of one call, after which a second failure is the last
# 429s of one call: each costs one window, and does not mean that the next try will fail, too
REFUSALS = 40
FIRST_PAUSE = 0.5  # seconds before the second try, then doubling
LONGEST_PAUSE = 15.0


def _do_nothing() -> None:
    """Replaces `before` after the first try of a write."""


class Retry:
    """Sends calls of one account until each has its response or an error. Thread-safe. `send`:
    sends one request (`Client`); `stop` ends every pause."""

    def __init__(
        self,
        send: Callable[..., Response],
        silence: Silence,
        stop: threading.Event,
        *,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._send = send
        self._silence = silence
        self._stop = stop
        self._first_pause = first_pause

    def send_read(
        self,
        call: Call,
        stop: threading.Event,
        is_hopeless: Callable[[], bool],
        leave: Callable[[], None] = lambda: None,
    ) -> Response:
        """See `Client.fetch`. Ends early if the caller has gone (`stop`), or if its operation was
        given up (`is_hopeless`).

        `leave` is called each time when the request has its turn under the rate limit.
        """
        if not call.operation.is_read:
            raise InvalidCall(f"{call.operation.name} changes the account: use write()")
        tries = refusals = 0
        is_refused = False
        began = failed_at = time.monotonic()
        while True:
            try:
                return self._send(call, first=is_refused, is_cancelled=stop.is_set, before=leave)
            # No pause: the limiter makes all requests wait until the window resets, then this one
            # goes first.
            except RateLimited:
                refusals += 1
                is_refused = True
                is_too_long = time.monotonic() - began > LONGEST_CALL_S
                if refusals >= REFUSALS or is_too_long or is_hopeless():
                    raise
                continue
            except (GivenUp, TooLarge):
                raise
            except Transient:
                tries += 1
                is_refused = False
                before = failed_at
                failed_at = time.monotonic()
                if is_hopeless() or self._is_enough(tries, failed_at - began, before):
                    raise
            self._pause_before_retry(tries)

    def _is_enough(self, tries: int, seconds: float, since: float) -> bool:
        """Whether a read that failed this often, for this long, is given up. During an outage it is
        not."""
        is_tried = tries >= TRIES or (tries > 1 and seconds > LONGEST_CALL_S)
        if not is_tried and not self._silence.has_outage_lasted:
            return False
        return not self._silence.is_outage(since, lambda: self._send(ME.bind()))

    def send_write(self, call: Call, before: Callable[[], object]) -> Response:
        """See `Client.write`."""
        if call.operation.is_read:
            raise InvalidCall(f"{call.operation.name} changes nothing: use fetch()")
        tries = refusals = 0
        is_refused = False
        while True:
            try:
                return self._send(call, first=is_refused, before=before)
            except RateLimited:  # refused before anything was done with it
                refusals += 1
                is_refused = True
                before = _do_nothing
                if refusals >= REFUSALS:
                    raise
                continue
            except GivenUp:
                raise
            except Transient as error:
                if not isinstance(error, Unreachable) or error.was_sent:
                    raise OutcomeUnknown(
                        f"{error}; it was sent and may have taken effect"
                    ) from error
                tries += 1
                is_refused = False
                before = _do_nothing
                if tries >= TRIES:
                    raise
            self._pause_before_retry(tries)

    def _pause_before_retry(self, tries: int) -> None:
        pause = min(self._first_pause * 2 ** (tries - 1), LONGEST_PAUSE)
        self._stop.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311 (jitter, not secrecy)
