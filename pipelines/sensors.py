"""Sensors: one posts alerts to a webhook when a run fails or nothing is read, one ends runs whose
process is gone."""

import datetime as dt
from collections.abc import Iterable

import dagster as dg
import msgspec

from assets.materialize import failures_of
from home import alerts
from home.formatting import count_of
from home.freshness import is_to_come
from home.settings import SHARD_TAG, Settings
from marketing_api.clock import TOLERANCE, Clock, utc_now
from pipelines.dagster_internals import PROJECT_TAGS, end_dead_runs
from pipelines.monitoring import find_silent, read_shards
from pipelines.push_jobs import report_push

_Status = dg.DagsterRunStatus
_HOUR = dt.timedelta(hours=1)
#: The pause after a message, however many shards fail.
_QUIET = dt.timedelta(minutes=15)
#: How long a run may wait in the queue, which is long on a first night.
_LONGEST_QUEUED = 6 * _HOUR
_ENDED = {_Status.FAILURE: "failed", _Status.CANCELED: "was cancelled"}
#: The tag of a failed run that says whether Dagster tries it again.
_WILL_RETRY = "dagster/will_retry"


def dead_runs(settings: Settings) -> dg.SensorDefinition:
    """Evaluated by the code server, which has the homes when runs are its processes."""

    @dg.sensor(
        name="dead_runs",
        description="Ends runs without a process, so that Dagster retries them.",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        return dg.SkipReason(f"{end_dead_runs(context.instance, settings.homes)} runs were dead")

    return look


class _AlertState(msgspec.Struct):
    """The sensor's cursor: when it began, when it last posted, and what it has already posted.

    `unread` are the accounts that were never read, with the time when each was first seen;
    `lasting` are the names of conditions whose end is posted, too; `ended` are the ids of runs that
    failed in the last days."""

    began: dt.datetime
    at: dt.datetime | None = None
    unread: dict[str, dt.datetime] = {}
    lasting: list[str] = []
    ended: list[str] = []


def alert_sensor(settings: Settings, now: Clock = utc_now) -> dg.SensorDefinition:
    """Posts `{"text", "problems", "count", "over"}`; chat services display `text`. It is off where
    no address is set."""

    @dg.sensor(
        name="alerts",
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING
        if settings.alert_url
        else dg.DefaultSensorStatus.STOPPED,
        description=(
            "Posts to MARKETING_ALERT_URL which runs failed, were cancelled or are stuck, and "
            "which accounts were not read in time; and again when this is over."
        ),
    )
    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason | None:
        if not settings.alert_url:
            return dg.SkipReason("MARKETING_ALERT_URL is not set")
        moment = now()
        instance = context.instance
        state = _read_cursor(context.cursor, moment)
        if state.at and moment - state.at < _QUIET:
            return dg.SkipReason("the last message is not 15 minutes old")
        lasting = _find_stuck(instance, moment) | _find_silences(instance, settings, state, moment)
        ended = _find_ended(instance, max(state.began, moment - 48 * _HOUR))
        conditions = {name: lasting[name] for name in sorted(lasting.keys() - state.lasting)}
        conditions |= _describe_failures(instance, ended, state.ended)
        over = [name for name in state.lasting if name not in lasting]
        if conditions or over:
            _post_alert(settings, conditions, over)
            state.at = moment
        state.lasting, state.ended = list(lasting), list(ended)
        context.update_cursor(msgspec.json.encode(state).decode())
        return None

    return look


def _read_cursor(cursor: str | None, now: dt.datetime) -> _AlertState:
    """The state after the last evaluation. Times in the future, which a clock that was ahead has
    left, are corrected."""
    state = msgspec.json.decode(cursor, type=_AlertState) if cursor else _AlertState(now)
    state.began = min(state.began, now)
    if state.at and is_to_come(state.at, now):
        state.at = None
    return state


def _post_alert(settings: Settings, conditions: dict[str, str], over: list[str]) -> None:
    lines = [f"marketing-sync: {count_of(len(conditions), 'problem')}, {len(over):,} over"]
    lines += [f"{name} {text}" for name, text in conditions.items()]
    lines += [f"over: {name}" for name in over]
    body = {
        "text": "\n".join(lines),
        "problems": conditions,
        "over": over,
        "count": len(conditions),
    }
    try:
        alerts.post_alert(settings, body)
    except alerts.NotPosted as error:  # a slow address must not get it every minute
        if not error.may_have_arrived:
            raise


def _run_name(run: dg.DagsterRun) -> str:
    shard = run.tags.get(SHARD_TAG)
    return f"{run.job_name}{f' of {shard}' if shard else ''} (run {run.run_id})"


def _find_stuck(instance: dg.DagsterInstance, now: dt.datetime) -> dict[str, str]:
    found = {}
    longest = {_Status.QUEUED: _LONGEST_QUEUED, _Status.STARTED: _longest_run(instance) + _HOUR}
    watched = dg.RunsFilter(statuses=list(longest), tags=PROJECT_TAGS)
    for record in instance.get_run_records(watched):
        run = record.dagster_run
        since = now - record.update_timestamp
        if is_to_come(record.update_timestamp, now):
            found[_run_name(run)] = f"has been {run.status.value} since a time in the future"
        elif since > longest[run.status]:
            found[_run_name(run)] = f"has been {run.status.value} for {since / _HOUR:.0f} hours"
    return found


def _longest_run(instance: dg.DagsterInstance) -> dt.timedelta:
    """How long `dagster.yaml` lets a run take before Dagster ends it (`max_runtime_seconds`);
    a day where it names no limit."""
    limit_s = instance.run_monitoring_max_runtime_seconds
    return dt.timedelta(seconds=limit_s) if limit_s else 24 * _HOUR


def _find_silences(
    instance: dg.DagsterInstance, settings: Settings, state: _AlertState, now: dt.datetime
) -> dict[str, str]:
    """Accounts that were not read for too long, and shards with a home on another machine that had
    no successful run for too long."""
    found: dict[str, str] = {}
    remote_shards = []
    shards = read_shards(settings)
    state.unread = {
        account.account: min(state.unread.get(account.account, now), now)
        for shard in shards.values()
        for account in shard.accounts
        if account.read_at is None
    }
    for name, shard in shards.items():
        if shard.is_here:
            late = find_silent(settings, shard, now, state.unread)
            found |= {f"account {account}:": words for account, words in late.items()}
        else:
            remote_shards.append(name)
    if remote_shards and state.began < now - settings.alert_after:
        found |= _find_silent_shards(instance, settings, remote_shards, now)
    return found


def _find_silent_shards(
    instance: dg.DagsterInstance, settings: Settings, shards: Iterable[str], now: dt.datetime
) -> dict[str, str]:
    """The shards without a successful night in the time after which silence is an alert."""
    nights = dg.RunsFilter(
        job_name="nightly_sync",
        statuses=[_Status.SUCCESS],
        tags=PROJECT_TAGS,
        updated_after=now - settings.alert_after,
        updated_before=now + TOLERANCE,
    )
    read = {run.tags.get(SHARD_TAG, "") for run in instance.get_runs(nights)}
    words = f"no nightly_sync succeeded within {settings.alert_after_hours} hours"
    silent = [shard for shard in shards if shard not in read]
    return {f"shard {shard}:" if shard else "the home:": words for shard in silent}


def _find_ended(instance: dg.DagsterInstance, since: dt.datetime) -> dict[str, dg.DagsterRun]:
    """Failed and cancelled runs by id. Of a run that Dagster tries again, only the last attempt
    counts. Dagster sets the tag a moment after the run's end."""
    ended = dg.RunsFilter(statuses=list(_ENDED), tags=PROJECT_TAGS, updated_after=since)
    untagged = str(instance.run_retries_enabled).lower()
    return {
        run.run_id: run
        for run in instance.get_runs(ended)
        if run.status is _Status.CANCELED or run.tags.get(_WILL_RETRY, untagged) != "true"
    }


def _describe_failures(
    instance: dg.DagsterInstance, ended: dict[str, dg.DagsterRun], posted: list[str]
) -> dict[str, str]:
    """Run → what failed in it, for runs not yet posted; a push reports its own failures."""
    found = {}
    for run_id, run in ended.items():
        if run_id in posted:
            continue
        failed_steps = failures_of(instance, run_id)
        if failed_steps.keys() == {report_push.name}:
            continue
        reasons = [f"{name}: {reason}" for name, reason in failed_steps.items()]
        if not reasons:
            logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.PIPELINE_FAILURE)
            reasons = [entry.get_dagster_event().message or "no reason given" for entry in logged]
        found[_run_name(run)] = "\n".join([_ENDED[run.status], *reasons])
    return found
