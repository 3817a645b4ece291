"""The Dagster code location, and the nightly job as `marketing-sync sync` runs it: in its own
process."""

import logging
import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from assets.materialize import asset_key, daily_partitions, failures_behind, read_step
from assets.models import model_assets
from assets.published import REPORT, published_asset, report_asset, sync_tables
from assets.reader import Reader
from home.door import report_of
from home.logs import start_logging
from home.settings import Settings, load_settings
from marketing_api.clock import Clock, utc_now
from pipelines import SERVES_REPORT, report_address
from pipelines.dagster_internals import (
    COMMAND_TAGS,
    execute_here,
    open_run_instance,
    redate_ticks,
)
from pipelines.jobs import NIGHTLY_SYNC, PUBLISH, REFRESH_CONTACTS, REFRESH_MODELS, rebuild
from pipelines.published_copy import list_failed_custom_tables
from pipelines.publishing import MODELS_STEP, Models, Publishing, model_settings
from pipelines.push_jobs import AudienceSyncs, explain_failures, push_jobs, standing_order
from pipelines.resources import Reads, RunReader, SettingsOfRun
from pipelines.schedules import ALL_DUE, DAYS_TAG, nightly_schedule, shard_tags
from pipelines.sensors import alert_sensor, dead_runs
from report.mail import Reports
from warehouse.errors import WarehouseError

log = logging.getLogger(__name__)

#: The notebooks of a clone; a wheel has none.
_NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
#: A step begins when its inputs exist, even if the step that made them failed in the end: a table
#: that could not be read completely doesn't stop the models, and the run still ends as failed.
_EXECUTOR = dg.in_process_executor.configured(
    {"step_dependency_config": {"require_upstream_step_success": False}}, name="in_process"
)
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class LaterSteps:
    """The steps after the reads, with their outcomes: models, the published copy, the report and,
    where they are on, audience syncs."""

    def __init__(self, settings: Settings) -> None:
        self.models = Models()
        self.publishing = Publishing()
        self.reports = Reports()
        self.activations = AudienceSyncs(settings)

    def build_assets(self, settings: Settings) -> list[dg.AssetsDefinition]:
        explained = explain_failures(WarehouseError)
        models = model_assets(
            MODELS_STEP,
            explain_failures()(self.models.build_models),
            model_settings(settings).list_nodes(),
        )
        published = published_asset(
            explained(self.publishing.publish_copy),
            list_failed_custom_tables,
            [key for key in models.keys if key.path[0] != "staging"],
        )
        assets = [models, published, report_asset(explained(self.reports.make_report))]
        if settings.activations:
            assets.append(self.activations.build_asset(models.keys))
        return assets


def build_definitions(
    settings: Settings | None = None,
    later_steps: LaterSteps | None = None,
    *,
    has_models: bool = True,
    now: Clock = utc_now,
    **resources: Any,
) -> dg.Definitions:
    """Everything that Dagster displays. `resources` replace the resources of the same name. With
    `has_models` False only the reads, which load seconds faster."""
    settings = settings or load_settings(Path.cwd())
    partitions = daily_partitions(settings.history_start)
    run_settings = SettingsOfRun(at_start=settings)
    with warnings.catch_warnings():
        # A single run for a range of days is a beta feature; the pinned version is tested with it.
        warnings.simplefilter("ignore", dg.BetaWarning)
        assets: list[Any] = [read_step(partitions)]
        jobs: list[Any] = [NIGHTLY_SYNC, REFRESH_CONTACTS, rebuild]
        if has_models:
            steps = later_steps or LaterSteps(settings)
            assets += [*steps.build_assets(settings), *sync_tables()]
            jobs += [REFRESH_MODELS, PUBLISH, *push_jobs()]
    return dg.Definitions(
        assets=list(dg.map_asset_specs(partial(_complete_spec, settings), assets)),
        jobs=jobs,
        schedules=[nightly_schedule(settings)],
        sensors=[dead_runs(settings), alert_sensor(settings, now)],
        resources={
            "settings": run_settings,
            "reader": Reads(settings=run_settings, now=now),
            **resources,
        },
        executor=_EXECUTOR,
    )


def _complete_spec(settings: Settings, spec: dg.AssetSpec) -> dg.AssetSpec:
    """Adds to the report's spec where the report and the notebooks are: links where the UI serves
    the report, and paths, since browsers don't follow links from a page to a file."""
    if spec.key != REPORT:
        return spec
    lines = [spec.description or ""]
    if SERVES_REPORT in os.environ:
        lines += [
            f"[Open the report{f' of {shard}' if shard else ''}]({report_address(shard)})"
            for shard in settings.homes
        ]
    lines.append(f"The page: `{report_of(settings.home / ('SHARD' if settings.shards else ''))}`")
    if _NOTEBOOKS.is_dir():
        lines.append(f"Notebooks: `{_NOTEBOOKS}`")
    return spec.replace_attributes(description="\n\n".join(lines))


@dg.definitions
def defs() -> dg.Definitions:
    """What the UI's code server loads, with the settings of its working folder."""
    settings = load_settings(Path.cwd())
    start_logging(settings, "dagster")
    if os.environ.get("DAGSTER_HOME"):
        _continue_schedules()
    return build_definitions(settings)


def _continue_schedules() -> None:
    try:
        with dg.DagsterInstance.get() as instance:
            count = redate_ticks(instance)
            if count:
                log.warning(
                    "%d ticks of schedules and sensors were dated in the future, and are dated now",
                    count,
                )
    except Exception as error:  # the location loads without Dagster's database, too
        log.warning(
            "ticks that are dated in the future were not looked for: %s", type(error).__name__
        )


def run_in_dagster(
    settings: Settings,
    reader: Reader,
    later_steps: LaterSteps,
    has_models: bool,
) -> tuple[str, dict[str, str]]:
    """Returns the run's id, and the reasons of later steps that failed, by step."""
    tags = {DAYS_TAG: str(reader.days_of_run() or ALL_DUE)} | shard_tags(settings, settings.shard)
    selection: list[dg.AssetKey] = []
    if not has_models:
        selection = [asset_key(table) for asset in reader.chosen for table in asset.tables]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        definitions = build_definitions(
            settings, later_steps, has_models=has_models, reader=RunReader(settings, reader=reader)
        )
        with open_run_instance(settings.home) as instance:
            run_id = execute_here(
                definitions.resolve_job_def("nightly_sync"),
                instance,
                selection,
                tags=tags | COMMAND_TAGS,
                config=_QUIET | (standing_order(settings) if has_models else {}),
            )
            return run_id, failures_behind(instance, run_id)
