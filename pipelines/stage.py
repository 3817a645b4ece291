"""What this process does when it is not asking the service: noted by whoever does it, shown by `progress`. Not here: the doing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from marketing_api.errors import Stopped
from pipelines.failures import unexpected_logged


@dataclass(slots=True)
class Stage:
    """`done` of `total` parts, 0 while their number is not known, and the one at work. Times are of the monotonic clock."""

    what: str
    done: int = 0
    total: int = 0
    current: str = ""
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None


class _Now:
    """One for the process, as there is one terminal."""

    stages: list[Stage] = []  # noqa: RUF012 (all of the process, in their order)
    is_stopped: bool = False


@contextmanager
def stage(what: str) -> Iterator[None]:
    """This is being done until the context ends. Raises Stopped, once the process was told to stop."""
    if _Now.is_stopped:
        raise Stopped(f"{what} was left out: the run was stopped")
    mine = Stage(what)
    _Now.stages.append(mine)
    try:
        with unexpected_logged():
            yield
    finally:
        mine.ended = time.monotonic()


def stop() -> None:
    """Let no further stage begin: Dagster would go on with its next step."""
    _Now.is_stopped = True


def tell(done: int, total: int, current: str) -> None:
    """How far the stage is."""
    if _Now.stages:
        _Now.stages[-1].done, _Now.stages[-1].total, _Now.stages[-1].current = done, total, current


def stages() -> Sequence[Stage]:
    """All that were begun, in their order."""
    return tuple(_Now.stages)
