"""Who is deleted at the service is gone from its lists in the end, and no request is repeated blindly."""

from __future__ import annotations

import pytest

from marketing_api.errors import Refused
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk
from write_back.deletion import Deletion, OnList

LISTS = (1801, 1814)


def deletion_of(desk: Desk, *, is_known: bool = True) -> tuple[Deletion, set[OnList]]:
    """Of one person, whom the warehouse knows on one list of the two; or nowhere."""
    for list_id in LISTS:
        desk.control_write("addcontact", email="ann@example.com", listid=list_id, status="Active")
    on = {
        (int(one["id"]), each)
        for each in LISTS
        for one in desk.people(each)
        if one["email"] == "ann@example.com"
    }
    ids = {contact_id for contact_id, list_id in on if list_id == LISTS[0]} if is_known else set()
    return Deletion(
        desk.client, ids, {"ann@example.com"}, set(LISTS[:1]) if is_known else set(), lambda _: None
    ), on


@pytest.mark.parametrize("is_known", [True, False])
def test_whoever_is_deleted_is_on_no_list(desk: Desk, is_known: bool) -> None:
    deletion, on = deletion_of(desk, is_known=is_known)
    others = {each: len(desk.people(each)) - 1 for each in LISTS}
    assert deletion.find_listed() == on
    assert deletion.delete_contacts(on) == ""
    assert desk.asked("deletecontact") == len(on) == 2
    assert {each: len(desk.people(each)) for each in LISTS} == others
    assert deletion.find_listed() == set()


def test_a_lost_response_is_looked_up(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"lost-answer": "1@emailmarketing/deletecontact"})
    deletion, on = deletion_of(desk)
    assert deletion.delete_contacts(on) == ""
    assert desk.asked("deletecontact") == len(on)


def test_what_never_arrives_is_sent_again_while_it_is_listed(make_desk: MakeDesk) -> None:
    desk = make_desk(faults={"500-before": "1@emailmarketing/deletecontact"})
    deletion, on = deletion_of(desk)
    assert "500" in deletion.delete_contacts(on)
    assert len(on) < desk.asked("deletecontact") <= 5 * len(on)
    assert deletion.find_listed() == on


@pytest.mark.parametrize("looks", [2, 9])
def test_a_late_list_is_read_again_and_nothing_is_sent_twice(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    deletion, on = deletion_of(desk)
    late, find_listed = [on] * looks, deletion.find_listed
    monkeypatch.setattr(deletion, "find_listed", lambda: late.pop() if late else find_listed())
    assert ("still listed" in deletion.delete_contacts(on)) == (looks > 5)
    assert desk.asked("deletecontact") == len(on)


def test_a_list_that_cannot_be_read_proves_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    deletion, on = deletion_of(desk)
    monkeypatch.setattr("write_back.deletion.read_list", lambda *_: None)
    with pytest.raises(Refused, match="could not be read"):
        deletion.find_listed()
    assert "could not be read" in deletion.delete_contacts(on)
    assert desk.asked("deletecontact") == len(on)
