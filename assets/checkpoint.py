"""Checkpoints of runs: what a run that did not reach its end was reading, so that the next one resumes from
its archived responses.

Every run keeps a checkpoint in a file that it holds locked from the moment that it has its name. One whose
lock is free belongs to a run that was killed, stopped or ran out of requests; it goes when a run that read
the same assets ends."""

import contextlib
import datetime as dt
import fcntl
import json
import logging
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Annotated

import msgspec

from marketing_api.exchange import id_at, new_request_id
from warehouse.archive.disk import exclusive, set_aside

log = logging.getLogger(__name__)

_DRAFT = ".draft"
_MOST_BYTES = 1 << 20


class Checkpoints:
    """The checkpoints in `folder`, and this run's own."""

    def __init__(self, folder: Path) -> None:
        """Call it when the archive is open: the run's own requests have larger ids than the one made here."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.since = new_request_id()
        self._own = folder / f"{uuid.uuid4().hex}.json"
        self._held: IO[str] | None = None
        self._abandoned = {
            path: found for path in sorted(folder.glob("*.json")) if (found := _abandoned(path))
        }

    def begin(self, assets: Iterable[str]) -> None:
        self._held = _write(self._own, self.since, assets)

    def resume_from(self, asset: str) -> int | None:
        """The request id with which the earliest run began that was reading the asset and did not end; None
        when there is none."""
        return min((since for since, assets in self._abandoned.values() if asset in assets), default=None)

    def end(self, assets: Iterable[str]) -> None:
        """This run has read all of these assets: nothing of them is unfinished any more."""
        done = frozenset(assets)
        for path, (since, unfinished) in self._abandoned.items():
            if left := unfinished - done:
                _write(path, since, left).close()
            else:
                path.unlink(missing_ok=True)
        self._own.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Let go of the own checkpoint: a run that has not called `end` is unfinished."""
        if self._held is not None:
            self._held.close()
            self._held = None


class _Written(msgspec.Struct):
    assets: frozenset[str]
    since: Annotated[int, msgspec.Meta(ge=0)] | None = None
    started_at: Annotated[dt.datetime, msgspec.Meta(tz=True)] = dt.datetime.fromtimestamp(
        0, dt.UTC
    )  # where earlier versions noted it


def _abandoned(path: Path) -> tuple[int, frozenset[str]] | None:
    """From which request on a run that is no more was reading which assets; None for one at work. An empty
    checkpoint of an earlier version is removed, one that cannot be read is set aside: what its run was
    reading is requested again."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            content = file.read(_MOST_BYTES)
        if not content:
            path.unlink(missing_ok=True)
            return None
        written = msgspec.json.decode(content, type=_Written)
        return id_at(written.started_at) if written.since is None else written.since, written.assets
    except BlockingIOError:
        return None
    except (OSError, ValueError, RecursionError) as problem:
        with contextlib.suppress(OSError):
            log.warning(
                "the checkpoint of an earlier run cannot be read (%s): it is %s now",
                type(problem).__name__,
                set_aside(path).name,
            )
        return None


def _write(path: Path, since: int, assets: Iterable[str]) -> IO[str]:
    """Put the checkpoint in its place and hold it until the returned file is closed. Drafts that are found
    are those of killed runs."""
    with exclusive(path.parent), contextlib.ExitStack() as failing:
        for left in path.parent.glob(f"*{_DRAFT}"):
            left.unlink()
        draft = path.with_suffix(_DRAFT)
        file = failing.enter_context(draft.open("w"))
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"since": since, "assets": sorted(assets)}, file)
        file.flush()
        os.fsync(file.fileno())
        draft.replace(path)
        failing.pop_all()
    return file
