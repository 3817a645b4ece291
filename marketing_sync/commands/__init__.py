"""What is the same for all commands: settings, log, errors as one sentence. Not here: which there
are (`cli`), options (`options`), examples (`usage`)."""

import inspect
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
from home.options import SANDBOX as SANDBOX_OPTION
from home.options import Option, click_parameters
from home.settings import Settings, SettingsError, load_settings, missing_key
from marketing_api.redaction import plain
from marketing_sync.usage import WithExamples

Arguments = SimpleNamespace
#: What a command does; returns the exit code.
Work = Callable[[Arguments, Settings], int]
_IN_SANDBOX = (
    "marketing-sync: no key is configured: this is the sandbox; `marketing-sync init` connects "
    "your account"
)
#: What is written has no reader, as with `| head`: as of a program that does not handle the signal.
_NOBODY_READS = 128 + signal.SIGPIPE
_VERBOSE = click.Option(
    ["-v", "--verbose"],
    is_flag=True,
    help="log to standard error what is done, with every request (as MARKETING_LOG=DEBUG does)",
)


class Group(WithExamples, click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class Command(WithExamples):
    """An option of several values takes them all at once, too: `--only lists users` is `--only
    lists --only users`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._spread_values(args)))

    def _spread_values(self, words: Sequence[str]) -> Iterator[str]:
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


def declare_command(
    *options: Option | click.Parameter,
    name: str = "",
    is_for_all_shards: bool = False,
    needs_keys: bool = True,
    uses_home: bool = True,
    **how: Any,
) -> Callable[[Work], Command]:
    """Makes the function the command `name`, or of its own name; with `is_for_all_shards`, no shard
    of accounts.toml has to be picked. A command that sends no request does without keys
    (`needs_keys`). One that neither a home nor an account concerns has no `--sandbox`
    (`uses_home`)."""

    def make_command(work: Work) -> Command:
        def check_and_work(arguments: Arguments, settings: Settings) -> int:
            if uses_home:
                settings = _choose_sandbox(arguments, settings, needs_keys=needs_keys)
            return work(arguments, settings if is_for_all_shards else settings.of_one_shard())

        how["callback"] = partial(_run_command, check_and_work, needs_keys)
        taken = [*options, SANDBOX_OPTION] if uses_home else options
        how["params"] = [*click_parameters(taken), _VERBOSE]
        return Command(name or work.__name__, **{"help": inspect.getdoc(work)} | how)

    return make_command


def _choose_sandbox(arguments: Arguments, settings: Settings, *, needs_keys: bool) -> Settings:
    """The settings of the account that is configured, or of a sandbox that a person has chosen or
    sees. A scheduled command that has lost its folder would succeed in the sandbox forever. What
    sends no request may look at a home that MARKETING_HOME names. Raises SettingsError."""
    if arguments.sandbox and not settings.is_sandbox:
        raise SettingsError(
            "--sandbox is for folders without a key, and an account is configured here: leave the "
            "option out, or run it in another folder"
        )
    if not settings.is_key_missing and not arguments.sandbox:
        return settings
    settings = replace(settings, is_sandbox_chosen=arguments.sandbox or sys.stderr.isatty())
    if settings.is_key_missing and (needs_keys or settings.is_default_home):
        raise missing_key(settings)
    if _holds_sandbox(settings):
        print_error(_IN_SANDBOX)
    return settings


def _holds_sandbox(settings: Settings) -> bool:
    """Whether the home is the sandbox's, or a new one."""
    from home.exits import HomeError
    from home.identity import SANDBOX, identity_of

    try:
        return identity_of(settings.home).kind == SANDBOX or not settings.warehouse_path.exists()
    except HomeError:  # the command says what is wrong
        return False


def _run_command(work: Work, needs_keys: bool, /, **given: object) -> int:
    import home.failures  # noqa: F401 (not where Ctrl-C could get lost in it)

    with interrupts.raise_in_main():
        try:
            return _in_a_sentence(work, needs_keys, Arguments(**given))
        except KeyboardInterrupt:
            return print_error(f"\n{interrupts.MESSAGE}", exits.INTERRUPTED)


def _in_a_sentence(work: Work, needs_keys: bool, arguments: Arguments) -> int:
    import logging

    from home.failures import explain_error
    from home.logs import logging_to_home

    try:
        settings = load_settings(Path.cwd(), reads_keys=needs_keys)
    except SettingsError as problem:
        return print_error(f"marketing-sync: {problem}", exits.WRONG_USE)
    for wrong in settings.unknown:
        print_error(f"marketing-sync: {wrong}")
    if arguments.verbose:
        settings = replace(settings, log_level="DEBUG")
    name = str(click.get_current_context().find_root().invoked_subcommand)
    with logging_to_home(settings, name):
        logging.getLogger(__name__).info("%s begins", name)
        try:
            code = work(arguments, settings)
            print(end="", flush=True)
        except click.UsageError:
            raise
        except BrokenPipeError:
            code = _NOBODY_READS
        except Exception as problem:  # a traceback helps nobody who cannot read it
            text, code = explain_error(problem)
            print_error(f"marketing-sync: {text}", code)
        logging.getLogger(__name__).info("%s ends with exit code %d", name, code)
        return code


def print_error(text: str, code: int = exits.DONE) -> int:
    """On standard error; returns the code."""
    print(plain(text), file=sys.stderr)
    return code


def says_yes(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):  # no terminal, or standard input is closed
        return False
