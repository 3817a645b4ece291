"""What a person is told when a command or a step fails: one sentence that says what to do, and an exit code.

The traceback of what nobody foresaw is in the log (`logs`), and the sentence names it.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from marketing_api.errors import AuthenticationFailed, InvalidCall, MarketingApiError
from pipelines import exits
from pipelines.home import HomeError
from pipelines.logs import TOLD, told
from pipelines.settings import SettingsError
from pipelines.write_back.input.rows import InputError
from pipelines.write_back.outbox.store import OutboxError
from warehouse.errors import ForeignFolder, WarehouseError

_WRONG_USE = (SettingsError, HomeError, InputError, InvalidCall, AuthenticationFailed, ForeignFolder)
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_ROOM_TEXTS = ("disk is full", "disk I/O error", "No space left", "File too large", "quota exceeded")


class Unexpected(Exception):
    """What nobody foresaw, as the sentence for people; logged."""


_FORESEEN = (MarketingApiError, WarehouseError, OutboxError, Unexpected)


def explain(problem: Exception) -> tuple[str, int]:
    """The sentence and the exit code."""
    if isinstance(problem, _WRONG_USE):
        return str(problem), exits.WRONG_USE
    if isinstance(problem, _FORESEEN):
        return str(problem), exits.INCOMPLETE
    if isinstance(problem, OSError) or any(isinstance(cause, sqlite3.OperationalError) or _is_full(cause) for cause in _chain(problem)):
        TOLD.info("the system refused something", exc_info=problem)
    else:
        TOLD.error("something unexpected happened", exc_info=problem)
    if any(map(_is_full, _chain(problem))):
        return "the disk is full; free some room and run the command again, nothing that came is lost", exits.INCOMPLETE
    if isinstance(problem, IsADirectoryError | NotADirectoryError | FileExistsError) and problem.filename:
        return f"{problem.filename} is in the way ({problem.strerror}): move it away and run the command again", exits.INCOMPLETE
    if isinstance(problem, OSError):
        return str(problem), exits.INCOMPLETE
    for cause in _chain(problem):
        if isinstance(cause, sqlite3.OperationalError):
            text = f"a database of the home cannot be used ({cause})"
            return (
                f"{text}: see that its files can be read and written, and run the command again; nothing that came is lost",
                exits.INCOMPLETE,
            )
    text, log = told(problem)
    where = f"{log} of the home" if log else "MARKETING_LOG=DEBUG"
    return f"something unexpected happened: {text}; {where} shows where. Nothing that came is lost", exits.INCOMPLETE


@contextmanager
def unexpected_logged() -> Iterator[None]:
    """Log what nobody foresaw and raise Unexpected in its place: Dagster keeps the texts of errors, and they quote values."""
    try:
        yield
    except (*_WRONG_USE, *_FORESEEN, OSError):
        raise
    except Exception as problem:
        raise Unexpected(explain(problem)[0]) from None


def _chain(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def _is_full(problem: BaseException) -> bool:
    if isinstance(problem, OSError):
        return problem.errno in _NO_ROOM
    return isinstance(problem, sqlite3.Error | duckdb.Error) and any(text in str(problem) for text in _NO_ROOM_TEXTS)
