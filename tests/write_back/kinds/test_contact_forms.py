"""A service that wants a contact sync otherwise than specified gets it so, at the least cost, and nobody is
subscribed again."""

from __future__ import annotations

from typing import Any

import pytest

from marketing_api.errors import Refused
from marketing_api.operation import Call
from marketing_api.records.contacts import SYNCCONTACT
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk
from tests.write_back.plans import contact
from write_back.item import Item, RetryPolicy, State
from write_back.kinds import CONTACTS

FIRST, SECOND = 1801, 1814


def people(desk: Desk, status: str, count: int) -> list[str]:
    """Addresses that are once on the first list."""
    codes = {"unsubscribed": "2", "active": "1", "bounced": "3"}
    return [one["email"] for one in desk.people() if one["status"] == codes[status]][:count]


def renamed(emails: list[str], *lists: int) -> list[Item]:
    return [
        contact(row, email, *lists, status=None, fields={"9100": f"Name {row}"})
        for row, email in enumerate(emails or [], 2)
    ]


def shown(desk: Desk, email: str, list_id: int = FIRST) -> dict[str, Any]:
    return next(one for one in desk.people(list_id) if one["email"] == email)


def test_a_sync_without_a_status_leaves_everybody_as_they_are(desk: Desk) -> None:
    emails = people(desk, "unsubscribed", 3) + people(desk, "bounced", 1)
    before = [shown(desk, email)["status"] for email in emails]
    _, sent = desk.push(*renamed(emails, FIRST))
    assert (sent.applied, sent.requests) == (4, 4)
    assert [shown(desk, email)["status"] for email in emails] == before
    assert shown(desk, emails[0])["9100"] == "Name 2"


def test_where_a_status_is_wanted_the_service_is_asked_for_the_present_one(make_desk: MakeDesk) -> None:
    """At the cost of one refusal in all, and of one reading for each; who is there is edited, which takes no
    status."""
    desk = make_desk(switches={"required": "variants"})
    emails = people(desk, "unsubscribed", 4) + people(desk, "active", 2) + people(desk, "bounced", 1)
    before = [shown(desk, email)["status"] for email in emails]
    fresh = contact(99, "fresh@example.com", FIRST)
    _, sent = desk.push(*renamed(emails, FIRST), fresh, policy=RetryPolicy(workers=1))
    assert (sent.applied, sent.rejected) == (8, 0)
    assert sent.requests == 8 + 8 + 1
    assert desk.asked("editcontact") == 7
    assert [shown(desk, email)["status"] for email in emails] == before
    assert [shown(desk, email)["9100"] for email in emails] == [f"Name {row}" for row in range(2, 9)]


def test_who_has_left_the_list_meanwhile_is_not_put_there_again_for_want_of_a_status(
    make_desk: MakeDesk,
) -> None:
    desk = make_desk(switches={"required": "variants"})
    push_id, sent = desk.push(*renamed(["gone@example.com"], FIRST))
    assert (sent.applied, sent.rejected) == (0, 1)
    (entry,) = desk.outbox.items(push_id)
    assert (entry.state, entry.rejected_by) == (State.REJECTED, "service")
    assert "no longer on list 1801" in str(entry.message)


def test_who_was_added_just_now_is_waited_for(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"required": "variants", "sync-delay": "1"})
    _, sent = desk.push(contact(2, "fresh@example.com", FIRST), *renamed(["fresh@example.com"], FIRST))
    assert (sent.applied, sent.rejected) == (2, 0)


@pytest.mark.parametrize("required", ["primary", "variants"])
def test_each_list_is_sent_its_own_status(make_desk: MakeDesk, required: str) -> None:
    desk = make_desk(switches={"required": required})
    (email,) = people(desk, "unsubscribed", 1)
    _, sent = desk.push(contact(3, email, FIRST, SECOND))
    assert (sent.applied, sent.rejected) == (1, 0)
    assert (shown(desk, email)["status"], shown(desk, email, SECOND)["status"]) == ("2", "1")


def test_a_faulty_line_changes_nothing_about_the_end(make_desk: MakeDesk) -> None:
    faults = dict.fromkeys(("lost-answer", "500-before", "reset"), "0.06@emailmarketing/synccontact")
    desk = make_desk(switches={"required": "variants"}, faults=faults)
    emails = people(desk, "unsubscribed", 12)
    items = [contact(row, f"new{row}@example.com", FIRST, SECOND) for row in range(12)]
    _, sent = desk.push(*renamed(emails, FIRST), *items)
    assert sent.applied == len(emails) + 12
    assert {shown(desk, email)["status"] for email in emails} == {"2"}
    assert {f"new{row}@example.com" for row in range(12)} <= {one["email"] for one in desk.people(SECOND)}


@pytest.mark.parametrize(
    ("said", "fields", "is_wanted"),
    [
        ("errorCode 1003 (status is required)", None, True),
        ("errorCode 1004 (invalid parameters)", ["status"], True),
        ("errorCode 1004 (invalid parameters)", {"Status": "missing"}, True),
        ("errorCode 1003 (listid must be a number)", None, False),
        ("errorCode 1004 (the address is blacklisted)", None, False),
        ("errorCode 1004 (not allowed)", "listing", False),
        ("the answer ok, but said: The contact doesn't exist", None, True),
    ],
)
def test_a_refusal_tells_whether_a_status_is_wanted(said: str, fields: Any, is_wanted: bool) -> None:
    refusal = Refused(
        f"emailmarketing/synccontact: the service refused with {said}",
        detail={"fields": fields} if fields else None,
    )
    assert (
        CONTACTS.lacks(refusal, Call(SYNCCONTACT, {"email": "a@example.com", "listid": "1,2"})) == is_wanted
    )
    assert not CONTACTS.lacks(
        refusal, Call(SYNCCONTACT, {"email": "a@example.com", "listid": "1", "status": "Active"})
    )
