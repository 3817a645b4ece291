"""The loads of one process queue here for the file: one thread opens it and does the work of all.

So the file is opened once for many small loads. Not here: what a load does (`warehouse`), other
processes (`connection`)."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

#: Seconds for which the file is kept while loads wait, and for which it is then left to other
#: processes, which try every 0.2 s.
KEEP_S = 3.0
REST_S = 0.2
#: How often waiting threads check that the serving thread is alive.
_LOOK_S = 1.0

S = TypeVar("S")
R = TypeVar("R")


@dataclass
class _Waiting:
    """Work that waits, and where its result or error goes."""

    work: Callable[[Any], Any]
    outcome: Future[Any] = field(default_factory=Future)


class LoadQueue(Generic[S]):
    """`opened` returns a context with the object that the work receives. The thread lives while
    there is work."""

    def __init__(self, opened: Callable[[], AbstractContextManager[S]]) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._is_served = False
        self._server = threading.Thread()

    def run_in_turn(self, work: Callable[[S], R]) -> R:
        """What `work` returns or raises when it had its turn, in order of arrival. If opening
        fails, all waiting calls raise that error."""
        waiting = _Waiting(work)
        with self._lock:
            self._waiting.append(waiting)
        while not waiting.outcome.done():
            # Every waiting thread checks this, so that a serving thread that could not start, or
            # has ended, leaves no other thread waiting forever.
            with self._lock:
                if not (self._is_served and self._server.is_alive()):
                    self._server = threading.Thread(
                        target=self._serve_waiting, name="loads", daemon=True
                    )
                    self._server.start()
                    self._is_served = True
            wait([waiting.outcome], _LOOK_S)
        result: R = waiting.outcome.result()
        return result

    def _serve_waiting(self) -> None:
        while self._someone_waits():
            served: _Waiting | None = None
            try:
                with self._opened() as session:
                    until = time.monotonic() + KEEP_S
                    while True:
                        with self._lock:
                            served = self._waiting.popleft()
                        result = served.work(session)
                        if not self._waiting or time.monotonic() >= until:
                            break
                        served.outcome.set_result(result)
            except (
                BaseException
                # any error is passed to the waiting threads; the rest continues with a new opening
            ) as error:
                failed = deque([served] if served else [])
                if not failed:
                    with self._lock:
                        failed = self._waiting
                        self._waiting = deque()
                for one in failed:
                    one.outcome.set_exception(error)
            else:
                # a process that ends while this thread closes DuckDB's connection is aborted
                del session
                # the last result is only set after the file is closed
                served.outcome.set_result(result)
                if time.monotonic() >= until:
                    time.sleep(REST_S)

    def _someone_waits(self) -> bool:
        with self._lock:
            self._is_served = bool(self._waiting)
            return self._is_served
