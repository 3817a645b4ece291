"""What is the same for all commands: settings, log, errors as one sentence. Not here: which there are
(`cli`), options (`options`), examples (`usage`)."""

import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from home import exits, interrupts
from home.options import Option, parameters
from home.settings import Settings, SettingsError, load_settings
from marketing_api.redaction import plain
from pipelines.usage import WithExamples, is_verbose, verbose

Arguments = SimpleNamespace
#: What a command does; returns the exit code.
Work = Callable[[Arguments, Settings], int]
#: As of a program that does not handle the signal.
_NOBODY_READS = 128 + signal.SIGPIPE


class Group(WithExamples, click.Group):
    """Lists its commands in the order in which they were added."""

    #: Other names that people try.
    aliases: dict[str, str] = {}  # noqa: RUF012 (set where a group is made)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """One that is called by an alias goes by its name; an unknown one is answered with those that there
        are."""
        try:
            return super().resolve_command(ctx, [self.aliases.get(args[0], args[0]), *args[1:]])
        except click.exceptions.NoSuchCommand as problem:
            ctx.fail(f"{problem.format_message()} It is one of: {', '.join(self.commands)}")


class Command(WithExamples):
    """An option of several values takes them all at once, too: `--only lists users` is `--only lists --only
    users`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, words: Sequence[str]) -> Iterator[str]:
        several = {
            flag
            for each in self.params
            if isinstance(each, click.Option) and each.multiple
            for flag in each.opts
        }
        flag, is_first = "", False
        for word in words:
            if word.startswith("--"):
                flag, is_first = (word if word in several else ""), True
            elif flag and not is_first:
                yield flag
            else:
                is_first = False
            yield word


def command(
    *options: Option | click.Parameter, name: str = "", is_for_all_shards: bool = False, **how: Any
) -> Callable[[Work], Command]:
    """Makes the function the command `name`, or of its own name; with `is_for_all_shards`, no shard of
    accounts.toml has to be picked."""
    taken = [
        each
        for option in options
        for each in ([option] if isinstance(option, click.Parameter) else parameters([option], proposals))
    ]

    def decorator(work: Work) -> Command:
        def of_one_shard(arguments: Arguments, settings: Settings) -> int:
            return work(arguments, settings.of_one_shard())

        how["callback"] = partial(_run, work if is_for_all_shards else of_one_shard)
        how["params"] = [*taken, verbose()]
        return Command(name or work.__name__, **{"help": inspect.getdoc(work)} | how)

    return decorator


def proposals(metavar: str, begun: str) -> list[Any]:
    """What a shell proposes for a value; see `completion`, which nothing else needs."""
    from pipelines.commands import completion

    return completion.proposals(metavar, begun)


def _run(work: Work, **given: object) -> int:
    import home.failures  # noqa: F401 (not where Ctrl-C could get lost in it)

    with interrupts.raise_in_main():
        try:
            return _in_a_sentence(work, Arguments(**given))
        except KeyboardInterrupt:
            return print_error(f"\n{interrupts.MESSAGE}", exits.INTERRUPTED)


def _in_a_sentence(work: Work, arguments: Arguments) -> int:
    import logging

    from home.failures import explain
    from home.logs import logging_to_home

    try:
        settings = load_settings(Path.cwd())
    except SettingsError as problem:
        return print_error(f"marketing-sync: {problem}", exits.WRONG_USE)
    context = click.get_current_context()
    if is_verbose(context):
        settings = replace(settings, log_level="DEBUG")
    name = str(context.find_root().invoked_subcommand)
    with logging_to_home(settings, name) as log:
        logging.getLogger(__name__).info("%s begins", name)
        try:
            code = work(arguments, settings)
            print(end="", flush=True)
        except click.UsageError:
            raise
        except BrokenPipeError:
            code = _end_without_readers()
        except Exception as problem:  # a traceback helps nobody who cannot read it
            text, code = explain(problem)
            print_error(f"marketing-sync: {text}", code)
        logging.getLogger(__name__).info("%s ends with exit code %d", name, code)
        return (
            print_error(f"marketing-sync: {log.path} shows where it happened", code)
            if log.has_errors and log.is_open
            else code
        )


def _end_without_readers() -> int:
    """Nobody reads on, as with `| head`: what is still to be written has no place to go."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    return _NOBODY_READS


def print_error(text: str, code: int = exits.DONE) -> int:
    """On standard error; returns the code."""
    print(plain(text), file=sys.stderr)
    return code


def says_yes(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):  # no terminal, or standard input is closed
        return False
