"""Progress of long work in named phases: a bar on a terminal, a line for each phase elsewhere.

`Work` is reading or sending, observed from outside. Later steps are stages (`begin_stage`),
reported by the code that runs them."""

import datetime as dt
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from home.failures import unexpected_logged
from marketing_api.errors import Stopped
from warehouse.errors import Holder

#: After this time, a phase prints its progress, and once more after the same time: a silent job of
#: hours looks dead.
_LINE_SECONDS = 300.0
_LOOK_SECONDS = 0.2
#: Before this time, the remaining time can't be estimated.
_LEAST_SECONDS = 2.0
#: Before this time, the rate looks too high: the first requests leave together.
_RATE_SECONDS = 10.0


@dataclass
class Phase:
    """`done` of `total` parts (0: unknown), `requests` sent. Times are of the monotonic clock;
    `ended` is None while it lasts."""

    name: str
    began: float
    ended: float | None = None
    done: int = 0
    total: int = 0
    current: str = ""
    requests: int = 0

    def describe_phase(self, now: float) -> str:
        """E.g. `reading 0:01:30, 800 of 1,300, 14.1 requests/s, about 0:00:36 left, timelines`."""
        seconds = max((self.ended or now) - self.began, 0.001)
        has_rate = self.requests and seconds >= _RATE_SECONDS
        parts = [
            f"{self.name} {format_clock(seconds)}",
            f"{self.done:,} of {self.total:,}" if self.total else "",
            f"{self.requests / seconds:.1f} requests/s" if has_rate else "",
        ]
        if self.ended is None:
            left = seconds * (self.total - self.done) / max(self.done, 1)
            is_known = self.done and seconds >= _LEAST_SECONDS and left >= 0
            parts += [f"about {format_clock(left)} left" if is_known else "", self.current]
        return ", ".join(filter(None, parts))


class _Now:
    """One per process, since there is one terminal."""

    stages: list[Phase] = []  # noqa: RUF012 (all of the process, in their order)
    is_stopped: bool = False


@contextmanager
def begin_stage(what: str) -> Iterator[None]:
    """A stage that lasts until the context ends. Raises Stopped if the process must stop."""
    if _Now.is_stopped:
        raise Stopped(f"{what} was left out: the run was stopped")
    _Now.stages.append(Phase(what, time.monotonic()))
    with unexpected_logged():
        yield


def stop_stages() -> None:
    """Let no further stage begin; otherwise Dagster would continue with its next step."""
    _Now.is_stopped = True


def note_progress(done: int, total: int, current: str) -> None:
    """Record the stage's progress."""
    if _Now.stages:
        _Now.stages[-1].done = done
        _Now.stages[-1].total = total
        _Now.stages[-1].current = current


class Work(Protocol):
    """Work whose progress can be observed."""

    def progress(self) -> tuple[str, int, int, str]:
        """The current phase, parts done, parts known so far, and a description."""

    def requests_sent(self) -> int:
        """Requests that left this process."""


class Phases:
    """The phases of some work and of the stages after it, each once and in order."""

    def __init__(self, work: Work, now: float) -> None:
        self._work = work
        self._own = [Phase(work.progress()[0], now)]
        self._sent_before = work.requests_sent()
        self._stages_before = len(_Now.stages)

    def update_phases(self, now: float) -> list[Phase]:
        """All phases so far; only the last may be under way. The work is over when a stage
        begins."""
        stages = _Now.stages[self._stages_before :]
        if self._own[-1].ended is None:
            self._look_at_work(stages[0].began if stages else now, is_over=bool(stages))
        for stage, following in pairwise(stages):
            stage.ended = following.began
        return self._own + stages

    def _look_at_work(self, now: float, *, is_over: bool) -> None:
        phase, done, total, current = self._work.progress()
        sent = self._work.requests_sent()
        last = self._own[-1]
        # the figures are those of reading, even if an asset is read again
        if last.name != "loading":
            last.done = done
            last.total = total
            last.requests = sent - self._sent_before
        last.current = current
        if all(phase != earlier.name for earlier in self._own):
            last.ended = now
            self._sent_before = sent
            self._own.append(Phase(phase, now, current=current))
        self._own[-1].ended = now if is_over else None


class Progress:
    """Shows the progress of `work` and of stages (`begin_stage`), until the context ends."""

    def __init__(
        self, work: Work, console: Console | None = None, *, is_quiet: bool = False
    ) -> None:
        self._console = console or Console(file=sys.stderr, quiet=is_quiet)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show_progress, name="progress", daemon=True)
        self._phases = Phases(work, time.monotonic())
        self._printed = 0  # phases whose last line was printed
        self._printed_at = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)

    def _show_progress(self) -> None:
        is_watched = self._console.is_terminal
        columns = (BarColumn(), TextColumn("{task.description}"))
        with Bar(*columns, console=self._console, transient=True, disable=not is_watched) as bar:
            task = bar.add_task("", total=None)
            while not self._stop.wait(_LOOK_SECONDS):
                last = self._print_ended()
                now = time.monotonic()
                if is_watched:
                    total = last.total or None
                    words = last.describe_phase(now)
                    bar.update(task, completed=last.done, total=total, description=words)
                elif now - max(self._printed_at, last.began) >= _LINE_SECONDS:
                    self._print_line(last.describe_phase(now))
            last = self._print_ended()
            if last.ended is None:
                self._print_line(replace(last, ended=time.monotonic()).describe_phase(0))

    def _print_ended(self) -> Phase:
        """A line for each phase that has ended since, and for the current phase."""
        now = time.monotonic()
        phases = self._phases.update_phases(now)
        for phase in phases[self._printed : len(phases) - (phases[-1].ended is None)]:
            self._print_line(phase.describe_phase(now))
            self._printed += 1
        return phases[-1]

    def _print_line(self, words: str) -> None:
        self._console.print(words, highlight=False, markup=False, soft_wrap=True)
        self._printed_at = time.monotonic()


def format_clock(seconds: float) -> str:
    """E.g. `0:01:30`."""
    return str(dt.timedelta(seconds=round(seconds)))


_waited_for: set[Holder] = set()
_lock = threading.Lock()


def report_waiting(holder: Holder) -> None:
    """Report which program has the warehouse open: one line for each program, for all threads that
    wait for it; none if it is this one."""
    with _lock:
        if holder.pid == os.getpid() or holder in _waited_for:
            return
        _waited_for.add(holder)
    print(
        f"marketing-sync: waiting for {holder}, which has the warehouse open",
        file=sys.stderr,
        flush=True,
    )
