"""Dagster's resources, which all steps of a run share: `settings`, for the run's shard, and
`reader`. Not here: what a reader consists of (`reading`)."""

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from assets.materialize import (
    asset_key,
    chosen_assets,
    failures_behind,
    failures_of,
    is_deferred,
)
from assets.reader import Reader
from assets.sources import SOURCE_ASSETS
from home.folder import list_running, note_running, prepare_home
from home.logs import start_logging
from home.options import SYNC
from home.settings import Settings
from marketing_api.clock import Clock, utc_now
from pipelines.dagster_internals import (
    end_dead_runs,
    find_settled,
    note_partitions,
    retry_after_outage,
)
from pipelines.launchpad import config_class, read_values
from pipelines.publishing import note_run
from pipelines.push_jobs import explain_failures
from pipelines.reading import ReadOptions, open_reader
from pipelines.schedules import read_days_tag
from warehouse.tables import Table
from write_back.writebacks_export import try_to_export


@dataclass(eq=False, repr=False)
class RunReader:
    """The reader of a run's steps: the one of the command line, or one that the first step opens
    for all assets of the run."""

    settings: Settings
    reader: Reader | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    config: Mapping[str, Any] = field(default_factory=dict)
    now: Clock = utc_now
    _settled: Set[dg.AssetKey] = frozenset()

    def reader_of(self, context: dg.AssetExecutionContext) -> Reader:
        """The run's reader, which begins all chosen assets together. Raises dg.Failure when it
        cannot be opened."""
        with explain_failures():
            self.reader = self.reader or self._open_reader(context)
            self.reader.note_begun(
                context.run.run_id, context.run.job_name, list_running(self.settings.home)
            )
        return self.reader

    def find_settled(self, context: dg.AssetExecutionContext) -> Set[dg.AssetKey]:
        """The assets that this run doesn't report to Dagster unless they change."""
        if is_deferred(context):
            self._settled = self._settled or find_settled(context.instance)
        return self._settled

    def note_days(
        self, instance: dg.DagsterInstance, tables: Iterable[Table], days: Set[str]
    ) -> bool:
        """Show these days, which are partitions, as materialized; returns whether one is new."""
        are_new = [note_partitions(instance, asset_key(table), days) for table in tables]
        return any(are_new)

    def note_in_sync(self, context: dg.AssetExecutionContext) -> None:
        """Record the run in `sync.runs`, so that the copy it publishes contains it."""
        run = context.run.run_id, context.run.job_name
        if self.reader is not None:
            self.reader.note_run(*run, is_publishing=True)
        else:
            self.stack.enter_context(note_run(self.settings, *run))

    @staticmethod
    def _note_ended(reader: Reader, context: dg.AssetExecutionContext) -> None:
        run = context.run
        reader.note_run(run.run_id, run.job_name, failures_behind(context.instance, run.run_id))

    @property
    def sandbox_url(self) -> str | None:
        """Address of the sandbox that it reads from; None for a real account, and before the reader
        is open."""
        if self.reader is None or not self.settings.is_sandbox:
            return None
        return self.reader.sessions[0].client.connection.url

    def _open_reader(self, context: dg.AssetExecutionContext) -> Reader:
        prepare_home(self.settings.home, self.settings.lock_seconds)
        options = ReadOptions.from_values(read_values(SYNC, self.config))
        days = read_days_tag(context.run.tags)
        chosen = chosen_assets(context)
        opened = open_reader(self.settings, chosen, options, chosen_days=days, now=self.now)
        reader = self.stack.enter_context(opened)
        self.stack.callback(try_to_export, self.settings)
        self.stack.callback(self._note_ended, reader, context)
        failed = _failed_before(context)
        reader.begin_reading({asset.name for asset in chosen} - failed if failed else ())
        return reader


def _failed_before(context: dg.AssetExecutionContext) -> set[str]:
    """The assets that failed in the run which this one retries from its failed steps; empty when it
    retries no run, or a whole one."""
    parent_id = context.run.parent_run_id
    if parent_id is None or context.run.step_keys_to_execute is None:
        return set()
    return failures_of(context.instance, parent_id).keys() & SOURCE_ASSETS.keys()


class SettingsOfRun(dg.ConfigurableResource[Settings]):
    """The settings as they were read at the start, or those of the shard that the run names.
    Dagster displays none of them, since they contain keys."""

    at_start: dg.ResourceDependency[Settings]

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Settings]:
        run = context.run
        instance = context.instance
        with explain_failures():
            settings = self.at_start.of_run(run.tags if run else {})
            if run:
                note_running(settings.home, run.run_id)
        if settings is not self.at_start:
            start_logging(settings, "dagster")  # in the shard's home, with its keys redacted
        if instance:
            end_dead_runs(instance, settings.homes)
        yield settings
        if run and instance:
            retry_after_outage(instance, run.run_id)


class _Reads(dg.ConfigurableResource[RunReader]):
    """Reads the accounts ahead of the steps, within the rate limit of every account."""

    settings: dg.ResourceDependency[Settings]
    now: dg.ResourceDependency[Clock]

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[RunReader]:
        with ExitStack() as stack:
            yield RunReader(self.settings, stack=stack, config=dict(self), now=self.now)


#: The resource with the options of a sync as its config.
Reads = config_class("Reads", SYNC, _Reads)
