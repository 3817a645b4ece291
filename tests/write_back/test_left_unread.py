"""Killed between sending and reading back: the next push, whichever way it comes, reads back what was left,
also when it plans nothing."""

import functools
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from home.settings import Settings
from marketing_api.client import Connection, Secret
from pipelines.push_jobs import AudienceSyncs
from tests.dialects.server import serve
from tests.fixtures import STANDING, Command
from tests.marketing_sync.test_push_command import ACTIVE, sent
from tests.pipelines.running import environment
from tests.pipelines.sandboxes import KEY, Sandbox, move_account
from tests.pipelines.test_nightly import failures
from tests.write_back.test_push_jobs import job
from write_back import push_service
from write_back.item import RetryPolicy, State
from write_back.kinds import TAGS, verify_pushes
from write_back.outbox.outbox import open_outbox

pytestmark = pytest.mark.filterwarnings("ignore")

#: The command, which says when everything was sent, and then never reads back.
KILLED = """
import sys, time
from marketing_sync import cli
from write_back.push_service import PushRun
PushRun.read_back = lambda run: (print("sent", flush=True), time.sleep(600))
cli.main(sys.argv[1:])
"""
NEWCOMERS = "select 'new' || range || '@example.com' as email, 'Newsletter' as list from range(6)"
#: Two people to be tagged, or nobody: tags are not read back, so that every look is at what was left.
SOME, NOBODY = ACTIVE.replace("limit 12", "limit 2"), ACTIVE.replace("limit 12", "limit 0")


def push_and_kill(home: Path, service: Sandbox, folder: Path, *words: str) -> None:
    """A push that everything was sent of; its process is killed before it looks."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, "push", *words],
        cwd=folder,
        env=environment(home, service),
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert "sent\n" in child.stdout
        child.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def killed(known_account: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Sandbox]]:
    """A home in which a push that was to be read back whole was killed before that, and its service."""
    folder = tmp_path_factory.mktemp("killed")
    home = Path(shutil.copytree(known_account, folder / "home"))
    with serve(STANDING) as url:
        move_account(home, url)
        push_and_kill(
            home, Sandbox(url), folder, "contacts", "--sql", NEWCOMERS, "--verify", "all", "--apply"
        )
        yield home, Sandbox(url)


@pytest.fixture
def left(killed: tuple[Path, Sandbox], home: Path) -> Sandbox:
    """`home` is that of the killed push; nothing of it was looked at."""
    shutil.copytree(killed[0], home)
    assert states(home) == {State.APPLIED: 6}
    return killed[1]


@pytest.fixture
def settings(left: Sandbox, home: Path, folder: Path) -> Settings:
    return replace(Settings(home, (Connection("main", left.url, Secret(KEY)),)), folder=folder)


def states(home: Path, push_id: int = 1) -> dict[State, int]:
    """Requests of a push by state, however many are not looked at yet."""
    with open_outbox(home) as outbox:
        return dict(outbox.count_states(push_id).requests)


Push = Callable[[str], None]


@pytest.fixture
def by_command(command: Command, left: Sandbox) -> Push:
    def push(people: str) -> None:
        ran = command(
            "push", "tags", "--sql", f"select *, 'vip' as tag from ({people})", "--apply", sandbox=left
        )
        assert ran.code == 0, ran.text

    return push


def job_with(settings: Settings, people: str) -> dg.ExecuteInProcessResult:
    """The job that tags people, as the UI starts it."""
    config = {"sql": f"select *, 'vip' as tag from ({people})", "dry_run": False, "confirm": "send"}
    with dg.DagsterInstance.ephemeral() as instance:
        return job(TAGS, settings).execute_in_process(
            instance=instance, run_config={"ops": {"plan_tags": {"config": config}}}, raise_on_error=False
        )


@pytest.fixture
def by_job(settings: Settings) -> Push:
    def push(people: str) -> None:
        result = job_with(settings, people)
        assert result.success, failures(result)

    return push


@pytest.fixture
def by_activations(settings: Settings, folder: Path) -> Push:
    """As the schedule runs them, behind a night's models."""

    def push(people: str) -> None:
        (folder / "activations.toml").write_text(f'[activations.vip]\nquery = "{people}"\ntag = "vip"\n')
        activations = AudienceSyncs(settings)
        activations.run_syncs()
        assert (len(activations.lines), activations.problems) == (1, [])

    return push


@pytest.mark.slow
@pytest.mark.parametrize("people", [SOME, NOBODY], ids=["planned", "nothing-planned"])
@pytest.mark.parametrize("entry", ["by_command", "by_job", "by_activations"])
def test_the_next_push_reads_back_what_was_left(
    left: Sandbox, home: Path, folder: Path, request: pytest.FixtureRequest, entry: str, people: str
) -> None:
    """All of it, as it was ordered, although the next one itself is read by a sample."""
    push: Push = request.getfixturevalue(entry)
    before = left.count
    push(people)
    assert states(home) == {State.VERIFIED: 6}
    assert sent(left, before).count("addtag") == (2 if people == SOME else 0)
    assert "synccontact" not in sent(left, before), "it was sent again"
    with open_outbox(home) as outbox:
        assert not outbox.has_left("main")


def test_activations_with_nothing_to_say_and_nothing_left_begin_no_push(
    settings: Settings, by_activations: Push, left: Sandbox
) -> None:
    by_activations(NOBODY)
    before = left.count
    by_activations(NOBODY)
    with open_outbox(settings.home) as outbox:
        assert [push.row_count for push in outbox.list_pushes()] == [0, 6], "one for what was left"
    assert left.count == before


def test_a_retry_reads_back_what_was_left(command: Command, left: Sandbox, home: Path) -> None:
    ran = command("push", "retry", sandbox=left)
    assert ran.code == 0, ran.text
    assert "push 1: 6 rows of query" in ran.out
    assert states(home) == {State.VERIFIED: 6}


@pytest.mark.attack
@pytest.mark.parametrize("entry", ["job", "activations"])
def test_an_earlier_push_without_effect_is_told_as_such(
    service: Sandbox, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.setattr(
        push_service, "verify_pushes", functools.partial(verify_pushes, policy=RetryPolicy(verify_wait_s=0.0))
    )
    service.control("switches", **{"sync-delay": "100000"})
    push_and_kill(home, service, folder, "contacts", "--sql", NEWCOMERS, "--verify", "all", "--apply")
    settings = replace(Settings(home, (Connection("main", service.url, Secret(KEY)),)), folder=folder)
    if entry == "job":
        (said,) = failures(job_with(settings, NOBODY)).values()
        assert "push 1: 6 of 6 rows not done (6 with a mismatch on read-back)" in said
    else:
        (folder / "activations.toml").write_text(f'[activations.vip]\nquery = "{NOBODY}"\ntag = "vip"\n')
        activations = AudienceSyncs(settings)
        activations.run_syncs()
        (said,) = activations.problems
        assert said.endswith("requests; 6 with a mismatch on read-back")
