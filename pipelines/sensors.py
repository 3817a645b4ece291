"""What reacts to runs: an alert to a webhook address when one fails, and the models although a read
failed."""

import dagster as dg

from home import alerts
from home.settings import SHARD_TAG, Settings
from pipelines.jobs import REFRESH_MODELS
from pipelines.publishing import MODELS_STEP
from pipelines.push_jobs import report_push, standing_order
from pipelines.schedules import COMMAND_TAG, NIGHT_TAG, shard_tags

_UNFINISHED = set(dg.DagsterRunStatus) - {
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
}
#: Of a run that failed: another attempt is to come; the attempt, once there is one.
_WILL_RETRY, _RETRY = "dagster/will_retry", "dagster/auto_retry_run_id"


def failure_alerts(settings: Settings) -> list[dg.SensorDefinition]:
    """One that tells of each failed run; where there are shards, another that tells of a night, which is a
    run for each of them."""
    return [_failure_alert(settings), *([_night_alert(settings)] if settings.shards else [])]


def _failure_alert(settings: Settings) -> dg.SensorDefinition:
    """Posts `{"text", "job", "run_id", "failed"}` to the alert address; `text` is what chat services show."""

    @dg.run_failure_sensor(
        name="failure_alert",
        description="Tells the webhook address of the settings (MARKETING_ALERT_URL) that a run "
        "failed, and why.",
        default_status=dg.DefaultSensorStatus.RUNNING
        if settings.alert_url
        else dg.DefaultSensorStatus.STOPPED,
    )
    def alert(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if not settings.alert_url:
            return dg.SkipReason("MARKETING_ALERT_URL is not set")
        run = context.dagster_run
        failed, lines = _failures(context.instance, run)
        if failed.keys() == {report_push.name}:
            return dg.SkipReason("the push itself tells what needs a person")
        if settings.shards and NIGHT_TAG in run.tags:
            return dg.SkipReason("the night's alert tells of all its shards together")
        text = "\n".join([f"marketing-sync: {run.job_name} failed", *lines])
        alerts.post(settings, {"text": text, "job": run.job_name, "run_id": run.run_id, "failed": failed})
        return None

    return alert


def _night_alert(settings: Settings) -> dg.SensorDefinition:
    """Posts `{"text", "night", "failed"}` once all runs of a night have ended, or the next one has begun. The
    cursor: the last one told."""

    @dg.sensor(
        name="night_alert",
        description="Tells the webhook address of the settings (MARKETING_ALERT_URL) in which shards a "
        "night failed, all in one message.",
        default_status=dg.DefaultSensorStatus.RUNNING
        if settings.alert_url
        else dg.DefaultSensorStatus.STOPPED,
        minimum_interval_seconds=60,
    )
    def alert(context: dg.SensorEvaluationContext) -> dg.SkipReason | None:
        if not settings.alert_url:
            return dg.SkipReason("MARKETING_ALERT_URL is not set")
        nights = _nights(context.instance, len(settings.shards))
        for night in sorted(name for name in nights if name > (context.cursor or "")):
            runs = nights[night]
            if night == max(nights) and any(
                run.status in _UNFINISHED or run.tags.get(_WILL_RETRY) == "true" for run in runs
            ):
                return dg.SkipReason(f"the night of {night} is not over")
            failures = [run for run in runs if run.status is dg.DagsterRunStatus.FAILURE]
            if failed := {
                run.tags.get(SHARD_TAG, ""): "; ".join(_failures(context.instance, run)[1])
                for run in failures
            }:
                lines = [f"{shard}: {reason}" for shard, reason in failed.items()]
                text = f"marketing-sync: {len(failed)} of {len(settings.shards)} shards failed\n" + "\n".join(
                    lines
                )
                alerts.post(settings, {"text": text, "night": night, "failed": failed})
            context.update_cursor(night)
        return None

    return alert


def _nights(instance: dg.DagsterInstance, shards: int) -> dict[str, list[dg.DagsterRun]]:
    """The scheduled runs of the last nights; those of which Dagster makes another attempt count with that
    one."""
    nights: dict[str, list[dg.DagsterRun]] = {}
    limit = 6 * shards  # a night's, its retries, and those of the night before
    for run in instance.get_runs(dg.RunsFilter(job_name="nightly_sync"), limit=limit):
        if NIGHT_TAG in run.tags and _RETRY not in run.tags:
            nights.setdefault(run.tags[NIGHT_TAG], []).append(run)
    return nights


def models_after_failed_reads(settings: Settings) -> dg.SensorDefinition:
    """Dagster skips what comes behind a failed step; the models of what could be read are built all the
    same."""

    @dg.run_status_sensor(
        name="models_after_failed_reads",
        description="Runs the models after a nightly sync in which some table could not be read.",
        run_status=dg.DagsterRunStatus.FAILURE,
        request_job=REFRESH_MODELS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def sensor(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        run = context.dagster_run
        if run.job_name != "nightly_sync" or (COMMAND_TAG in run.tags and not run.parent_run_id):
            return dg.SkipReason("another job, or the command line's, which sees to it itself")
        if context.instance.get_run_step_stats(run.run_id, [MODELS_STEP]):
            return dg.SkipReason("the models themselves failed: running them again would not help")
        shard = run.tags.get(SHARD_TAG, "")
        return dg.RunRequest(
            run_key=run.run_id,
            run_config=standing_order(settings),
            tags=shard_tags(settings, shard) if shard else {},
        )

    return sensor


def _failures(instance: dg.DagsterInstance, run: dg.DagsterRun) -> tuple[dict[str, str], list[str]]:
    """Each failed step of a run with its reason; and the same in lines, or why it failed without one."""
    logged = instance.all_logs(
        run.run_id, of_type={dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.PIPELINE_FAILURE}
    )
    events = [entry.get_dagster_event() for entry in logged]
    steps = {event.step_key or "run": _reason(event) for event in events if event.is_step_failure}
    return steps, [f"{step}: {reason}" for step, reason in steps.items()] or [
        event.message or "no reason given" for event in events
    ]


def _reason(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    return data.error.message.strip() if data.error else "no reason given"
