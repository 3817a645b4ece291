"""Pushes in Dagster: one job per kind, with the steps plan → send → report, and the audience syncs
of a night, as one step.

Belongs here: steps, their config and their metadata in the UI, without addresses. Not here: the
work (`push_service`, `audience_syncs`), words (`push_report`).

Steps only pass numbers to each other. A push is in the outbox, so a step that is run again resumes
where it ended."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from assets.materialize import report_table
from home.alerts import try_to_post
from home.failures import explain_error
from home.folder import prepare_home
from home.options import ACTIVATIONS, CONFIRM, CONFIRM_WORD, PUSH_OPTIONS
from home.output import PushResult
from home.progress import Progress, begin_stage
from home.settings import Settings
from marketing_api.address import mask_addresses
from marketing_api.errors import LimitNotShared
from marketing_api.redaction import markdown_block
from pipelines.launchpad import check_confirmed, config_class, read_values
from upkeep.backup import back_up_push
from write_back.audience_syncs import (
    Audience,
    AudienceOptions,
    check_nightly,
    find_difference,
    push_difference,
    read_audiences,
)
from write_back.kinds import KINDS, Kind
from write_back.order import Planned, Ran
from write_back.outbox.outbox import open_outbox
from write_back.push_report import (
    count_shortfall,
    plan_lines,
    result_lines,
    write_headline,
)
from write_back.push_service import PushRun, conclude_push, enqueue_push, order_of, plan_push

_RETRIES = 8
_RETRY_AFTER_S = 30.0

_Activations = config_class("Activations", ACTIVATIONS)
_NO_OPTIONS = AudienceOptions()


def push_jobs() -> list[dg.JobDefinition]:
    return list(map(_push_job, KINDS.values()))


def _push_job(kind: Kind) -> dg.JobDefinition:
    plan = _plan_op(kind)
    typed = PUSH_OPTIONS[kind]
    shown = {"sql": typed.example} | {
        option.name: option.unset for option in typed.options if option.in_command
    }

    @dg.job(
        name=f"push_{kind}",
        description=(
            f"{typed.help[0].upper()}{typed.help[1:]}. Rows come from a query or a file (`from` in "
            "place of `sql`). Without changes, it only displays the plan. To send it, write "
            "`dry_run: false` and `confirm: send`."
        ),
        executor_def=dg.in_process_executor,
        config={"ops": {plan.name: {"config": shown}}},
    )
    def push() -> None:
        _, begun = plan()
        report_push(send_push(begun))

    return push


def _plan_op(kind: Kind) -> dg.OpDefinition:
    config_of_kind = config_class(f"{kind}".title(), PUSH_OPTIONS[kind].options)

    @dg.op(
        name=f"plan_{kind}",
        description=(
            f"Read the rows, check them, and find out which {kind} change. No request is sent."
        ),
        required_resource_keys={"settings"},
        out={
            "plan": dg.Out(dict),
            "push": dg.Out(Ran, is_required=False, description="Only when it is not a dry run."),
        },
    )
    def plan(
        context: dg.OpExecutionContext,
        config: config_of_kind,  # type: ignore[valid-type]
    ) -> Iterator[dg.Output[Any]]:
        settings: Settings = context.resources.settings
        with explain_failures():
            picked = read_values(PUSH_OPTIONS[kind].options, config)
            if not picked["dry_run"]:
                check_confirmed(picked)
            prepare_home(settings.home, settings.lock_seconds)
            planned = plan_push(settings, order_of(settings, kind, picked))
            lines = plan_lines(planned, is_discreet=True)
            context.log.info("\n".join(lines))
            counts = counts_of(planned)
            metadata: dict[str, Any] = {
                **counts,
                "plan": dg.MetadataValue.md(markdown_block(lines)),
            }
            if planned.refusal:
                raise _make_failure(f"nothing was sent: {planned.refusal}", metadata)
        yield dg.Output(counts, "plan", metadata=metadata)
        if picked["dry_run"]:
            context.log.info(
                "nothing was sent: this is a dry run; to send it, set `dry_run: false` and "
                "`confirm: send`"
            )
            return
        ran = Ran(context.job_name, planned.order.account, run=context.run_id)
        with explain_failures():
            ran.push_id = enqueue_push(settings, planned, run=ran.run)
        yield dg.Output(ran, "push", metadata={"push": ran.push_id})

    return plan


@dg.op(
    required_resource_keys={"settings"},
    description="Send open requests of this and earlier pushes, and read back what was sent. "
    "Run it again to resume.",
)
def send_push(context: dg.OpExecutionContext, begun: Ran) -> Ran:
    with _run_of(context, begun) as run:
        with Progress(run):
            is_stopped = run.send_and_read_back()
        context.add_output_metadata({"requests": run.requests_sent()})
        if is_stopped:
            _report_results(context, run, is_stopped=True)
    return run.ran


@dg.op(
    required_resource_keys={"settings"},
    description="Record the outcome; fails if a row is not done.",
)
def report_push(context: dg.OpExecutionContext, begun: Ran) -> None:
    with _run_of(context, begun) as run:
        _report_results(context, run)


@contextmanager
def _run_of(context: dg.OpExecutionContext, begun: Ran) -> Iterator[PushRun]:
    """One step of the push, in this attempt's run."""
    settings: Settings = context.resources.settings
    with explain_failures(), open_outbox(settings.home) as outbox:
        yield PushRun(settings, outbox, replace(begun, run=context.run_id))


def _report_results(
    context: dg.OpExecutionContext, run: PushRun, *, is_stopped: bool = False
) -> None:
    """Report the results. The step fails if a row was not applied, or if sending `is_stopped`; a
    row that could not be read back is no failure."""
    results = conclude_push(run.settings, run.outbox, run.ran)
    back_up_push(run.settings)
    context.log.info(
        "\n".join(line for result in results for line in result_lines(result, is_discreet=True))
    )
    metadata = result_metadata(results[0])
    failed = [result for result in results if result.shortfall]
    if failed or is_stopped:
        raise _make_failure("; ".join(map(write_headline, failed or results[:1])), metadata)
    context.add_output_metadata(metadata)


def _make_failure(text: str, metadata: Mapping[str, Any] | None = None) -> dg.Failure:
    """A failure that an immediate retry would not change."""
    return dg.Failure(text, metadata=metadata, allow_retries=False)


@contextmanager
def explain_failures(*raised: type[Exception]) -> Iterator[None]:
    """Every error becomes one sentence in the UI, except errors of the classes `raised`, which the
    step handles. If the Redis of the rate limit is missing, the step waits and is retried."""
    try:
        yield
    except raised:
        raise
    # the last: Dagster's own
    except (dg.Failure, dg.DagsterExecutionInterruptedError, SQLAlchemyError):
        raise
    except LimitNotShared as error:
        raise dg.RetryRequested(_RETRIES, _RETRY_AFTER_S) from _make_failure(str(error))
    except Exception as error:
        raise _make_failure(mask_addresses(explain_error(error)[0])) from None


# ---- metadata in the UI


def counts_of(planned: Planned) -> dict[str, int]:
    """Numbers of rows by outcome, and of requests."""
    plan = planned.plan
    refused = sum(bad.by_service for bad in plan.bad)
    return {
        "rows": plan.row_count,
        "new": plan.new_count,
        "changed": plan.changed_count,
        "nothing to send": len(plan.idle),
        "invalid": len(plan.bad) - refused,
        "rejected before": refused,
        "requests": plan.request_count,
    }


def result_metadata(result: PushResult) -> dict[str, Any]:
    return {
        "push": result.push,
        "rows": result.row_count,
        "rows not done": result.shortfall,
        "requests": result.requests_sent or 0,
        **{f"rows {state}": count for state, count in sorted(result.rows.items())},
        "drifted": result.drifted,
        "result": dg.MetadataValue.md(markdown_block(result_lines(result, is_discreet=True))),
    }


# ---- audience syncs after a night's sync: a step after the models, and its results for the summary


class AudienceSyncs:
    """Runs the enabled syncs. After a run: `lines`, the result of each, for people and without
    addresses; `problems`, those of failed syncs; and the number of `requests`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.lines: list[str] = []
        self.problems: list[str] = []
        self.requests = 0

    def run_syncs(
        self, sandbox_url: str | None = None, options: AudienceOptions = _NO_OPTIONS
    ) -> None:
        """Each sync runs alone: an error in one does not stop the others. `sandbox_url`: the
        sandbox that the night reads from."""
        settings = (
            replace(self._settings, sandbox_url=sandbox_url) if sandbox_url else self._settings
        )
        self.lines = []
        self.problems = []
        self.requests = 0
        with begin_stage("sending segments back"):
            for audience in self._read_audiences(settings, options):
                self._push_audience(settings, audience, options)
        if self.requests:
            back_up_push(settings)

    def _read_audiences(self, settings: Settings, options: AudienceOptions) -> Sequence[Audience]:
        try:
            check_nightly(settings)
            return read_audiences(settings, options)
        except Exception as failed:
            self._note_refusal(
                settings, f"no activation was pushed: {mask_addresses(explain_error(failed)[0])}"
            )
            return []

    def _note_refusal(self, settings: Settings, line: str) -> None:
        """Report what was not pushed, without a separate alert."""
        self.lines.append(line)
        self.problems.append(line)
        if settings.alert_url:
            try_to_post(settings, {"text": f"marketing-sync: {line}"})

    def _push_audience(
        self, settings: Settings, audience: Audience, options: AudienceOptions
    ) -> None:
        try:
            found = find_difference(settings, audience, options)
            plan = found.planned.plan
            results = push_difference(settings, found)
            requests = sum(result.requests_sent or 0 for result in results)
            self.requests += requests
            counts = {
                "people": len(audience.who),
                "changes": plan.new_count + plan.changed_count,
                "requests": requests,
            } | ({"rejected before": len(plan.reported)} if plan.reported else {})
            people = ", ".join(f"{count:,} {what}" for what, count in counts.items())
            problems = list(filter(None, map(count_shortfall, results)))
        except Exception as failed:
            self._note_refusal(
                settings, f"{audience.sync.name}: {mask_addresses(explain_error(failed)[0])}"
            )
            return
        self.lines.append(f"{audience.sync.name}: {'; '.join([people, *problems])}")
        self.problems += self.lines[-1:] if problems else []

    def build_asset(self, after: Iterable[dg.AssetKey]) -> dg.AssetsDefinition:
        """The step that runs after everything in `after` was made."""

        @dg.asset(
            key="activations",
            deps=list(after),
            group_name="activations",
            required_resource_keys={"reader", "settings"},
            description=(
                "Audience syncs of activations.toml: sends the difference between each query and "
                "its tag or list."
            ),
        )
        def activations(
            context: dg.AssetExecutionContext,
            config: _Activations,  # type: ignore[valid-type]
        ) -> Iterator[dg.MaterializeResult[Any]]:
            with explain_failures():
                values = read_values(ACTIVATIONS, config)
                check_confirmed(values)
                options = AudienceOptions.from_values(values)
            sandbox_url = context.resources.reader.sandbox_url
            settings = context.resources.settings
            syncs = self if settings is self._settings else AudienceSyncs(settings)
            syncs.run_syncs(sandbox_url, options)
            context.log.info("\n".join(syncs.lines))
            metadata: dict[str, Any] = {
                "requests": syncs.requests,
                "result": dg.MetadataValue.md(markdown_block(syncs.lines)),
            }
            if syncs.problems:
                raise _make_failure("; ".join(syncs.problems), metadata)
            yield from report_table(
                context, dg.MaterializeResult(asset_key=context.asset_key, metadata=metadata)
            )

        return activations


def standing_order(settings: Settings) -> dict[str, Any]:
    """The run config of scheduled runs: the person who enabled activations confirmed them once."""
    confirmed = {"ops": {"activations": {"config": {CONFIRM.name: CONFIRM_WORD}}}}
    return confirmed if settings.activations else {}
