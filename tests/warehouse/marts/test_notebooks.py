"""Every notebook runs from its first cell to its last on the published file, with and without personal data, and on one without rows."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from warehouse.masking import Masking
from warehouse.models import build
from warehouse.personal_data import PersonalData
from warehouse.publish import publish

FOLDER = Path(__file__).parents[3] / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.py") if "marimo.App(" in path.read_text())

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries that notebooks use


@pytest.fixture(scope="module", params=["keep", "drop", "empty"])
def home(request: pytest.FixtureRequest, built: Path, empty_tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a published file."""
    home = tmp_path_factory.mktemp(request.param)
    shutil.copy(empty_tables if request.param == "empty" else built, home / "warehouse.duckdb")
    if request.param == "empty":
        assert not build(home / "warehouse.duckdb").problem
    publish(home, Masking(PersonalData.DROP if request.param == "drop" else PersonalData.KEEP))
    (home / "warehouse.duckdb").unlink()  # notebooks need nothing but the copy
    return home


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook; what its cells define."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def run_one(name: str, home: Path) -> dict[str, Any]:
        monkeypatch.setenv("MARKETING_HOME", str(home))
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        defined: dict[str, Any] = dict(module.app.run()[1])
        return defined

    return run_one


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_notebook_runs(name: str, home: Path, run: Any) -> None:
    run(name, home)


def test_the_segment_is_of_people_who_may_be_mailed(home: Path, run: Any) -> None:
    defined = run("contact_segments", home)
    segment = defined["segment"]
    assert set(segment["status"]) <= {"active"}
    assert set(segment["engagement_tier"]) <= {"dormant"}
    assert len(segment) == 0 if "empty" in home.name else len(segment) > 10


def test_without_a_published_file_the_way_to_one_is_said(tmp_path: Path, run: Any) -> None:
    with pytest.raises(Exception, match="make sync"):
        run("getting_started", tmp_path)
