"""Ends requests whose answers come too slowly: a time-out between two bytes alone would let a byte a second go on for ever.

Not here: time-outs without a byte, and what becomes of the request (`transport`).
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Bytes per second that an answer must come with on average, once it has begun.
SLOWEST = 10_000
_LOOK_S = 0.25


@dataclass(slots=True, eq=False)
class UnderWay:
    """A request and how far its answer is. `is_ended`: it was too slow."""

    due: float  # on the steady clock, without a byte
    received: int = 0
    sock: Any = None
    is_ended: bool = False

    def end_if_overdue(self, now: float) -> None:
        if self.is_ended or self.sock is None or now < self.due + self.received / SLOWEST:
            return
        self.is_ended = True
        plain = self.sock if isinstance(self.sock, socket.socket) else self.sock.socket  # TLS to a proxy wraps another way
        with contextlib.suppress(OSError):
            socket.socket.shutdown(plain, socket.SHUT_RDWR)  # whoever reads from it now gets its end


class Watch:
    """Looks after requests of several threads, each of which has one under way at a time. `close` ends its own thread."""

    def __init__(self) -> None:
        self._under_way: set[UnderWay] = set()
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @contextlib.contextmanager
    def over(self, seconds: float) -> Iterator[UnderWay]:
        """Look after one request, which has `seconds` until its answer must have begun to come."""
        self._mine.request = request = UnderWay(time.monotonic() + seconds)
        with self._lock:
            self._under_way.add(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="slow-answers", daemon=True)
                self._thread.start()
        try:
            yield request
        finally:
            with self._lock:
                self._under_way.discard(request)

    def sent(self, sock: Any) -> None:
        """The request of this thread has left through `sock`."""
        self._mine.request.sock = sock

    def close(self) -> None:
        self._closing.set()

    def _look(self) -> None:
        while not self._closing.wait(_LOOK_S):
            with self._lock:
                for request in self._under_way:
                    request.end_if_overdue(time.monotonic())
