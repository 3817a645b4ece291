"""What reacts to runs: an alert to a webhook address when one fails, and the models although a read failed."""

import dagster as dg

from pipelines import alerts
from pipelines.jobs import REFRESH_MODELS
from pipelines.publishing import MODELS_STEP
from pipelines.schedules import COMMAND_TAG
from pipelines.settings import Settings
from pipelines.write_back.nightly_audience_syncs import standing_order
from pipelines.write_back.push_jobs import report_push


def failure_alert(settings: Settings) -> dg.SensorDefinition:
    """Posts `{"text", "job", "run_id", "failed"}` to the alert address; `text` is what chat services show."""

    @dg.run_failure_sensor(
        name="failure_alert",
        description="Tells the webhook address of the settings (MARKETING_ALERT_URL) that a run failed, and why.",
        default_status=dg.DefaultSensorStatus.RUNNING if settings.alert_url else dg.DefaultSensorStatus.STOPPED,
    )
    def alert(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if not settings.alert_url:
            return dg.SkipReason("MARKETING_ALERT_URL is not set")
        if {event.step_key for event in context.get_step_failure_events()} == {report_push.name}:
            return dg.SkipReason("the push itself tells what needs a person")
        alerts.post(settings, alert_body(context))
        return None

    return alert


def models_after_failed_reads(settings: Settings) -> dg.SensorDefinition:
    """Dagster skips what comes behind a failed step; the models of what could be read are built all the same."""

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
        return dg.RunRequest(run_key=run.run_id, run_config=standing_order(settings))

    return sensor


def alert_body(context: dg.RunFailureSensorContext) -> dict[str, object]:
    """What is posted: the job, the run and each failed step with its reason."""
    failed = {event.step_key or "run": _reason(event) for event in context.get_step_failure_events()}
    lines: list[str] = [f"{step}: {reason}" for step, reason in failed.items()] or [context.failure_event.message or "no reason given"]
    run = context.dagster_run
    text = f"marketing-sync: {run.job_name} failed\n" + "\n".join(lines)
    return {"text": text, "job": run.job_name, "run_id": run.run_id, "failed": failed}


def _reason(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    return data.error.message.strip() if data.error else "no reason given"
