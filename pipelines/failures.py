"""What a person is told when a command fails: one sentence that says what to do, and an exit code."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator

import duckdb

from marketing_api.discretion import without_addresses
from marketing_api.errors import AuthenticationFailed, InvalidCall, MarketingApiError
from pipelines import exits
from pipelines.home import HomeError
from pipelines.settings import SettingsError
from pipelines.write_back.input.grid import InputError
from pipelines.write_back.outbox.store import OutboxError
from warehouse.errors import ForeignFolder, WarehouseError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_ROOM_TEXTS = ("disk is full", "disk I/O error", "No space left", "File too large", "quota exceeded")


def explain(problem: Exception) -> tuple[str, int]:
    """The sentence and the exit code."""
    if isinstance(problem, SettingsError | HomeError | InputError | InvalidCall | AuthenticationFailed | ForeignFolder):
        return str(problem), exits.WRONG_USE
    if isinstance(problem, MarketingApiError | WarehouseError | OutboxError):
        return str(problem), exits.INCOMPLETE
    if any(map(_is_full, _chain(problem))):
        return "the disk is full; free some room and run the command again, nothing that came is lost", exits.INCOMPLETE
    if isinstance(problem, OSError):
        return str(problem), exits.INCOMPLETE
    first = next(iter(str(problem).splitlines()), "")
    text = without_addresses(f"{type(problem).__name__}: {first}" if first else type(problem).__name__)
    return f"something unexpected happened: {text}; MARKETING_LOG=DEBUG shows where. Nothing that came is lost", exits.INCOMPLETE


def _chain(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def _is_full(problem: BaseException) -> bool:
    if isinstance(problem, OSError):
        return problem.errno in _NO_ROOM
    return isinstance(problem, sqlite3.Error | duckdb.Error) and any(text in str(problem) for text in _NO_ROOM_TEXTS)
