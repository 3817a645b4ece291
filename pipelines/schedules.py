"""When the jobs run, and the tags of their runs."""

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.days import ChosenDays
from home.settings import SHARD_TAG, Settings, SettingsError
from pipelines.push_jobs import standing_order

#: The tag that says which days a run reads: all that are due, or `2026-03-05 to 2026-03-20`. A run
#: without it reads the partitions that a person chose.
DAYS_TAG = "marketing-sync/days"
ALL_DUE = "all that are due"
_FIRST_TAG = "dagster/asset_partition_range_start"
_LAST_TAG = "dagster/asset_partition_range_end"
_ONE_TAG = "dagster/partition"


def read_days_tag(tags: Mapping[str, str]) -> ChosenDays | None:
    """The days that a run's tags name; None for all that are due. Raises SettingsError when the tag
    is neither."""
    days = tags.get(DAYS_TAG)
    if days == ALL_DUE:
        return None
    first = tags.get(_FIRST_TAG)
    last = tags.get(_LAST_TAG)
    if days:
        first, _, last = days.partition(" to ")
    first = first or tags.get(_ONE_TAG)
    if not first:
        return None
    try:
        return ChosenDays(dt.date.fromisoformat(first), dt.date.fromisoformat(last or first))
    except ValueError:
        raise SettingsError(
            f"the run's tag {DAYS_TAG} is {days!r}; it takes `{ALL_DUE}`, or days as `2026-03-05 "
            "to 2026-03-20`"
        ) from None


def shard_tags(settings: Settings, shard: str) -> dict[str, str]:
    """The tags of a shard's runs: its name, and what MARKETING_RUN_TAGS tells their launcher."""
    configured: dict[str, Any] = json.loads(settings.run_tags.replace("{shard}", shard) or "{}")
    tags = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in configured.items()
    }
    return tags | ({SHARD_TAG: shard} if shard else {})


def nightly_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """The nightly sync. It is off by default for the sandbox. Where the key is missing it is on, so
    that its runs fail with the reason."""
    is_on = settings.is_key_missing or not settings.is_sandbox
    status = dg.DefaultScheduleStatus.RUNNING if is_on else dg.DefaultScheduleStatus.STOPPED

    @dg.schedule(
        name="nightly",
        job_name="nightly_sync",
        cron_schedule=settings.schedule_cron,
        execution_timezone=settings.schedule_timezone,
        default_status=status,
        description="Reads everything; of data by day, also the last days again.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest]:
        night = context.scheduled_execution_time.isoformat()
        return [
            dg.RunRequest(
                f"{night} {shard}".strip(),
                standing_order(settings),
                {DAYS_TAG: ALL_DUE} | shard_tags(settings, shard),
            )
            for shard in settings.homes
        ]

    return schedule
