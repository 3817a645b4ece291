"""What a home lets go of, as MARKETING_KEEP says: rows before the models are built, files behind each run
that has read.

Whatever is interrupted is done by the next run. Not here: how (`warehouse.retention`,
`dagster_internals`), for how long (`warehouse.policies`).
"""

import logging
import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from home.failures import explain
from home.folder import in_use
from home.progress import report_waiting, stage
from home.settings import Settings
from marketing_api.clock import utc_now
from warehouse.archive.disk import remove
from warehouse.connection import connect
from warehouse.retention import compact, let_go, note_sizes
from warehouse.schema import ensure_schema

log = logging.getLogger(__name__)


def let_go_of_rows(settings: Settings) -> None:
    """What models are made of is what is kept. Notes how large the home is, too."""
    if settings.warehouse_path.exists():
        with connect(
            settings.warehouse_path, deadline_s=settings.lock_seconds, on_wait=report_waiting
        ) as connection:
            ensure_schema(connection)
            let_go(connection, settings.kept, utc_now())
            note_sizes(connection, settings.home, utc_now())


def tidy(settings: Settings) -> None:
    """Merge and drop files. What goes wrong is logged: the run is done, and the next one tries again."""
    try:
        with in_use(settings.home), stage("tidying up"):
            compact(settings.home, settings.kept, utc_now())
            _remove_old((settings.home / "logs").glob("*.log*"), settings.kept.logs)
            if settings.kept.dagster and os.environ.get("DAGSTER_HOME"):
                from pipelines.dagster_internals import (
                    prune_runs,
                )  # Dagster takes seconds to import: a run that shows in it has done so

                prune_runs(utc_now() - timedelta(settings.kept.dagster))
    except Exception as problem:
        log.warning("the home is not tidied up: %s", explain(problem)[0])


def _remove_old(paths: Iterable[Path], days: int | None) -> None:
    for path in paths if days else ():
        if path.stat().st_mtime < (utc_now() - timedelta(days or 0)).timestamp():
            remove(path)
