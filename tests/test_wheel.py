"""The wheel holds all that runs, and nothing of it can be taken for a package of the user's, nor the other
way round."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import Once

ROOT = Path(__file__).parents[1]
PACKAGES = ("assets", "home", "pipelines", "upkeep", "warehouse", "write_back")


@pytest.fixture(scope="module")
def unpacked(once: Once) -> Path:
    """The wheel as pip would unpack it."""
    return once("wheel", _build) / "installed"


def _build(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "installed")


def test_everything_that_is_no_test_is_in_it(unpacked: Path) -> None:
    app = unpacked / "marketing_api" / "_app"
    for package in PACKAGES:
        ours = {path.relative_to(ROOT) for path in (ROOT / package).rglob("*") if path.is_file()}
        ours = {path for path in ours if "__pycache__" not in path.parts and path.suffix != ".pyc"}
        assert {path for path in ours if not (app / path).exists()} == set()
    assert sorted(path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")) == [
        "marketing_api"
    ]


@pytest.mark.slow
def test_it_runs_beside_packages_of_the_same_names(unpacked: Path, tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(
            "raise ImportError('the package of the user was taken')\n"
        )
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MARKETING_", "DAGSTER_"))
    }
    paths = os.pathsep.join((str(tmp_path), str(unpacked)))
    settings = {
        "PYTHONPATH": paths,
        "MARKETING_HOME": str(tmp_path / "home"),
        "MARKETING_SANDBOX_CONTACTS": "10",
    }
    begin = "from marketing_api.launch import main; raise SystemExit(main())"
    for words in (["sync", "--only", "lists"], ["status"]):
        ran = subprocess.run(
            [sys.executable, "-c", begin, *words],
            cwd=tmp_path,
            env=kept | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "home" / "warehouse.duckdb").exists()
