"""Dagster's resources, which all steps of one run share: `settings`, of the run's shard, and `reader`. Not
here: a reader (`reading`)."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from assets.materialize import asset_key
from assets.prefetch import Prefetcher
from assets.sources import SOURCE_ASSETS, SourceAsset
from home.failures import explain
from home.folder import prepare_home
from home.logs import start_logging
from home.options import SYNC
from home.settings import Settings, SettingsError
from marketing_api.clock import Clock, utc_now
from pipelines.launchpad import config_fields, values
from pipelines.publishing import noted
from pipelines.reading import open_reader
from pipelines.schedules import chosen_days
from write_back.writebacks_export import try_to_export


@dataclass(eq=False, repr=False)
class RunReader:
    """The reader of a run's steps: the command line's, or one that is opened at the run's first step for all
    that it will read."""

    settings: Settings
    reader: Prefetcher | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    config: Mapping[str, Any] = field(default_factory=dict)
    now: Clock = utc_now
    _failure: str | None = None

    def of(self, context: dg.AssetExecutionContext) -> Prefetcher:
        """The run's reader, which begins all chosen assets together. dg.Failure when it cannot be opened, for
        every step with one try."""
        if self._failure is not None:
            raise dg.Failure(self._failure)
        if self.reader is None:
            try:
                self.reader = self._open(context)
            except Exception as problem:
                self._failure = explain(problem)[0]
                raise dg.Failure(self._failure) from None
        return self.reader

    def note(self, context: dg.AssetExecutionContext) -> None:
        """Note the run in `sync`, for the copy that it publishes."""
        run = context.run.run_id, context.run.job_name
        if self.reader is not None:
            self.reader.note_run(*run, is_publishing=True)
        else:
            self.stack.enter_context(noted(self.settings, *run))

    @property
    def sandbox_url(self) -> str | None:
        """Address of the sandbox that it reads from; None for a real account, and while nothing is read."""
        return (
            self.reader.sessions[0].client.connection.url
            if self.reader and self.settings.is_sandbox
            else None
        )

    def _open(self, context: dg.AssetExecutionContext) -> Prefetcher:
        prepare_home(self.settings.home, self.settings.lock_seconds)
        options, days = values(SYNC, self.config), chosen_days(context.run.tags)
        opened = open_reader(self.settings, _chosen(context), options, chosen_days=days, now=self.now)
        reader = self.stack.enter_context(opened)
        self.stack.callback(try_to_export, self.settings)
        self.stack.callback(reader.note_run, context.run.run_id, context.run.job_name)
        reader.begin()
        return reader


def _chosen(context: dg.AssetExecutionContext) -> list[SourceAsset]:
    """The assets whose steps this run executes: its selection, or what a rerun from failure left over."""
    steps, keys = context.run.step_keys_to_execute, set(context.job_def.asset_layer.executable_asset_keys)
    chosen = [asset for asset in SOURCE_ASSETS.values() if keys.intersection(map(asset_key, asset.tables))]
    return [asset for asset in chosen if steps is None or asset.name in steps]


def settings_resource(settings: Settings) -> dg.ResourceDefinition:
    """The resource `settings`: these, or those of the run's shard. Nothing of them is displayed, since keys
    are in them."""

    @dg.resource(description="Accounts, home and settings, as they were read at the start.")
    def of_the_run(context: dg.InitResourceContext) -> Settings:
        try:
            found = settings.of_run(context.run.tags if context.run else {})
        except SettingsError as problem:
            raise dg.Failure(str(problem), allow_retries=False) from None
        if found is not settings:
            start_logging(found, "dagster")  # in its own home, and without its keys
        return found

    return of_the_run


def reader_resource(now: Clock = utc_now) -> dg.ResourceDefinition:
    """The resource `reader`."""

    @dg.resource(
        config_schema=config_fields(SYNC),
        required_resource_keys={"settings"},
        description="Reads the accounts ahead of the steps, under each account's limit.",
    )
    def reader(context: dg.InitResourceContext) -> Iterator[RunReader]:
        with ExitStack() as stack:
            yield RunReader(context.resources.settings, stack=stack, config=context.resource_config, now=now)

    return reader
