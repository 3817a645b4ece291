"""docs/architecture.md and docs/durability.md say of the code what is so."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("architecture", "durability")
#: Stand for one of several files.
FOR_SEVERAL = {"AREA": "contacts", "NAME": "tags"}


def files_named(page: str) -> list[str]:
    """The texts of a page that look like a file or folder of the project."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != ".")
    return sorted(set(re.findall(rf"`((?:{folders})/[\w./-]*)`", text)))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    named = files_named(page)
    assert len(named) > 5
    missing = []
    for name in named:
        actual = name
        for stands, one in FOR_SEVERAL.items():
            actual = actual.replace(stands, one)
        is_of_a_home = actual.startswith(("archive/", "published/", "report/", "dagster/", "logs/"))
        if not (is_of_a_home or (ROOT / actual).exists()):
            missing.append(name)
    assert missing == []


def test_packages_stand_in_the_order_in_which_they_import() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["name"] == "Imports run one way")
    table = (ROOT / "docs" / "architecture.md").read_text().partition("## ")[0]
    assert re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE) == " : ".join(layers).split(" : ")
