"""What was read back otherwise than it was sent is never told as done."""

import functools
from pathlib import Path

import pytest

from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query
from write_back import push_service
from write_back.item import RetryPolicy
from write_back.kinds import verify_pushes


@pytest.fixture(autouse=True)
def _nothing_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading back does not wait for a queue that is not there."""
    monkeypatch.setattr(
        push_service, "verify_pushes", functools.partial(verify_pushes, policy=RetryPolicy(verify_wait_s=0.0))
    )


def people(folder: Path, home: Path, count: int, lists: int) -> tuple[str, ...]:
    """The command that adds so many to so many lists; the last of them to one more line of its own."""
    names = [name for (name,) in query(home, f"select list_id from source.lists order by 1 limit {lists}")]
    rows = [f'new{row}@example.com,"{",".join(map(str, names))}"' for row in range(count)]
    (folder / "people.csv").write_text("\n".join(["email,list", *rows]) + "\n")
    return "push", "contacts", "--from", "people.csv", "--apply"


def members(service: Sandbox) -> int:
    """Contacts on lists that were added."""
    return len(service.control("written")["contacts"])


def test_what_is_missing_in_a_list_is_not_done(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    """One of the sample shows it; then all of that form are looked at."""
    service.control("switches", **{"sync-lists": "first"})
    ran = command(*people(folder, home, 12, 2), sandbox=service)
    assert ran.code == 1, ran.text
    assert "contact: 12 requests" in ran.out
    assert members(service) == 12
    assert query(home, "select state, count(*) from sync.writebacks where drift <> '{}' group by 1") == [
        ("applied", 12)
    ]


def test_drift_is_not_done_until_it_is_retried(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    service.control("switches", **{"sync-delay": "100000"})
    words = people(folder, home, 3, 1)
    ran = command(*words, "--verify", "all", sandbox=service)
    assert ran.code == 1, ran.text
    assert "contact: 3 requests" in ran.out
    assert "3 rows not done" in ran.out
    assert "`marketing-sync push retry 1` sends again" in ran.out
    before = service.count
    again = command(*words, sandbox=service)
    assert (again.code, service.count) == (1, before), again.text
    assert "this was sent before, with a mismatch on read-back" in again.out
    assert "`marketing-sync push retry` sends again" in again.out
    assert query(
        home,
        "select state, drift ->> '$.contact[1]', count(*) from sync.writebacks where push_id = 1 "
        "group by all",
    ) == [("applied", "not there", 3)]

    service.control("switches", **{"sync-delay": "0"})
    retried = command("push", "retry", sandbox=service)
    assert "3 requests to be tried again" in retried.out
    assert retried.code == 0, retried.text
    assert members(service) == 3
    assert command(*words, sandbox=service).code == 0


@pytest.mark.parametrize(
    ("switch", "code", "arrived"),
    [({}, 0, 24), pytest.param({"sync-delay": "100000"}, 1, 0, marks=pytest.mark.slow)],
)
def test_a_push_that_ended_before_it_was_read_back_is_read_by_the_next(
    command: Command,
    service: Sandbox,
    home: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    switch: dict[str, str],
    code: int,
    arrived: int,
) -> None:
    """Everything was sent, and then the program was killed."""
    service.control("switches", **switch)
    words = people(folder, home, 12, 2)
    with monkeypatch.context() as killed:
        killed.setattr(push_service.PushRun, "read_back", lambda _: None)
        command(*words, sandbox=service)
    ran = command(*words, sandbox=service)
    assert ran.code == code, ran.text
    assert "push 1: " in ran.out
    assert ("mismatches on read-back" in ran.out) == bool(code)
    assert members(service) == arrived
    before = service.count
    assert command(*words, sandbox=service).code == code
    assert service.count == before
