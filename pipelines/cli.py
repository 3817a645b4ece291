"""The command line: which commands there are, and exit codes of wrong usage. Each command is in `commands/`.

Imports here are few: everything else is imported when Ctrl-C is taken care of, and only what the command needs.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from pipelines import exits, interrupts

#: Command → its module in `pipelines.commands`, and what it does.
COMMANDS = {
    "init": ("init", "connect an account: asks for address and key, checks them, writes .env, offers a schedule"),
    "doctor": ("doctor", "look at everything that keeps a sync from working, each with what to do about it"),
    "check": ("call", "send one cheap request: whose key it is, and the rate limit"),
    "sync": ("sync", "run the nightly sync, or parts of it"),
    "push": ("push", "send rows of a file or query back to the service; a dry run without --apply"),
    "plan": ("plan", "show what the next sync would request, how long that takes, and whether the maximum age is kept"),
    "status": ("status", "show how fresh and complete everything is, the last runs, rejected records"),
    "models": ("models", "marts of your own in SQL: begin one, build them"),
    "publish": ("publish", "write the copy that analysts open and its report, or go back to the one before"),
    "lake": ("lake", "show what is in the lake of all shards; write a DuckDB file of views over it"),
    "report": ("publish", "write the page about what is published, for the business owner"),
    "mcp": ("mcp", "let an AI assistant ask the published copy, read-only"),
    "person": ("person", "write all that is known of one person as a page and as JSON"),
    "forget": ("forget", "take people out of everything that is kept of them; a dry run without --apply"),
    "rebuild": ("publish", "write the warehouse anew from the archive, without a request"),
    "backup": ("backup", "back up what a home cannot make anew, and show what is there"),
    "restore": ("backup", "make a home of its backup, on an empty machine"),
    "upgrade": ("upgrade", "make a home of an earlier version one of this version, try that first, or go back"),
    "ui": ("ui", "open the Dagster UI on this machine"),
    "call": ("call", "call any operation of the service, validated; writes ask first"),
    "sandbox": ("sandbox", "run a stand-in for the service on this machine"),
}
_EPILOG = """\b
Exit codes: 0 done, 1 something could not be read or sent (the output says what),
2 wrong usage or configuration, 130 stopped by Ctrl-C.
Completion: eval "$(_MARKETING_SYNC_COMPLETE=bash_source marketing-sync)"; zsh_source and fish_source alike."""
#: What most people come for; shown when nothing is typed behind the name.
_FIRST_STEPS = """\
Everything of a marketing-automation account in DuckDB, every night.

  marketing-sync init                        connect an account; without one, a sandbox stands in
  marketing-sync sync                        read everything, build the marts, publish, report
  marketing-sync status                      how fresh and complete it is
  marketing-sync ui                          runs, tables and the schedule in the browser
  marketing-sync push contacts --from FILE   what would be sent back; with --apply it is sent

marketing-sync --help lists all commands, marketing-sync COMMAND --help their options."""
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


def _first_steps() -> None:
    if click.get_current_context().invoked_subcommand is None:
        print(_FIRST_STEPS)


class _LazyCommands(click.Group):
    """Imports a command's module when it is typed; for the list, suggestions and completion its line above is enough."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of use

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`help` and `help sync` are `--help` and `sync --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
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
    epilog=_EPILOG,
    invoke_without_command=True,
    callback=_first_steps,
    context_settings=_CONTEXT,
)
click.version_option(package_name="marketing-sync", message="%(prog)s %(version)s")(PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    gc.set_threshold(50_000)  # records in millions and no circles among them: looking for some takes a sixth of a large listing
    with interrupts.end_at_once():
        try:
            return int(PROGRAM.main(argv, "marketing-sync", standalone_mode=False) or exits.DONE)
        except click.ClickException as problem:
            problem.show()
            return problem.exit_code


if __name__ == "__main__":
    sys.exit(main())
