"""The backup behind each run and push. Not here: what is backed up (`warehouse.backup`), the commands
(`commands.backup`)."""

import logging
from contextlib import suppress

from home.alerts import try_to_post
from home.door import waits
from home.failures import explain
from home.folder import in_use
from home.identity import identity_of
from home.progress import stage
from home.settings import Settings, SettingsError
from warehouse.backup import BackupReport, back_up, check_place
from warehouse.errors import StorageUnavailable
from warehouse.lake import UNNAMED, check_shard
from warehouse.storage import Storage


def backup_storage(settings: Settings, url: str = "") -> Storage:
    """Raises SettingsError without an address, StorageUnavailable."""
    if not (url := url or settings.backup_url):
        raise SettingsError(
            "there is no backup: set MARKETING_BACKUP_URL to a folder or an address like s3://BUCKET/FOLDER"
        )
    return Storage(f"{url.rstrip('/')}/{settings.shard or UNNAMED}")


def back_up_home(settings: Settings, *, verify: bool = False, is_only: bool = False) -> BackupReport:
    """Raises WarehouseError and SettingsError."""
    with in_use(settings.home), stage("backup"):
        storage, home_id = backup_storage(settings), identity_of(settings.home).home_id
        how = waits(settings)
        return back_up(settings.home, storage, home_id=home_id, verify=verify, is_only=is_only, **how)


def check_places(settings: Settings) -> None:
    """That what the run leaves elsewhere takes no other home's place, before it begins. Raises ForeignFolder.
    What cannot be reached now is told in the end."""
    home_id = identity_of(settings.home).home_id
    with suppress(StorageUnavailable):
        if settings.backup_url:
            check_place(settings.home, backup_storage(settings), home_id)
    with suppress(StorageUnavailable):
        if settings.lake_url:
            check_shard(Storage(settings.lake_url), settings.shard or UNNAMED, home_id)


def back_up_run(settings: Settings) -> str:
    """Back up what a run did, where there is a backup; why it could not be, which is posted: Dagster calls
    such a run a success."""
    try:
        if settings.backup_url:
            back_up_home(settings)
        return ""
    except Exception as problem:  # whatever it is, the run is done
        text = f"the run is done, but not backed up: {explain(problem)[0]}"
        if settings.alert_url:
            try_to_post(settings, {"text": f"marketing-sync: {text}"})
        return text


def back_up_push(settings: Settings) -> None:
    """The same behind a push, whose outcome it does not change: a warning."""
    if problem := back_up_run(settings):
        logging.getLogger(__name__).warning("%s", problem)
