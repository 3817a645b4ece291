"""Audience syncs after a night's sync: a step behind the models, and what came of it for the summary.

Not here: what an audience sync is, and running one (`audience_syncs`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from marketing_api.redaction import markdown_block, without_addresses
from pipelines.failures import explain
from pipelines.launchpad import check_confirmed, config_fields, values
from pipelines.options import ACTIVATIONS, CONFIRM, CONFIRM_WORD
from pipelines.progress import stage
from pipelines.settings import Settings, SettingsError
from pipelines.write_back.audience_syncs import AudienceSync, Turnover, chosen, push_turnover, read_audience_syncs, turnover
from pipelines.write_back.push_service import Watch
from pipelines.write_back.result import Result


@dataclass(frozen=True)
class Outcome:
    """What came of one audience sync. `problem`: what went wrong, without addresses; empty when nothing did."""

    name: str
    found: Turnover | None = None
    results: Sequence[Result] = ()
    problem: str = ""

    @property
    def requests(self) -> int:
        return sum(result.requests_sent or 0 for result in self.results)

    @property
    def line(self) -> str:
        if self.found is None:
            return f"{self.name}: {self.problem}"
        turned = f"{len(self.found.entered):,} entered, {len(self.found.left):,} left, {self.requests:,} requests"
        return f"{self.name}: {self.found.size:,} people, {turned}{f'; {self.problem}' if self.problem else ''}"


class AudienceSyncs:
    """Runs what is enabled. `outcomes` are those of the last time; empty before."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.outcomes: list[Outcome] = []

    @property
    def problems(self) -> list[str]:
        return [outcome.line for outcome in self.outcomes if outcome.problem]

    def run(self, sandbox_url: str | None = None, *, names: Sequence[str] = (), accept_shrink: bool = False) -> list[Outcome]:
        """Each for itself: what is wrong with one does not hold up the others. `sandbox_url`: the sandbox that the night reads from."""
        settings = replace(self._settings, sandbox_url=sandbox_url) if sandbox_url else self._settings
        with stage("sending segments back"):
            syncs = chosen(read_audience_syncs(settings.folder), names)
            self.outcomes = [_outcome(settings, sync, accept_shrink) for sync in syncs]
        return self.outcomes

    def asset(self, after: Iterable[dg.AssetKey]) -> dg.AssetsDefinition:
        """The step that runs once everything in `after` is made."""

        @dg.asset(
            key="activations",
            deps=list(after),
            group_name="activations",
            config_schema=config_fields(ACTIVATIONS),
            required_resource_keys={"reader", "settings"},
            description="The segments of activations.toml: who entered or left since last time is tagged, untagged or added to a list.",
        )
        def activations(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
            try:
                picked = values(ACTIVATIONS, context.op_execution_context.op_config)
                check_confirmed(picked)
            except SettingsError as problem:
                raise dg.Failure(str(problem), allow_retries=False) from None
            sandbox_url, settings = context.resources.reader.sandbox_url, context.resources.settings
            syncs = self if settings is self._settings else AudienceSyncs(settings)
            outcomes = syncs.run(sandbox_url, names=picked["names"], accept_shrink=picked["accept_shrink"])
            for outcome in outcomes:
                context.log.info(outcome.line)
            if syncs.problems:
                raise dg.Failure("; ".join(syncs.problems), metadata=_metadata(outcomes), allow_retries=False)
            return dg.MaterializeResult(metadata=_metadata(outcomes))

        return activations


def standing_order(settings: Settings) -> dict[str, Any]:
    """The run config of runs that nobody launches by hand: whoever switched activations on confirmed them once and for all."""
    return {"ops": {"activations": {"config": {CONFIRM.name: CONFIRM_WORD}}}} if settings.activations else {}


def _outcome(settings: Settings, sync: AudienceSync, accept_shrink: bool) -> Outcome:
    found = None
    try:
        found = turnover(settings, sync, accept_shrink=accept_shrink)
        results = push_turnover(settings, found, Watch())
    except Exception as problem:
        return Outcome(sync.name, found, problem=without_addresses(explain(problem)[0]))
    # rows that the service refused on an earlier night do not fail this one; the push tells them
    return Outcome(sync.name, found, results, "; ".join(filter(None, (result.problem(result.rejected_now) for result in results))))


def _metadata(outcomes: list[Outcome]) -> dict[str, dg.MetadataValue | int]:
    lines = markdown_block(each.line for each in outcomes)
    return {"requests": sum(each.requests for each in outcomes), "result": dg.MetadataValue.md(lines)}
