"""What the project declares, imports and gives reasons for in CONTRIBUTING.md is the same."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "marketing_sync",
    "marketing_api",
    "warehouse",
    "assets",
    "home",
    "write_back",
    "upkeep",
    "pipelines",
    "report",
)
#: Needed without being imported: tools, plug-ins, data, and what is started as a program.
NOT_IMPORTED = {"tzdata"}


def declared(*groups: str) -> set[str]:
    """Names of the packages in pyproject.toml, those of the extras and groups included."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    optional = document["project"]["optional-dependencies"] | document["dependency-groups"]
    lines = [*document["project"]["dependencies"], *(line for group in groups for line in optional[group])]
    return {re.split(r"[=<>~!\[; ]", line)[0].lower() for line in lines}


def imported(*folders: str) -> set[str]:
    """Packages that the code of the folders imports, wherever in a file it does."""
    modules: set[str] = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    owners = packages_distributions()
    foreign = modules - sys.stdlib_module_names - {*PACKAGES, "tests", "notebooks", "published"}
    return {re.sub(r"[_.]", "-", owners.get(module, [module])[0].lower()) for module in foreign}


def test_the_code_imports_what_is_declared_and_nothing_else() -> None:
    assert imported(*PACKAGES) | NOT_IMPORTED == declared("redis") | NOT_IMPORTED


def test_the_notebooks_import_what_is_declared_for_them() -> None:
    assert declared("notebooks") - declared() <= imported("notebooks") <= declared("notebooks")


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert [
        name
        for name in declared("notebooks", "clone", "dev", "docs")
        if not re.search(rf"\b{re.escape(name)}\b", page)
    ] == []


_EXTRAS = ("clone", "notebooks")
LOCKS = {
    "requirements.lock": declared("clone"),
    "requirements-extras.lock": declared(*_EXTRAS),
    "requirements-dev.lock": declared(*_EXTRAS, "dev", "postgres", "redis", "s3"),
    "deploy/requirements.lock": declared("postgres", "redis", "s3"),
    "deploy/requirements-kubernetes.lock": declared("postgres", "redis", "s3", "kubernetes"),
    "docs/requirements.lock": declared("docs") - declared(),
}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_locked_with_its_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    locked = re.findall(
        r"^([\w.-]+)==[^\n]+\n((?: {4}--hash=sha256:[0-9a-f]{64}[^\n]*\n)+)", text, re.MULTILINE
    )
    assert LOCKS[lock] - {name for name, _ in locked} == set()
    assert len(locked) == len(re.findall(r"^\S", text, re.MULTILINE)), "one has no hash"
    assert "://" not in text


def test_locks_agree() -> None:
    """What a newcomer, an analyst and the image use was tested."""
    tested = set(re.findall(r"^([\w.-]+==\S+)", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE))
    for lock in ("requirements.lock", "requirements-extras.lock", "deploy/requirements.lock"):
        assert set(re.findall(r"^([\w.-]+==\S+)", (ROOT / lock).read_text(), re.MULTILINE)) - tested == set()
