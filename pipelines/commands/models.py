"""Marts of your own in SQL: begin one, build them.

They are built without waiting for the night."""

import click

from home import exits
from home.folder import prepare_home
from home.options import Option
from home.settings import Settings
from pipelines.commands import Arguments, Group, command
from pipelines.publishing import OwnModels, model_settings
from warehouse.dbt_project import PROJECT
from warehouse.errors import WarehouseError
from warehouse.models import Outcome, Status
from warehouse.own_models import NoSuchModel, new_model, what_is_missing


@command(
    Option("name", "the table's name, in lower case", str, metavar="NAME", is_positional=True),
    name="new",
    short_help="begin a model",
)
def _new(arguments: Arguments, settings: Settings) -> int:
    """Write NAME.sql and NAME.yml to begin with: a query over our marts that runs as it is. See
    docs/own-models.md."""
    if not arguments.name:
        raise click.UsageError("name the model: marketing-sync models new NAME")
    prepare_home(settings.home, settings.lock_seconds)
    try:
        made = new_model(
            settings.own_models,
            arguments.name,
            {node.name for node in model_settings(settings).nodes() if not node.is_test},
        )
    except WarehouseError as problem:
        raise click.UsageError(str(problem)) from None
    print(*made, sep="\n")
    print(f"edit them, then `marketing-sync models build {arguments.name}` makes custom.{arguments.name}")
    print(end=f"{missing}\n" if (missing := what_is_missing()) else "")
    return exits.DONE


@command(
    Option("names", "these alone (default: all)", list, metavar="NAME", is_positional=True),
    Option("full_refresh", "rebuild incremental models and seeds from scratch, as in dbt"),
    name="build",
    short_help="build and test them",
)
def _build(arguments: Arguments, settings: Settings) -> int:
    """Build and test them now, over the marts as they are. `marketing-sync publish` shows them to analysts;
    every nightly sync does both. Exit code 1 when one is wrong."""
    try:
        report = OwnModels().build(settings, arguments.names, full=arguments.full_refresh)
    except NoSuchModel as problem:
        raise click.UsageError(f"{problem}: marketing-sync models new NAME begins one") from None
    if not (report.outcomes or report.left_out):
        print(f"no models in {settings.own_models}; begin one with `marketing-sync models new NAME`")
        return exits.DONE
    for outcome in report.outcomes:
        print(_line(outcome))
    for line in report.left_out:
        print(line)
    done = report.of(Status.OK)
    tests = sum(outcome.node.is_test for outcome in done)
    lacking = len(report.outcomes) - len(done) + len(report.left_out)
    print(f"{len(done) - tests} built, {tests} tests passed, {lacking} to look at")
    return exits.INCOMPLETE if report.problems else exits.DONE


def _line(outcome: Outcome) -> str:
    what = (
        f"test of {outcome.node.model}: {outcome.name.rstrip('.')}"
        if outcome.node.is_test
        else outcome.node.relation
    )
    if outcome.status is Status.SKIPPED:
        return f"{what}: not run, since what it needs failed"
    if outcome.status is Status.FAILED and not outcome.node.is_test:
        return f"{outcome.sentence} (the table that it made before, if any, stays)"
    if outcome.status in (Status.FAILED, Status.WARNED):
        return outcome.sentence
    return f"{what}: passed" if outcome.node.is_test else f"{what}: built in {outcome.seconds:.1f} s"


@command(name="path", short_help="print where our dbt project is")
def _path(arguments: Arguments, settings: Settings) -> int:
    """Print the folder of our dbt project, which one of yours has as a package: `local:` in its
    packages.yml. See docs/own-models.md."""
    print(PROJECT)
    return exits.DONE


models = Group("models", commands=[_new, _build, _path], subcommand_metavar="new|build|path [NAME]...")
