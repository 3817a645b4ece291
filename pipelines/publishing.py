"""Builds the models and publishes the copy with a home's settings. Not here: how they are built
(`warehouse.models`) and published (`warehouse.publish`)."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from home.door import open_tables, waiting_options
from home.folder import dagster_home, in_use, note_running
from home.progress import begin_stage, note_progress
from home.settings import Settings
from home.values import size
from marketing_api.clock import utc_now
from report.render import write_report
from upkeep.backup import back_up, backup_folder
from upkeep.erasing import DAGSTER_RUNS
from upkeep.tidying import let_go_of_rows
from warehouse.bookkeeping import PUBLISHING, Run, write_run
from warehouse.errors import WarehouseError
from warehouse.masking import Masking, personal_key
from warehouse.models import BuildReport, ModelSettings, build_models, publish_blockers
from warehouse.policies import PersonalData
from warehouse.publish import (
    Published,
    publish_copy,
    published_path,
)
from warehouse.sealed_query import QueryLimits

#: The name of the models' step in Dagster's runs.
MODELS_STEP = "models"


def model_settings(settings: Settings) -> ModelSettings:
    return ModelSettings(
        attribution_hours=settings.attribution_hours,
        rate_messages=settings.rate_messages,
        timezone=settings.timezone,
        zones=settings.zones,
        memory=settings.models_memory,
    )


class Models:
    """`report` is the outcome of the last build; None before the first one."""

    report: BuildReport | None = None

    def build_models(self, settings: Settings, select: Sequence[str] = ()) -> BuildReport:
        """Build and test the models, see `warehouse.models.build_models`."""
        with in_use(settings.home), begin_stage("models and tests"):
            let_go_of_rows(settings)
            self.report = build_models(
                settings.warehouse_path,
                model_settings(settings),
                select=select,
                on_node=note_progress,
                **waiting_options(settings),
            )
        return self.report


class Publishing:
    """`published` is what the last call published; None before it, and when it failed."""

    published: Published | None = None

    def publish_copy(self, settings: Settings) -> Published:
        self.published = None
        self.published = publish_home(settings)
        return self.published


def publish_home(settings: Settings) -> Published:
    """Write the published file, see `warehouse.publish.publish_copy`. Raises NotPublished when the
    models failed, and what `connect` raises."""
    is_hashed = settings.personal_data is PersonalData.HASH
    key = personal_key(settings.home, settings.personal_key) if is_hashed else None
    masking = Masking(settings.personal_data, key)
    limits = QueryLimits(
        seconds=settings.query_seconds,
        memory_bytes=size(settings.models_memory),
        zone=settings.timezone,
        zones=settings.zones,
        memory_setting="MARKETING_MODELS_MEMORY",
    )
    with in_use(settings.home), begin_stage("publishing"):
        return publish_copy(
            settings.home,
            masking,
            check=publish_blockers,
            limits=limits,
            **waiting_options(settings),
        )


@contextmanager
def note_run(settings: Settings, run_id: str, job: str) -> Iterator[None]:
    """Records in `sync.runs` a run that publishes and reads nothing: before it publishes, so that
    the copy contains the run, and again with its outcome."""
    note_running(settings.home, run_id)
    run = Run(run_id, job, utc_now(), None, PUBLISHING, 0, 0.0, "")
    before = _copy_version(settings)
    _write_run(settings, run)
    try:
        yield
    finally:
        is_done = _copy_version(settings) not in (None, before)
        outcome, message = ("done", "") if is_done else ("failed", "nothing was published")
        _write_run(settings, replace(run, ended_at=utc_now(), outcome=outcome, message=message))


def _copy_version(settings: Settings) -> tuple[int, int] | None:
    """Identifies the published file: inode and time of change; None when there is none."""
    with suppress(FileNotFoundError):
        stat = published_path(settings.home).stat()
        return stat.st_ino, stat.st_mtime_ns
    return None


def _write_run(settings: Settings, run: Run) -> None:
    if settings.warehouse_path.exists():
        with open_tables(settings) as connection:
            write_run(connection, run)


# ---- after people were forgotten


def after_erasure(settings: Settings) -> dict[str, Callable[[], int]]:
    """Place → the call that rebuilds what it contains, and returns how many rows or files that are.
    The previous content of the place is deleted."""
    home = settings.home
    published = published_path(settings.home)
    steps: dict[str, Callable[[], int]] = {}
    if published.parent.exists():
        steps["marts"] = lambda: len(Models().build_models(settings).outcomes)
        steps["published/marketing.duckdb"] = partial(_publish_alone, settings)
        steps["report"] = lambda: int(write_report(home, settings.accounts)[0].exists())
    if any(home.glob("dagster/**/*.db")) or os.environ.get("DAGSTER_HOME"):
        steps[DAGSTER_RUNS] = lambda: _delete_runs(home)
    if settings.backup_dir:
        steps[f"backup {backup_folder(settings)}"] = lambda: len(back_up(settings).files)
    return steps


def _delete_runs(home: Path) -> int:
    from pipelines.dagster_internals import delete_runs  # takes a second to import

    with dagster_home(home):
        return delete_runs(home)


def _publish_alone(settings: Settings) -> int:
    """Publish again; the previous copy is deleted even when the models block publishing."""
    try:
        return publish_home(settings).row_count
    except WarehouseError as error:
        published_path(settings.home).unlink(missing_ok=True)
        raise WarehouseError(
            f"the earlier copy contained forgotten people and was removed; {error}"
        ) from None
