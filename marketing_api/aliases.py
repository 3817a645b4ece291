"""Tells an answer that was mixed up from a service that knows the subject by another id.

A contact of several lists may be told under one of its ids. Such an answer names the same other id each time, which a mix-up does
not. Not here: that an answer names another id (`verdict`), asking again (`client`).
"""

from __future__ import annotations

import threading

from marketing_api.operation import Call

#: After so many confirmations, and no mix-up, this is taken for how the service tells ids.
_CONVINCED = 3


class Aliases:
    """What one account's answers named instead of what was asked for. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._named: dict[str, int] = {}
        self._confirmed = 0
        self._mixed_up = 0

    def confirm(self, call: Call, named: int) -> bool:
        """Whether the answer may be believed: the one before to the same question named this id, too."""
        with self._lock:
            before = self._named.pop(call.key, None)
            if before == named:
                self._confirmed += 1
                return True
            if before is not None:
                self._mixed_up += 1
            if self._confirmed >= _CONVINCED and not self._mixed_up:
                return True
            self._named[call.key] = named
            return False
