"""Runs that did not reach their end: what they were reading, so that the next run goes on from their answers.

Every run keeps a note in a file that it holds locked. A note whose lock is free belongs to a run that was killed, stopped or
ran out of requests; it goes when a run that read the same assets ends. Runs at work at the same time leave each other alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import logging
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import msgspec

from warehouse.archive.disk import set_aside

log = logging.getLogger(__name__)

_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Note:
    """What one run was reading, and since when."""

    path: Path
    started_at: dt.datetime
    assets: frozenset[str]


class Unfinished:
    """The notes in `folder`, and this run's own."""

    def __init__(self, folder: Path, now: dt.datetime) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._now = now
        self._own = folder / f"{uuid.uuid4().hex}.json"
        self._held: IO[str] | None = None
        self._taken_up = [note for path in sorted(folder.glob("*.json")) if (note := _abandoned(path))]

    def begin(self, assets: Iterable[str]) -> None:
        """Note that this run is reading these assets."""
        self._held = self._own.open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX)
        _write(self._held, self._now, sorted(assets))

    def since(self, asset: str) -> dt.datetime | None:
        """When the earliest run began that was reading the asset and did not end; None when there is none."""
        return min((note.started_at for note in self._taken_up if asset in note.assets), default=None)

    def end(self, assets: Iterable[str]) -> None:
        """This run has read all of these assets: nothing of them is unfinished any more."""
        done = frozenset(assets)
        for note in self._taken_up:
            if left := note.assets - done:
                with note.path.open("w") as file:
                    _write(file, note.started_at, sorted(left))
            else:
                note.path.unlink(missing_ok=True)
        self._own.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Let go of the own note: a run that has not called `end` is unfinished."""
        if self._held is not None:
            self._held.close()
            self._held = None


class _Written(msgspec.Struct):
    started_at: Annotated[dt.datetime, msgspec.Meta(tz=True)]
    assets: frozenset[str]


def _abandoned(path: Path) -> Note | None:
    """The note of a run that is no more; None for one at work, or one that ended before it wrote anything. One that cannot be read
    is set aside: what its run was reading is asked for again.
    """
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            content = file.read(_MOST_BYTES)
        written = msgspec.json.decode(content, type=_Written) if content else None
    except BlockingIOError:
        return None
    except (OSError, ValueError, RecursionError) as problem:
        with contextlib.suppress(OSError):
            log.warning("the note of an earlier run cannot be read (%s): it is %s now", type(problem).__name__, set_aside(path).name)
        return None
    return Note(path, written.started_at, written.assets) if written else None


def _write(file: IO[str], started_at: dt.datetime, assets: list[str]) -> None:
    json.dump({"started_at": started_at.isoformat(), "assets": assets}, file)
    file.flush()
    os.fsync(file.fileno())
