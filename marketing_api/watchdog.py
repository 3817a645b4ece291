"""Ends requests that last too long: without a byte, or with a byte a second. A time-out between two bytes
alone would wait for ever.

Not here: sending and reading (`transport`), the connection that says how far a request has come
(`urllib3_internals`)."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: Bytes per second that a response must come with on average, once it has begun.
SLOWEST = 10_000
#: Of an operation's time-out: until the first bytes of the body must have come, and until all of it must
#: have.
BEGUN, WHOLE = 2, 10
_LOOK_S = 0.25


@dataclass(slots=True, eq=False)
class UnderWay:
    """A request and how far its response is. `is_ended`: it was too slow; `is_sent`: it may have had an
    effect."""

    due: float  # on the steady clock, without a byte
    end: float  # however much has come
    received: int = 0
    sock: socket.socket | None = None
    connecting: socket.socket | None = None  # a second handle: setting up TLS takes the first away
    is_ended: bool = False
    is_sent: bool = False

    def end_if_overdue(self, now: float) -> None:
        if self.is_ended or now < min(self.due + self.received / SLOWEST, self.end):
            return
        if (sock := self.sock or self.connecting) is None:
            return
        self.is_ended = True
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)  # whoever reads from it now gets its end


class Watch:
    """Looks after requests of several threads, each of which has one under way at a time. `close` ends its
    own thread.

    `on_look` is called four times a second from the first request on.
    """

    def __init__(self, on_look: Callable[[], object] = lambda: None) -> None:
        self._on_look = on_look
        self._under_way: set[UnderWay] = set()
        self._lock = threading.Lock()
        self.mine = (
            threading.local()
        )  # `request`: the one of this thread, whose connection notes how far it has come
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @contextlib.contextmanager
    def over(self, timeout: float) -> Iterator[UnderWay]:
        now = time.monotonic()
        self.mine.request = request = UnderWay(now + BEGUN * timeout, now + WHOLE * timeout)
        with self._lock:
            self._under_way.add(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="slow-responses", daemon=True)
                self._thread.start()
        try:
            yield request
        finally:
            with self._lock:
                self._under_way.discard(request)
                if request.connecting is not None:
                    request.connecting.close()

    def close(self) -> None:
        self._closing.set()

    def _look(self) -> None:
        while not self._closing.wait(_LOOK_S):
            with self._lock:
                for request in self._under_way:
                    request.end_if_overdue(time.monotonic())
            self._on_look()
