"""The threads that make an account's requests, and many requests at once through them.

Belongs here: how many threads there are, whose job is next, and when an operation is given up. Not
here: one request (`client`).

Only one thread at a time waits for the rate limit; when its request leaves, the next job starts. So
there are only as many threads as requests under way (limit x latency), plus one. The threads are
daemons: a program that is interrupted ends immediately."""

import bisect
import contextlib
import functools
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from marketing_api.errors import (
    AuthenticationFailed,
    BudgetSpent,
    MarketingApiError,
    NotAvailable,
    Stopped,
    Transient,
)
from marketing_api.exchange import Response
from marketing_api.operation import Call

#: An operation is given up after this many requests in a row have used up all their tries.
FAILURES_IN_A_ROW = 5
#: Requests under way or waiting, for each worker.
AHEAD = 2

#: A job calls its argument when it no longer waits for its turn; then the next job starts.
Job = Callable[[Callable[[], None]], None]


@dataclass(eq=False)
class Lane:
    """One caller's jobs. `stop` is set when the caller has gone."""

    urgency: int = 0
    jobs: deque[Job] = field(default_factory=deque)
    stop: threading.Event = field(default_factory=threading.Event)


class WorkerPool:
    """Starts threads as they are needed, up to `size`: the most urgent lane first, equal ones in
    turn. Jobs must not raise."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._changed = threading.Condition()
        self._lanes: list[Lane] = []  # those with jobs waiting, the next to be served first
        self._threads: list[threading.Thread] = []
        self._idle = 0  # threads, those included that were woken but do not run yet
        self._is_entering = False  # whether a job is under way that waits for its turn
        self._is_closed = False

    def put_job(self, lane: Lane, job: Job) -> None:
        """Raises Stopped after `close`."""
        with self._changed:
            if self._is_closed:
                raise Stopped("the client was stopped")
            lane.jobs.append(job)
            if len(lane.jobs) == 1:
                bisect.insort(self._lanes, lane, key=lambda lane: -lane.urgency)
            self._wake_or_start_thread()

    def drop_jobs(self, lane: Lane) -> int:
        """Forget the lane's jobs that have not begun; returns how many."""
        with self._changed:
            dropped = len(lane.jobs)
            lane.jobs.clear()
            if dropped:
                self._lanes.remove(lane)
            return dropped

    def close(self, grace: float) -> None:
        """Let the threads end once no job is left, and wait `grace` seconds for it."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        deadline = time.monotonic() + grace
        for thread in self._threads:
            # An interrupt may have come before the thread started, so it may not be alive.
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _wake_or_start_thread(self) -> None:
        """Have a thread look for the next job. Called with `_changed` held."""
        if self._is_closed:
            self._changed.notify_all()
        elif self._idle:
            self._changed.notify()
        elif self._lanes and not self._is_entering and len(self._threads) < self.size:
            name = f"requests-{len(self._threads)}"
            thread = threading.Thread(target=self._run_jobs, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no room for one more: the existing threads do the work
                if not self._threads:
                    raise
            else:
                self._threads.append(thread)

    def _run_jobs(self) -> None:
        while (job := self._next_job()) is not None:
            with contextlib.ExitStack() as turn:
                turn.callback(self._end_entering)
                job(turn.close)

    def _end_entering(self) -> None:
        with self._changed:
            self._is_entering = False
            self._wake_or_start_thread()

    def _next_job(self) -> Job | None:
        with self._changed:
            while self._is_entering or not self._lanes:
                if self._is_closed and not self._lanes:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            self._is_entering = True
            lane = self._lanes.pop(0)
            job = lane.jobs.popleft()
            if lane.jobs:
                bisect.insort(self._lanes, lane, key=lambda lane: -lane.urgency)
            return job


@dataclass(frozen=True, slots=True)
class Failure:
    call: Call
    error: MarketingApiError


#: Fetches one call until it has a response or an error. It ends early if the second argument says
#: that the caller has gone, or the third that the operation was given up. The fourth is called when
#: a request leaves.
Persist = Callable[[Call, threading.Event, Callable[[], bool], Callable[[], None]], Response]
#: Returns the response or failure of a call if there is one before it is requested.
Known = Callable[[Call], Response | Failure | None]


class FanOut:
    """One call of `fetch_many`: its lane in the pool, and what it has learnt about the
    operations."""

    def __init__(self, persist: Persist, pool: WorkerPool, urgency: int = 0) -> None:
        self._persist = persist
        self._pool = pool
        self._lane = Lane(urgency)
        self._abandoned: dict[str, MarketingApiError] = {}  # by operation
        self._failures: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._under_way = 0
        self._results: queue.SimpleQueue[Response | Failure | BaseException] = queue.SimpleQueue()

    def responses(self, calls: Iterable[Call], known: Known | None) -> Iterator[Response | Failure]:
        """See `Client.fetch_many`."""
        try:
            for call in calls:
                result = None if known is None else known(call)
                if result is not None:
                    yield result
                    continue
                self._pool.put_job(self._lane, functools.partial(self._fetch_call, call))
                self._under_way += 1
                while not self._results.empty() or self._under_way >= AHEAD * self._pool.size:
                    yield self._next_result()
            while self._under_way:
                yield self._next_result()
        except BudgetSpent:
            self._under_way -= self._pool.drop_jobs(self._lane)
            while self._under_way:
                with contextlib.suppress(BudgetSpent):
                    yield self._next_result()  # what was paid for before the budget ran out
            raise
        finally:
            self._lane.stop.set()
            self._pool.drop_jobs(self._lane)

    def _fetch_call(self, call: Call, leave: Callable[[], None]) -> None:
        self._results.put(self._fetch_result(call, leave))

    def _fetch_result(
        self, call: Call, leave: Callable[[], None]
    ) -> Response | Failure | BaseException:
        """Runs in a worker. An error that ends all of `responses` is returned unwrapped, and raised
        in the caller's thread."""
        name = call.operation.name

        def is_hopeless() -> bool:
            return name in self._abandoned

        hopeless = self._abandoned.get(name)
        if hopeless is not None:
            return Failure(call, hopeless)
        try:
            response = self._persist(call, self._lane.stop, is_hopeless, leave)
        except (AuthenticationFailed, BudgetSpent, Stopped) as end:
            return end
        except MarketingApiError as error:
            is_transient = isinstance(error, Transient)
            reason = error
            if is_transient:
                reason = self._abandoned.get(name, error)
            with self._lock:
                self._failures[name] = self._failures[name] + 1 if is_transient else 0
                if isinstance(reason, NotAvailable) or self._failures[name] >= FAILURES_IN_A_ROW:
                    self._abandoned.setdefault(name, reason)
            return Failure(call, reason)
        except BaseException as fault:  # not the call's fault: a full disk, an error in our code
            return fault
        self._failures[name] = 0
        return response

    def _next_result(self) -> Response | Failure:
        result = self._results.get()
        self._under_way -= 1
        if isinstance(result, BaseException):
            raise result
        return result
