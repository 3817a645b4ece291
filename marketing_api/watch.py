"""Ends requests that last too long: a time-out between two bytes alone would let a byte a second go on for ever.

Not here: time-outs without a byte, and what becomes of the request (`transport`).
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

#: Bytes per second that an answer must come with on average, once it has begun.
SLOWEST = 10_000
#: Of an operation's time-out: until the first bytes of the body must have come, and until all of it must have.
BEGUN, WHOLE = 2, 10
_LOOK_S = 0.25


@dataclass(slots=True, eq=False)
class UnderWay:
    """A request and how far its answer is. `is_ended`: it was too slow; `is_sent`: it may have had an effect."""

    due: float  # on the steady clock, without a byte
    end: float  # however much has come
    received: int = 0
    sock: Any = None
    connecting: socket.socket | None = None  # a second handle: setting up TLS takes the first away
    is_ended: bool = False
    is_sent: bool = False

    def end_if_overdue(self, now: float) -> None:
        if self.is_ended or now < min(self.due + self.received / SLOWEST, self.end):
            return
        if (sock := self.sock or self.connecting) is None:
            return
        self.is_ended = True
        plain = sock if isinstance(sock, socket.socket) else sock.socket  # TLS to a proxy wraps another way
        with contextlib.suppress(OSError):
            socket.socket.shutdown(plain, socket.SHUT_RDWR)  # whoever reads from it now gets its end


class Watch:
    """Looks after requests of several threads, each of which has one under way at a time. `close` ends its own thread.

    `on_look` is called four times a second from the first request on.
    """

    def __init__(self, on_look: Callable[[], object] = lambda: None) -> None:
        self._on_look = on_look
        self._under_way: set[UnderWay] = set()
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @contextlib.contextmanager
    def over(self, timeout: float) -> Iterator[UnderWay]:
        """Look after one request of an operation with this time-out."""
        now = time.monotonic()
        self._mine.request = request = UnderWay(now + BEGUN * timeout, now + WHOLE * timeout)
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
                if request.connecting is not None:
                    request.connecting.close()

    def connected(self, sock: socket.socket) -> None:
        """The request of this thread has a connection, over which TLS may still have to be agreed."""
        self._mine.request.connecting = sock.dup()

    def begins(self) -> None:
        """The request of this thread may leave from now on."""
        self._mine.request.is_sent = True

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
            self._on_look()
