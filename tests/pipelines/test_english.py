"""Pages, `--help`, descriptions and messages avoid constructions that no native speaker would write."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from marketing_sync import cli
from tests.pipelines.pages import ALL_PAGES

ROOT = Path(__file__).parents[2]
PACKAGES = ("marketing_sync", "pipelines", "report", "upkeep", "write_back", "home", "assets", "warehouse")
CALQUES = re.compile(
    r"\b(stands? (in|for|there|at)|anew|whoever|whomever|of which|of whom|gone on with|for so long"
    r"|so many (days|seconds|minutes)|as it is\b|could not be had|is no (setting|failure|news|test)"
    r"|by hand|at once|nobody (saw|is told|has shown)|what is due|those that|that which|is told|are told"
    r"|is not told|none is told|cannot be had|it tells none)\b",
    re.IGNORECASE,
)


def find_calques(text: str) -> list[str]:
    return [text[max(0, found.start() - 30) : found.end() + 30] for found in CALQUES.finditer(text)]


def messages(path: Path) -> Iterator[str]:
    """The texts in a module's code, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


def descriptions(declared: object) -> Iterator[str]:
    """Every `description` below a node of YAML."""
    if isinstance(declared, dict):
        for name, value in declared.items():
            if name == "description":
                yield value
            else:
                yield from descriptions(value)
    elif isinstance(declared, list):
        for value in declared:
            yield from descriptions(value)


def helps(command: click.Command, called: str) -> Iterator[str]:
    """The help of a command and of the ones below it."""
    context = click.Context(command, info_name=called)
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [name])
            assert found
            yield from helps(found, f"{called} {name}")


@pytest.mark.parametrize("page", ALL_PAGES)
def test_pages_have_no_calques(page: str) -> None:
    assert find_calques((ROOT / page).read_text(encoding="utf-8")) == []


def test_descriptions_of_models_have_no_calques() -> None:
    for path in (ROOT / "warehouse" / "models").glob("**/*.yml"):
        for text in descriptions(yaml.safe_load(path.read_text(encoding="utf-8"))):
            assert find_calques(text) == [], path.name


def test_help_has_no_calques() -> None:
    found = [find_calques(text) for text in helps(cli.PROGRAM, "marketing-sync")]
    assert found == [[]] * len(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_messages_have_no_calques(package: str) -> None:
    found = {
        f"{path.relative_to(ROOT)}: {calque}"
        for path in (ROOT / package).rglob("*.py")
        for text in messages(path)
        for calque in find_calques(text)
    }
    assert found == set()
