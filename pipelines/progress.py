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

from pipelines import stage

_LINE_SECONDS = 10.0
_LOOK_SECONDS = 0.2


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
    """Shows how far `work` is, until the context ends, and the stages (`pipelines.stage`) that come meanwhile.

    `did` is what was done with each of its parts.
    """

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
            while not self._stop.wait(_LOOK_SECONDS):
                self._update(bar, task)

    def _update(self, bar: Bar, task: TaskID) -> None:
        if at := stage.now():
            words = ": ".join(filter(None, (at.what, at.current)))
            bar.update(task, completed=at.done, total=at.total or None, description=words, rate="")
            return
        state = self._work.progress()
        bar.update(task, completed=state.asked, total=state.planned or None, description=state.current, rate=f"{self._rate():.1f}/s")

    def _show_lines(self) -> None:
        """A line every ten seconds, and one at the beginning of each stage, however short it is."""
        shown, shown_at = "", self._began
        while not self._stop.wait(_LOOK_SECONDS):
            at = stage.now()
            if (at and at.what != shown) or time.monotonic() - shown_at >= _LINE_SECONDS:
                self._console.print(
                    f"{time.monotonic() - self._began:6.0f} s  {at or self._reading()}", highlight=False, markup=False, soft_wrap=True
                )
                shown_at = time.monotonic()
            shown = at.what if at else ""

    def _reading(self) -> str:
        state = self._work.progress()
        return f"{state.asked:,} of {state.planned:,} {self._did}, {self._rate():.1f} requests/s, {state.current}"

    def _rate(self) -> float:
        return self._work.requests_sent() / max(time.monotonic() - self._began, 0.001)
