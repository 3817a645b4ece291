"""Tells a service that is down for minutes, which is waited for, from a question that fails by itself, which is not; and says so."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from marketing_api.errors import GivenUp, Refused, Transient

log = logging.getLogger(__name__)

#: Seconds without any whole answer for which a run waits: a restart or a deployment, no more.
LONGEST = 120.0
_LOOK_AGAIN_S = 10.0


class Outage:
    """Thread-safe. `probe` asks something that the service has answered before, once, and raises what came of it."""

    def __init__(self, probe: Callable[[], object]) -> None:
        self._probe = probe
        self._answered_at = self._looked_at = -float("inf")
        self._is_down = False
        self._lock = threading.Lock()

    def answered(self) -> None:
        """A whole answer or an honest refusal came."""
        self._answered_at = time.monotonic()

    @property
    def is_given_up(self) -> bool:
        """It was waited for and did not end: until something is answered again, one try of a question is enough."""
        return self._is_down and time.monotonic() - self._answered_at > LONGEST

    def lasts(self, since: float) -> bool:
        """Whether nothing has been answered `since` (steady clock), although it was before, nor is the probe now.

        False at the start of a run and after `LONGEST`: then it is no use to wait. Raises what the probe raises unless it
        tells about the service: Stopped, BudgetSpent, AuthenticationFailed.
        """
        with self._lock:
            now = time.monotonic()
            if self._answered_at > since or now - self._answered_at > LONGEST:
                return False
            if now - self._looked_at > _LOOK_AGAIN_S or not self._is_down:
                self._looked_at, self._is_down = now, self._fails()
            return self._is_down

    def _fails(self) -> bool:
        try:
            self._probe()
        except Transient:
            return True
        except Refused:
            pass
        return False


#: Seconds without any whole answer after which an account is asked nothing more, whatever its service asks to wait for.
SILENCE = 600.0
#: When such a time is first said, and how often from then on.
FIRST_SAID_S, SAID_AGAIN_S = 15.0, 30.0
_IDLE_S = 120.0  # without a request, after which a time without answers begins anew


class Silence:
    """How long an account that is asked has given no whole answer. Thread-safe."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._under_way = 0
        self._since: float | None = None  # all on the steady clock
        self._last = self._said_at = -float("inf")
        self._why = ""
        self._lock = threading.Lock()

    def begin(self) -> None:
        """A request leaves."""
        with self._lock:
            now = time.monotonic()
            if self._since is None or (not self._under_way and now - self._last > _IDLE_S):
                self._since = now
            self._under_way += 1
            self._last = now

    def end(self, problem: Exception | None) -> None:
        """It has been answered, or not."""
        with self._lock:
            self._under_way -= 1
            self._last = now = time.monotonic()
            if not isinstance(problem, Transient):
                self._since, self._why = (now if self._under_way else None), ""
            else:
                self._why = str(problem)

    @property
    def is_over(self) -> bool:
        """It has lasted for `SILENCE`: nothing more is to be asked."""
        since = self._since
        return since is not None and bool(self._why) and self._last - since > SILENCE

    def check(self) -> None:
        """Raises GivenUp when `is_over`."""
        if self.is_over:
            raise GivenUp(f"no whole answer for {_minutes(SILENCE)} ({self._why}); the account is asked nothing more in this run")

    def say(self) -> None:
        """Log it when that is due. Called often."""
        since, now = self._since, time.monotonic()
        if since is None or now - since < FIRST_SAID_S or now - self._said_at < SAID_AGAIN_S:
            return
        self._said_at = now
        why = self._why or f"{self._under_way} under way"
        log.warning("account %s: no answer for %.0f s (%s); it is given up after %s", self._account, now - since, why, _minutes(SILENCE))


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} minutes"
