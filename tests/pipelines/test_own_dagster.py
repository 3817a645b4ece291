"""A set DAGSTER_HOME is somebody's own Dagster: runs are recorded there, and nothing of it is changed."""

from pathlib import Path

import dagster as dg
import pytest

from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox

OWN = "telemetry: {enabled: false}\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    own = tmp_path / "own"
    own.mkdir()
    (own / "dagster.yaml").write_text(OWN)
    return own


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_runs_are_recorded_in_it(command: Command, sandbox: Sandbox, own: Path, home: Path) -> None:
    assert command("sync", "--only", "lists", sandbox=sandbox, DAGSTER_HOME=str(own)).code == 0
    with dg.DagsterInstance.from_config(str(own)) as instance:
        assert [run.job_name for run in instance.get_runs()] == ["nightly_sync"]
    assert not (home / "dagster" / "history").exists()
    assert (own / "dagster.yaml").read_text() == OWN


@pytest.mark.filterwarnings("ignore")
def test_damaged_history_of_it_is_not_set_aside(command: Command, sandbox: Sandbox, own: Path) -> None:
    (own / "history" / "runs").mkdir(parents=True)
    (own / "history" / "runs" / "index.db").write_bytes(b"not ours to judge")
    ran = command("sync", "--only", "lists", sandbox=sandbox, DAGSTER_HOME=str(own))
    assert (ran.code, "Traceback" in ran.text) == (1, False)
    assert (own / "history" / "runs" / "index.db").read_bytes() == b"not ours to judge"


@pytest.mark.parametrize("wrong", ["relative/place", "/nonexistent/place"])
def test_one_that_is_no_folder_is_said_before_a_request_is_sent(
    command: Command, sandbox: Sandbox, wrong: str
) -> None:
    before = sandbox.count
    ran = command("sync", "--only", "lists", sandbox=sandbox, DAGSTER_HOME=wrong)
    assert (ran.code, sandbox.count) == (2, before)
    assert f"DAGSTER_HOME={wrong} is not the absolute path of a folder" in ran.err


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_database_that_does_not_answer_is_said(command: Command, sandbox: Sandbox, own: Path) -> None:
    pytest.importorskip("dagster_postgres")
    text = (
        "storage: {postgres: {postgres_db: {scheme: postgresql+psycopg2, hostname: 127.0.0.1, port: 9, "
        "username: u, db_name: d}}}\n"
    )
    (own / "dagster.yaml").write_text(OWN + text)
    ran = command("sync", "--only", "lists", sandbox=sandbox, DAGSTER_HOME=str(own))
    assert (ran.code, "Traceback" in ran.text) == (2, False)
    assert "Connection refused" in ran.err
    assert "check its database" in ran.err


@pytest.mark.filterwarnings("ignore")
def test_a_missing_package_is_said(command: Command, sandbox: Sandbox, own: Path) -> None:
    (own / "dagster.yaml").write_text(
        "event_log_storage: {module: no_such_package, class: Storage, config: {}}\n"
    )
    ran = command("sync", "--only", "lists", sandbox=sandbox, DAGSTER_HOME=str(own))
    assert (ran.code, "Traceback" in ran.text) == (2, False)
    assert "no_such_package" in ran.err
