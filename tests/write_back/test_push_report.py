"""What a push came to, in figures and in words."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from home.output import Change, InputColumn, PushResult, Reason, ValueSample
from tests.write_back.plans import a_plan, contact, tag
from warehouse.forgetting import Forgotten
from write_back.input.rows import Rows
from write_back.item import OPEN, Item, Plan, Source, State
from write_back.kinds import CONTACTS, TAGS
from write_back.order import Order, Planned
from write_back.outbox.outbox import open_outbox
from write_back.push_report import collect_result, plan_lines, result_lines


def result(rows: Mapping[State, int], requests: Mapping[State, int]) -> PushResult:
    """What becomes of a push whose items have come so far."""
    states = [state for state, count in requests.items() for _ in range(count)]
    return PushResult(
        push=2,
        account="main",
        kind=TAGS,
        source="vip.csv",
        rows={str(state): count for state, count in rows.items()},
        requests={str(state): count for state, count in requests.items()},
        reasons=[],
        waiting=[],
        mismatches={},
        open=sum(state in OPEN for state in states),
        shortfall=sum(count for state, count in rows.items() if state in (*OPEN, State.REJECTED)),
        requests_sent=0,
        stopped=None,
        rejected_csv=None,
        row_count=sum(rows.values()),
    )


def planned(plan: Plan) -> Planned:
    return Planned(
        Order(TAGS, "main"), Rows({}, [], plan.source), plan, revision=0, forgotten=Forgotten(b""), rate=15.0
    )


def test_what_is_not_done_is_counted_in_rows_however_few_requests_they_make() -> None:
    halfway = result({State.APPLIED: 15, State.PLANNED: 87}, {State.APPLIED: 10, State.PLANNED: 64})
    assert "87 rows not done" in "\n".join(result_lines(halfway))
    assert "64 requests still open" in "\n".join(result_lines(halfway))


def test_what_stands_in_the_way_of_open_requests_is_said_and_what_can_be_done_about_it() -> None:
    stuck = result({State.UNKNOWN: 1, State.PLANNED: 2}, {State.UNKNOWN: 1, State.PLANNED: 2})
    stuck.waiting = [
        Reason([2], "it cannot be told", by_service=False),
        *(Reason([row], "waits for row 2", by_service=False) for row in (3, 4)),
    ]
    text = "\n".join(result_lines(stuck))
    assert "not done yet\n  rows 3, 4: waits for row 2\n  row 2: it cannot be told" in text
    assert "`marketing-sync push retry` looks up the unknown outcomes" in text
    assert "`marketing-sync push cancel 2 --unknown`" in text


def test_the_push_to_cancel_is_named() -> None:
    lines = result_lines(result({State.PLANNED: 1}, {State.PLANNED: 1}))
    assert "`marketing-sync push cancel 2` drops" in "\n".join(lines)


def test_an_input_without_rows_is_not_told_as_sent_before() -> None:
    assert result_lines(result({}, {}))[-1] == "nothing to send: the input has no rows; 0 requests sent"
    said = "nothing to send: the service already has everything; 0 requests sent"
    assert result_lines(result({State.SKIPPED: 1}, {}))[-1] == said


def test_what_was_guessed_and_addresses_that_are_unknown_are_told() -> None:
    added = tuple(Change(row, "a@example.com", "list", None, "News") for row in range(2, 7))
    columns = (("email", "E-Mail"), ("First name", "Vor\nname"))
    samples = [ValueSample("a@example.com", "a@example.com"), ValueSample("none", None)]
    described = [InputColumn("E-Mail", "email", samples), InputColumn("Vor\nname", "First name")]
    described.append(InputColumn("Notes", None))
    plan = Plan(
        "main",
        TAGS,
        Source("vip.csv", "hash"),
        60,
        (),
        new_count=60,
        changes=added,
        columns=columns,
        input_columns=described,
        unknown_address_count=1,
    )
    lines = plan_lines(planned(plan))
    start = lines.index("columns")
    assert [" ".join(line.split()) for line in lines[start + 1 : start + 4]] == [
        'email ← "E-Mail" a@example.com; none → invalid',
        'First name ← "Vor name" (empty)',
        "left out: Notes",
    ]
    assert (
        "  1 address is not in the warehouse: rows are rejected if the service doesn't have their address"
        in lines
    )
    assert "changes (examples from 60 rows)" in lines
    discreet = plan_lines(planned(replace(plan, kind=CONTACTS, unknown_address_count=2)), is_discreet=True)
    assert (
        "  2 addresses are not in the warehouse: the service adds each one, or updates it if it exists"
        in discreet
    )
    assert 'email ← "E-Mail"' in "".join(discreet)
    assert "@" not in "".join(discreet)
    assert all(line == line.rstrip() for line in discreet)


def test_a_sample_of_changes_says_so_when_all_rows_are_new() -> None:
    changes = tuple(Change(row, "a@example.com", "tag", None, "vip") for row in range(2, 8))
    plan = Plan("main", TAGS, Source("vip.csv", "hash"), 60, (), new_count=60, changes=changes)
    assert "changes (examples from 60 rows)" in plan_lines(planned(plan))


@pytest.mark.parametrize(
    ("item", "how", "why"),
    [
        (tag(1), "all", "can't be verified: the API doesn't return tags"),
        (
            contact(1, "ann@example.com", 1801),
            "sample",
            "only a sample is read back; `--verify all` reads all",
        ),
        (contact(1, "ann@example.com", 1801), "none", "nothing is read back with `--verify none`"),
        (contact(1, "ann@example.com", 1801), "all", "it could not be read back"),
    ],
    ids=["no operation", "sample", "none", "all"],
)
def test_rows_that_are_sent_and_not_verified_have_a_reason(
    tmp_path: Path, item: Item, how: str, why: str
) -> None:
    with open_outbox(tmp_path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(item), options={"verify": how})
        (entry,) = outbox.list_entries(push_id)
        assert outbox.claim_item(entry.item_id)
        outbox.settle_item(entry.item_id, State.APPLIED)
        assert any(
            line.split() == ["sent", "1", *why.split()]
            for line in result_lines(collect_result(tmp_path, outbox, push_id))
        )
        outbox.settle_item(entry.item_id, State.VERIFIED)
        assert collect_result(tmp_path, outbox, push_id).unverified is None
