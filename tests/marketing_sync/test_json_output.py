"""`--json`: one document on standard output, nothing else, of the declared shape, which only grows."""

import datetime as dt
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from docs.generate import json_schema
from home import output
from tests.fixtures import Command
from tests.marketing_sync.test_push_command import TAGS
from tests.pipelines.running import Ran, start_cold
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query
from tests.waiting import HANGS_S

T = TypeVar("T")
#: Every field that was ever there, with its type: lines are added to this, none is changed.
FIELDS = Path(__file__).with_name("json_output_fields.txt")


def document(ran: Ran, kind: type[T]) -> T:
    """What was printed; a field of another type or a line of text beside it would be an error."""
    return msgspec.json.decode(ran.out, type=kind, strict=True)


def test_no_field_is_renamed_removed_or_changed() -> None:
    defined = msgspec.json.decode(json_schema())["$defs"]
    fields = {
        f"{name}.{field}: {shape(how)}"
        for name, each in defined.items()
        for field, how in each["properties"].items()
    }
    before = set(FIELDS.read_text(encoding="utf-8").splitlines())
    assert before - fields == set(), "whoever reads the documents relies on these"
    assert fields - before == set(), f"new fields: add them to {FIELDS.name}"


def shape(how: Any) -> Any:
    """The schema of one field without its descriptions and defaults."""
    if isinstance(how, dict):
        return {
            name: shape(value)
            for name, value in sorted(how.items())
            if name not in ("description", "default")
        }
    return [shape(each) for each in how] if isinstance(how, list) else how


def test_status(command: Command, service: Sandbox) -> None:
    found = document(command("status", "--json", sandbox=service), output.Status)
    assert {table.table for table in found.tables} == {"business", "lists", "list_fields", "contacts"} & {
        t.table for t in found.tables
    }
    assert all(
        table.rows and not table.incomplete and table.newest and table.newest.tzinfo for table in found.tables
    )
    assert (found.contacts[0].contacts, found.contacts[0].timelines) == (100, 0)
    assert [(run.job, run.outcome) for run in found.runs] == [("nightly_sync", "done")]
    assert found.published is None


def test_status_of_nothing(command: Command) -> None:
    ran = command("status", "--json")
    assert ran.code == 0
    assert "run `marketing-sync sync`" in document(ran, output.Status).notices[0]


def test_plan(command: Command, service: Sandbox) -> None:
    found = document(
        command("sync", "--dry-run", "--json", "--max-requests", "60", sandbox=service), output.Plan
    )
    (account,) = found.accounts
    timelines = next(line for line in account.planned if line.what == "timelines")
    assert timelines.requests + timelines.left_out == timelines.of == 100
    assert timelines.why == {"new": timelines.requests}
    assert account.requests == sum(line.requests for line in account.planned) <= 60
    assert account.seconds == account.requests / account.rate
    assert (
        document(
            command("sync", "--dry-run", "--json", "--sandbox", MARKETING_HOME="elsewhere"), output.Plan
        ).accounts
        == []
    )


@pytest.mark.usefixtures("unrecorded")
def test_a_sync_says_what_it_came_to(command: Command, service: Sandbox) -> None:
    ran = command("sync", "--only", "lists", "contacts", "--json", sandbox=service)
    found = document(ran, output.SyncResult)
    assert (ran.code, found.not_read, found.problems, found.is_published) == (0, [], [], False)
    assert found.models is None
    (account,) = found.accounts
    assert (account.account, account.failures) == ("main", {})
    by_name = {table.table: table for table in found.tables}
    assert by_name["contacts"].rows == 100
    assert by_name["contacts"].share_read == 1


def test_doctor(command: Command, service: Sandbox) -> None:
    found = document(command("doctor", "--json", sandbox=service), output.Findings)
    assert found.is_well == all(each.is_well for each in found.findings)
    assert any("connected as" in each.text for each in found.findings)
    wrong = command("doctor", "--json", sandbox=service, MARKETING_API_KEY="wrong")
    assert wrong.code == 1
    assert not document(wrong, output.Findings).is_well


def test_a_push_from_plan_to_status(command: Command, service: Sandbox, home: Path) -> None:
    planned = document(command(*TAGS, "--json", sandbox=service), output.Push)
    assert planned.plan is not None
    assert (planned.plan.rows, planned.plan.new, planned.plan.requests, planned.results) == (12, 12, 13, [])
    assert service.count == 0
    ran = command(*TAGS, "--json", "--apply", sandbox=service)
    assert ran.code == 0, ran.text
    (result,) = document(ran, output.Push).results
    assert (sum(result.rows.values()), result.shortfall, result.open, result.reasons) == (12, 0, 0, [])
    again = document(command("push", "status", str(result.push), "--json", sandbox=service), output.Push)
    assert again.plan is None
    assert again.results[0].rows == result.rows
    (line,) = document(command("push", "status", "--json", sandbox=service), output.Pushes).pushes
    assert (line.push, line.rows, line.sent, line.rejected) == (result.push, 12, 12, 0)
    assert query(home, "select count(*) from sync.writebacks") == [(12,)]


def test_what_is_not_valid_is_named_and_refuses_the_push(
    command: Command, service: Sandbox, folder: Path
) -> None:
    (folder / "bad.csv").write_text("email,tag\nnobody,vip\n")
    ran = command("push", "tags", "--from", "bad.csv", "--json", "--apply", sandbox=service)
    assert ran.code == 1
    plan = document(ran, output.Push).plan
    assert plan is not None
    assert plan.refusal is not None
    assert [(bad.rows, bad.by_service) for bad in plan.invalid] == [([2], False)]


@pytest.mark.parametrize("words", [["status", "--json"], ["sync", "--dry-run", "--json"]])
def test_problems_go_to_standard_error(command: Command, words: list[str]) -> None:
    ran = command(*words, MARKETING_LOOKBACK_DAYS="soon")
    assert (ran.code, ran.out) == (2, "")
    assert "MARKETING_LOOKBACK_DAYS" in ran.err


def test_times_are_in_utc_wherever_the_machine_is(home: Path, service: Sandbox) -> None:
    began = start_cold(home, service, "status", "--json", TZ="America/New_York")
    out, err = began.communicate(timeout=HANGS_S)
    assert began.returncode == 0, err
    assert [line.strip() for line in out.splitlines() if "T" in line and re.search(r"\d-\d\d:00", line)] == []
    found = msgspec.json.decode(out, type=output.Status)
    assert {table.newest.utcoffset() for table in found.tables if table.newest} == {dt.timedelta()}
