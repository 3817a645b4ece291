"""The message and exit code of a failed command or step: a sentence with what to do. Tracebacks are
in the log (`logs`)."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from home import exits
from home.exits import Incomplete, WrongUse
from home.logs import DISPLAYED, describe_error
from marketing_api.errors import (
    AuthenticationFailed,
    InvalidCall,
    LimitNotShared,
    MarketingApiError,
)
from warehouse.disk import NO_ROOM
from warehouse.duckdb_errors import is_full
from warehouse.errors import ForeignFolder, WarehouseError, WarehouseTooNew

_WRONG_USE = (
    WrongUse,
    InvalidCall,
    AuthenticationFailed,
    LimitNotShared,
    ForeignFolder,
    WarehouseTooNew,
)
_SQLITE_NO_ROOM = ("disk is full", "disk I/O error")


class Unexpected(Incomplete):
    """An unexpected error, as the sentence that is displayed; the error itself is logged."""


_FORESEEN = (Incomplete, MarketingApiError, WarehouseError)


def explain_error(error: Exception) -> tuple[str, int]:
    """The sentence and the exit code."""
    if isinstance(error, _WRONG_USE):
        return str(error), exits.WRONG_USE
    if isinstance(error, _FORESEEN):
        return str(error), exits.INCOMPLETE
    refusal = _explain_refusal(error)
    if refusal is not None:
        DISPLAYED.info("the system refused something", exc_info=error)
        return refusal, exits.INCOMPLETE
    DISPLAYED.error("something unexpected happened", exc_info=error)
    text, log = describe_error(error)
    where = f"{log} of the home" if log else "MARKETING_LOG=DEBUG"
    return (
        f"something unexpected happened: {text}; {where} shows where. Nothing that was received "
        "is lost",
        exits.INCOMPLETE,
    )


def _explain_refusal(error: Exception) -> str | None:
    """What the operating system refused, and what to do; None for an unexpected error."""
    causes = list(_list_causes(error))
    if any(map(_is_full, causes)):
        return (
            "the disk is full: free some space and run the command again; nothing received is lost"
        )
    if (
        isinstance(error, IsADirectoryError | NotADirectoryError | FileExistsError)
        and error.filename
    ):
        return (
            f"{error.filename} is in the way ({error.strerror}): move it away and run the "
            "command again"
        )
    if isinstance(error, PermissionError) and error.filename:
        return f"{error.filename} can't be used ({error.strerror}): run the command as its owner"
    if isinstance(error, OSError):
        return str(error)
    refused = next((cause for cause in causes if isinstance(cause, sqlite3.OperationalError)), None)
    advice = (
        "make its files readable and writable, and run the command again; nothing received is lost"
    )
    return (
        None if refused is None else f"a database of the home cannot be used ({refused}): {advice}"
    )


@contextmanager
def unexpected_logged() -> Iterator[None]:
    """Log an unexpected error and raise Unexpected instead: Dagster stores the texts of errors,
    which quote values."""
    try:
        yield
    except (*_WRONG_USE, *_FORESEEN, OSError):
        raise
    except Exception as error:
        raise Unexpected(explain_error(error)[0]) from None


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    if isinstance(error, duckdb.Error):
        return is_full(error)
    return isinstance(error, sqlite3.Error) and any(text in str(error) for text in _SQLITE_NO_ROOM)
