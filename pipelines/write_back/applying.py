"""A push on the command line once it is to be sent: begun, watched with its progress on standard error, concluded.

Apart from `terminal`, since it needs the client, the archive and the progress bar, which a plan does without. Not here: sending
(`push_service`), what is said (`terminal`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from rich.console import Console

from pipelines.interrupts import Stop
from pipelines.progress import Progress
from pipelines.settings import Settings
from pipelines.write_back.outbox.outbox import Outbox, outbox_path
from pipelines.write_back.push import Planned, begin
from pipelines.write_back.push_service import Watch, finish_push, go_on
from pipelines.write_back.reporting.result import Result, new_run

T = TypeVar("T")


def apply_plan(settings: Settings, planned: Planned, stop: Stop) -> Result:
    """Send what was planned, and what is open from before. KeyboardInterrupt when a person stops it, here as below."""
    ran = new_run(f"push_{planned.order.kind}")
    push_id = begin(settings, planned, run=ran.run)
    with Outbox(outbox_path(settings.home)) as outbox:
        return watched(stop, lambda watch: finish_push(settings, outbox, push_id, ran, watch))


def apply_open(settings: Settings, outbox: Outbox, account: str, stop: Stop) -> list[Result]:
    """Send what is open of the account."""
    return watched(stop, lambda watch: go_on(settings, outbox, account, new_run("push_retry"), watch))


def watched(stop: Stop, work: Callable[[Watch], T]) -> T:
    """Run `work` with its progress shown, told when a person stops it."""
    watch = Watch()
    stop.then(watch.halt.set)
    with Progress(watch, Console(file=sys.stderr)):
        result = work(watch)
    stop.check()
    return result
