"""When the jobs run."""

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.days import ChosenDays
from home.settings import SHARD_TAG, Settings, SettingsError
from pipelines.push_jobs import standing_order

#: Which days a run reads: all that are due, or `2026-03-05 to 2026-03-20`. Without it, the
#: partitions that a person chose.
DAYS_TAG, ALL_DUE = "marketing-sync/days", "all that are due"
_FIRST_TAG, _LAST_TAG, _ONE_TAG = (
    "dagster/asset_partition_range_start",
    "dagster/asset_partition_range_end",
    "dagster/partition",
)


def chosen_days(tags: Mapping[str, str]) -> ChosenDays | None:
    """The days that a run's tags name; None: all that are due. SettingsError when a person wrote
    something else there."""
    days = tags.get(DAYS_TAG)
    if days == ALL_DUE:
        return None
    first, _, last = (
        days.partition(" to ") if days else (tags.get(_FIRST_TAG), "", tags.get(_LAST_TAG))
    )
    first = first or tags.get(_ONE_TAG)
    try:
        return (
            ChosenDays(dt.date.fromisoformat(first), dt.date.fromisoformat(last or first))
            if first
            else None
        )
    except ValueError:
        raise SettingsError(
            f"the run's tag {DAYS_TAG} is {days!r}; it takes `{ALL_DUE}`, or days as `2026-03-05 "
            "to 2026-03-20`"
        ) from None


def shard_tags(settings: Settings, shard: str) -> dict[str, str]:
    """What marks the runs of a shard, and tells their launcher what they need
    (MARKETING_RUN_TAGS)."""
    given: dict[str, Any] = json.loads(settings.run_tags.replace("{shard}", shard) or "{}")
    tags = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in given.items()
    }
    return tags | ({SHARD_TAG: shard} if shard else {})


def nightly_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """The nightly sync; stopped by default where the sandbox stands in. A code location that lost
    its key has it run, and fail with the reason."""

    @dg.schedule(
        name="nightly",
        job_name="nightly_sync",
        cron_schedule=settings.schedule_cron,
        execution_timezone=settings.schedule_timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED
        if settings.is_sandbox and not settings.is_key_missing
        else dg.DefaultScheduleStatus.RUNNING,
        description="Reads everything, and the last days of every date-ranged operation again.",
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
