"""`marketing-sync push revert`: dry by default, then the fields are what they were."""

from pathlib import Path

from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query

ROWS = (
    "select email, list_id, 'Springfield' as city from source.contacts where status = 'active' "
    "order by email limit 3"
)


def test_a_push_is_reverted_once(command: Command, service: Sandbox, home: Path) -> None:
    sent = command("push", "contacts", "--sql", ROWS, "--verify", "all", "--apply", sandbox=service)
    assert sent.code == 0, sent.text
    asked = service.count
    planned = command("push", "revert", "1", sandbox=service)
    assert (planned.code, service.count) == (0, asked), planned.text
    assert "3 rows of revert of push 1 → contacts" in planned.out
    assert "Springfield → " in planned.out
    assert "at least 7 requests (including 3 look-ups)" in planned.out
    assert planned.out.rstrip().endswith("marketing-sync push revert 1 --apply")
    reverted = command("push", "revert", "1", "--apply", sandbox=service)
    # a sample of one is read back
    assert (reverted.code, service.count - asked) == (0, 7 + 1), reverted.text
    states = query(home, "select distinct state from sync.writebacks where push_id = 2")
    assert {state for (state,) in states} <= {"applied", "verified"}
    asked = service.count
    again = command("push", "revert", "1", "--apply", sandbox=service)
    assert "3 values that are already as before the push" in again.out, again.text
    assert service.count == asked


def test_a_push_that_is_not_there_is_named(command: Command, service: Sandbox) -> None:
    ran = command("push", "revert", "7", "--apply", sandbox=service)
    assert (ran.code, "has no push 7" in ran.err) == (2, True), ran.text
    assert command("push", "revert", sandbox=service).code == 2
