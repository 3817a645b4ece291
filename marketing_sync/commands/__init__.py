"""What all commands share: settings, log, errors as a sentence. Not here: the list of commands
(`cli`), options (`home.options`), examples (`usage`)."""

import inspect
import keyword
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from home import exits, interrupts
from home.options import SANDBOX as SANDBOX_OPTION
from home.options import Option, click_parameters
from home.settings import Settings, SettingsError, load_settings, missing_key
from marketing_api.redaction import plain
from marketing_sync.usage import WithExamples

#: The function of a command: takes the settings and a keyword argument for each option, of the
#: option's name (`from_` for `from`); returns the exit code.
Work = Callable[..., int]
_IN_SANDBOX = (
    "no key is configured: this is the sandbox; run `marketing-sync init` to connect your account"
)
#: The exit code when the output has no reader any more, as with `| head`: the one of a program that
#: doesn't handle the signal.
_BROKEN_PIPE = 128 + signal.SIGPIPE
_VERBOSE = click.Option(
    ["-v", "--verbose"],
    is_flag=True,
    help="log every step and request to standard error, like MARKETING_LOG=DEBUG",
)


class Group(WithExamples, click.Group):
    """A group of commands, listed in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class Command(WithExamples):
    """A command whose options of several values accept them after one flag: `--only lists users` is
    `--only lists --only users`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._spread_values(args)))

    def _spread_values(self, words: Sequence[str]) -> Iterator[str]:
        options = [parameter for parameter in self.params if isinstance(parameter, click.Option)]
        repeatable = {flag for option in options if option.multiple for flag in option.opts}
        flag = ""
        is_first = False
        for word in words:
            if word.startswith("--"):
                flag = word if word in repeatable else ""
                is_first = True
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
    **command_arguments: Any,
) -> Callable[[Work], Command]:
    """Makes the function a command called `name`, or as the function.

    `is_for_all_shards`: it works without a shard of accounts.toml being picked. `needs_keys`: False
    for a command that sends no request. `uses_home`: False for a command without a home or an
    account, which has no `--sandbox`. `command_arguments` are click's."""

    def make_command(work: Work) -> Command:
        def check_and_work(settings: Settings, *, sandbox: bool = False, **arguments: Any) -> int:
            if uses_home:
                settings = _choose_sandbox(settings, is_requested=sandbox, needs_keys=needs_keys)
            return work(settings if is_for_all_shards else settings.of_one_shard(), **arguments)

        all_options = [*options, SANDBOX_OPTION] if uses_home else options
        return Command(
            name or work.__name__,
            callback=partial(_run_command, check_and_work, needs_keys),
            params=[*click_parameters(all_options), _VERBOSE],
            **{"help": inspect.getdoc(work)} | command_arguments,
        )

    return make_command


def _choose_sandbox(settings: Settings, *, is_requested: bool, needs_keys: bool) -> Settings:
    """The settings of the configured account, or of the sandbox if the user chose it or sees a
    terminal: without that, a scheduled command that lost its folder would succeed in the sandbox
    forever. A command that sends no request may read a home that MARKETING_HOME names. Raises
    SettingsError."""
    if is_requested and not settings.is_sandbox:
        raise SettingsError(
            "--sandbox is for folders without a key, and an account is configured here: leave the "
            "option out, or run it in another folder"
        )
    if not settings.is_key_missing and not is_requested:
        return settings
    settings = replace(settings, is_sandbox_chosen=is_requested or sys.stderr.isatty())
    if settings.is_key_missing and (needs_keys or settings.is_default_home):
        raise missing_key(settings)
    if _holds_sandbox(settings):
        print_warning(_IN_SANDBOX)
    return settings


def _holds_sandbox(settings: Settings) -> bool:
    """Whether the home is the sandbox's, or a new one."""
    from home.exits import HomeError
    from home.identity import SANDBOX, identity_of

    try:
        return identity_of(settings.home).kind == SANDBOX or not settings.warehouse_path.exists()
    except HomeError:  # the command reports it
        return False


def _run_command(work: Work, needs_keys: bool, /, verbose: bool, **values: object) -> int:
    import home.failures  # noqa: F401 (imported here, since Ctrl-C could get lost in it later)

    with interrupts.raise_in_main():
        try:
            arguments = {_python_name(name): value for name, value in values.items()}
            return _work_in_log(partial(work, **arguments), needs_keys, is_verbose=verbose)
        except KeyboardInterrupt:
            message = interrupts.MESSAGE
        except click.Abort:  # Ctrl-C or Ctrl-D at a prompt
            message = "stopped; nothing was changed"
        print(f"\n{message}", file=sys.stderr)
        return exits.INTERRUPTED


def _python_name(option: str) -> str:
    return f"{option}_" if keyword.iskeyword(option) else option


def _work_in_log(work: Callable[[Settings], int], needs_keys: bool, *, is_verbose: bool) -> int:
    """Loads the settings and does the work, logging to the home; errors are printed as a
    sentence."""
    import logging

    from home.failures import explain_error
    from home.logs import logging_to_home

    try:
        settings = load_settings(Path.cwd(), reads_keys=needs_keys)
    except SettingsError as error:
        return print_error(str(error), exits.WRONG_USE)
    for message in settings.unknown:
        print_warning(message)
    if is_verbose:
        settings = replace(settings, log_level="DEBUG")
    name = str(click.get_current_context().find_root().invoked_subcommand)
    with logging_to_home(settings, name):
        logging.getLogger(__name__).info("%s begins", name)
        try:
            code = work(settings)
            print(end="", flush=True)
        except (click.UsageError, click.Abort):
            raise
        except BrokenPipeError:
            code = _BROKEN_PIPE
        except Exception as error:  # users can't read tracebacks
            text, code = explain_error(error)
            print_error(text, code)
        logging.getLogger(__name__).info("%s ends with exit code %d", name, code)
        return code


def print_error(text: str, code: int) -> int:
    """Print what happened and what to do, in the form of all errors; returns the code."""
    print(f"marketing-sync: error: {plain(text)}", file=sys.stderr)
    return code


def print_warning(text: str) -> None:
    """Print something that doesn't change the exit code."""
    print(f"marketing-sync: warning: {plain(text)}", file=sys.stderr)


def ask_yes_no(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):  # no terminal, or standard input is closed
        return False
