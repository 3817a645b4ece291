"""`examples/dbt` over two published copies, and `examples/dagster`, which runs it after `published`."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from marketing_api.redaction import Secret
from tests.fixtures import Night
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy, published_path

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(sys.version_info >= (3, 14), reason="dbt 1.11 does not import on Python 3.14"),
]


@pytest.fixture
def project(home: Path, tmp_path: Path, rough_night: Night, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the dbt project beside the Dagster example, with the sources of a published night."""
    home.mkdir()
    shutil.copy(rough_night.home / "warehouse.duckdb", home)
    publish_copy(home, Masking(PersonalData.HASH, Secret("k" * 20)))
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    project = tmp_path / "examples" / "dbt"
    monkeypatch.setenv("MARKETING_HOME", str(home))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    run(project, "python", "write_sources.py", str(published_path(home)))
    return project


def run(folder: Path, *words: str) -> None:
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "usage: python write_sources.py"),
        (("nowhere.duckdb",), 1, "error: nowhere.duckdb can't be read"),
    ],
)
def test_sources_need_a_published_file(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    script = str(EXAMPLES / "dbt" / "write_sources.py")
    ran = subprocess.run(
        [sys.executable, script, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr.startswith(message)) == (code, True), ran.stderr


def test_two_nights_are_built_and_tested(project: Path, home: Path) -> None:
    run(project, "dbt", "build")
    publish_copy(home, Masking(PersonalData.HASH, Secret("k" * 20)))
    run(project, "dbt", "build")
    with duckdb.connect(str(project / "team.duckdb"), read_only=True) as connection:
        nights = "select count(*), count(distinct published_at), min(contact_count) > 0 from nights"
        assert connection.execute(nights).fetchall() == [(2, 2, True)]
        members = "select count(*) > 0, bool_and(clicker_count <= member_count) from clickers_by_list"
        assert connection.execute(members).fetchall() == [(True, True)]


def test_dagster_builds_it_once_after_each_published_copy(project: Path) -> None:
    pytest.importorskip("dagster_dbt")
    run(project, "dbt", "parse")
    spec = importlib.util.spec_from_file_location("team", project.parent / "dagster" / "team.py")
    assert spec is not None
    assert spec.loader is not None
    team = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(team)
    models = {dg.AssetKey(["team", name]) for name in ("clickers_by_list", "nights")}
    with dg.DagsterInstance.ephemeral() as instance:
        seen = dg.evaluate_automation_conditions(team.defs, instance)
        assert seen.total_requested == 0
        instance.report_runless_asset_event(dg.AssetMaterialization("published"))
        seen = dg.evaluate_automation_conditions(team.defs, instance, cursor=seen.cursor)
        assert {key for key in models if seen.get_num_requested(key)} == models
        ran = dg.materialize([team.team_models], instance=instance, resources=team.defs.resources)
        assert {event.asset_key for event in ran.get_asset_materialization_events()} == models
        assert all(check.passed for check in ran.get_asset_check_evaluations())
        seen = dg.evaluate_automation_conditions(team.defs, instance, cursor=seen.cursor)
        assert seen.total_requested == 0
