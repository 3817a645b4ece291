"""What the command line offers beside its commands: suggestions, completion, a version, options of several
values, quiet pipes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli import COMMANDS
from tests.fixtures import Command
from tests.pipelines.running import environment, parsed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["snyc"], "Did you mean 'sync'?"),
        (["sync", "--ony", "users"], "'--only'"),
        (["push", "contact"], "Did you mean 'contacts'?"),
        (["push"], "contacts     add contacts to lists"),
        (["sync", "--only", "contcats"], "did you mean contacts?"),
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
        for line in ran.out.partition("Commands:")[2].partition("Exit codes:")[0].splitlines()
        if line.strip()
    ]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    assert "130 stopped by Ctrl-C" in ran.out


@pytest.mark.parametrize(("words", "same"), [(["help"], ["--help"]), (["help", "sync"], ["sync", "--help"])])
def test_help_is_a_command_too(command: Command, words: list[str], same: list[str]) -> None:
    assert command(*words).out == command(*same).out


@pytest.mark.parametrize("name", ["init", "doctor", "mcp", "push"])
def test_the_help_of_a_command_begins_with_what_the_list_says(command: Command, name: str) -> None:
    listed = re.search(rf"^  {name} +(.+)$", command("--help").out, re.MULTILINE)
    assert listed
    text = command(name, "--help").out.partition("\n\n")[2].partition("Options:")[0]
    assert " ".join(text.lower().split()).startswith(listed[1].lower())
    assert not re.search(r"\S {2,}\S", text), "an indentation of the source"


def test_it_knows_its_version(command: Command) -> None:
    ran = command("--version")
    assert (ran.code, ran.out.split()[0]) == (0, "marketing-sync")


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


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.slow
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
        return {re.split(r"[:\t]", each)[0] for each in ran.stdout.splitlines()}

    assert offered("marketing-sync sta") == {"status"}
    assert offered("marketing-sync push contacts --rej") == {"--reject-limit"}


@pytest.mark.slow
def test_a_reader_that_leaves_hears_nothing(home: Path, tmp_path: Path) -> None:
    """As `marketing-sync status | head` does."""
    with subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", "status"],
        cwd=tmp_path,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
