"""When the jobs run."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import dagster as dg

from pipelines.settings import Settings

#: Marks the runs of the command line.
COMMAND_TAG = "marketing-sync/command"


def partition_tags(first: dt.date, last: dt.date) -> dict[str, str]:
    """The tags with which one run covers a range of daily partitions."""
    return {"dagster/asset_partition_range_start": first.isoformat(), "dagster/asset_partition_range_end": last.isoformat()}


def nightly(settings: Settings) -> dg.ScheduleDefinition:
    """The nightly sync over the last `lookback_days`; stopped by default where the sandbox stands in."""

    @dg.schedule(
        name="nightly",
        job_name="nightly_sync",
        cron_schedule=settings.schedule_cron,
        execution_timezone=settings.schedule_timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED if settings.is_sandbox else dg.DefaultScheduleStatus.RUNNING,
        description="Reads everything, and the last days of every date-ranged operation again.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        today = context.scheduled_execution_time.astimezone(ZoneInfo(settings.schedule_timezone)).date()
        first = today - dt.timedelta(days=settings.lookback_days)
        return dg.RunRequest(run_key=context.scheduled_execution_time.isoformat(), tags=partition_tags(first, today))

    return schedule
