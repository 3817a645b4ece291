"""docs/sending-back.md is true: its commands run, in their order, and do what the page says."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.pipelines.conftest import Command
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query

PAGE = (Path(__file__).parents[2] / "docs" / "sending-back.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """What stands in the page's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_commands_run_and_the_plan_is_the_one_shown(command: Command, service: Sandbox, home: Path, folder: Path) -> None:
    (activations,) = blocks("toml")
    (folder / "activations.toml").write_text(activations, encoding="utf-8")
    commands = [shlex.split(line)[1:] for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) >= 9
    outputs = []
    for words in commands:
        ran = command(*words, sandbox=service)
        assert ran.code == 0, (words, ran.text)
        outputs.append(ran.out)
    (plan,) = blocks("text")
    assert _shape(plan) <= _shape(outputs[0])
    sql, rejected = blocks("sql")
    assert query(home, sql) == [("applied", int(outputs[0].split()[0]))]
    assert query(home, rejected) == []
    assert query(home, "select distinct state from sync.writebacks where push_id = 2 and operation is not null") == [("verified",)]


def _shape(text: str) -> set[str]:
    """Its lines, whatever numbers and people stand in them: the account differs from day to day."""
    lines = [" ".join(re.sub(r"\d+", "0", re.sub(r"\S+@\S+", "someone", line)).split()) for line in text.splitlines()]
    return {re.sub(r" --sql.*| \(a sample.*|about .* at", "", line) for line in lines} - {"…"}


def test_the_example_of_activations_is_what_the_program_reads() -> None:
    (example,) = blocks("toml")
    assert set(tomllib.loads(example)["activations"]) == {"regulars", "caterers"}


@pytest.mark.parametrize("state", ["planned", "sending", "applied", "verified", "rejected", "unknown", "skipped"])
def test_every_state_is_explained(state: str) -> None:
    assert f"| `{state}` |" in PAGE
