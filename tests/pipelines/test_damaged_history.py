"""Dagster's files hold no data: where they are damaged a new history begins, with a message."""

import os
import resource
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from home.exits import HomeError
from home.failures import explain_error
from home.folder import prepare_home
from pipelines.dagster_internals import _is_whole, open_run_instance, set_damaged_history_aside
from warehouse.disk import Workspace, claim_file


@pytest.fixture
def dagster_home(home: Path) -> Path:
    folder = prepare_home(home) / "dagster"
    for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(folder / name)) as connection, connection:
            connection.execute("create table a (b primary key)")
            connection.executemany("insert into a values (?)", [(f"{number:0500}",) for number in range(100)])
    return folder


HARMS: list[Callable[[Path], object]] = [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(os.urandom(5000)),
    lambda path: path.write_bytes(path.read_bytes()[:9000]),
    lambda path: path.write_bytes(b"x" + path.read_bytes()[1:]),
    lambda path: Path(f"{path}-wal").mkdir(),
    lambda path: path.unlink() or path.mkdir(),
]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize(
    ("name", "lost"), [("history/runs.db", "UI any more"), ("schedules/schedules.db", "on again in the UI")]
)
def test_what_is_damaged_is_set_aside_and_the_rest_stays(
    dagster_home: Path, harm: Callable[[Path], object], name: str, lost: str
) -> None:
    assert set_damaged_history_aside(dagster_home) == []
    harm(dagster_home / name)
    (said,) = set_damaged_history_aside(dagster_home)
    assert lost in said
    folder = name.partition("/")[0]
    assert not (dagster_home / folder).exists()
    assert len(list(dagster_home.glob(f"{folder}.damaged-*"))) == 1
    assert set_damaged_history_aside(dagster_home) == []


def test_a_file_that_cannot_be_opened_now_is_not_called_damaged(dagster_home: Path) -> None:
    next_free = os.dup(0)
    os.close(next_free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free, limits[1]))
    try:
        whole = _is_whole(dagster_home / "history/runs.db")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert whole


def test_a_database_that_the_system_refuses_is_explained_with_what_to_do() -> None:
    try:
        try:
            raise sqlite3.OperationalError("unable to open database file")
        except sqlite3.OperationalError as refusal:
            raise RuntimeError("as a library wraps it") from refusal
    except RuntimeError as problem:
        sentence, code = explain_error(problem)
    assert (code, "readable and writable, and run the command again" in sentence) == (1, True)


def test_empty_settings_of_dagster_are_written_anew(dagster_home: Path, home: Path) -> None:
    before = (dagster_home / "dagster.yaml").read_bytes()
    (dagster_home / "dagster.yaml").write_bytes(b"")
    prepare_home(home)
    assert (dagster_home / "dagster.yaml").read_bytes() == before


@pytest.mark.parametrize("content", [b"\xff\0\xfe", b"[1, 2]"])
def test_damaged_settings_of_dagster_are_named_and_kept(
    dagster_home: Path, home: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_home))
    (dagster_home / "dagster.yaml").write_bytes(content)
    prepare_home(home)
    with pytest.raises(HomeError, match="you can move it away"), open_run_instance(home):
        pass
    assert (dagster_home / "dagster.yaml").read_bytes() == content


def test_every_command_that_writes_removes_what_dead_processes_left_and_nothing_of_the_living(
    home: Path,
) -> None:
    prepare_home(home)
    for name in (
        "tmp/rebuild/x/warehouse.duckdb",
        "tmp/spool/y/1.json",
        "tmp/publish/z/a",
        "tmp/spool/old.json",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("personal")
    with closing(Workspace(home / "tmp" / "report")) as alive:
        mine = alive.place_file("index.html")
        mine.write_text("in the making")
        prepare_home(home)
        ours = {home / "version", home / "dagster" / "dagster.yaml", mine}
        assert {path for path in home.rglob("*") if path.is_file()} == ours


def test_dagsters_databases_are_created_by_one_process_at_a_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two syncs of a new home that begin at the same moment."""
    own = prepare_home(home) / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(own))
    is_turn_of_one = []

    def look(opens: Callable[..., object]) -> Callable[..., object]:
        def opened(*given: object) -> object:
            is_turn_of_one.append(claim_file(own) is None)
            return opens(*given)

        return opened

    name = "pipelines.dagster_internals.set_damaged_history_aside"
    monkeypatch.setattr(name, look(set_damaged_history_aside))
    monkeypatch.setattr(dg.DagsterInstance, "get", look(dg.DagsterInstance.get))
    with open_run_instance(home):
        made = {path.name for path in own.rglob("*.db")}
        free = claim_file(own)
    assert is_turn_of_one == [True, True]
    assert {"runs.db", "index.db", "schedules.db"} <= made, "some are created later, by nobody's turn"
    assert free is not None, "runs take no turns"
    os.close(free)
