"""The log of commands and of Dagster's processes: to standard error, and with every traceback to a
file of each process in the home.

No line holds a person's address, a key or the home's path, at any level and from any library:
tracebacks and texts of libraries quote values. Not here: the message of a failure (`failures`)."""

import datetime as dt
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler

from home.settings import Settings
from marketing_api.address import mask_addresses
from marketing_api.clock import utc_now
from marketing_api.redaction import Redactor, Secret, in_log
from warehouse.disk import make_folder

#: Marks errors that are displayed as a sentence: the traceback only goes to the file.
DISPLAYED = logging.getLogger("marketing_sync.displayed")

_FOLDER = "logs"
# per command: two hundred calls of `status` must not displace the logs of a sync
_KEPT_FILES = 20
_MOST_BYTES = 5_000_000  # per process, and as much again of its earlier lines


class _Redacted(logging.Formatter):
    def __init__(self, form: str, settings: Settings, *, has_tracebacks: bool) -> None:
        super().__init__(form)
        mail = [settings.mail_url.password] if settings.mail_url else []
        found = [*vars(settings).values(), *mail, *(account.key for account in settings.accounts)]
        self._redactors = [
            Redactor(value) for value in found if isinstance(value, Secret) and value
        ]
        self._home = str(settings.home)
        self._has_tracebacks = has_tracebacks

    def format(self, record: logging.LogRecord) -> str:
        if not self._has_tracebacks:
            record = copy(record)
            record.exc_info = record.exc_text = record.stack_info = None
        return self.clean_text(super().format(record))

    def clean_text(self, text: str) -> str:
        line = text.encode(errors="replace")
        for redactor in self._redactors:
            line = redactor.redact(line)
        return mask_addresses(in_log(line.decode()).replace(self._home, "$MARKETING_HOME"))


class _Json(_Redacted):
    """One JSON object per line, for programs that collect logs."""

    def format(self, record: logging.LogRecord) -> str:
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(
            timespec="milliseconds"
        )
        line = {
            "time": moment,
            "level": record.levelname,
            "logger": record.name,
            "message": super().format(record),
        }
        return json.dumps(line, ensure_ascii=False)


class HomeLog(RotatingFileHandler):
    """The file is created with its first line, if there is a home."""

    def __init__(self, settings: Settings, process: str, now: dt.datetime) -> None:
        self.path = settings.home / _FOLDER / f"{now:%Y%m%dT%H%M%SZ}-{process}-{os.getpid()}.log"
        self._process = process
        super().__init__(
            self.path, maxBytes=_MOST_BYTES, backupCount=1, encoding="utf-8", delay=True
        )
        self.redacted = _Redacted(
            "%(asctime)s %(levelname)s %(name)s: %(message)s", settings, has_tracebacks=True
        )
        self.setFormatter(self.redacted)

    @property
    def is_open(self) -> bool:
        return os.access(self.path, os.F_OK)

    def emit(self, record: logging.LogRecord) -> None:
        if not self.is_open:
            self.close()  # if the file of a long-lived process was deleted, it starts a new one
        with suppress(OSError):  # the home may be another user's
            if self.path.parent.parent.is_dir():
                super().emit(record)

    def _open(self) -> TextIOWrapper:
        for old in sorted(make_folder(self.path.parent).glob(f"*-{self._process}-*.log*"))[
            : 1 - _KEPT_FILES
        ]:
            old.unlink(missing_ok=True)
        return open(
            self.path, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (its name in the standard library)
        """If the disk is full or the home cannot be written, the log is lost, but the run
        continues."""

    def close(self) -> None:
        with suppress(OSError):  # the disk was full before, so it still may be
            super().close()


def start_logging(settings: Settings, process: str) -> HomeLog:
    """Log this process: to standard error from the settings' level on, and to the file from INFO
    on, or from DEBUG if that is the level.

    Debug messages of urllib3 are left out, since they quote every parameter."""
    root = logging.getLogger()
    is_debug = settings.log_level == "DEBUG"
    for earlier in [
        handler for handler in root.handlers if isinstance(handler.formatter, _Redacted)
    ]:
        root.removeHandler(earlier)  # it may redact other keys
        earlier.close()
    if not root.handlers:
        terminal = logging.StreamHandler()
        terminal.setLevel(settings.log_level)
        is_json = settings.log_format == "json"
        form = "%(message)s" if is_json else "%(levelname)s %(name)s: %(message)s"
        terminal.setFormatter(
            (_Json if is_json else _Redacted)(form, settings, has_tracebacks=is_debug)
        )
        terminal.addFilter(lambda record: is_debug or record.name != DISPLAYED.name)
        root.addHandler(terminal)
    file = HomeLog(settings, process, utc_now())
    root.addHandler(file)
    root.setLevel(logging.DEBUG if is_debug else logging.INFO)
    logging.getLogger("urllib3").setLevel(logging.INFO)
    # Dagster logs a dozen lines for each of its files
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.captureWarnings(True)
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _log_thread
    return file


@contextmanager
def logging_to_home(settings: Settings, process: str) -> Iterator[HomeLog]:
    """The same for the duration of the context."""
    root = logging.getLogger()
    level = logging.getLogger().level
    file = start_logging(settings, process)
    try:
        yield file
    finally:
        root.removeHandler(file)
        file.close()
        root.setLevel(level)
        logging.captureWarnings(False)


def describe_error(error: Exception) -> tuple[str, str]:
    """An error's kind and first line in a form that may be displayed; and its log as a path within
    the home, empty without one."""
    text = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
    for handler in logging.getLogger().handlers:
        if isinstance(handler, HomeLog):
            return handler.redacted.clean_text(
                text
            ), f"{_FOLDER}/{handler.path.name}" if handler.is_open else ""
    return mask_addresses(text), ""


def _log_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        logging.getLogger(__name__).error("a thread ended unexpectedly", exc_info=failed.exc_value)
