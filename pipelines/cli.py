"""The command line, whose texts are in `cli.toml`, and exit codes of wrong usage. Each command is in
`commands/`.

Imports here are few: everything else is imported when Ctrl-C is taken care of, and only what the command
needs."""

import gc
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import click

from home import exits, interrupts

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: Command → its module in `pipelines.commands`, and what it does.
COMMANDS: Mapping[str, tuple[str, str]] = _TEXTS["commands"]
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


def _first_steps() -> None:
    if click.get_current_context().invoked_subcommand is None:
        print(_TEXTS["first_steps"])


class _LazyCommands(click.Group):
    """Imports a command's module when it is typed; for the list, suggestions and completion its line above is
    enough."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of use

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`help` and `help sync` are `--help` and `sync --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            module, doc = COMMANDS[name]
            command = getattr(import_module(f"pipelines.commands.{module}"), name)
            assert isinstance(command, click.Command)
            begins, rest_of = f"{doc[0].upper()}{doc[1:]}.\n\n", command.help or ""
            command.help = begins + rest_of.removeprefix(begins)
        return name, command, rest


PROGRAM = _LazyCommands(
    "marketing-sync",
    commands={name: click.Command(name, short_help=doc) for name, (_, doc) in COMMANDS.items()},
    help="Everything of a marketing-automation account in DuckDB, every night.",
    epilog=_TEXTS["epilog"],
    invoke_without_command=True,
    callback=_first_steps,
    context_settings=_CONTEXT,
)
click.version_option(package_name="marketing-sync", message="%(prog)s %(version)s")(PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    gc.set_threshold(
        50_000
    )  # records in millions and no circles among them: looking for some takes a sixth of a large listing
    with interrupts.end_at_once():
        try:
            return int(PROGRAM.main(argv, "marketing-sync", standalone_mode=False) or exits.DONE)
        except click.ClickException as problem:
            problem.show()
            return problem.exit_code


if __name__ == "__main__":
    sys.exit(main())
