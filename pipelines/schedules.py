"""When the jobs run."""

import datetime as dt
from collections.abc import Mapping

import dagster as dg

from assets.days import FIRST_ZONE, LAST_ZONE, ChosenDays, DateRange, days_of_run, today_in
from pipelines.settings import Settings
from pipelines.write_back.nightly_audience_syncs import standing_order

#: Marks the runs of the command line.
COMMAND_TAG = "marketing-sync/command"


#: Tells a run that completes what is due from one whose partitions a person chose: those are read, and nothing else.
DAYS_TAG, ALL_DUE = "marketing-sync/days", "all that are due"


def partition_tags(days: DateRange, moment: dt.datetime, history_start: dt.date) -> dict[str, str]:
    """The tags with which one run covers a range of daily partitions, as far as there are any of them (`daily_partitions`)."""
    first, last = max(days.first, history_start), min(days.last, today_in(FIRST_ZONE, moment))
    if first > last:
        return {}
    return {"dagster/asset_partition_range_start": first.isoformat(), "dagster/asset_partition_range_end": last.isoformat()}


def chosen_days(tags: Mapping[str, str]) -> ChosenDays | None:
    """The days that a run's tags name; None: all that are due. The run's first step may be one without partitions."""
    first = tags.get("dagster/asset_partition_range_start") or tags.get("dagster/partition")
    last = tags.get("dagster/asset_partition_range_end") or tags.get("dagster/partition")
    if tags.get(DAYS_TAG) == ALL_DUE or not first or not last:
        return None
    return ChosenDays(dt.date.fromisoformat(first), dt.date.fromisoformat(last))


def nightly(settings: Settings) -> dg.ScheduleDefinition:
    """The nightly sync over the last `lookback_days`; stopped by default where the sandbox stands in."""

    known = [account.timezone for account in settings.accounts if account.timezone]
    zones = known if known and len(known) == len(settings.accounts) else [FIRST_ZONE, LAST_ZONE]  # others report theirs later

    @dg.schedule(
        name="nightly",
        job_name="nightly_sync",
        cron_schedule=settings.schedule_cron,
        execution_timezone=settings.schedule_timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED if settings.is_sandbox else dg.DefaultScheduleStatus.RUNNING,
        description="Reads everything, and the last days of every date-ranged operation again.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        moment = context.scheduled_execution_time
        days = days_of_run(moment, zones, settings.lookback_days)
        tags = partition_tags(days, moment, settings.history_start) | {DAYS_TAG: ALL_DUE}
        return dg.RunRequest(run_key=moment.isoformat(), run_config=standing_order(settings), tags=tags)

    return schedule
