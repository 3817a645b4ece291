"""Progress of long work: a bar on a terminal, plain lines elsewhere. Not here: the work, which says how far it is."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

_LINE_SECONDS = 10.0


class HowFar(Protocol):
    """Parts done and known so far, and what is being done."""

    @property
    def asked(self) -> int: ...
    @property
    def planned(self) -> int: ...
    @property
    def current(self) -> str: ...


class Work(Protocol):
    """What can be watched."""

    def progress(self) -> HowFar:
        """How far it is now."""

    def requests_sent(self) -> int:
        """Requests that left this process."""


class Progress:
    """Shows how far `work` is, until the context ends; `did` is what was done with each of its parts."""

    def __init__(self, work: Work, console: Console | None = None, *, did: str = "asked") -> None:
        self._work = work
        self._did = did
        self._console = console or Console(file=sys.stderr)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)
        self._began = time.monotonic()

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(5)

    def _show(self) -> None:
        if self._console.is_terminal:
            self._show_bar()
        else:
            self._show_lines()

    def _show_bar(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Bar(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task("", total=None, rate="")
            while not self._stop.wait(0.2):
                self._update(bar, task)

    def _update(self, bar: Bar, task: TaskID) -> None:
        state = self._work.progress()
        bar.update(task, completed=state.asked, total=state.planned or None, description=state.current, rate=f"{self._rate():.1f}/s")

    def _show_lines(self) -> None:
        while not self._stop.wait(_LINE_SECONDS):
            state = self._work.progress()
            self._console.print(
                f"{time.monotonic() - self._began:6.0f} s  {state.asked:,} of {state.planned:,} {self._did}, "
                f"{self._rate():.1f} requests/s, {state.current}",
                highlight=False,
            )

    def _rate(self) -> float:
        return self._work.requests_sent() / max(time.monotonic() - self._began, 0.001)
