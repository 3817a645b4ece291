"""Runs the nightly job in this process, with a reader that is already reading."""

from __future__ import annotations

import datetime as dt
import os
import warnings
from collections.abc import Sequence

import dagster as dg

from assets.days import DateRange
from assets.extract import SourceAsset
from assets.materialize import asset_key
from assets.reader import Reader
from pipelines.definitions import build_definitions
from pipelines.resources import GivenReader
from pipelines.schedules import partition_tags
from pipelines.settings import Settings


def run_in_dagster(settings: Settings, reader: Reader, chosen: Sequence[SourceAsset], days: DateRange | None) -> str:
    """The run's id. The run is recorded in the home, where the UI finds it."""
    os.environ["DAGSTER_HOME"] = str(settings.home / "dagster")
    today = dt.datetime.now(dt.UTC).date()
    days = days or DateRange(today - dt.timedelta(days=settings.lookback_days), today)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        definitions = build_definitions(settings, reader=GivenReader(reader))
        job = definitions.resolve_job_def("nightly_sync")
        with dg.DagsterInstance.get() as instance:
            result = job.execute_in_process(
                instance=instance,
                asset_selection=[asset_key(table) for asset in chosen for table in asset.tables],
                tags=partition_tags(days.first, days.last) | {"marketing-sync/command": "sync"},
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                raise_on_error=False,
            )
    return str(result.run_id)
