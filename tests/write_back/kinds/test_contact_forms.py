"""A service that wants contact syncs in its own way gets them so, and nobody is subscribed again."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from marketing_api.records.contacts import EDITCONTACT
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk
from tests.write_back.plans import contact
from write_back.item import Item, State

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


@pytest.mark.parametrize("required", ["primary", "variants"])
def test_somebody_who_is_on_the_list_is_edited_and_keeps_the_status(
    make_desk: MakeDesk, required: str
) -> None:
    """Some services want a status with every sync."""
    desk = make_desk(switches={"required": required, "email-found": "array"})
    emails = people(desk, "unsubscribed", 4) + people(desk, "active", 2) + people(desk, "bounced", 1)
    before = [shown(desk, email)["status"] for email in emails]
    _, sent = desk.push(*renamed(emails, FIRST), contact(99, "fresh@example.com", FIRST))
    assert {"1", "2", "3"} == set(before)
    count = len(emails) + 1
    assert (sent.applied, sent.rejected, sent.requests) == (count, 0, count + count)
    assert (desk.asked("editcontact"), desk.asked("synccontact")) == (len(emails), 1)
    assert [shown(desk, email)["status"] for email in emails] == before
    assert [shown(desk, email)["9100"] for email in emails] == [
        f"Name {row}" for row, _ in enumerate(emails, 2)
    ]


def known_by_id(email: str, *contact_ids: int) -> Item:
    """As planned of somebody whose contacts the warehouse knows."""
    item = contact(2, email, FIRST, status=None, fields={"9100": "New"})
    values = {name: text for name, text in item.params.items() if name.startswith("fields")}
    expected = structs.replace(item.expected, contact_ids={FIRST: [*contact_ids]})
    return replace(item, operation=EDITCONTACT.name, params=values, expected=expected)


def test_somebody_who_has_another_address_by_now_is_edited_and_verified(desk: Desk) -> None:
    (email,) = people(desk, "active", 1)
    contact_id = int(shown(desk, email)["id"])
    desk.control_write("editcontact", id=contact_id, email="new@example.com")
    push_id, sent = desk.push(known_by_id(email, contact_id))
    assert (sent.applied, sent.requests) == (1, 1)
    assert desk.verify(push_id, how="all").verified == 1
    assert shown(desk, "new@example.com")["9100"] == "New"
    assert email not in [one["email"] for one in desk.people()]


def test_somebody_who_was_taken_off_the_list_is_not_put_there_by_an_edit(desk: Desk) -> None:
    (email,) = people(desk, "active", 1)
    contact_id = int(shown(desk, email)["id"])
    desk.control_write("deletecontact", id=contact_id, listid=FIRST)
    _, sent = desk.push(known_by_id(email, contact_id))
    assert (sent.applied, sent.rejected) == (0, 1)
    assert email not in [one["email"] for one in desk.people()]


def test_who_has_left_the_list_meanwhile_is_not_put_there_again_for_want_of_a_status(
    make_desk: MakeDesk,
) -> None:
    desk = make_desk(switches={"required": "variants"})
    push_id, sent = desk.push(*renamed(["gone@example.com"], FIRST))
    assert (sent.applied, sent.rejected) == (0, 1)
    (entry,) = desk.outbox.list_entries(push_id)
    assert (entry.state, entry.rejected_by) == (State.REJECTED, "service")
    assert "no longer on list 1801" in str(entry.message)


def test_who_was_added_just_now_is_waited_for(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"required": "variants", "sync-delay": "1"})
    _, sent = desk.push(contact(2, "fresh@example.com", FIRST), *renamed(["fresh@example.com"], FIRST))
    assert (sent.applied, sent.rejected) == (2, 0)


@pytest.mark.parametrize("found", ["object", "array", "by-list"])
def test_somebody_joins_no_list_while_unsubscribed_on_another(make_desk: MakeDesk, found: str) -> None:
    desk = make_desk(switches={"email-found": found})
    gone, there = *people(desk, "unsubscribed", 1), *people(desk, "active", 1)
    _, sent = desk.push(contact(3, gone, SECOND), contact(4, there, FIRST, SECOND))
    assert (sent.applied, sent.rejected) == (1, 0)
    assert shown(desk, there, SECOND)["status"] == "1"
    assert gone not in [one["email"] for one in desk.people(SECOND)]


def test_a_faulty_line_changes_nothing_about_the_end(make_desk: MakeDesk) -> None:
    faults = dict.fromkeys(("lost-answer", "500-before", "reset"), "0.06@emailmarketing/synccontact")
    desk = make_desk(switches={"required": "variants"}, faults=faults)
    emails = people(desk, "unsubscribed", 12)
    items = [contact(row, f"new{row}@example.com", FIRST, SECOND) for row in range(12)]
    _, sent = desk.push(*renamed(emails, FIRST), *items)
    assert sent.applied == len(emails) + 12
    assert {shown(desk, email)["status"] for email in emails} == {"2"}
    assert {f"new{row}@example.com" for row in range(12)} <= {one["email"] for one in desk.people(SECOND)}
