"""`marketing-sync sync`: the nightly sync as one command. Reading begins before Dagster, which takes seconds,
is there to record it."""

import datetime as dt
from difflib import get_close_matches

from assets.days import FIRST_ZONE, ChosenDays, today_in
from assets.sources import SOURCE_ASSETS, SourceAsset
from home import exits, interrupts
from home.folder import dagster_home, prepare_home
from home.options import SYNC
from home.progress import Progress, stop_stages
from home.settings import Settings, SettingsError
from marketing_api.clock import utc_now
from marketing_api.errors import OtherBusiness
from pipelines.commands import Arguments, command, print_error
from pipelines.publishing import is_published_since
from pipelines.reading import open_reader
from pipelines.summary import print_activations, print_summary
from write_back.writebacks_export import try_to_export


@command(*SYNC)
def sync(arguments: Arguments, settings: Settings) -> int:
    return interrupts.stoppable(lambda stop: _sync(arguments, settings, stop))


_IN_SANDBOX = (
    "no key is configured: this reads the embedded sandbox; MARKETING_API_URL and "
    "MARKETING_API_KEY name a "
    "real account"
)


def _sync(arguments: Arguments, settings: Settings, stop: interrupts.Stop) -> int:
    chosen = _chosen(arguments.only)
    options = vars(arguments)
    days = _days(options["from"], options["to"])
    prepare_home(settings.home, settings.lock_seconds)
    for wrong in settings.unknown if not arguments.quiet else ():
        print_error(f"marketing-sync: {wrong}")
    has_models = not (arguments.only or arguments.reads_only)
    with dagster_home(settings.home), open_reader(settings, chosen, options, chosen_days=days) as reader:
        if settings.is_sandbox and not settings.sandbox_url and not arguments.quiet:
            print_error(_IN_SANDBOX)
        stop.then(reader.stop_fetching)
        stop.then(stop_stages)
        with Progress(reader, is_quiet=arguments.quiet):
            reader.begin()
            from pipelines.definitions import (
                Following,
                run_in_dagster,
            )  # takes seconds to import: reading has begun

            following = Following(settings)
            stop.check()
            run_id = run_in_dagster(settings, reader, chosen, following, has_models, stop)
            if not stop.is_set:
                reader.finish()
            reader.note_run(run_id, "nightly_sync")
            try_to_export(reader.warehouse, settings.home)
        is_lacking = has_models and not is_published_since(settings, reader.began_by_files)
        problems = (
            reader.problems()
            or following.activations.problems
            or following.lake.problem
            or following.own.problems
        )
        code = exits.INCOMPLETE if problems or is_lacking else exits.DONE
        if any(isinstance(session.problem, OtherBusiness) for session in reader.sessions):
            code = exits.WRONG_USE
        if not stop.is_set and (code or not arguments.quiet):
            print_summary(reader, settings, following.models.report, following.own, following.reports)
            print_activations(following.activations)
            if following.lake.problem:
                print_error(following.lake.problem)
    return code


def _chosen(names: list[str]) -> list[SourceAsset]:
    """The assets of these names, or which fill tables of these names; all when none is named."""
    if not names:
        return list(SOURCE_ASSETS.values())
    by_name = {
        table.name: asset for asset in SOURCE_ASSETS.values() for table in asset.tables
    } | SOURCE_ASSETS
    wanted = [name.removeprefix("source.") for name in names]
    if unknown := [name for name in wanted if name not in by_name]:
        near = [name for each in unknown for name in get_close_matches(each, by_name, 1)]
        meant = f"did you mean {', '.join(near)}? " if near else ""
        raise SettingsError(
            f"no asset or table is named {', '.join(unknown)}; {meant}there are {', '.join(sorted(by_name))}"
        )
    picked = {by_name[name].name for name in wanted}
    return [asset for asset in SOURCE_ASSETS.values() if asset.name in picked]


def _days(first: dt.date | None, last: dt.date | None) -> ChosenDays | None:
    if first is None and last is None:
        return None
    if first is None:
        raise SettingsError("--to needs --from")
    if last is None and first > today_in(FIRST_ZONE, utc_now()):
        raise SettingsError(f"--from {first} is still to come: give --to, too")
    if last is not None and first > last:
        raise SettingsError(f"--from {first} is after --to {last}; swap them")
    return ChosenDays(first, last)
