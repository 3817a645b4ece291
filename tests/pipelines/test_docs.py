"""The pages say what is true: generated ones are not stale, commands parse, links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from docs.generate import PAGES, sandbox
from marketing_api.sandbox.faults import FAULTS
from marketing_api.sandbox.switches import SWITCHES
from tests.pipelines.conftest import Night
from tests.pipelines.running import parsed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"`(marketing-sync [^`]+)`", README)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_pages_are_not_stale(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page](), "run `make docs`"


def test_the_sandbox_page_names_every_switch_and_fault() -> None:
    text = sandbox()
    assert all(f"`--{switch.name}`" in text for switch in SWITCHES)
    assert all(f"`{fault.name}`" in text for fault in FAULTS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_parses(command: str) -> None:
    words = shlex.split(command.replace("TABLE", "lists"))[1:]
    assert parsed(words).command_path.split()[1] == words[0]


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/[!_]*.md")]), ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    """Paths in backticks, from one of the packages on; `AREA`, `NAME` and `…` stand for names."""
    named = re.findall(r"`((?:marketing_api|warehouse|assets|pipelines|docs|tests)/[\w./]+)`", (ROOT / page).read_text(encoding="utf-8"))
    assert [path for path in named if not re.search("AREA|NAME", path) and not (ROOT / path).exists()] == []


@pytest.mark.filterwarnings("ignore")  # those of DuckDB and pandas about each other
@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", (ROOT / "docs/connect.md").read_text(encoding="utf-8"), re.DOTALL))
def test_the_python_of_the_connect_page_runs(code: str, rough_night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "live").symlink_to(rough_night.home)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "connect.md", "exec"), {})
