"""The backup behind each run, with a home's settings: of a run that reads when its reader is closed, of a push when it is concluded.

Not here: what is backed up (`warehouse.backup`), the commands (`commands.backup`).
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.alerts import try_to_post
from pipelines.failures import explain
from pipelines.progress import report_waiting, stage
from pipelines.settings import Settings, SettingsError
from warehouse.backup import BackupReport, back_up
from warehouse.errors import WarehouseError
from warehouse.lake import UNNAMED
from warehouse.storage import Storage

log = logging.getLogger(__name__)


def backup_storage(settings: Settings, url: str = "") -> Storage:
    """Raises SettingsError without an address, StorageUnavailable."""
    if not (url := url or settings.backup_url):
        raise SettingsError("there is no backup: set MARKETING_BACKUP_URL to a folder or an address like s3://BUCKET/FOLDER")
    return Storage(f"{url.rstrip('/')}/{settings.shard or UNNAMED}")


def back_up_home(settings: Settings, *, verify: bool = False) -> BackupReport:
    """Raises WarehouseError and SettingsError."""
    with stage("backup"):
        storage = backup_storage(settings)
        return back_up(settings.home, storage, verify=verify, deadline_s=settings.lock_seconds, on_wait=report_waiting)


@contextmanager
def backed_up(settings: Settings) -> Iterator[None]:
    """Back up what is done within, where there is a backup. Raises WarehouseError: the run is done, its backup is not; that is posted,
    too, since Dagster calls such a run a success.
    """
    yield
    if settings.backup_url:
        try:
            back_up_home(settings)
        except Exception as problem:  # whatever it is, the run is done
            text = f"the run is done, but not backed up: {explain(problem)[0]}"
            if settings.alert_url:
                try_to_post(settings, {"text": f"marketing-sync: {text}"})
            raise WarehouseError(text) from None


def try_to_back_up(settings: Settings) -> None:
    """The same behind a push, whose result must not depend on it."""
    try:
        with backed_up(settings):
            pass
    except WarehouseError as problem:
        log.warning("%s", problem)
