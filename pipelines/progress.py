"""Progress of a reader: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from assets.reader import Reader

_LINE_SECONDS = 10.0


class Progress:
    """Shows how far `reader` is, until the context ends."""

    def __init__(self, reader: Reader, console: Console | None = None) -> None:
        self._reader = reader
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
            task = bar.add_task("reading", total=None, rate="")
            while not self._stop.wait(0.2):
                self._update(bar, task)

    def _update(self, bar: Bar, task: TaskID) -> None:
        state = self._reader.progress()
        bar.update(task, completed=state.asked, total=state.planned or None, description=state.current, rate=f"{self._rate():.1f}/s")

    def _show_lines(self) -> None:
        while not self._stop.wait(_LINE_SECONDS):
            state = self._reader.progress()
            self._console.print(
                f"{time.monotonic() - self._began:6.0f} s  {state.asked:,} of {state.planned:,} asked, "
                f"{self._rate():.1f} requests/s, {state.current}",
                highlight=False,
            )

    def _rate(self) -> float:
        return self._reader.requests_sent() / max(time.monotonic() - self._began, 0.001)
