"""dbt itself over a home, as somebody runs it who knows dbt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from marketing_sync import dbt
from warehouse.dbt_project import PROJECT

ROOT = Path(__file__).parents[2]
HOME = "data/sandbox/warehouse.duckdb"


def opened(path: str) -> Path:
    """What dbt-duckdb opens when its profile has this path."""
    credentials = SimpleNamespace(path=path)
    dbt.Plugin("dbt", {}).update_connection_config(credentials, {})
    return Path(credentials.path)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a warehouse in the home that no setting names, and the folder of the project."""
    monkeypatch.setattr(dbt, "ROOT", tmp_path)
    for folder in (tmp_path / "warehouse", (tmp_path / HOME).parent):
        folder.mkdir(parents=True)
    duckdb.connect(str(tmp_path / HOME)).close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("folder", ["", "warehouse"])
@pytest.mark.parametrize("kind", ["of the clone", "of the working folder", "absolute"])
def test_a_home_is_found_from_the_clone_and_from_the_project(
    clone: Path, kind: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone / folder)
    named = {
        "of the clone": HOME,
        "of the working folder": os.path.relpath(clone / HOME),
        "absolute": str(clone / HOME),
    }
    assert opened(named[kind]).resolve() == (clone / HOME).resolve()


def test_the_home_of_the_working_folder_goes_first(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nearer = clone / "warehouse" / HOME
    nearer.parent.mkdir(parents=True)
    duckdb.connect(str(nearer)).close()
    monkeypatch.chdir(clone / "warehouse")
    assert opened(HOME) == nearer


def test_without_a_warehouse_it_says_so_and_makes_none(clone: Path) -> None:
    (clone / HOME).unlink()
    with pytest.raises(RuntimeError, match=r"there is no .+warehouse\.duckdb: run `marketing-sync sync`"):
        opened(HOME)
    assert list((clone / HOME).parent.iterdir()) == []


def test_what_is_no_warehouse_is_said_in_a_sentence(clone: Path) -> None:
    (clone / HOME).write_text("a text" * 5000)
    with pytest.raises(RuntimeError, match=r"warehouse\.duckdb"):
        opened(str(clone / HOME))


@pytest.mark.attack
@pytest.mark.parametrize("folder", [ROOT, PROJECT], ids=["clone", "project"])
def test_freshness_tells_which_table_was_not_read(path: Path, tmp_path: Path, folder: Path) -> None:
    """Without options, in both folders, and with a relative home; of several accounts the oldest counts."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("update sync.coverage set as_of = now()")
        connection.execute(
            "insert into sync.coverage by name select * replace('other' as account, "
            "as_of - interval 31 hour as as_of) from sync.coverage where table_name = 'lists'"
        )
    written = {"DBT_TARGET_PATH": str(tmp_path / "target"), "DBT_LOG_PATH": str(tmp_path / "logs")}
    ran = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "source", "freshness"],
        cwd=folder,
        env=os.environ | written | {"MARKETING_HOME": os.path.relpath(tmp_path, folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = json.loads((tmp_path / "target" / "sources.json").read_text())["results"]
    assert len(results) > 30
    warned = [each["unique_id"] for each in results if each["status"] != "pass"]
    assert warned == ["source.marketing_sync.source.lists"]


@pytest.mark.slow
def test_a_project_of_the_users_has_ours_as_a_package(path: Path, tmp_path: Path) -> None:
    """With a profile of its own; its models name ours and use our macros."""
    texts = {
        "dbt_project.yml": "name: team\nprofile: team\n",
        "packages.yml": "packages: [{ local: \"{{ env_var('DBT_MARKETING_SYNC') }}\" }]\n",
        "profiles.yml": "team: { target: warehouse, outputs: { warehouse: { type: duckdb, schema: team, "
        "path: warehouse.duckdb, plugins: [{ module: marketing_sync.dbt }] } } }\n",
        "models/clickers.sql": "select {{ marketing_sync.safe_rate('count(*) filter (where clicked_count > 0)', 'count(*)') }}"
        " as clicker_rate from {{ ref('contact_engagement') }}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (["deps"], ["build", "--select", "clickers", "account_daily"]):
        ran = subprocess.run(
            [sys.executable, "-m", "dbt.cli.main", *words],
            cwd=tmp_path,
            env=os.environ | {"DBT_MARKETING_SYNC": str(PROJECT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    with duckdb.connect(str(path), read_only=True) as connection:
        assert 0 < connection.sql("select clicker_rate from team.clickers").fetchall()[0][0] < 1
