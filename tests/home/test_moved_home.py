"""A home can be moved, copied and restored: it works where it is, and nothing points at its old place."""

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from home.folder import prepare_home
from tests.fixtures import UNMISTAKABLE, Night, StartSandbox
from tests.pipelines.leftovers import contents
from tests.pipelines.running import finish, run, start
from tests.pipelines.sandboxes import move_account
from tests.ports import free_port
from tests.waiting import HANGS_S
from tests.warm import Command

#: What the overview page asks for, and only shows when a run has a `repositoryOrigin` of a loaded code
#: location (Dagster 1.13).
TIMELINE = """{
    runsOrError(limit: 10) { ... on Runs { results {
        id pipelineName status tags { key value } repositoryOrigin { repositoryName repositoryLocationName }
    } } }
    workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError { ... on RepositoryLocation {
        name repositories { name pipelines { name } }
    } } } } }
}"""


def naming(home: Path, place: Path) -> list[str]:
    """The files of `home` that name the place."""
    return [where for where, content in contents(home) if str(place).encode() in content]


def state(home: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in home.rglob("*")}


@pytest.fixture
def copied(rough_night: Night, tmp_path: Path) -> Iterator[Path]:
    """The home of that night in another place; what is done to it is not seen where it was."""
    before = state(rough_night.home)
    home = Path(shutil.copytree(rough_night.home, tmp_path / "restored"))
    yield home
    assert state(rough_night.home) == before


def test_no_file_of_a_home_names_its_place(rough_night: Night) -> None:
    assert naming(rough_night.home, rough_night.home) == []


@pytest.mark.attack
def test_a_copied_home_goes_on_where_it_is(
    copied: Path, start_sandbox: StartSandbox, rough_night: Night
) -> None:
    service, key = start_sandbox("--key", UNMISTAKABLE), UNMISTAKABLE
    move_account(copied, service.url)
    tags = ("push", "tags", "--sql", "select email, 'vip' as tag from source.contacts order by 1 limit 3")
    commands = (
        ("status",),
        ("publish",),
        tags,
        (*tags, "--apply"),
        ("rebuild",),
        ("sync", "--only", "lists"),
        ("push", "status"),
    )
    for words in commands:
        ran = run(copied, service, *words, MARKETING_API_KEY=key)
        assert ran.code == 0, ran.text
        assert str(rough_night.home) not in ran.text
    assert naming(copied, copied) == []
    assert naming(copied, rough_night.home) == []


@pytest.mark.slow
def test_the_ui_of_a_copied_home_has_the_commands_runs_in_its_timeline(
    copied: Path, start_sandbox: StartSandbox
) -> None:
    port = free_port()
    service = start_sandbox("--key", UNMISTAKABLE)
    move_account(copied, service.url)
    process = start(copied, service, "ui", "--port", str(port), MARKETING_API_KEY=UNMISTAKABLE)
    try:
        answer = _timeline(port, process)
    finally:
        process.send_signal(signal.SIGTERM)
        finish(process)
    (location,) = (entry["locationOrLoadError"] for entry in answer["workspaceOrError"]["locationEntries"])
    (repository,) = location["repositories"]
    (night,) = answer["runsOrError"]["results"]
    assert night["repositoryOrigin"] == {
        "repositoryName": repository["name"],
        "repositoryLocationName": location["name"],
    }
    assert (night["pipelineName"], night["status"]) == ("nightly_sync", "SUCCESS")
    assert night["pipelineName"] in [job["name"] for job in repository["pipelines"]]
    assert {"key": "user", "value": "marketing-sync sync"} in night["tags"], (
        "else it is shown as launched manually"
    )


def _timeline(port: int, process: Command) -> Any:
    until = time.monotonic() + HANGS_S
    while time.monotonic() < until:
        assert process.poll() is None, "it did not start"
        try:
            answer = requests.post(
                f"http://127.0.0.1:{port}/graphql", json={"query": TIMELINE}, timeout=HANGS_S
            ).json()
        except requests.ConnectionError:
            time.sleep(1)
            continue
        return answer["data"]
    raise AssertionError("it did not answer")


def test_what_a_kill_leaves_of_dagster_yaml_does_not_pass_for_a_persons(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    prepare_home(home)
    (home / "dagster" / "dagster.yaml").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("warehouse.disk.move_into_place", die)
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # nor is a killed process there to clear up
        with pytest.raises(KeyboardInterrupt):
            prepare_home(home)
    text = (prepare_home(home) / "dagster" / "dagster.yaml").read_text(encoding="utf-8")
    assert text.endswith("so that a home can be moved and copied\n")
    assert "dagster.yaml" in {path.name for path in (home / "dagster").iterdir()}
