"""The command line beside its commands: suggestions, completion, version, lists of values, quiet pipes."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from marketing_api.sandbox.options import make_command
from marketing_sync import cli
from marketing_sync.cli import COMMANDS
from marketing_sync.usage import load_examples
from tests.fixtures import Command
from tests.pipelines.running import environment, parsed, run
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.waiting import HANGS_S


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["snyc"], "Did you mean 'sync'?"),
        (["sync", "--ony", "users"], "'--only'"),
        (["push", "contact"], "Did you mean 'contacts'?"),
        (["push"], "contacts     add contacts to lists"),
        (["sync", "--sandbox", "--only", "contcats"], "did you mean contacts?"),
    ],
)
def test_what_was_meant_is_suggested(command: Command, words: list[str], said: str) -> None:
    ran = command(*words)
    assert ran.code == 2
    assert said in ran.err


def test_the_help_lists_every_command_and_the_exit_codes(command: Command) -> None:
    ran = command("--help")
    assert ran.code == 0
    listed = [
        line.split()[0]
        for line in ran.out.partition("Start:")[2].partition("Exit codes:")[0].splitlines()
        if line.strip()
    ]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    assert "130 stopped by Ctrl-C" in ran.out


@pytest.mark.parametrize("name", ["init", "doctor", "push"])
def test_the_help_of_a_command_begins_with_what_the_list_says(command: Command, name: str) -> None:
    listed = re.search(rf"^  {name} +(.+)$", command("--help").out, re.MULTILINE)
    assert listed
    text = command(name, "--help").out.partition("\n\n")[2].partition("Options:")[0]
    assert " ".join(text.lower().split()).startswith(listed[1].lower())
    assert not re.search(r"\S {2,}\S", text), "an indentation of the source"


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_it_knows_its_version(command: Command, option: str) -> None:
    ran = command(option)
    assert (ran.code, ran.out.split()[0]) == (0, "marketing-sync")


def commands(group: click.Group = cli.PROGRAM, *before: str) -> Iterator[tuple[str, ...]]:
    """What is typed to call each command, the program itself included."""
    yield before
    for name in group.commands:
        command = group.resolve_command(click.Context(group), [name])[1]
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield (*before, name)


def test_every_command_has_examples_and_nothing_else_has() -> None:
    assert set(load_examples()) == {" ".join(words) for words in commands()}


@pytest.mark.parametrize("words", list(commands()), ids=lambda words: " ".join(words) or "the program")
def test_the_examples_of_a_command_are_in_its_help_and_can_be_typed(
    command: Command, words: tuple[str, ...]
) -> None:
    shown = set(map(str.strip, command(*words, "--help").out.splitlines()))
    for line in load_examples()[" ".join(words)]:
        assert line in shown
        typed = shlex.split(line.partition(" < ")[0].partition(" > ")[0])
        typed = typed[typed.index("marketing-sync") + 1 :]
        assert typed[: len(words)] == list(words)
        context = parsed(typed)
        if words == ("sandbox",):  # it reads them itself
            make_command(lambda options, parent: 0).make_context("sandbox", typed[1:])
        assert context.command.name != "marketing-sync", "it calls a command"


@pytest.mark.slow
def test_a_verbose_command_logs_every_request(home: Path, sandbox: Sandbox) -> None:
    ran = run(home, sandbox, "doctor", "-v")
    assert "Call(app/me: ): HTTP 200" in ran.err
    assert KEY not in ran.text
    assert run(home, sandbox, "doctor").err == ""


def test_several_values_follow_an_option_or_repeat_it() -> None:
    together = parsed(["sync", "--only", "lists", "users", "--all"]).params
    repeated = parsed(["sync", "--only", "lists", "--all", "--only", "users"]).params
    assert together == repeated
    assert together["only"] == ["lists", "users"]


#: What a shell does when somebody presses Tab behind $LINE, with the line of README taken over; prints what
#: it offers.
SHELLS = {
    "bash": """eval "$(_MARKETING_SYNC_COMPLETE=bash_source marketing-sync)"
        COMP_WORDS=($LINE) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _marketing_sync_completion marketing-sync && printf "%s\\n" "${COMPREPLY[@]}" """,
    "zsh": """compdef() {}; _describe() { print -l -- ${(P)3} }; compadd() { print -l -- ${(P)@[-1]} }
        eval "$(_MARKETING_SYNC_COMPLETE=zsh_source marketing-sync)"
        words=(${=LINE}) CURRENT=${#words}
        _marketing_sync_completion""",
    "fish": """eval (_MARKETING_SYNC_COMPLETE=fish_source marketing-sync | string collect)
        complete --do-complete "$LINE" """,
}


@pytest.mark.attack
@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_completes_commands_and_options(home: Path, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed; .ci/run installs it")

    def offered(line: str) -> set[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        words = [shell, "-c", SHELLS[shell]]
        ran = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment(home) | {"PATH": path, "LINE": line},
            capture_output=True,
            text=True,
            check=True,
        )
        return {re.split(r"[:\t]", each)[0] for each in ran.stdout.split("\n") if each}

    assert offered("marketing-sync sta") == {"status"}
    assert offered("marketing-sync push contacts --rej") == {"--reject-limit"}


@pytest.mark.slow
def test_a_reader_that_leaves_hears_nothing(home: Path, tmp_path: Path) -> None:
    """As `marketing-sync status | head` does."""
    with subprocess.Popen(
        [sys.executable, "-m", "marketing_sync", "status"],
        cwd=tmp_path,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
        assert process.wait(HANGS_S) == 128 + signal.SIGPIPE
