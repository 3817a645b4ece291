"""The Dagster code location, composed of its parts, and the nightly job as `marketing-sync sync`
runs it: in its own process."""

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
    BY_THE_COMMAND,
    execute_here,
    instance_of_the_ui,
    redate_ticks,
)
from pipelines.jobs import NIGHTLY_SYNC, PUBLISH, REFRESH_CONTACTS, REFRESH_MODELS, rebuild
from pipelines.publishing import (
    MODELS_STEP,
    Models,
    Publishing,
    custom_table_problems,
    model_settings,
)
from pipelines.push_jobs import AudienceSyncs, explain_failures, push_jobs, standing_order
from pipelines.resources import Reads, RunReader, SettingsOfRun
from pipelines.schedules import ALL_DUE, DAYS_TAG, nightly_schedule, shard_tags
from pipelines.sensors import alert_sensor, dead_runs
from report.mail import Reports
from warehouse.errors import WarehouseError

log = logging.getLogger(__name__)

#: Of a clone; a wheel has none.
_NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
#: A step begins when what it needs is made, also by a step that failed in the end: a table that
#: could not be read whole costs the night no models, and the run ends as failed all the same.
_EXECUTOR = dg.in_process_executor.configured(
    {"step_dependency_config": {"require_upstream_step_success": False}}, name="in_process"
)
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Following:
    """What comes behind the reads, with what came of it: models, what is made of them for people
    and, where that is on, audience syncs."""

    def __init__(self, settings: Settings) -> None:
        self.models, self.reports = Models(), Reports()
        self.activations, self.publishing = AudienceSyncs(settings), Publishing()

    def build_assets(self, settings: Settings) -> list[dg.AssetsDefinition]:
        handled = explain_failures(WarehouseError)  # by the steps, some of which are tried again
        made = model_assets(
            MODELS_STEP,
            explain_failures()(self.models.build_models),
            model_settings(settings).list_nodes(),
        )
        published = published_asset(
            handled(self.publishing.publish_copy),
            custom_table_problems,
            [key for key in made.keys if key.path[0] != "staging"],
        )
        assets = [made, published, report_asset(handled(self.reports.make_report))]
        return (
            [*assets, self.activations.build_asset(made.keys)] if settings.activations else assets
        )


def build_definitions(
    settings: Settings | None = None,
    following: Following | None = None,
    *,
    has_models: bool = True,
    now: Clock = utc_now,
    **resources: Any,
) -> dg.Definitions:
    """Everything that Dagster shows; `resources` replace its own. `has_models` False: the reads
    alone, which load seconds faster."""
    settings = settings or load_settings(Path.cwd())
    partitions, of_run = daily_partitions(settings.history_start), SettingsOfRun(at_start=settings)
    with warnings.catch_warnings():
        # One run for a range of days is marked beta; the pinned version is tested with it.
        warnings.simplefilter("ignore", dg.BetaWarning)
        assets: list[Any] = [read_step(partitions)]
        jobs: list[Any] = [NIGHTLY_SYNC, REFRESH_CONTACTS, rebuild]
        if has_models:
            assets += [*(following or Following(settings)).build_assets(settings), *sync_tables()]
            jobs += [REFRESH_MODELS, PUBLISH, *push_jobs()]
    return dg.Definitions(
        assets=list(dg.map_asset_specs(partial(_complete_spec, settings), assets)),
        jobs=jobs,
        schedules=[nightly_schedule(settings)],
        sensors=[dead_runs(settings), alert_sensor(settings, now)],
        resources={"settings": of_run, "reader": Reads(settings=of_run, now=now)} | resources,
        executor=_EXECUTOR,
    )


def _complete_spec(settings: Settings, spec: dg.AssetSpec) -> dg.AssetSpec:
    """At the report, where it and the notebooks are: a link in the UI that serves it, paths
    elsewhere, since browsers follow no link from a page to a file."""
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
    """What the UI's code server loads: settings from the folder they are started in."""
    settings = load_settings(Path.cwd())
    start_logging(settings, "dagster")
    if os.environ.get("DAGSTER_HOME"):
        _continue_schedules()
    return build_definitions(settings)


def _continue_schedules() -> None:
    try:
        with dg.DagsterInstance.get() as instance:
            if count := redate_ticks(instance):
                log.warning(
                    "%d ticks of schedules and sensors were dated in the future, and are dated now",
                    count,
                )
    except Exception as problem:  # without its database the location loads, too
        log.warning(
            "ticks that are dated in the future were not looked for: %s", type(problem).__name__
        )


def run_in_dagster(
    settings: Settings,
    reader: Reader,
    following: Following,
    has_models: bool,
) -> tuple[str, dict[str, str]]:
    """Returns the run's id, and which steps behind the reading failed, with the reasons."""
    tags = {DAYS_TAG: str(reader.days_of_run() or ALL_DUE)} | shard_tags(settings, settings.shard)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        definitions = build_definitions(
            settings, following, has_models=has_models, reader=RunReader(settings, reader=reader)
        )
        with instance_of_the_ui(settings.home) as instance:
            run_id = execute_here(
                definitions.resolve_job_def("nightly_sync"),
                instance,
                []
                if has_models
                else [asset_key(table) for asset in reader.chosen for table in asset.tables],
                tags=tags | BY_THE_COMMAND,
                config=_QUIET | (standing_order(settings) if has_models else {}),
            )
            return run_id, failures_behind(instance, run_id)
