"""Whatever gets lost: each activity arrives once, everything ends as intended, nothing is sent in vain."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from marketing_api.errors import Unreachable
from marketing_api.operations import contacts, find
from tests.waiting import HANGS_S
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import QUICK, Desk
from tests.write_back.plans import a_plan, activity, contact, tag
from write_back.item import Expected, Item, RetryPolicy, State
from write_back.kinds import ACTIVITIES, NOT_IDEMPOTENT
from write_back.outbox import outbox
from write_back.unknown_outcomes import Presence

FAULTS = {
    "lost-answer": "0.1",
    "500-after": "0.1",
    "500-before": "0.05",
    "reset": "0.05",
    "cut-json": "0.05",
    "502-html": "0.02",
}
WRITES = "@emailmarketing/addactivity,emailmarketing/addtag,emailmarketing/synccontact"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here takes in its entries in several."""
    monkeypatch.setattr(outbox, "_CHUNK", 7)


def faulty(**more: object) -> dict[str, object]:
    return {"faults": {name: chance + WRITES for name, chance in FAULTS.items()}, "stall_seconds": 1.0} | more


def activities(desk: Desk, count: int, *, people: int = 20) -> list[Item]:
    ids = [int(one["id"]) for one in desk.people()[:people]]
    return [activity(row, ids[row % len(ids)], f"Visit number {row}") for row in range(2, count + 2)]


def test_without_faults_each_item_is_one_request(desk: Desk) -> None:
    items = activities(desk, 40)
    before = desk.client.statistics.requests
    push_id, sent = desk.push(*items)
    assert (sent.applied, sent.rejected, sent.unknown, sent.planned, sent.stopped) == (40, 0, 0, 0, None)
    assert sent.requests == desk.client.statistics.requests - before == 40
    assert set(desk.activities().values()) == {1}
    entries = desk.outbox.list_entries(push_id)
    assert {entry.state for entry in entries} == {State.APPLIED}
    assert {entry.request_id for entry in entries} <= {exchange.request_id for exchange in desk.recorded}
    assert desk.send().requests == 0


@pytest.mark.slow
@pytest.mark.parametrize("form", ["snippet", "detail", "other-key"])
def test_activities_arrive_once_whatever_gets_lost(make_desk: MakeDesk, form: str) -> None:
    desk = make_desk(**faulty(switches={"activity": form}))
    items = activities(desk, 60)
    _, sent = desk.push(*items)
    assert desk.activities() == Counter((item.contact_id, item.params["description"]) for item in items)
    assert (sent.applied, sent.unknown, sent.planned) == (60, 0, 0)


@pytest.mark.slow
def test_activities_arrive_once_though_the_queue_lags(make_desk: MakeDesk) -> None:
    desk = make_desk(**faulty(switches={"activity-delay": "1"}))
    items = activities(desk, 20)
    patience = RetryPolicy(workers=8, first_look_s=0.3, last_look_s=1.5, repeat_s=0.05)
    desk.push(*items, policy=patience)
    assert set(desk.activities().values()) == {1}
    assert len(desk.activities()) == 20


def test_a_stalled_answer_is_looked_for(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"stall": "0.2@emailmarketing/addactivity"}, stall_seconds=1.5)
    _, sent = desk.push(*activities(desk, 30), policy=replace(QUICK, timeout_s=0.5, last_look_s=HANGS_S))
    assert sent.applied == 30
    assert set(desk.activities().values()) == {1}
    assert desk.asked("getcontacttimeline") > 0


def test_a_look_that_fails_without_a_word_is_no_proof_of_absence(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Mapping[int, Presence]:
        raise Unreachable("", was_sent=True)

    monkeypatch.setattr(type(ACTIVITIES), "look_for_item", fails)
    desk = make_desk(faults={"lost-answer": "1@emailmarketing/addactivity"})
    _, sent = desk.push(*activities(desk, 3))
    assert (sent.applied, sent.unknown) == (0, 3)
    assert set(desk.activities().values()) == {1}


def test_two_equal_activities_of_one_contact_are_two_entries(make_desk: MakeDesk) -> None:
    """Under different subjects, as when one row names the address and another the id."""
    desk = make_desk(**faulty())
    one = int(desk.people()[0]["id"])
    item = activity(2, one, "Called")
    items = [
        Item(ACTIVITIES, (row,), item.operation, item.params, {f"row {row}": ""}, item.expected, None, one)
        for row in range(6)
    ]
    _, sent = desk.push(*items)
    assert desk.activities() == {(one, "Called"): 6}
    assert sent.applied == 6


def test_tags_end_as_intended_whatever_gets_lost(make_desk: MakeDesk) -> None:
    desk = make_desk(**faulty())
    people = [one["email"] for one in desk.people()[:40]]
    adding = [tag(row, email, name="vip") for row, email in enumerate(people)]
    removing = [tag(row, email, name="vip", action="remove") for row, email in enumerate(people[::2], 100)]
    _, sent = desk.push(*adding, *removing)
    told = desk.tags()
    assert {email: told[email] for email in people} == {
        email: [] if place % 2 == 0 else ["vip"] for place, email in enumerate(people)
    }
    assert (sent.applied, sent.rejected) == (60, 0)


@pytest.mark.slow
def test_contacts_end_as_intended_though_answers_get_lost_and_the_queue_lags(make_desk: MakeDesk) -> None:
    desk = make_desk(**faulty(switches={"sync-delay": "1"}))
    items = [
        contact(row, f"new{row % 20}@example.com", 1801, fields={"9100": f"Name {row}"}) for row in range(40)
    ]
    _, sent = desk.push(*items)
    assert sent.applied == 40
    written = [each for each in desk.written().values() if each and each["email"].startswith("new")]
    assert {each["email"]: each["values"]["9100"] for each in written} == {
        f"new{row}@example.com": f"Name {row + 20}" for row in range(20)
    }
    assert len(written) == 20


def test_two_items_about_one_subject_go_in_order_and_never_together(make_desk: MakeDesk) -> None:
    desk = make_desk(latency_ms=10.0)
    email = desk.people()[0]["email"]
    items = [tag(row, email, action="add" if row % 2 else "remove") for row in range(12)]
    desk.push(*items)
    asked = [
        exchange.call.operation.name for exchange in desk.recorded if "tag" in exchange.call.operation.name
    ]
    assert asked == [item.operation for item in items]
    assert desk.tags()[email] == ["vip"]


def test_a_soft_refusal_is_a_rejection_with_its_words(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"addtag-missing": "soft"})
    push_id, sent = desk.push(tag(2, "nobody@example.com"), tag(3, desk.people()[0]["email"]))
    assert (sent.applied, sent.rejected) == (1, 1)
    (rejected,) = desk.outbox.list_entries(push_id, [State.REJECTED])
    assert rejected.rejected_by == "service"
    assert "doesn't exist" in (rejected.message or "")
    assert "nobody@" not in (rejected.message or "")


@pytest.mark.parametrize(("found", "missing"), [("object", "error"), ("array", "nested")])
def test_addresses_are_looked_up_once_each(make_desk: MakeDesk, found: str, missing: str) -> None:
    desk = make_desk(switches={"email-found": found, "email-missing": missing})
    emails = [one["email"] for one in desk.people()[:3]] + ["nobody@example.com"]
    items = [_by_address(row, emails[row % 4], f"Visit {row}") for row in range(16)]
    push_id, sent = desk.push(*items)
    assert (sent.applied, sent.rejected) == (12, 4)
    assert desk.asked("getcontactbyemail") == 4
    assert {entry.message for entry in desk.outbox.list_entries(push_id, [State.REJECTED])} == {
        "no contact has this address"
    }
    assert set(desk.activities().values()) == {1}


def _by_address(row: int, email: str, description: str) -> Item:
    params = {"description": description, "datetime": "2026-01-05 12:00:00"}
    effects = {f"{email}|2026-01-05 12:00:00|{description}": ""}
    expected = Expected(description=description, at=1767614400)
    return Item(
        ACTIVITIES,
        (row,),
        contacts.ADDACTIVITY.name,
        params,
        effects,
        expected,
        email=email,
        must_look_up=True,
    )


def test_an_activity_sent_under_its_contact_id_is_not_sent_again_under_its_address(desk: Desk) -> None:
    person = desk.people()[0]
    desk.push(activity(2, int(person["id"]), "Called"))
    push_id, _ = desk.push(_by_address(2, person["email"], "Called"))
    (entry,) = desk.outbox.list_entries(push_id)
    assert (entry.state, entry.message) == (State.SKIPPED, "sent before")
    assert desk.activities() == {(int(person["id"]), "Called"): 1}


def test_an_activity_by_address_is_known_by_its_contact_id_afterwards(desk: Desk) -> None:
    person = desk.people()[0]
    desk.push(_by_address(2, person["email"], "Called"))
    subject = f"{person['id']}|2026-01-05 12:00:00|Called"
    assert desk.outbox.find_last("main", [subject], ACTIVITIES)[subject].state is State.APPLIED


def test_what_a_killed_sender_had_sent_is_looked_for_before_anything_is_sent_again(desk: Desk) -> None:
    items = activities(desk, 4, people=2)
    push_id = desk.outbox.enqueue_plan(a_plan(*items))
    entries = desk.outbox.list_entries(push_id)
    for entry in entries[:2]:
        desk.outbox.claim_item(entry.item_id)
    desk.client.write(find(items[0].operation).bind(**items[0].params))  # arrived; the second never did
    sent = desk.send()
    assert sent.applied == 4
    assert set(desk.activities().values()) == {1}


def test_activities_that_the_service_hides_stay_unknown(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"lost-answer": "1@emailmarketing/addactivity"}, switches={"timeline-cut": "2"})
    person = int(desk.people()[0]["id"])
    push_id, sent = desk.push(activity(2, person, "Long ago", "2001-01-05 12:00:00", unix=978696000))
    (entry,) = desk.outbox.list_entries(push_id)
    assert (sent.unknown, entry.state) == (1, State.UNKNOWN)
    assert "it is unknown whether the activity arrived" in (entry.message or "")
    assert desk.asked("addactivity") == 1


def test_what_waits_for_an_unknown_one_is_sent_once_somebody_lets_go_of_that(make_desk: MakeDesk) -> None:
    """Directly, or behind something that waits itself; what may go goes."""
    desk = make_desk(faults={"lost-answer": "1@emailmarketing/addactivity"}, switches={"timeline-cut": "2"})
    (person, other), name = [int(one["id"]) for one in desk.people()[:2]], desk.people()[0]["email"]
    hidden = activity(2, person, "Long ago", "2001-01-05 12:00:00", unix=978696000)
    waiting = [
        replace(tag(row, name, name=word), contact_id=person) for row, word in ((3, "vip"), (4, "new"))
    ]
    first, _ = desk.push(hidden)
    push_id, sent = desk.push(*waiting, replace(tag(5, desk.people()[1]["email"]), contact_id=other))
    assert (sent.unknown, sent.planned, sent.applied) == (1, 2, 1)
    assert [entry.rows[0] for entry in desk.outbox.list_entries(push_id, [State.PLANNED])] == [3, 4]
    assert (
        desk.outbox.cancel_items("main", unknown=False),
        desk.outbox.retry_items("main", not_idempotent=NOT_IDEMPOTENT).planned,
    ) == (2, 1)
    assert desk.outbox.cancel_items("main", first, unknown=True) == 1
    push_id, sent = desk.push(*waiting)
    assert sent.applied == 2
    assert {entry.message for entry in desk.outbox.list_entries(push_id)} == {None}


@pytest.mark.slow
def test_what_is_lost_every_time_is_given_up_and_said(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"500-before": "1@emailmarketing/addtag,emailmarketing/addactivity"})
    push_id, sent = desk.push(tag(2, desk.people()[0]["email"]), *activities(desk, 2))
    assert (sent.unknown, sent.planned, sent.applied) == (3, 0, 0)
    assert desk.asked("addtag") == QUICK.attempts
    assert all("sent 10 times" in (entry.message or "") for entry in desk.outbox.list_entries(push_id))


def test_a_wrong_key_stops_with_everything_planned(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"bad-key": "401"})
    items = activities(desk, 30)
    desk.control("faults", **{"revoke-after": 5})
    push_id, sent = desk.push(*items)
    assert sent.applied == 5
    assert sent.planned == 25
    assert "key" in (sent.stopped or "")
    assert {entry.attempts for entry in desk.outbox.list_entries(push_id, [State.PLANNED])} == {0}


def test_1002_five_times_in_a_row_stops_with_the_rest_planned(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"1002": "1@emailmarketing/addactivity"})
    _, sent = desk.push(*activities(desk, 40))
    assert (sent.applied, sent.planned) == (0, 40)
    assert "not available" in (sent.stopped or "")
    assert desk.asked("addactivity") < 20


def test_1002_now_and_then_is_only_tried_again(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"1002": "0.1@emailmarketing/addactivity"})
    _, sent = desk.push(*activities(desk, 60))
    assert (sent.applied, sent.stopped) == (60, None)


def test_a_service_that_answers_nothing_whole_is_not_asked_for_ever(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"502-html": "1@emailmarketing/addactivity"})
    patience = RetryPolicy(workers=4, first_look_s=5, repeat_s=5, unknown_in_row=8)
    _, sent = desk.push(*activities(desk, 60), policy=patience)
    assert 8 <= sent.unknown < 14
    assert sent.planned == 60 - sent.unknown
    assert "in a row" in (sent.stopped or "")
    unknown = [entry for entry in desk.outbox.list_open("main") if entry.state is State.UNKNOWN]
    assert all("it was sent and may have taken effect" in (entry.message or "") for entry in unknown)


def test_a_stop_leaves_the_rest_planned_and_the_next_sending_goes_on(make_desk: MakeDesk) -> None:
    desk = make_desk(latency_ms=20.0)
    items = activities(desk, 60)
    stop = threading.Event()

    def show(done: int, total: int, unknown: int) -> None:
        if done >= 10:
            stop.set()

    push_id, sent = desk.push(*items, stop=stop, on_progress=show)
    assert sent.stopped == "stopped"
    assert 10 <= sent.applied < 40
    counts = desk.outbox.count_states(push_id).requests
    assert counts == {State.APPLIED: sent.applied, State.PLANNED: 60 - sent.applied}
    again = desk.send()
    assert again.applied == 60 - sent.applied
    assert set(desk.activities().values()) == {1}


def test_cancelled_meanwhile_is_not_sent(desk: Desk) -> None:
    items = activities(desk, 200)

    def cancel(*_: int) -> None:
        desk.outbox.cancel_items("main")

    push_id, sent = desk.push(*items, on_progress=cancel)
    counts = desk.outbox.count_states(push_id).requests
    assert counts[State.APPLIED] == sent.applied < 200
    assert counts[State.SKIPPED] == 200 - sent.applied
    assert len(desk.activities()) == sent.applied


def test_progress_ends_with_everything_done(desk: Desk) -> None:
    told: list[tuple[int, ...]] = []
    desk.push(*activities(desk, 10), activity(99, 1, "Nobody"), on_progress=lambda *now: told.append(now))
    assert told[-1] == (11, 11, 0)


def test_nothing_personal_is_logged(make_desk: MakeDesk, caplog: pytest.LogCaptureFixture) -> None:
    desk = make_desk(**faulty())
    caplog.set_level("INFO")
    desk.push(*[contact(row, f"new{row}@example.com", 1801) for row in range(30)])
    assert "example.com" not in caplog.text


def test_a_retried_activity_that_arrived_though_it_was_refused_in_words_is_not_sent_again(desk: Desk) -> None:
    (item,) = activities(desk, 1)
    push_id = desk.outbox.enqueue_plan(a_plan(item))
    (entry,) = desk.outbox.list_entries(push_id)
    desk.outbox.claim_item(entry.item_id)
    desk.client.write(find(item.operation).bind(**item.params))
    desk.outbox.settle_item(entry.item_id, State.REJECTED, message="words that were not understood")
    assert desk.outbox.retry_items("main", push_id, not_idempotent=NOT_IDEMPOTENT).planned == 1
    assert desk.send().applied == 1
    assert set(desk.activities().values()) == {1}


def test_tags_are_taken_off_all_contacts_of_a_looked_up_address(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"email-found": "array"})
    email = desk.people()[0]["email"]
    desk.push(contact(2, email, 1814))
    desk.push(tag(2, email))
    both = [one for one, each in desk.written().items() if each and each["email"] == email]
    assert len(both) >= 2
    item = tag(3, email, action="remove")
    item = Item(
        item.kind, item.rows, item.operation, item.params, item.effects, email=email, must_look_up=True
    )
    _, sent = desk.push(item)
    assert sent.applied == 1
    assert {tuple(desk.written()[one]["tags"]) for one in both} == {()}


@pytest.mark.parametrize("how", ["by address", "looked up"])
def test_who_was_synced_just_now_is_waited_for(make_desk: MakeDesk, how: str) -> None:
    """Contacts first, then their tags or activities, while the service's queue lags."""
    desk = make_desk(switches={"sync-delay": "1", "addtag-missing": "soft"})
    desk.push(contact(2, "New@example.com", 1801))
    item = tag(2, "New@example.com") if how == "by address" else _by_address(2, "New@example.com", "Called")
    _, sent = desk.push(item, policy=replace(QUICK, verify_wait_s=HANGS_S))
    assert (sent.applied, sent.rejected, sent.unknown, sent.planned) == (1, 0, 0, 0)
    (written,) = [each for each in desk.written().values() if each and each["email"] == "New@example.com"]
    assert written["tags"] == ["vip"] or len(written["activities"]) == 1


def test_who_never_shows_is_rejected_in_the_end(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"sync-delay": "60"})
    desk.push(contact(2, "new@example.com", 1801))
    _, sent = desk.push(tag(2, "new@example.com"), policy=replace(QUICK, verify_wait_s=0.3))
    assert (sent.applied, sent.rejected, sent.planned) == (0, 1, 0)
