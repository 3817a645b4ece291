"""What reacts: an alert to a webhook address when a run fails or nothing happens, the end of a run
whose process is gone."""

import datetime as dt

import dagster as dg
import msgspec

from assets.materialize import failures_of
from home import alerts
from home.formatting import count_of
from home.freshness import is_to_come
from home.settings import SHARD_TAG, Settings
from marketing_api.clock import TOLERANCE, Clock, utc_now
from pipelines.dagster_internals import OURS, end_dead_runs
from pipelines.monitoring import find_silent, read_shards
from pipelines.push_jobs import report_push

_Status = dg.DagsterRunStatus
_HOUR = dt.timedelta(hours=1)
#: A message at once, then at most one in so long, however many shards fail.
_QUIET = dt.timedelta(minutes=15)
#: How long a run may wait in the queue, which is long on a first night.
_LONGEST_QUEUED = 6 * _HOUR
_ENDED = {_Status.FAILURE: "failed", _Status.CANCELED: "was cancelled"}
#: Of a run that failed: whether another attempt is to come.
_WILL_RETRY = "dagster/will_retry"


def dead_runs(settings: Settings) -> dg.SensorDefinition:
    """It looks where the code server runs, which has the homes where runs are its processes."""

    @dg.sensor(
        name="dead_runs",
        description="Ends runs whose process is gone, so that they are tried again.",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        return dg.SkipReason(f"{end_dead_runs(context.instance, settings.homes)} runs were dead")

    return look


class _Told(msgspec.Struct):
    """The cursor. What is `lasting` ends at some time, which is told, too; `ended` are failed runs
    of the last days."""

    began: dt.datetime
    at: dt.datetime | None = None
    lasting: list[str] = []
    ended: list[str] = []


def alert_sensor(settings: Settings, now: Clock = utc_now) -> dg.SensorDefinition:
    """Posts `{"text", "problems", "count", "over"}`; `text` is what chat services show. It runs
    where there is an address."""

    @dg.sensor(
        name="alerts",
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING
        if settings.alert_url
        else dg.DefaultSensorStatus.STOPPED,
        description=(
            "Tells the webhook address of the settings (MARKETING_ALERT_URL) which runs failed, "
            "were cancelled or are stuck, and which accounts were not read for too long; and when "
            "that is over."
        ),
    )
    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason | None:
        if not settings.alert_url:
            return dg.SkipReason("MARKETING_ALERT_URL is not set")
        moment, instance = now(), context.instance
        told = _read_cursor(context.cursor, moment)
        if told.at and moment - told.at < _QUIET:
            return dg.SkipReason("the last message is not 15 minutes old")
        lasting = _find_stuck(instance, moment) | _find_silences(
            instance, settings, told.began, moment
        )
        ended = _find_ended(instance, max(told.began, moment - 48 * _HOUR))
        problems = {name: lasting[name] for name in sorted(lasting.keys() - told.lasting)}
        problems |= _describe_failures(instance, ended, told.ended)
        over = [name for name in told.lasting if name not in lasting]
        if problems or over:
            _post_problems(settings, problems, over)
            told.at = moment
        told.lasting, told.ended = list(lasting), list(ended)
        context.update_cursor(msgspec.json.encode(told).decode())
        return None

    return look


def _read_cursor(cursor: str | None, now: dt.datetime) -> _Told:
    """What was told by then; moments that a clock which was ahead noted are unknown."""
    told = msgspec.json.decode(cursor, type=_Told) if cursor else _Told(now)
    told.began = min(told.began, now)
    if told.at and is_to_come(told.at, now):
        told.at = None
    return told


def _post_problems(settings: Settings, problems: dict[str, str], over: list[str]) -> None:
    lines = [f"marketing-sync: {count_of(len(problems), 'problem')}, {len(over):,} over"]
    lines += [f"{name} {text}" for name, text in problems.items()]
    lines += [f"over: {name}" for name in over]
    body = {"text": "\n".join(lines), "problems": problems, "over": over}
    alerts.post_alert(settings, body | {"count": len(problems)})


def _run_name(run: dg.DagsterRun) -> str:
    shard = run.tags.get(SHARD_TAG)
    return f"{run.job_name}{f' of {shard}' if shard else ''} (run {run.run_id})"


def _find_stuck(instance: dg.DagsterInstance, now: dt.datetime) -> dict[str, str]:
    found = {}
    longest = {_Status.QUEUED: _LONGEST_QUEUED, _Status.STARTED: _longest_run(instance) + _HOUR}
    for record in instance.get_run_records(dg.RunsFilter(statuses=list(longest), tags=OURS)):
        run, since = record.dagster_run, now - record.update_timestamp
        if is_to_come(record.update_timestamp, now):
            found[_run_name(run)] = (
                f"has been {run.status.value} since a moment that is still to come"
            )
        elif since > longest[run.status]:
            found[_run_name(run)] = f"has been {run.status.value} for {since / _HOUR:.0f} hours"
    return found


def _longest_run(instance: dg.DagsterInstance) -> dt.timedelta:
    """How long `dagster.yaml` lets a run take before Dagster ends it (`max_runtime_seconds`);
    a day where it names no limit."""
    limit_s = instance.run_monitoring_max_runtime_seconds
    return dt.timedelta(seconds=limit_s) if limit_s else 24 * _HOUR


def _find_silences(
    instance: dg.DagsterInstance, settings: Settings, began: dt.datetime, now: dt.datetime
) -> dict[str, str]:
    """By the homes that are here; of a shard whose home is elsewhere, by its runs."""
    found: dict[str, str] = {}
    away = []
    for name, shard in read_shards(settings).items():
        if shard.is_here:
            late = find_silent(settings, shard, now, began)
            found |= {f"account {account}:": words for account, words in late.items()}
        else:
            away.append(name)
    since = now - settings.alert_after
    if away and began < since:
        nights = dg.RunsFilter(
            job_name="nightly_sync",
            statuses=[_Status.SUCCESS],
            tags=OURS,
            updated_after=since,
            updated_before=now + TOLERANCE,
        )
        read = {run.tags.get(SHARD_TAG, "") for run in instance.get_runs(nights)}
        words = f"no nightly_sync succeeded within {settings.alert_after_hours} hours"
        found |= {
            f"shard {shard}:" if shard else "the home:": words
            for shard in away
            if shard not in read
        }
    return found


def _find_ended(instance: dg.DagsterInstance, since: dt.datetime) -> dict[str, dg.DagsterRun]:
    """Failed and cancelled runs by their ids. Of those that Dagster tries again, which it notes a
    moment after the end, the last attempt counts."""
    runs = instance.get_runs(dg.RunsFilter(statuses=list(_ENDED), tags=OURS, updated_after=since))
    not_noted = str(instance.run_retries_enabled).lower()
    return {
        run.run_id: run
        for run in runs
        if run.status is _Status.CANCELED or run.tags.get(_WILL_RETRY, not_noted) != "true"
    }


def _describe_failures(
    instance: dg.DagsterInstance, ended: dict[str, dg.DagsterRun], told: list[str]
) -> dict[str, str]:
    """What failed in each that is not told, without what the push itself tells."""
    found = {}
    for run_id in [run_id for run_id in ended if run_id not in told]:
        run, failed = ended[run_id], failures_of(instance, run_id)
        if failed.keys() != {report_push.name}:
            logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.PIPELINE_FAILURE)
            reasons = [f"{name}: {reason}" for name, reason in failed.items()] or [
                entry.get_dagster_event().message or "no reason given" for entry in logged
            ]
            found[_run_name(run)] = "\n".join([_ENDED[run.status], *reasons])
    return found
