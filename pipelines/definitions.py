"""The Dagster code location: composition only. Each part says what it is in its own module.

`build_definitions(**overrides)` lets tests and the command line swap parts without patching.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from assets import SOURCE_ASSETS
from assets.materialize import dagster_asset, daily_partitions
from assets.published import published_asset
from assets.report import report_asset
from assets.sync_tables import sync_tables
from marketing_api.clock import Clock, utc_now
from pipelines.jobs import asset_jobs, publish_job, rebuild, refresh_models
from pipelines.logs import start_logging
from pipelines.modelling import Models
from pipelines.publishing import publish_home
from pipelines.report.write import write_report
from pipelines.resources import reader_resource, settings_resource
from pipelines.schedules import nightly
from pipelines.sensors import failure_alert, models_after_failed_reads
from pipelines.settings import Settings, load_settings
from pipelines.write_back.inbox import inbox_sensor
from pipelines.write_back.nightly_audience_syncs import AudienceSyncs
from pipelines.write_back.push_jobs import push_jobs


def build_definitions(
    settings: Settings | None = None,
    *,
    models: Models | None = None,
    activations: AudienceSyncs | None = None,
    has_models: bool = True,
    now: Clock = utc_now,
    **resources: Any,
) -> dg.Definitions:
    """Everything that Dagster shows; `resources` replace those of the same name. `has_models` False: the reads alone, which load
    seconds faster.
    """
    settings = settings or load_settings(Path.cwd())
    partitions = daily_partitions(settings.history_start)
    with warnings.catch_warnings():
        # One run for a range of days is marked beta; the pinned version is tested with it.
        warnings.simplefilter("ignore", dg.BetaWarning)
        reads = [dagster_asset(asset, partitions) for asset in SOURCE_ASSETS.values()]
        behind = _behind_the_reads(settings, models or Models(settings), activations) if has_models else []
    pushes = {job.name: job for job in push_jobs()} if has_models else {}
    return dg.Definitions(
        assets=[*reads, *behind, *(sync_tables() if has_models else [])],
        jobs=[*asset_jobs(), *([refresh_models(), publish_job()] if has_models else []), rebuild, *pushes.values()],
        schedules=[nightly(settings)],
        sensors=[failure_alert(settings), *([models_after_failed_reads(settings), inbox_sensor(settings, pushes)] if has_models else [])],
        resources={"settings": settings_resource(settings), "reader": reader_resource(settings, now)} | resources,
        executor=dg.in_process_executor,
    )


def _behind_the_reads(settings: Settings, models: Models, activations: AudienceSyncs | None) -> list[dg.AssetsDefinition]:
    """The models, what is made of them for people, and, where that is switched on, what goes back to the service."""
    made = models.assets()
    shown = [key for key in made.keys if key.path[0] != "staging"]
    published = published_asset(partial(publish_home, settings), shown)
    assets = [made, published, report_asset(partial(write_report, settings.home))]
    return [*assets, (activations or AudienceSyncs(settings)).asset(made.keys)] if settings.activations else assets


@dg.definitions
def defs() -> dg.Definitions:
    """What the UI's code server loads: settings from the folder they are started in."""
    settings = load_settings(Path.cwd())
    start_logging(settings, "dagster")
    return build_definitions(settings)
