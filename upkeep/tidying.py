"""Deletes data that a home no longer keeps (MARKETING_KEEP): rows before models are built, files
after a run that has read. The next run completes an interrupted one.

Not here: how (`warehouse.retention`, `pipelines.dagster_internals`), for how long
(`warehouse.policies`)."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from home.door import open_tables
from home.failures import explain_error
from home.folder import in_use
from home.progress import begin_stage
from home.settings import Settings
from marketing_api.clock import utc_now
from marketing_api.errors import Stopped
from warehouse.disk import remove_path
from warehouse.retention import compact_archive, let_go, note_sizes
from warehouse.status_file import HomeStatus, read_status

log = logging.getLogger(__name__)


def _now(home: Path) -> datetime:
    """The time, but not after the last reading, which has the service's time: a clock that is ahead
    must not delete anything."""
    status = read_status(home) or HomeStatus()
    read_at = filter(None, (account.read_at for account in status.accounts))
    return min(utc_now(), max(read_at, default=utc_now()))


def let_go_of_rows(settings: Settings) -> None:
    """Models are only made from rows that are kept. Records the size of the home, too."""
    if settings.warehouse_path.exists():
        with open_tables(settings) as connection:
            let_go(connection, settings.kept, _now(settings.home))
            note_sizes(connection, settings.home, utc_now())


def tidy_home(settings: Settings, prune_runs: Callable[[Path, datetime], object]) -> None:
    """Merge and drop files; `prune_runs` drops the UI's runs of a home from before a time. Errors
    are logged: the run is complete, and the next one tries again."""
    try:
        with in_use(settings.home), begin_stage("tidying up"):
            now = _now(settings.home)
            compact_archive(settings.home, settings.kept, now)
            if settings.kept.logs:
                before = (now - timedelta(settings.kept.logs)).timestamp()
                for path in settings.home.glob("logs/*.log*"):
                    if path.stat().st_mtime < before:
                        remove_path(path)
            if settings.kept.dagster:
                prune_runs(settings.home, now - timedelta(settings.kept.dagster))
    except Stopped:
        return  # the next run does it
    except Exception as error:
        log.warning("the home is not tidied up: %s", explain_error(error)[0])
