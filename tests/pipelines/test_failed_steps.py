"""A night whose steps after the reading fail goes on, says why, and ends with 1."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.materialize import failures_in
from home.settings import Settings
from pipelines.push_jobs import AudienceSyncs
from tests.fixtures import Alerts, Command
from tests.pipelines.sandboxes import Sandbox


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[activations.vip\n", "activations.toml cannot be read"),
        (None, "there is no activations.toml"),
    ],
)
def test_broken_activations_are_reported_and_posted(
    folder: Path, home: Path, alerts: type[Alerts], content: str | None, said: str
) -> None:
    if content is not None:
        (folder / "activations.toml").write_text(content)
    syncs = AudienceSyncs(Settings(home, folder=folder, activations=True, alert_url=alerts.url))
    syncs.run_syncs()
    assert syncs.lines == syncs.problems
    assert said in syncs.problems[0]
    (body,) = alerts.bodies
    assert body["text"] == f"marketing-sync: {syncs.problems[0]}"


def test_entry_that_cannot_be_planned_is_posted(folder: Path, home: Path, alerts: type[Alerts]) -> None:
    entry = '[activations.vip]\nquery = "select 1"\ntag = "vip"\naccount = "hill"\n'
    (folder / "activations.toml").write_text(entry)
    home.mkdir()
    syncs = AudienceSyncs(Settings(home, folder=folder, activations=True, alert_url=alerts.url))
    syncs.run_syncs()
    (body,) = alerts.bodies
    assert "vip: activations.toml, [activations.vip]: no account is named 'hill'" in body["text"]


@pytest.fixture
def events() -> Iterator[dg.ExecuteInProcessResult]:
    @dg.op
    def publish() -> None:
        raise PermissionError(13, "Permission denied", "published")

    @dg.job
    def night() -> None:
        publish()

    with dg.DagsterInstance.ephemeral() as instance:
        yield night.execute_in_process(instance=instance, raise_on_error=False)


def test_reason_of_a_step_is_the_error_s_own(events: dg.ExecuteInProcessResult) -> None:
    reasons = failures_in(event for event in events.all_events if event.is_step_failure)
    assert reasons == {"publish": "PermissionError: [Errno 13] Permission denied: 'published'"}


@pytest.mark.slow
def test_night_names_every_step_that_failed(
    command: Command, folder: Path, home: Path, known_night: Sandbox
) -> None:
    (folder / "activations.toml").write_text("[activations.vip\n")
    shutil.rmtree(home / "report")
    (home / "report").touch()
    ran = command("sync", "--quiet", sandbox=known_night, MARKETING_ACTIVATIONS="on")
    assert ran.code == 1
    failed = ran.out.partition("\nfailed\n")[2]
    assert "activations: no activation was pushed: activations.toml cannot be read" in failed
    assert "report: " in failed
    assert "something unexpected" not in failed
    assert "\npublished: " in ran.out, "the night goes on"
