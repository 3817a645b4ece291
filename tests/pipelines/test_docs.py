"""The README says what is true: its table is generated, its commands parse, its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from pipelines.page import with_settings
from tests.pipelines.running import parsed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"`(marketing-sync [^`]+)`", README)))


def test_the_settings_table_is_what_is_declared() -> None:
    assert with_settings(README) == README, "run `make docs`"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_parses(command: str) -> None:
    words = shlex.split(command.replace("TABLE", "lists"))[1:]
    assert parsed(words).command_path.split()[1] == words[0]


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]), ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
