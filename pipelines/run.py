"""Runs the nightly job in this process, with a reader that is already reading."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.extract import SourceAsset
from assets.materialize import asset_key
from assets.reader import Reader
from pipelines.definitions import build_definitions
from pipelines.interrupts import Stop
from pipelines.modelling import MODELS_STEP, Models
from pipelines.resources import GivenReader
from pipelines.run_history import BY_THE_COMMAND, instance_of_the_ui
from pipelines.schedules import ALL_DUE, COMMAND_TAG, DAYS_TAG, partition_tags
from pipelines.settings import Settings
from pipelines.write_back.nightly_audience_syncs import AudienceSyncs, standing_order

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_in_dagster(
    settings: Settings,
    reader: Reader,
    chosen: Sequence[SourceAsset],
    models: Models | None,
    activations: AudienceSyncs | None,
    stop: Stop,
) -> str:
    """The run's id. The run is recorded in the home, where the UI finds it. `models`: build them behind the reads, then run the
    `activations`, where they are switched on.

    Dagster skips what comes behind a step that failed. What could be read deserves its answers all the same: then the models are
    another run.
    """
    os.environ["DAGSTER_HOME"] = str(settings.home / "dagster")
    tags = partition_tags(reader.days_of_run(), reader.began_at, settings.history_start)
    tags |= {} if reader.chosen_days else {DAYS_TAG: ALL_DUE}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        definitions = build_definitions(
            settings,
            models=models,
            activations=activations,
            has_models=models is not None,
            reader=GivenReader(reader, is_sandbox=settings.is_sandbox),
        )
        with instance_of_the_ui() as instance:
            reads = None if models else [asset_key(table) for asset in chosen for table in asset.tables]
            sending = standing_order(settings) if models else {}
            result = _execute(definitions, instance, "nightly_sync", tags, reads, sending)
            if models and not stop.is_set and MODELS_STEP not in _tried(result):
                _execute(definitions, instance, "refresh_models", {}, None, sending)
    return str(result.run_id)


def _execute(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    job: str,
    tags: dict[str, str],
    selection: Sequence[dg.AssetKey] | None,
    config: dict[str, Any],
) -> dg.ExecuteInProcessResult:
    return definitions.resolve_job_def(job).execute_in_process(
        instance=instance,
        asset_selection=selection,
        tags=tags | BY_THE_COMMAND | {COMMAND_TAG: "sync"},
        run_config=_QUIET | config,
        raise_on_error=False,
    )


def _tried(result: dg.ExecuteInProcessResult) -> set[str]:
    """The steps that ran, whatever became of them."""
    return {str(event.step_key) for event in result.all_events if event.is_step_success or event.is_step_failure}
