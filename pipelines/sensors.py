"""What reacts: an alert to a webhook address when a run fails, its end when its process is gone, a run when
files were dropped."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.materialize import failures_of
from home import alerts
from home.settings import SHARD_TAG, Settings
from marketing_api.clock import Clock, utc_now
from pipelines.dagster_internals import end_dead_runs
from pipelines.push_jobs import confirmed, push_dropped_files, report_files, report_push
from pipelines.schedules import NIGHT_TAG, shard_tags
from write_back.watched_folder import JOB, dropped

_NO_ADDRESS = dg.SkipReason("MARKETING_ALERT_URL is not set")
#: Of a run that failed: another attempt is to come; the attempt, once there is one.
_WILL_RETRY, _RETRY = "dagster/will_retry", "dagster/auto_retry_run_id"


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


def failure_alerts(settings: Settings) -> list[dg.SensorDefinition]:
    """One that tells of each failed run; where there are shards, another that tells of a night, which is a
    run for each of them. Both run only where there is an address."""
    how: dict[str, Any] = {"default_status": dg.DefaultSensorStatus.STOPPED}
    if settings.alert_url:
        how["default_status"] = dg.DefaultSensorStatus.RUNNING

    @dg.run_failure_sensor(
        name="failure_alert",
        description="Tells the webhook address of the settings (MARKETING_ALERT_URL) that a run "
        "failed, and why.",
        **how,
    )
    def of_a_run(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        return _tell_run(context, settings) if settings.alert_url else _NO_ADDRESS

    @dg.sensor(
        name="night_alert",
        description="Tells the webhook address of the settings (MARKETING_ALERT_URL) in which shards a "
        "night failed, all in one message.",
        minimum_interval_seconds=60,
        **how,
    )
    def of_a_night(context: dg.SensorEvaluationContext) -> dg.SkipReason | None:
        return _tell_nights(context, settings) if settings.alert_url else _NO_ADDRESS

    return [of_a_run, of_a_night] if settings.shards else [of_a_run]


def _tell_run(context: dg.RunFailureSensorContext, settings: Settings) -> dg.SkipReason | None:
    """Posts `{"text", "job", "run_id", "failed"}` to the alert address; `text` is what chat services show."""
    run = context.dagster_run
    failed, lines = _failures(context.instance, run)
    if failed.keys() in ({report_push.name}, {report_files.name}):
        return dg.SkipReason("the push itself tells what needs a person")
    if settings.shards and NIGHT_TAG in run.tags:
        return dg.SkipReason("the night's alert tells of all its shards together")
    text = "\n".join([f"marketing-sync: {run.job_name} failed", *lines])
    alerts.post(settings, {"text": text, "job": run.job_name, "run_id": run.run_id, "failed": failed})
    return None


def _tell_nights(context: dg.SensorEvaluationContext, settings: Settings) -> dg.SkipReason | None:
    """Posts `{"text", "night", "failed"}` once all runs of a night have ended, or the next one has begun. The
    cursor: the last one told."""
    nights = _nights(context.instance, len(settings.shards))
    for night in sorted(name for name in nights if name > (context.cursor or "")):
        runs = nights[night]
        is_over = all(run.is_finished and run.tags.get(_WILL_RETRY) != "true" for run in runs)
        if night == max(nights) and not is_over:
            return dg.SkipReason(f"the night of {night} is not over")
        if failed := _failed_shards(context.instance, runs):
            lines = [f"marketing-sync: {len(failed)} of {len(settings.shards)} shards failed"]
            lines += [f"{shard}: {reason}" for shard, reason in failed.items()]
            alerts.post(settings, {"text": "\n".join(lines), "night": night, "failed": failed})
        context.update_cursor(night)
    return None


def _failed_shards(instance: dg.DagsterInstance, runs: Sequence[dg.DagsterRun]) -> dict[str, str]:
    """Shard → why its run failed."""
    return {
        run.tags.get(SHARD_TAG, ""): "; ".join(_failures(instance, run)[1])
        for run in runs
        if run.status is dg.DagsterRunStatus.FAILURE
    }


def _nights(instance: dg.DagsterInstance, shards: int) -> dict[str, list[dg.DagsterRun]]:
    """The scheduled runs of the last nights; those of which Dagster makes another attempt count with that
    one."""
    nights: dict[str, list[dg.DagsterRun]] = {}
    limit = 6 * shards  # a night's, its retries, and those of the night before
    for run in instance.get_runs(dg.RunsFilter(job_name="nightly_sync"), limit=limit):
        if NIGHT_TAG in run.tags and _RETRY not in run.tags:
            nights.setdefault(run.tags[NIGHT_TAG], []).append(run)
    return nights


def _failures(instance: dg.DagsterInstance, run: dg.DagsterRun) -> tuple[dict[str, str], list[str]]:
    """What failed in a run with its reason; and the same in lines, or why it failed without any."""
    failed = failures_of(instance, run.run_id)
    if failed:
        return failed, [f"{name}: {reason}" for name, reason in failed.items()]
    logged = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.PIPELINE_FAILURE)
    return {}, [entry.get_dagster_event().message or "no reason given" for entry in logged]


def watched_folder(settings: Settings, now: Clock = utc_now) -> dg.SensorDefinition:
    """A run when files wait in the watched folder. The cursor: their last change, and the hour, so that what
    no run could take is tried again once an hour. Who set the folder has confirmed."""
    status = dg.DefaultSensorStatus.RUNNING if settings.drop_folder else dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        name="watched_folder",
        job_name=JOB,
        minimum_interval_seconds=30,
        default_status=status,
        description="Pushes what is dropped into the folder of the settings (MARKETING_DROP_FOLDER).",
    )
    def look(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        for run in context.instance.get_runs(dg.RunsFilter(job_name=JOB), limit=1):
            if not run.is_finished:
                return dg.SkipReason(f"run {run.run_id} has not ended")
        tags = [shard_tags(settings, shard) for shard in settings.homes]
        waiting = [(each, files) for each in tags if (files := dropped(settings.of_run(each)))]
        if not waiting:
            return dg.SkipReason("no file waits")
        cursor = f"{now():%Y-%m-%d %H} {max(file.changed_at for _, files in waiting for file in files)}"
        if cursor == context.cursor:
            return dg.SkipReason("the last run could not push what waits: the next one does at the full hour")
        context.update_cursor(cursor)
        config = confirmed(push_dropped_files.name)
        return [dg.RunRequest(run_config=config, tags=each) for each, _ in waiting]

    return look
