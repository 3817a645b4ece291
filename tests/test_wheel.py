"""The wheel holds all that runs, and none of its packages can be confused with a user's."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from marketing_sync import __version__
from tests.conftest import Once

ROOT = Path(__file__).parents[1]
PACKAGES = ("assets", "home", "pipelines", "report", "upkeep", "warehouse", "write_back")
#: Other processes write into it meanwhile.
_COMPILED = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def unpacked(once: Once) -> Path:
    """The wheel as pip would unpack it."""
    return once("wheel", _build) / "installed"


def _build(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "installed")


def is_of_dbt(path: Path) -> bool:
    """What the models are compiled from."""
    names = ("models", "macros", "tests", "dbt_project.yml", "profiles.yml")
    return path.parts[0] == "warehouse" and path.parts[1] in names


def test_everything_that_is_no_test_is_in_it(unpacked: Path) -> None:
    app = unpacked / "marketing_sync" / "_app"
    for package in PACKAGES:
        ours = {path.relative_to(ROOT) for path in (ROOT / package).rglob("*") if path.is_file()}
        ours = {path for path in ours if "__pycache__" not in path.parts and path.suffix != ".pyc"}
        assert {path for path in ours if not (app / path).exists()} == set(filter(is_of_dbt, ours))
    names = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"marketing_api", "marketing_sync"}


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A working folder with packages of the user's, or of another clone, that have the same names."""
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise ImportError('another package was taken')\n")
    return tmp_path


def run(packages: Path, folder: Path, *words: str) -> str:
    """Of `python -m WORDS` in the folder. A test that has imported our definitions left the paths
    of its own packages in this process' environment."""
    ours = ("MARKETING_", "DAGSTER_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    settings = {
        "PYTHONPATH": str(packages),
        "MARKETING_HOME": str(folder / "home"),
        "MARKETING_SANDBOX_CONTACTS": "10",
    }
    ran = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=kept | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_the_version_is_that_of_the_code_which_runs(unpacked: Path, beside: Path) -> None:
    package = unpacked / "marketing_api" / "__init__.py"
    copy = beside / "other" / "marketing_api"
    shutil.copytree(unpacked, beside / "other", ignore=_COMPILED)
    (copy / "__init__.py").write_text(package.read_text().replace(__version__, "9.8.7"))
    for name in ("marketing_sync", "marketing_api"):
        assert run(unpacked, beside, name, "--version").split()[-1] == __version__
        assert run(beside / "other", beside, name, "--version").split()[-1] == "9.8.7"


@pytest.mark.slow
@pytest.mark.parametrize("place", ["wheel", "clone"])
def test_it_runs_beside_packages_of_the_same_names(place: str, unpacked: Path, beside: Path) -> None:
    packages = unpacked if place == "wheel" else ROOT
    reading = ["--reads-only"] if place == "clone" else []  # the wheel builds the models, too
    for words in (["sync", "--sandbox", *reading], ["status"]):  # a sync starts processes of its own
        run(packages, beside, "marketing_sync", *words)
    assert (beside / "home" / "warehouse.duckdb").exists()
    code = ("-m", "marketing_sync.definitions")
    assert "Validation successful" in run(packages, beside, "dagster", "definitions", "validate", *code)
