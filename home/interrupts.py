"""Ctrl-C, and the stop of a service manager: what they do at which moment.

KeyboardInterrupt may come at any instruction. During an import it can leave the import lock taken,
and then every thread hangs. So until something has begun, the signals just end the process. Work
with several threads runs beside the main thread, which only waits for it and for the signal.
Standard library only: this is imported before anything else. Not here: how work stops
(`assets.reader`)."""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NoReturn, TypeVar

from home import exits

MESSAGE = "stopped; everything received so far is kept, and the next run resumes from there"
STOPPING = "stopping: work in progress is finished first; a second Ctrl-C ends immediately"

#: How long stopped work may take to end: a load under way is finished. The next run does the rest.
_GRACE_S = 10.0
_LOOK_S = 0.1

T = TypeVar("T")


def end_at_once() -> AbstractContextManager[None]:
    """The signals end the process immediately: nothing has begun that could be lost."""
    return _handle_signals(lambda *_: _exit_now())


def raise_in_main() -> AbstractContextManager[None]:
    """The signals raise KeyboardInterrupt, for work that only runs in the main thread."""
    return _handle_signals(signal.default_int_handler)


def end_quietly() -> AbstractContextManager[None]:
    """The signals end the process immediately and silently, for commands that only read: there is
    nothing to finish or to resume."""
    return _handle_signals(lambda *_: os._exit(exits.INTERRUPTED))


class Stop:
    """Whether the work must stop, and what to call then."""

    def __init__(self) -> None:
        self.is_set = False
        self._callbacks: list[Callable[[], object]] = []

    def call_on_stop(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the signal comes (from another thread), or immediately if it has
        come. It must not block."""
        self._callbacks.append(callback)
        if self.is_set:
            callback()

    def raise_if_stopped(self) -> None:
        """Raise KeyboardInterrupt if the work must stop. Call it where the work can end easily."""
        if self.is_set:
            raise KeyboardInterrupt

    def set(self) -> bool:
        """Make all calls; returns False if there are none."""
        self.is_set = True
        for callback in self._callbacks:
            callback()
        return bool(self._callbacks)


def run_stoppable(work: Callable[[Stop], T]) -> T:
    """The result of `work`, run in another thread; KeyboardInterrupt if it was stopped. If it does
    not end in time, the process ends."""
    signals: list[int] = []
    stop = Stop()
    outcome = Future[T]()

    def run_work() -> None:
        try:
            outcome.set_result(work(stop))
        except BaseException as error:
            outcome.set_exception(error)

    with _handle_signals(lambda number, _: signals.append(number)):
        thread = threading.Thread(target=run_work, name="work", daemon=True)
        thread.start()
        while thread.is_alive() and not signals:
            thread.join(_LOOK_S)
        if signals:
            _wait_for_end(thread, stop, signals)
            raise KeyboardInterrupt
    return outcome.result()


def _wait_for_end(thread: threading.Thread, stop: Stop, signals: list[int]) -> None:
    if not stop.set():
        _exit_now()
    os.write(2, f"\n{STOPPING}\n".encode())
    ends = time.monotonic() + _GRACE_S
    while thread.is_alive() and len(signals) == 1 and time.monotonic() < ends:
        thread.join(_LOOK_S)
    if thread.is_alive():
        _exit_now()


def exit_process(code: int) -> NoReturn:
    """End like the interpreter, but without tearing down all imported modules, which takes most of
    a second."""
    with end_at_once():
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        _flush_streams()
        os._exit(code)


def _exit_now() -> None:
    """End now, without the interpreter's own shutdown, which waits for threads or breaks them."""
    _flush_streams()
    os.write(2, f"\n{MESSAGE}\n".encode())
    os._exit(exits.INTERRUPTED)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        # it is closed, or was being written when the signal came
        with suppress(OSError, ValueError, RuntimeError, AttributeError):
            stream.flush()


@contextmanager
def _handle_signals(handler: Callable[[int, Any], object]) -> Iterator[None]:
    """`handler` handles both signals meanwhile. Does nothing outside the main thread, which alone
    receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
