"""Runs the command line in a process of its own, or without one where nothing is lost by that."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from marketing_sync import cli
from tests import warm
from tests.pipelines.sandboxes import KEY, Sandbox


@dataclass(frozen=True)
class Ran:
    """What a command left on the terminal."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def parsed(words: Sequence[str]) -> click.Context:
    """The command that the words call, with its parameters read. Raises click.UsageError."""
    command: click.Command | None = cli.PROGRAM
    name: str | None = "marketing-sync"
    context, rest = None, list(words)
    while isinstance(command, click.Group) and rest:
        context = click.Context(command, parent=context, info_name=name)
        name, command, rest = command.resolve_command(context, rest)
    assert command is not None
    return command.make_context(name, rest, parent=context)


def environment(home: Path, sandbox: Sandbox | None = None, **settings: str) -> dict[str, str]:
    """Ours without the settings of the person who runs the tests."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MARKETING_", "DAGSTER_"))
    }
    live = {"MARKETING_API_URL": sandbox.url, "MARKETING_API_KEY": KEY} if sandbox else {}
    return kept | {"MARKETING_HOME": str(home)} | live | settings


def start(
    home: Path, sandbox: Sandbox | None, *words: str, module: str = "marketing_sync.cli", **settings: str
) -> warm.Command:
    """The command, not waited for; from an empty folder, so that nobody's `.env` is read."""
    return warm.Command(module, words, _elsewhere(home), environment(home, sandbox, **settings))


def start_cold(home: Path, sandbox: Sandbox | None, *words: str, **settings: str) -> subprocess.Popen[str]:
    """The same from the very start, with its imports."""
    return subprocess.Popen(
        [sys.executable, "-m", "marketing_sync", *words],
        cwd=_elsewhere(home),
        env=environment(home, sandbox, **settings),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _elsewhere(home: Path) -> Path:
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return elsewhere


def finish(process: warm.Command | subprocess.Popen[str], patience: float = 600) -> Ran:
    """Wait for it; a process that does not end is killed and fails the test."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"still running after {patience:g} s:\n{out[-1500:]}{err[-1500:]}") from None
    return Ran(process.returncode, out, err)


def run(home: Path, sandbox: Sandbox | None, *words: str, **settings: str) -> Ran:
    return finish(start(home, sandbox, *words, **settings))


def files(home: Path) -> Iterator[Path]:
    yield from (path for path in sorted(home.rglob("*")) if path.is_file())
