"""Audience syncs after a night's sync: a step behind the models, and what came of it for the summary.

Not here: what an audience sync is, and running one (`audience_syncs`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from marketing_api.redaction import markdown_block, without_addresses
from pipelines.failures import explain
from pipelines.options import ACTIVATIONS, CONFIRM, CONFIRM_WORD, check_confirmed, config_fields, values
from pipelines.progress import stage
from pipelines.settings import Settings, SettingsError
from pipelines.write_back.audience_syncs import AudienceSync, chosen, push_turnover, read_audience_syncs, turnover
from pipelines.write_back.push_service import Watch


class AudienceSyncs:
    """Runs what is enabled. Of the last time: `lines`, what came of each, for people and without addresses; `problems`, those of what went
    wrong; and how many `requests` it took.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.lines: list[str] = []
        self.problems: list[str] = []
        self.requests = 0

    def run(self, sandbox_url: str | None = None, *, names: Sequence[str] = (), accept_shrink: bool = False) -> None:
        """Each for itself: what is wrong with one does not hold up the others. `sandbox_url`: the sandbox that the night reads from."""
        settings = replace(self._settings, sandbox_url=sandbox_url) if sandbox_url else self._settings
        self.lines, self.problems, self.requests = [], [], 0
        with stage("sending segments back"):
            for sync in chosen(read_audience_syncs(settings.folder), names):
                self._push(settings, sync, accept_shrink)

    def _push(self, settings: Settings, sync: AudienceSync, accept_shrink: bool) -> None:
        parts: list[str] = []
        try:
            found = turnover(settings, sync, accept_shrink=accept_shrink)
            parts.append(f"{found.size:,} people, {len(found.entered):,} entered, {len(found.left):,} left")
            results = push_turnover(settings, found, Watch())
            requests = sum(result.requests_sent or 0 for result in results)
            self.requests += requests
            parts[0] += f", {requests:,} requests"
            # rows that the service refused on an earlier night do not fail this one; the push tells them
            problem = "; ".join(filter(None, (result.problem(result.rejected_now) for result in results)))
        except Exception as failed:
            problem = without_addresses(explain(failed)[0])
        self.lines.append(f"{sync.name}: {'; '.join(filter(None, [*parts, problem]))}")
        self.problems += self.lines[-1:] if problem else []

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
            syncs.run(sandbox_url, names=picked["names"], accept_shrink=picked["accept_shrink"])
            context.log.info("\n".join(syncs.lines))
            metadata: dict[str, Any] = {"requests": syncs.requests, "result": dg.MetadataValue.md(markdown_block(syncs.lines))}
            if syncs.problems:
                raise dg.Failure("; ".join(syncs.problems), metadata=metadata, allow_retries=False)
            return dg.MaterializeResult(metadata=metadata)

        return activations


def standing_order(settings: Settings) -> dict[str, Any]:
    """The run config of runs that nobody launches by hand: whoever switched activations on confirmed them once and for all."""
    return {"ops": {"activations": {"config": {CONFIRM.name: CONFIRM_WORD}}}} if settings.activations else {}
