"""What this process does when it is not asking the service: said by whoever does it, shown by `progress`. Not here: the doing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from marketing_api.errors import Stopped
from pipelines.failures import unexpected_logged


@dataclass(frozen=True, slots=True)
class Stage:
    """`done` of `total` parts, 0 while their number is not known, and the one at work."""

    what: str
    done: int = 0
    total: int = 0
    current: str = ""

    def __str__(self) -> str:
        """E.g. `building the models, 12 of 141, contact_campaign`."""
        parts = f"{self.done:,} of {self.total:,}" if self.total else ""
        return ", ".join(filter(None, (self.what, parts, self.current)))


class _Now:
    """One for the process, as there is one terminal."""

    stage: Stage | None = None
    is_stopped: bool = False


@contextmanager
def stage(what: str) -> Iterator[None]:
    """This is being done until the context ends. Raises Stopped, once the process was told to stop."""
    if _Now.is_stopped:
        raise Stopped(f"{what} was left out: the run was stopped")
    _Now.stage = Stage(what)
    try:
        with unexpected_logged():
            yield
    finally:
        _Now.stage = None


def stop() -> None:
    """Let no further stage begin: Dagster would go on with its next step."""
    _Now.is_stopped = True


def tell(done: int, total: int, current: str) -> None:
    """How far the stage is."""
    if _Now.stage:
        _Now.stage = replace(_Now.stage, done=done, total=total, current=current)


def now() -> Stage | None:
    """What is being done; None when there is nothing but the work that was begun."""
    return _Now.stage
