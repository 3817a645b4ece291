"""After a run a home lets go of what MARKETING_KEEP says: runs of the UI, logs; errors are no failure."""

import datetime as dt
import os
import re
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import msgspec
import pytest

from home.folder import dagster_home, prepare_home
from home.settings import Settings, SettingsError, load_settings
from marketing_api.clock import utc_now
from pipelines.dagster_internals import open_run_instance, prune_runs
from upkeep.tidying import tidy_home
from warehouse.policies import Kept
from warehouse.status_file import AccountStatus, HomeStatus


@pytest.fixture
def ui_home(home: Path) -> Iterator[Path]:
    with dagster_home(prepare_home(home)):
        yield home


@dg.asset
def made() -> None:
    """Nothing."""


@dg.asset_check(asset=made)
def fits() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


def run(home: Path, *, ours: bool = True) -> str:
    definitions = dg.Definitions(
        [made], asset_checks=[fits], jobs=[dg.define_asset_job("all")], executor=dg.in_process_executor
    )
    with warnings.catch_warnings(), open_run_instance(home) as instance:
        warnings.simplefilter("ignore")
        if not ours:
            del instance.create_run_for_job
        return str(definitions.resolve_job_def("all").execute_in_process(instance=instance).run_id)


def left(home: Path) -> tuple[set[str], set[str], set[str]]:
    """The runs, those that have a file of events, and those of which there are results of checks."""
    history = home / "dagster" / "history"
    with closing(sqlite3.connect(history / "runs.db")) as db:
        runs = {run_id for (run_id,) in db.execute("select run_id from runs")}
    with closing(sqlite3.connect(history / "runs" / "index.db")) as db:
        checked = {
            run_id
            for (run_id,) in db.execute(
                "select run_id from asset_check_executions union select run_id from event_logs"
            )
        }
    return runs, {path.stem for path in (history / "runs").glob("*.db")} - {"index"}, checked


def test_old_runs_go_with_all_that_they_logged(ui_home: Path) -> None:
    old = run(ui_home)
    then = utc_now()
    new = run(ui_home)
    assert left(ui_home) == ({old, new},) * 3
    assert prune_runs(ui_home, then) == 1
    assert left(ui_home) == ({new},) * 3
    assert prune_runs(ui_home, then) == 0


def test_runs_of_somebody_else_and_those_that_have_not_ended_stay(ui_home: Path) -> None:
    others, begun = run(ui_home, ours=False), run(ui_home)
    with closing(sqlite3.connect(ui_home / "dagster" / "history" / "runs.db")) as db, db:
        db.execute("update runs set status = 'STARTED' where run_id = ?", [begun])
    assert prune_runs(ui_home, utc_now()) == 0
    assert left(ui_home)[0] == {others, begun}


def test_logs_go_by_their_age(home: Path) -> None:
    old, new = home / "logs" / "old.log", home / "logs" / "new.log"
    old.parent.mkdir(parents=True)
    for path in (old, new):
        path.touch()
    os.utime(old, times=(0, (utc_now() - dt.timedelta(15)).timestamp()))
    tidy_home(Settings(home, kept=Kept(logs=20)), prune_runs)
    assert old.exists()
    tidy_home(Settings(home, kept=Kept(logs=10)), prune_runs)
    assert [path.exists() for path in (old, new)] == [False, True]


def test_a_clock_that_is_ahead_deletes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = home / "logs" / "new.log"
    log.parent.mkdir(parents=True)
    log.touch()
    (home / "status.json").write_bytes(msgspec.json.encode(HomeStatus([AccountStatus("main", utc_now())])))
    monkeypatch.setattr("upkeep.tidying.utc_now", lambda: utc_now() + dt.timedelta(400))
    tidy_home(Settings(home), prune_runs)
    assert log.exists()


def test_what_cannot_be_tidied_up_is_logged(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    home.mkdir()
    (home / "archive").touch()
    tidy_home(Settings(home), prune_runs)
    assert "not tidied up" in caplog.text


def test_what_is_not_named_is_kept_as_by_default(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {"MARKETING_KEEP": "bodies=ever, Logs = 30"})
    assert settings.kept == Kept(bodies=None, logs=30)
    assert Kept.from_text(str(settings.kept)) == settings.kept
    forever = re.sub(r"\d+", "ever", str(Kept()))
    assert str(Kept.from_text(forever)) == forever


@pytest.mark.parametrize(
    "text", ["bodies", "bodies=", "bodies=0", "bodies=-1", "bodys=3", "bodies=3,", "400", "logs=1000000"]
)
def test_days_that_cannot_be_read_name_what_there_is(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"MARKETING_KEEP=.*with days or ever.*timelines=ever"):
        load_settings(tmp_path, {"MARKETING_KEEP": text})
