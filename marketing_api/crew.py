"""A bounded crew of worker threads that serves several callers in turn. Not here: what the work is (`client`).

The threads are daemons: a program that is interrupted ends at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

Job = Callable[[], None]


class Lane:
    """One caller's jobs. `stop` is set when the caller has gone."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self.stop = threading.Event()


class Crew:
    """Starts threads as they are needed, up to `size`. Jobs must not raise."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._changed = threading.Condition()
        self._lanes: deque[Lane] = deque()  # those with jobs waiting, the next to be served first
        self._threads: list[threading.Thread] = []
        self._waiting = 0  # jobs
        self._idle = 0  # threads, those included that were woken but do not run yet
        self._is_closed = False

    def put(self, lane: Lane, job: Job) -> None:
        with self._changed:
            lane.jobs.append(job)
            self._waiting += 1
            if len(lane.jobs) == 1:
                self._lanes.append(lane)
            if self._waiting > self._idle and len(self._threads) < self.size:
                thread = threading.Thread(target=self._work, name=f"asking-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            else:
                self._changed.notify()

    def drop(self, lane: Lane) -> int:
        """Forget the lane's jobs that have not begun; how many those were."""
        with self._changed:
            dropped = len(lane.jobs)
            self._waiting -= dropped
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
            if thread is not threading.current_thread() and thread.is_alive():  # an interrupt may have come before its start
                thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._lanes:
                if self._is_closed:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            lane = self._lanes.popleft()
            job = lane.jobs.popleft()
            self._waiting -= 1
            if lane.jobs:
                self._lanes.append(lane)
            return job
