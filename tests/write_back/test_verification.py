"""What was sent is read back cheaply, while the queue lags, and every difference is told by field."""

import datetime as dt
import json
from types import SimpleNamespace
from typing import Any

import pytest

from marketing_api.contact_lookup import Found, read_contacts
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import contacts
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk, Verified
from tests.write_back.plans import activity, contact, find_entry
from write_back.item import RetryPolicy, State
from write_back.kinds.contact_verification import compare_contacts


def new_contacts(count: int, **more: Any) -> list[Any]:
    return [
        contact(
            row, f"new{row}@example.com", 1801, fields={"9100": f"Name {row}", "9103": "York & Co"}, **more
        )
        for row in range(count)
    ]


def checked(desk: Desk, push_id: int, how: str = "sample", **more: Any) -> Verified:
    return desk.verify(push_id, how=how, **more)


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"email-found": "array"},
        {"contact-paging": "honoured", "page-cap": "50"},
        {"contact-fields": "nested"},
        {"items": "numbered", "ids": "number", "contact-status": "word"},
    ],
    ids=str,
)
@pytest.mark.parametrize("count", [3, 20])
def test_all_that_arrived_is_verified_in_whatever_form_it_is_shown(
    make_desk: MakeDesk, switches: dict[str, str], count: int
) -> None:
    desk = make_desk(switches=switches)
    push_id, _ = desk.push(*new_contacts(count))
    told = checked(desk, push_id, "all")
    assert (told.checked, told.verified, told.drifted, told.hidden) == (count, count, 0, 0)
    assert {(entry.state, str(entry.drift)) for entry in desk.outbox.list_entries(push_id)} == {
        (State.VERIFIED, "{}")
    }
    assert told.requests < 10


def test_labels_are_read_where_fields_are_shown_under_them(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"contact-fields": "label"})
    push_id, _ = desk.push(*new_contacts(2))
    labels = {1801: {"9100": "First Name", "9103": "City"}}
    told = checked(desk, push_id, "all", labels=labels)
    assert (told.verified, told.hidden) == (2, 0)


def test_contacts_without_their_fields_are_verified_but_it_is_said(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"contact-fields": "off"})
    push_id, _ = desk.push(*new_contacts(2))
    told = checked(desk, push_id, "all")
    assert (told.verified, told.hidden, told.drifted) == (2, 2, 0)
    assert "not shown: 9100, 9103" in {entry.message for entry in desk.outbox.list_entries(push_id)}


def test_drift_is_kept_field_by_field(desk: Desk) -> None:
    push_id, _ = desk.push(*new_contacts(3))
    for one in desk.people():
        if one["email"] == "new1@example.com":
            desk.control_write("editcontact", id=one["id"], status="Disactive", **{"fields[9103]": "Leeds"})
        if one["email"] == "new2@example.com":
            desk.control_write("deletecontact", id=one["id"], listid=1801)
    told = checked(desk, push_id, "all", policy=RetryPolicy(verify_wait_s=0.0))
    assert (told.verified, told.drifted) == (1, 2)
    drift = {entry.email: entry.drift for entry in desk.outbox.list_entries(push_id)}
    assert drift["new1@example.com"] == {"status": ["active", "unsubscribed"], "9103": ["York & Co", "Leeds"]}
    assert drift["new2@example.com"] == {"contact": ["there", "not there"]}
    assert desk.outbox.count_states(push_id).drifted == 2


@pytest.mark.slow
def test_reading_waits_for_the_queue(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"sync-delay": "1"})
    push_id, _ = desk.push(*new_contacts(12))
    told = checked(desk, push_id, "all")
    assert (told.verified, told.drifted) == (12, 0)


def test_a_sample_is_one_in_twenty_and_everything_that_was_ever_unknown(desk: Desk) -> None:
    items = new_contacts(40)
    push_id = desk.outbox.enqueue_plan(desk.plan(*items))
    lost = desk.outbox.list_entries(push_id)[7]
    desk.outbox.claim_item(lost.item_id)
    desk.send()
    looked_up = desk.asked("getcontactbyemail")
    told = checked(desk, push_id)
    assert told.checked == 3  # the lost one, and 5 % of 39
    assert find_entry(desk.outbox, lost.item_id).state is State.VERIFIED
    assert told.requests == desk.asked("getcontactbyemail") - looked_up == 3


def test_all_are_read_when_one_of_the_sample_has_drifted(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"sync-delay": "100000"})
    push_id, _ = desk.push(*new_contacts(12))
    assert checked(desk, push_id, policy=RetryPolicy(verify_wait_s=0.0)).drifted == 12


def test_long_lists_are_not_read_for_a_few_addresses(make_desk: MakeDesk) -> None:
    desk = make_desk(contacts=2000, switches={"contact-paging": "honoured", "page-cap": "20"})
    push_id, _ = desk.push(*new_contacts(120))
    told = checked(desk, push_id)
    assert (told.checked, told.requests) == (6, 7)


@pytest.mark.parametrize(("how", "count"), [("none", 0), ("sample", 2), ("all", 30)])
def test_how_much_is_read_is_as_told(make_desk: MakeDesk, how: str, count: int) -> None:
    desk = make_desk()
    push_id, _ = desk.push(*new_contacts(30))
    assert checked(desk, push_id, how).checked == count


def test_what_is_still_unknown_is_verified_when_it_is_there(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"lost-answer": "1@emailmarketing/synccontact"})
    push_id, sent = desk.push(
        *new_contacts(2), policy=RetryPolicy(attempts=1, repeat_s=0.02, unknown_in_row=99)
    )
    assert sent.unknown == 2
    assert checked(desk, push_id, "none").verified == 2
    assert not desk.outbox.list_open("main")


def test_what_a_later_push_has_changed_is_not_compared(desk: Desk) -> None:
    first, _ = desk.push(*new_contacts(2))
    second, _ = desk.push(*new_contacts(1, status="Disactive"))
    assert checked(desk, first, "all").checked == 1
    assert checked(desk, second, "all").verified == 1


def test_activities_are_read_back_only_when_all_is_asked_for(desk: Desk) -> None:
    person = int(desk.people()[0]["id"])
    push_id, _ = desk.push(*[activity(row, person, f"Visit {row}") for row in range(5)])
    assert checked(desk, push_id, "sample").checked == 0
    told = checked(desk, push_id, "all")
    assert (told.verified, told.requests) == (5, 1)


def test_a_stopped_client_ends_reading_and_loses_nothing(make_desk: MakeDesk) -> None:
    desk = make_desk()
    push_id, _ = desk.push(*new_contacts(3))
    desk.client.stop()
    told = checked(desk, push_id, "all")
    assert (told.stopped, told.checked) == ("stopped", 0)
    assert {entry.state for entry in desk.outbox.list_entries(push_id)} == {State.APPLIED}


@pytest.mark.parametrize(
    ("shown", "drift", "hidden"),
    [
        ({"9": "York"}, {}, set()),
        ({"9": " York "}, {}, set()),
        ({"City": "York"}, {}, set()),
        ({"city_": "York"}, {}, set()),
        ({"9": "Leeds"}, {"9": ("York", "Leeds")}, set()),
        ({"9": ""}, {"9": ("York", "")}, set()),
        ({"8": "x"}, {"9": ("York", None)}, set()),
        ({"other": "x"}, {}, {"9"}),
        ({}, {}, {"9"}),
        (None, {}, {"9"}),
    ],
)
def test_fields_are_compared_as_they_are_shown(shown: Any, drift: Any, hidden: set[str]) -> None:
    found = [Found(1, 5, "a@example.com", "active", shown)]
    told = compare_contacts(found, {"9": "City", "8": "Street"}, "active", {"9": "York"})
    assert (dict(told.drift), set(told.hidden)) == (drift, hidden)


def test_a_field_that_was_to_be_emptied_is_as_intended_when_it_is_left_out() -> None:
    found = [Found(1, 5, "a@example.com", "active", {"8": "x"})]
    assert compare_contacts(found, {"9": "City", "8": "Street"}, None, {"9": ""}).is_as_intended


@pytest.mark.parametrize("count", [1, 6], ids=["looked up", "in a listing"])
def test_a_status_that_has_no_word_is_seen_and_is_not_the_one_that_was_sent(count: int) -> None:
    emails = [f"new{number}@example.com" for number in range(count)]
    people = [{"id": number, "email": email, "status": "9"} for number, email in enumerate(emails, 1)]

    def ask(question: Call) -> Response:
        payload = (
            {"contacts": {"items": people}}
            if question.operation is contacts.GETCONTACTS
            else {"contact": people[0]}
        )
        body = json.dumps({"response": {"header": {"status": "ok"}, "data": payload}}).encode()
        return Response(1, "main", question, dt.datetime.now(dt.UTC), body)

    client: Any = SimpleNamespace(fetch=ask, fetch_many=lambda questions: map(ask, questions))
    found = read_contacts(client, {1801: emails}).contacts_of(1801, emails[0])
    assert isinstance(found, list)
    assert compare_contacts(found, {}, "unsubscribed", {}).drift == {"status": ("unsubscribed", "9")}
