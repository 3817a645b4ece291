"""The command line: the commands, and exit codes of wrong usage. Each command is a file of its name
in `commands/`, whose docstring begins with what the command does.

Imports here are few. Everything else is imported once Ctrl-C is handled, and only what the command
needs."""

import ast
import codecs
import gc
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from home import exits, interrupts
from marketing_api import __version__
from marketing_sync.usage import WithExamples

#: Heading in the list of commands → the commands below it, in the order of use.
GROUPS = {
    "Start": ("init", "doctor"),
    "Every day": ("sync", "status", "query", "tables", "report", "publish", "ui"),
    "Sending": ("push", "call"),
    "Care": ("backup", "restore", "rebuild", "person", "forget"),
    "Build on it": ("sandbox",),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
_FOLDER = Path(__file__).with_name("commands")
_PURPOSE = "Copy a marketing-automation account into DuckDB every night, and send lists back."
#: What is printed when only the program's name is typed: the commands that most people need.
_FIRST_STEPS = f"""
{_PURPOSE}

  marketing-sync init                        connect an account (without one, you use a sandbox)
  marketing-sync sync                        read everything, build the marts, publish, report
  marketing-sync status                      show how fresh and complete the data is
  marketing-sync ui                          open runs, tables and the schedule in the browser
  marketing-sync push contacts --from FILE   show what would be sent; add --apply to send it

marketing-sync --help lists all commands, marketing-sync COMMAND --help their options."""
_EPILOG = """
\b
Exit codes: 0 done, 1 something could not be read or sent (the output says
what), 2 wrong usage or configuration, 130 stopped by Ctrl-C.
Completion: eval "$(_MARKETING_SYNC_COMPLETE=bash_source marketing-sync)"; or
zsh_source, fish_source."""


def _read_purpose(name: str) -> str:
    """The first sentence of the command's file, which isn't imported for it."""
    source = (_FOLDER / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


class _CommandEntry(click.Command):
    """A command as an entry of the list, of suggestions and of completion."""

    def get_short_help_str(self, limit: int = 0) -> str:
        words = _read_purpose(str(self.name))
        return f"{words[0].lower()}{words[1:].removesuffix('.')}"


class _LazyCommands(WithExamples, click.Group):
    """Imports a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of use

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name.ljust(width), self.commands[name].get_short_help_str())
                        for name in names
                    ]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            command = getattr(import_module(f"marketing_sync.commands.{name}"), name)
            assert isinstance(command, click.Command)
            purpose = f"{_read_purpose(name)}\n\n"
            command.help = purpose + (command.help or "").removeprefix(purpose)
        return name, command, rest


def _print_first_steps() -> None:
    if click.get_current_context().invoked_subcommand is None:
        print(_FIRST_STEPS)


PROGRAM = _LazyCommands(
    "marketing-sync",
    commands={name: _CommandEntry(name) for name in COMMANDS},
    help=_PURPOSE,
    epilog=_EPILOG,
    invoke_without_command=True,
    callback=_print_first_steps,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


click.version_option(
    __version__, "-V", "--version", prog_name="marketing-sync", message="%(prog)s %(version)s"
)(PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    # A large listing has millions of records and no reference cycles; looking for cycles takes a
    # sixth of its time.
    gc.set_threshold(50_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # never escape data
    with interrupts.end_at_once():
        try:
            return int(PROGRAM.main(argv, "marketing-sync", standalone_mode=False) or exits.DONE)
        except click.ClickException as error:
            _print_usage_error(error)
            return error.exit_code


def _print_usage_error(error: click.ClickException) -> None:
    """In the form of all other errors, and where to read the usage."""
    print(f"marketing-sync: error: {error.format_message()}", file=sys.stderr)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        print(f"See `{error.ctx.command_path} --help`.", file=sys.stderr)
