"""The outbox keeps what it was told, refuses what cannot be, and never loses or repeats an intent."""

import json
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from home.settings import SettingsError
from tests.write_back.plans import a_plan, activity, contact, find_entry, tag
from write_back.item import BeforePush, Expected, Reason, RevertedValues, State
from write_back.kinds import NOT_IDEMPOTENT
from write_back.outbox import outbox as outbox_module
from write_back.outbox.outbox import Claim, Outbox
from write_back.outbox.store import (
    OutboxBusy,
    OutboxDamaged,
    OutboxError,
    OutboxTooNew,
    OutboxTooOld,
    sender_lock,
)
from write_back.push_service import find_push


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "outbox.sqlite"


def noted(path: Path, columns: str) -> tuple[Any, ...]:
    """What the file keeps of its only push."""
    with closing(sqlite3.connect(path)) as connection:
        (row,) = connection.execute(f"select {columns} from push")
    return tuple(row)


def test_a_push_is_found_by_its_number_and_is_of_one_account(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(tag(2)))
        assert find_push(outbox, None, push_id) == find_push(outbox, "main", push_id)
        with pytest.raises(SettingsError, match=f"account other has no push {push_id}"):
            find_push(outbox, "other", push_id)


def test_changes_within_another_are_kept_together_or_not_at_all(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(tag(2), tag(3)))
        first, second = outbox.list_entries(push_id)

        def claim_and_fail() -> None:
            with outbox.open_change():
                outbox.claim_item(first.item_id)
                outbox.settle_item(second.item_id, State.VERIFIED)

        with pytest.raises(ValueError, match="cannot become"):
            claim_and_fail()
        assert outbox.list_entries(push_id) == [first, second]
        with outbox.open_change():
            outbox.claim_item(first.item_id)
            outbox.settle_item(first.item_id, State.APPLIED)
        assert find_entry(outbox, first.item_id).state is State.APPLIED


def test_a_push_is_read_back_as_it_was_begun(path: Path) -> None:
    item = contact(2, "ann@example.com", 7, fields={"12": "Köln, =1+1"})
    with Outbox(path) as outbox:
        plan = a_plan(item, idle=[3], bad=[Reason((4,), "no address")])
        push_id = outbox.enqueue_plan(plan, run="r1", options={"verify": "all"})
    with Outbox(path) as outbox:
        push = outbox.find_push(push_id)
        assert push is not None
        assert (push.row_count, push.options) == (3, {"verify": "all"})
        assert noted(path, "item_count, idle_count, bad_count, run") == (1, 1, 1, "r1")
        entries = outbox.list_entries(push_id)
        sent = entries[0]
        for name in ("kind", "rows", "operation", "params", "expected", "email", "contact_id"):
            assert getattr(sent, name) == getattr(item, name)
        assert outbox.find_subjects([sent.item_id]) == {sent.item_id: [*item.effects]}
        assert [(entry.rows, entry.state, entry.rejected_by) for entry in entries] == [
            ((2,), State.PLANNED, None),
            ((4,), State.REJECTED, "check"),
            ((3,), State.SKIPPED, None),
        ]
        assert [entry.item_id for entry in outbox.list_open("main")] == [entries[0].item_id]
        assert not outbox.list_open("other")


def test_expected_values_keep_the_names_of_earlier_homes(path: Path) -> None:
    """An outbox of 1.0.0 has these names in its JSON, and an earlier program reads them."""
    expected = Expected(
        status="active",
        fields={"12": "Köln"},
        lists=[7],
        contact_ids={7: [101]},
        known_statuses={8: "bounced"},
        kept_statuses={7: None},
        left_lists=[8],
        may_raise=True,
        is_repeated=True,
        before={7: BeforePush(True, {"12": "Bonn"})},
        reverted=RevertedValues(None, {"12": "Ulm"}, {"12": "City"}),
        look_up_count=1,
        at=1767614400,
    )
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(replace(contact(2, "ann@example.com", 7), expected=expected)))
        assert outbox.list_entries(push_id)[0].expected == expected
    ((stored,),) = sqlite3.connect(path).execute("select expected from item")
    assert json.loads(stored) == {
        "status": "active",
        "fields": {"12": "Köln"},
        "lists": [7],
        "ids": {"7": [101]},
        "held": {"8": "bounced"},
        "statuses": {"7": None},
        "left": [8],
        "may_raise": True,
        "again": True,
        "before": {"7": {"exists": True, "values": {"12": "Bonn"}}},
        "reverts": {"status": None, "fields": {"12": "Ulm"}, "labels": {"12": "City"}},
        "look_up": 1,
        "at": 1767614400,
    }


def test_what_is_open_comes_in_batches_and_all_that_is_unknown_at_first(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "_CHUNK", 3)
    with Outbox(path) as outbox:
        first = outbox.enqueue_plan(a_plan(*(tag(row) for row in range(2, 14))))
        ids = [entry.item_id for entry in outbox.list_entries(first)]
        outbox.claim_item(ids[4])
        outbox.settle_item(ids[4], State.UNKNOWN)
        outbox.claim_item(ids[1])
        outbox.settle_item(ids[1], State.APPLIED)
        count, batches = outbox.open_batches("main")
        found = [[entry.item_id for entry in next(batches)]]
        second = outbox.enqueue_plan(a_plan(tag(20)))
        found += [[entry.item_id for entry in batch] for batch in batches]
        assert (count, found) == (11, [[ids[0], *ids[2:5]], ids[5:8], ids[8:11], ids[11:]])
        outbox.cancel_items("main", first)
        assert [entry.push_id for entry in outbox.list_open("main")] == [first, second]
        assert (outbox.open_count("main"), outbox.open_count(None), outbox.open_count("other")) == (2, 2, 0)
        assert outbox.open_batches("other")[0] == 0


def test_only_the_owner_can_read_it(path: Path) -> None:
    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(tag(2)))
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.glob("outbox.sqlite*")}
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3


def test_a_claimed_item_is_claimed_once(path: Path) -> None:
    with Outbox(path) as outbox, Outbox(path) as other:
        push_id = outbox.enqueue_plan(a_plan(tag(2)))
        (entry,) = outbox.list_entries(push_id)
        assert outbox.claim_item(entry.item_id)
        assert not other.claim_item(entry.item_id)
        assert find_entry(other, entry.item_id).attempts == 1


def test_what_was_being_sent_when_the_sender_died_is_unknown(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(tag(2), tag(3)))
        first, _second = outbox.list_entries(push_id)
        outbox.claim_item(first.item_id)
    with Outbox(path) as outbox:
        assert outbox.recover_sent("other") == 0
        assert outbox.recover_sent("main") == 1
        assert [entry.state for entry in outbox.list_entries(push_id)] == [State.UNKNOWN, State.PLANNED]
        assert outbox.recover_sent("main") == 0


def test_a_push_is_not_read_back_from_the_moment_that_something_of_it_leaves(path: Path) -> None:
    """Whoever sends it, and also when it was read back before."""
    with Outbox(path) as outbox:
        push_id, idle = outbox.enqueue_plan(a_plan(tag(2), tag(3))), outbox.enqueue_plan(a_plan(tag(4)))
        (first, second), unread = outbox.list_entries(push_id), []
        for entry, state in ((first, State.APPLIED), (second, State.UNKNOWN)):
            unread += [outbox.not_read_back("main")]
            outbox.claim_item(entry.item_id)
            outbox.settle_item(entry.item_id, state)
            unread += [outbox.not_read_back("main")]
            outbox.note_read_back([push_id, idle])
        assert unread == [set(), {push_id}, set(), {push_id}]
        outbox.settle_item(second.item_id, State.PLANNED)
        assert (outbox.not_read_back("main"), outbox.not_read_back("other")) == (set(), set())
        outbox.claim_item(second.item_id)
        assert outbox.not_read_back("main") == {push_id}, "the other one may have been sent"


@pytest.mark.parametrize("state", [State.APPLIED, State.VERIFIED, State.UNKNOWN, State.SENDING])
def test_what_was_never_sent_cannot_be_done(path: Path, state: State) -> None:
    with Outbox(path) as outbox:
        (entry,) = outbox.list_entries(outbox.enqueue_plan(a_plan(tag(2))))
        with pytest.raises(ValueError, match="cannot become"):
            outbox.settle_item(entry.item_id, state)
        assert find_entry(outbox, entry.item_id).state is State.PLANNED


def test_what_was_certainly_not_sent_is_as_if_never_claimed(path: Path) -> None:
    with Outbox(path) as outbox:
        (before,) = outbox.list_entries(outbox.enqueue_plan(a_plan(tag(2))))
        outbox.claim_item(before.item_id)
        outbox.unclaim_item(before.item_id)
        after = find_entry(outbox, before.item_id)
        assert (after.state, after.attempts, after.sent_at) == (State.PLANNED, 0, None)


def test_the_last_effect_on_a_subject_counts_and_cancelled_ones_do_not(path: Path) -> None:
    with Outbox(path) as outbox:
        (added,) = outbox.list_entries(outbox.enqueue_plan(a_plan(tag(2, "ann@example.com"))))
        outbox.claim_item(added.item_id)
        outbox.settle_item(added.item_id, State.APPLIED, request_id=77)
        outbox.enqueue_plan(a_plan(tag(2, "ann@example.com", action="remove")))
        subject = "ann@example.com|vip"
        assert outbox.find_last("main", [subject, "nobody|vip"], added.kind)[subject].content == "remove"
        assert outbox.cancel_items("main") == 1
        past = outbox.find_last("main", [subject, "nobody|vip"], added.kind)
        assert {name: (one.content, one.state) for name, one in past.items()} == {
            subject: ("add", State.APPLIED)
        }
        assert not outbox.find_last("other", [subject], added.kind)


def test_retry_plans_rejected_ones_again_but_never_over_a_later_change(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(
            a_plan(tag(2, "ann@example.com"), tag(3, "bob@example.com"), bad=[Reason((4,), "no address")])
        )
        for entry in outbox.list_entries(push_id, [State.PLANNED]):
            outbox.claim_item(entry.item_id)
            outbox.settle_item(entry.item_id, State.REJECTED, message="no such contact")
        (later,) = outbox.list_entries(
            outbox.enqueue_plan(a_plan(tag(2, "bob@example.com", action="remove")))
        )
        outbox.claim_item(later.item_id)
        outbox.settle_item(later.item_id, State.APPLIED)
        retried = outbox.retry_items("main", push_id, not_idempotent=NOT_IDEMPOTENT)
        assert (retried.planned, retried.superseded) == (1, 1)
        (again,) = outbox.list_open("main")
        assert (again.email, again.state, again.message, again.rejected_by) == (
            "ann@example.com",
            State.PLANNED,
            None,
            None,
        )


def test_retry_leaves_what_its_caller_calls_permanent(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(
            a_plan(tag(2, "ann@example.com"), tag(3, "bob@example.com"), tag(4, "cy@example.com"))
        )
        for entry, message in zip(
            outbox.list_entries(push_id), ("no such list", "no such contact", None), strict=True
        ):
            outbox.claim_item(entry.item_id)
            outbox.settle_item(entry.item_id, State.REJECTED, message=message)
        retried = outbox.retry_items(
            "main", push_id, not_idempotent=NOT_IDEMPOTENT, is_left=lambda message: message == "no such list"
        )
        assert (retried.planned, [entry.email for entry in retried.left]) == (2, ["ann@example.com"])
        left = outbox.list_entries(push_id, [State.REJECTED])
        assert [entry.email for entry in left] == ["ann@example.com"]


def test_a_corrected_row_is_rejected_no_more_and_only_where_it_is_that_row(path: Path) -> None:
    with Outbox(path) as outbox:
        bad = [Reason(rows, "no address") for rows in ((2,), (3,), (4, 5), (6, 7))]
        first = outbox.enqueue_plan(a_plan(bad=bad))
        outbox.enqueue_plan(
            a_plan(),
            corrects=[
                *((str(first), row) for row in ("2", "4", "5", "6", "12")),
                ("99", "3"),
                ("9" * 30, "3"),
                ("", "3] or true"),
            ],
        )
        assert [entry.rows for entry in outbox.list_entries(first, [State.REJECTED])] == [(3,), (6, 7)]
        counts = outbox.count_states(first)
        assert counts.rows == {State.SKIPPED: 3, State.REJECTED: 3}


def test_retry_leaves_unknown_activities_to_be_looked_for_first(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(activity(2, 11, "called")))
        (entry,) = outbox.list_entries(push_id)
        outbox.claim_item(entry.item_id)
        outbox.settle_item(entry.item_id, State.UNKNOWN)
        assert outbox.retry_items("main", not_idempotent=NOT_IDEMPOTENT).planned == 1
        after = find_entry(outbox, entry.item_id)
        assert (after.state, after.attempts) == (State.UNKNOWN, 0)


def test_counts_tell_rows_by_their_least_far_item(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(
            a_plan(
                tag(2, "a@example.com"), tag(2, "b@example.com"), tag(3), idle=[4], bad=[Reason((5,), "no")]
            )
        )
        first, _second, third = outbox.list_entries(push_id, [State.PLANNED])
        for entry in (first, third):
            outbox.claim_item(entry.item_id)
            outbox.settle_item(entry.item_id, State.APPLIED)
        counts = outbox.count_states(push_id)
        assert counts.rows == {State.PLANNED: 1, State.APPLIED: 1, State.SKIPPED: 1, State.REJECTED: 1}
        assert counts.requests == {State.PLANNED: 1, State.APPLIED: 2}
        assert [entry.why for entry in outbox.list_entries(push_id, [State.REJECTED])] == [Reason((5,), "no")]


def test_every_change_of_an_entry_raises_its_revision(path: Path) -> None:
    with Outbox(path) as outbox:
        push_id = outbox.enqueue_plan(a_plan(tag(2), tag(3), idle=[4]))
        seen = outbox.revision
        assert len(list(outbox.changed_since(0))) == 3
        assert not list(outbox.changed_since(seen))
        first, second = outbox.list_entries(push_id, [State.PLANNED])
        changes = [
            lambda: outbox.claim_item(first.item_id),
            lambda: outbox.settle_item(first.item_id, State.UNKNOWN),
            lambda: outbox.settle_item(first.item_id, State.APPLIED),
            lambda: outbox.settle_item(first.item_id, State.VERIFIED, drift={}),
        ]
        for change in changes:
            change()
            assert [entry.item_id for entry in outbox.changed_since(seen)] == [first.item_id]
            seen = outbox.revision
        outbox.cancel_items("main")
        assert [entry.item_id for entry in outbox.changed_since(seen)] == [second.item_id]


@pytest.mark.slow
def test_a_hundred_thousand_skipped_rows_are_forgotten_after_a_week(
    path: Path,
) -> None:
    now = 1_000_000.0
    with Outbox(path, clock=lambda: now) as outbox:
        push_id = outbox.enqueue_plan(a_plan(tag(2), idle=range(3, 100_003)))
        assert outbox.prune_rows(7) == 0
        now += 8 * 86_400
        assert outbox.prune_rows(7) == 100_000
        assert [entry.state for entry in outbox.list_entries(push_id)] == [State.PLANNED]
        assert noted(path, "idle_count") == (100_000,)


def test_claims_change_as_they_are_told(path: Path) -> None:
    wanted, left = Claim(takes_away=True, is_wanted=True), Claim(takes_away=True, is_wanted=False)
    with Outbox(path) as outbox:
        outbox.claim_subjects("main", "vips", {"ann|vip": wanted, "bob|vip": wanted})
        outbox.claim_subjects("main", "vips", {"ann|vip": None, "bob|vip": left, "cid|vip": wanted})
        assert outbox.find_claims("main", "vips") == {"bob|vip": left, "cid|vip": wanted}
        assert not outbox.find_claims("other", "vips")
        assert outbox.list_claimers() == [("main", "vips")]


def test_a_second_sender_is_told_who_sends(path: Path) -> None:
    with Outbox(path) as outbox, outbox.hold_sender("main"), outbox.hold_sender("other"):
        told: list[str] = []
        with (
            pytest.raises(OutboxBusy, match=r"\(process \d+\) is sending for account main"),
            sender_lock(path.parent, "main", on_wait=told.append),
        ):
            pass
    with Outbox(path) as outbox, outbox.hold_sender("main"):
        pass


def test_a_plan_that_cannot_be_kept_leaves_nothing(path: Path) -> None:
    item = tag(2)
    item.params["bad"] = object()  # type: ignore[index]
    with Outbox(path) as outbox:
        with pytest.raises(TypeError):
            outbox.enqueue_plan(a_plan(tag(3), item))
        assert not outbox.list_pushes()
        assert not outbox.list_open("main")


def test_a_file_of_somebody_else_is_not_touched(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"something else entirely, at least a hundred bytes long" * 3)
    with pytest.raises(OutboxDamaged, match=r"[Mm]ove it away"):
        Outbox(path)
    assert path.read_bytes().startswith(b"something")
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("create table theirs (a)")
    other.close()
    with pytest.raises(OutboxDamaged, match="not an outbox"):
        Outbox(path)


def test_a_folder_in_the_place_of_the_senders_lock_is_named_with_the_way_out(path: Path) -> None:
    with Outbox(path) as outbox:
        outbox.enqueue_plan(a_plan(tag(2)))
    folder = path.with_name("sender-main.lock")
    folder.unlink(missing_ok=True)
    folder.mkdir()
    with (
        pytest.raises(OutboxError, match=r"sender-main.lock .*move it away"),
        Outbox(path) as outbox,
        outbox.hold_sender("main"),
    ):
        outbox.enqueue_plan(a_plan(tag(3)))
    folder.rmdir()
    with Outbox(path) as outbox, outbox.hold_sender("main"):
        assert outbox.list_open("main")


@pytest.mark.parametrize(
    ("version", "error", "words"),
    [(1, OutboxTooOld, "before the first release"), (99, OutboxTooNew, "upgrade")],
)
def test_a_file_of_another_version_is_left_alone(
    path: Path, version: int, error: type[Exception], words: str
) -> None:
    Outbox(path).close()
    with sqlite3.connect(path) as other:
        other.execute(f"pragma user_version = {version}")
    other.close()
    with pytest.raises(error, match=words):
        Outbox(path)


def test_what_is_shown_of_an_entry_holds_nothing_personal(path: Path) -> None:
    with Outbox(path) as outbox:
        (entry,) = outbox.list_entries(
            outbox.enqueue_plan(a_plan(contact(2, "ann@example.com", 7, fields={"3": "secret"})))
        )
        assert "ann@" not in repr(entry)
        assert "secret" not in repr(entry)
        assert json.dumps(dict(entry.params)).count("secret") == 1
