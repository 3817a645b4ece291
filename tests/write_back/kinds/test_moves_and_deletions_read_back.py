"""Moves and deletions are proved by few listings; what the lists show otherwise is told, and sent again when
somebody wants it."""

from __future__ import annotations

import pytest

from marketing_api.operations import contacts
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk
from tests.write_back.plans import a_plan
from write_back.item import Effect, Item, State
from write_back.kinds import DELETIONS, MOVES, NOT_IDEMPOTENT

FIRST, SECOND = 1801, 1814


def move(row: int, contact_id: int, source: int = FIRST, target: int = SECOND) -> Item:
    params = {"id": str(contact_id), "listid": str(target), "sourceid": str(source)}
    return Item(
        MOVES,
        (row,),
        contacts.MOVECONTACT.name,
        params,
        (Effect(f"{contact_id}|{source}", str(target)),),
        contact_id=contact_id,
    )


def deletion(row: int, contact_id: int, list_id: int = FIRST) -> Item:
    params = {"id": str(contact_id), "listid": str(list_id)}
    return Item(
        DELETIONS,
        (row,),
        contacts.DELETECONTACT.name,
        params,
        (Effect(f"{contact_id}|{list_id}"),),
        contact_id=contact_id,
    )


def on_first_only(desk: Desk) -> list[int]:
    elsewhere = {one["email"] for one in desk.people(SECOND)}
    return [int(one["id"]) for one in desk.people(FIRST) if one["email"] not in elsewhere]


def test_a_page_of_each_list_proves_all_of_them(desk: Desk) -> None:
    people = on_first_only(desk)
    moved, _ = desk.push(*[move(row, one) for row, one in enumerate(people[:20], 2)])
    deleted, _ = desk.push(*[deletion(row, one) for row, one in enumerate(people[20:30], 2)])
    told = desk.verify(moved, deleted)
    assert (told.verified, told.drifted) == (30, 0)
    assert told.requests <= 4
    assert {entry.state for push in (moved, deleted) for entry in desk.outbox.items(push)} == {State.VERIFIED}


def test_lists_that_would_take_many_requests_are_not_read_and_nothing_is_claimed(make_desk: MakeDesk) -> None:
    desk = make_desk(switches={"contact-paging": "honoured", "page-cap": "5"})
    push_id, _ = desk.push(*[deletion(row, one) for row, one in enumerate(on_first_only(desk)[:10], 2)])
    told = desk.verify(push_id)
    assert (told.verified, told.drifted) == (0, 0)
    assert told.requests <= 4
    assert {entry.state for entry in desk.outbox.items(push_id)} == {State.APPLIED}


@pytest.mark.slow
def test_an_ok_without_effect_is_told_and_a_retry_does_it(desk: Desk) -> None:
    one = on_first_only(desk)[0]
    push_id = desk.outbox.enqueue(a_plan(deletion(2, one)))
    (entry,) = desk.outbox.items(push_id)
    desk.outbox.claim(entry.item_id)
    desk.outbox.settle(entry.item_id, State.APPLIED)
    assert desk.verify(push_id).drifted == 1
    assert desk.outbox.entry(entry.item_id).drift == {"source list": ["not on it", "on it"]}
    assert desk.outbox.retry("main", not_idempotent=NOT_IDEMPOTENT).planned == 1
    assert desk.send().applied == 1
    assert desk.verify(push_id).verified == 1


def test_what_a_later_push_undid_is_not_held_against_it(desk: Desk) -> None:
    one = on_first_only(desk)[0]
    there, _ = desk.push(move(2, one))
    back, _ = desk.push(move(2, one, SECOND, FIRST))
    told = desk.verify(there, back)
    assert told.drifted == 0
    assert [desk.outbox.items(push)[0].state for push in (there, back)] == [State.APPLIED, State.VERIFIED]
