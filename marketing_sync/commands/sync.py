"""Run the nightly sync, or parts of it.

Reading begins before Dagster is imported, which takes seconds."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assets.days import FIRST_ZONE, ChosenDays, today_in
from assets.reader import Reader
from home import exits, interrupts
from home.folder import dagster_home, prepare_home
from home.options import JSON, SYNC
from home.output import SyncResult, print_json
from home.progress import Progress, stop_stages
from home.settings import Settings, SettingsError
from marketing_api.clock import utc_now
from marketing_api.errors import OtherBusiness
from marketing_sync.commands import declare_command
from marketing_sync.night_plan import show_plan
from marketing_sync.summary import print_summary, summarize_sync
from pipelines.reading import ReadOptions, named_assets, open_reader
from write_back.writebacks_export import try_to_export


@dataclass(frozen=True, kw_only=True)
class SyncArguments:
    """The values of `home.options.SYNC`."""

    only: Sequence[str]
    from_: dt.date | None
    to: dt.date | None
    all: bool
    max_requests: int | None
    until: dt.time | None
    reads_only: bool
    accept_shrink: bool
    dry_run: bool
    quiet: bool
    json: bool

    @property
    def read_options(self) -> ReadOptions:
        return ReadOptions.from_values(vars(self))


@declare_command(*SYNC, JSON)
def sync(settings: Settings, **values: Any) -> int:
    arguments = SyncArguments(**values)
    if arguments.dry_run:
        return _dry_run(arguments, settings)
    return interrupts.run_stoppable(lambda stop: _run_sync(arguments, settings, stop))


def _dry_run(arguments: SyncArguments, settings: Settings) -> int:
    if arguments.from_ or arguments.to:
        raise SettingsError(
            "--dry-run plans a whole night: leave out --from and --to, which take few requests"
        )
    chosen = named_assets(arguments.only)
    return show_plan(settings, chosen, arguments.read_options, is_json=arguments.json)


def _run_sync(arguments: SyncArguments, settings: Settings, stop: interrupts.Stop) -> int:
    chosen = named_assets(arguments.only)
    options = arguments.read_options
    days = _choose_days(arguments.from_, arguments.to)
    has_models = not (arguments.only or arguments.reads_only)
    prepare_home(settings.home, settings.lock_seconds)
    with (
        dagster_home(settings.home),
        open_reader(settings, chosen, options, chosen_days=days) as reader,
    ):
        stop.call_on_stop(reader.stop_fetching)
        stop.call_on_stop(stop_stages)
        with Progress(reader, is_quiet=arguments.quiet):
            reader.begin_reading()
            # takes seconds to import: reading has begun
            from pipelines.definitions import LaterSteps, run_in_dagster

            later_steps = LaterSteps(settings)
            stop.raise_if_stopped()
            run_id, failed = run_in_dagster(settings, reader, later_steps, has_models)
            if not stop.is_set:
                reader.finish_reading()
            reader.note_run(run_id, "nightly_sync", failed)
            try_to_export(settings)
        result = summarize_sync(reader, settings, later_steps, failed)
        code = _exit_code(reader, result, has_models=has_models)
        is_worth_printing = code or not arguments.quiet
        if is_worth_printing and not stop.is_set:
            if arguments.json:
                print_json(result)
            else:
                print_summary(result, settings)
    return code


def _exit_code(reader: Reader, result: SyncResult, *, has_models: bool) -> int:
    for session in reader.sessions:
        if isinstance(session.error, OtherBusiness):
            return exits.WRONG_USE
    if result.not_read or result.problems:
        return exits.INCOMPLETE
    if has_models and not result.is_published:
        return exits.INCOMPLETE
    return exits.DONE


def _choose_days(first: dt.date | None, last: dt.date | None) -> ChosenDays | None:
    if first is None and last is None:
        return None
    if first is None:
        raise SettingsError("--to needs --from: add the first day")
    latest_today = today_in(FIRST_ZONE, utc_now())
    if last is None and first > latest_today:
        raise SettingsError(f"--from {first} is in the future: add --to")
    if last is not None and first > last:
        raise SettingsError(f"--from {first} is after --to {last}; swap them")
    return ChosenDays(first, last)
