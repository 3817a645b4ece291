"""Tells a service that is down for minutes, which is waited for, from a question that fails by itself, which is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from marketing_api.errors import Refused, Transient

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
