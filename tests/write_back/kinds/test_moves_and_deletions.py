"""Moves and deletions take off a list who is on it, once, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.write_back.planner import LATER, Planner, check_every_row_has_one_fate, fates, requests
from write_back.account_state import Known
from write_back.consent import LEFT_ON_TARGET
from write_back.item import State
from write_back.kinds import CONTACTS, DELETIONS, MOVES
from write_back.planning import REACHES_PEOPLE


@pytest.fixture
def moves(known: Known) -> Planner:
    return Planner(known, MOVES)


@pytest.fixture
def deletions(known: Known) -> Planner:
    return Planner(known, DELETIONS)


def move(email: str | None, source: Any, target: Any, contact_id: Any = None) -> dict[str, Any]:
    return {"email": email, "contact_id": contact_id, "from": source, "to": target}


def delete(email: str | None, lists: Any, contact_id: Any = None) -> dict[str, Any]:
    return {"email": email, "contact_id": contact_id, "list": lists}


def test_who_is_on_the_source_is_moved_by_contact_id(moves: Planner) -> None:
    planned = moves(
        move("ANN@example.com", "News", "Friends, Family"),
        move(None, 2, 3, 202),
        move("nobody@example.com", "news", "Shop"),
        move("fay@example.com", "Shop", "News"),
    )
    check_every_row_has_one_fate(planned)
    assert fates(planned)[2] == f"idle: {LEFT_ON_TARGET}"  # unsubscribed from it
    assert list(requests(planned)) == [
        {"id": "202", "listid": "3", "sourceid": "2"},
        {"listid": "3", "sourceid": "1"},
        {"id": "302", "listid": "1", "sourceid": "3"},
        {"id": "303", "listid": "1", "sourceid": "3"},
    ]
    assert [item.must_look_up for item in planned.items] == [False, True, False, False]
    assert [item.expected["look_up"] for item in planned.items] == [[3], [3], [1], [1]]
    assert [item.expected.get("status") for item in planned.items] == [None, None, None, "unsubscribed"], (
        "as which fay is moved"
    )
    assert (planned.changed_count, planned.request_count) == (3, 1 + 4 + 4 + 1)
    assert [(each.old, each.new) for each in planned.changes][:2] == [
        ("Friends, Family", "Shop"),
        ("News", "Shop"),
    ]


def test_that_a_move_may_send_mail_is_said(moves: Planner, deletions: Planner) -> None:
    """By an automation that starts on the list (observation 52)."""
    assert REACHES_PEOPLE in moves(move(None, 2, 3, 202)).warnings
    assert REACHES_PEOPLE not in moves(move("ed@example.com", "News", 2)).warnings, "it is there already"
    assert REACHES_PEOPLE not in deletions(delete(None, 2, 202)).warnings


def test_who_is_there_already_stays_and_who_is_on_neither_is_said(moves: Planner) -> None:
    planned = moves(
        move("ed@example.com", "News", 2),
        move("ed@example.com", "News", "Shop"),
        move(None, 1, 2, 202),
        move(None, 1, 3, 202),
    )
    assert fates(planned) == {
        2: "idle: already on the list as of 2026-03-02 09:00",
        3: "bad: row 2 moves the same contact to another list: keep one of them",
        4: "bad: it says the same as row 2",
        5: "bad: row 2 moves the same contact to another list: keep one of them",
    }
    assert fates(moves(move("ed@example.com", "News", "Shop"))) == {
        2: "bad: the contact is not on list “News” (its contacts were read on 2026-03-02 09:00)"
    }


def test_of_an_address_only_the_contacts_that_no_earlier_row_names_are_left(moves: Planner) -> None:
    planned = moves(move(None, 3, 1, 303), move("fay@example.com", 3, 1), move(None, 3, 1, 302))
    assert fates(planned) == {2: "sent", 3: "sent", 4: "bad: it says the same as row 3"}
    assert [params["id"] for params in requests(planned)] == ["303", "302"]


def test_moves_that_would_never_come_to_rest_are_both_bad(moves: Planner) -> None:
    planned = moves(
        move("ann@example.com", 1, 2),
        move("ANN@example.com", 2, 1),
        move(None, 3, 1, 302),
        move(None, 1, 3, 101),
        move(None, 1, 3, 104),
    )
    assert {row: fate[:10] for row, fate in fates(planned).items()} == {
        2: "bad: row 3",
        3: "bad: row 2",
        4: "sent",
        5: "bad: row 3",
        6: "sent",
    }
    assert "moves the same contact to the list that this row takes it from" in fates(planned)[2]


def test_a_move_is_made_once_until_it_was_read_again(moves: Planner) -> None:
    rows = (move("di@example.com", "News", "Shop"), move("nobody@example.com", "News", "Shop"))
    moves.sent(*rows)
    assert set(fates(moves(*rows)).values()) == {"idle: sent before"}
    assert "is not on list" in fates(moves(move("di@example.com", "News", 2)))[2]  # it was moved away
    moves.read_again()
    assert fates(moves(*rows)) == {2: "sent", 3: "idle: sent before"}
    moves.sent(*rows, state=State.UNKNOWN, at=LATER + 7200)
    assert fates(moves(rows[0])) == {2: "idle: already queued"}


def test_who_is_on_the_list_is_deleted_from_it(deletions: Planner) -> None:
    planned = deletions(
        delete("ann@example.com", "News;Shop"),
        delete(None, 2, 202),
        delete("bo@example.com", "Shop"),
        delete("nobody@example.com", 1),
    )
    check_every_row_has_one_fate(planned)
    assert list(requests(planned)) == [
        {"id": "101", "listid": "1"},
        {"id": "301", "listid": "3"},
        {"id": "202", "listid": "2"},
        {"listid": "1"},
    ]
    assert fates(planned)[4] == "idle: not on the list as of 2026-03-02 09:00"
    assert planned.items[3].must_look_up


def test_a_deletion_is_made_once_also_when_the_contact_is_gone_since(
    deletions: Planner, known: Known
) -> None:
    rows = (
        delete("ann@example.com", "News"),
        delete(None, "Shop", 303),
        delete("nobody@example.com", "Shop"),
    )
    planned = deletions.sent(*rows)
    assert set(fates(deletions(*rows)).values()) == {"idle: sent before"}
    gone = replace(
        planned,
        items=tuple(
            replace(item, effects=(replace(item.effects[0], subject="55|3"),)) for item in planned.items[:1]
        ),
    )
    deletions.memory.note(gone)
    assert fates(deletions(delete(None, 3, 55))) == {2: "idle: sent before"}
    deletions.read_again()
    assert fates(deletions(*rows)) == {
        2: "sent",
        3: "sent",
        4: "idle: sent before",
    }  # somebody has put them there again


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (move("ann@example.com", "News", "News"), "are the same"),
        (move("ann@example.com", "News", None), "the target list is missing"),
        (move("ann@example.com", "1,2", 3), "the source list has to be one, and the cell names 2"),
        (move("ann@example.com", "Nws", 3), "there is no list “Nws” (did you mean “News”?)"),
        (move(None, 1, 2, 5), "there is no contact 5"),
        (move("bo@example.com", 1, 2, 101), "another e-mail address"),
        (move(None, 1, 2), "neither an e-mail address nor a contact id"),
    ],
)
def test_a_bad_row_is_said_and_the_others_go_on(moves: Planner, bad: dict[str, Any], said: str) -> None:
    planned = moves(bad, move("di@example.com", 1, 2))
    assert said in fates(planned)[2]
    assert fates(planned)[3] == "sent"


def test_what_the_service_refused_is_refused(moves: Planner, deletions: Planner) -> None:
    for plan, row in (
        (moves, move("ann@example.com", "News", "Shop")),
        (deletions, delete("ann@example.com", "News")),
    ):
        plan.sent(row, state=State.REJECTED)
        assert [bad.by_service for bad in plan(row).bad] == [True]


def test_an_unknown_id_is_trusted_while_some_contacts_were_never_read(known: Known) -> None:
    plan = Planner(replace(known, is_all_known=False), DELETIONS)
    assert list(requests(plan(delete(None, 1, 55)))) == [{"id": "55", "listid": "1"}]


# -- kinds know of each other


def on(email: str, lists: Any) -> dict[str, Any]:
    return {"email": email, "list": lists}


def test_who_was_taken_off_a_list_by_us_is_not_on_it_any_more(
    known: Known, moves: Planner, deletions: Planner
) -> None:
    for planner, row in (
        (moves, move("di@example.com", "News", "Shop")),
        (deletions, delete(None, "News", 101)),
    ):
        contacts = Planner(known, CONTACTS, planner.memory)
        person = on("di@example.com" if planner is moves else "ann@example.com", "News")
        assert fates(contacts(person)) == {2: "idle: unchanged"}
        planner.sent(row)
        assert fates(contacts.sent(person)) == {2: "sent"}
        assert fates(contacts(person)) == {2: "idle: sent before"}
        contacts.read_again()
        assert fates(contacts(person)) == {2: "idle: unchanged"}


def test_who_was_moved_or_synced_to_a_list_by_us_can_be_taken_off_it(known: Known, moves: Planner) -> None:
    deletions, contacts = Planner(known, DELETIONS, moves.memory), Planner(known, CONTACTS, moves.memory)
    moves.sent(move("di@example.com", "News", "Shop"))
    assert fates(deletions(delete("di@example.com", "News"))) == {
        2: "idle: not on the list as of 2026-03-02 09:00"
    }
    assert list(requests(deletions(delete("di@example.com", "Shop")))) == [{"id": "104", "listid": "3"}]
    assert list(requests(moves(move(None, "Shop", "News", 104)))) == [
        {"id": "104", "listid": "1", "sourceid": "3"}
    ]
    deletions.sent(delete("di@example.com", "Shop"))
    assert fates(deletions(delete("di@example.com", "Shop"))) == {2: "idle: sent before"}
    contacts.sent(on("di@example.com", "Shop"), on("ann@example.com", "News,Shop"))
    again = deletions(delete("di@example.com", "Shop"), delete("ann@example.com", "News"))
    assert [(item.must_look_up, dict(item.params)) for item in again.items] == [
        (True, {"listid": "3"}),
        (False, {"id": "101", "listid": "1"}),
    ]


_WHO = st.sampled_from(
    [
        ("ann@example.com", None),
        ("ED@example.com", None),
        ("nobody@example.com", None),
        (None, 101),
        (None, 303),
        (None, 5),
    ]
)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(_WHO, st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 3, None])), min_size=1, max_size=6
    ),
    st.booleans(),
)
def test_every_row_has_one_fate_and_nothing_is_left_once_it_was_sent(
    known: Known, rows: list[tuple[Any, int, int | None]], is_move: bool
) -> None:
    plan = Planner(known, MOVES if is_move else DELETIONS)
    records = [
        move(who[0], a, b, who[1]) if is_move else delete(who[0], f"{a},{b or ''}", who[1])
        for who, a, b in rows
    ]
    check_every_row_has_one_fate(plan.sent(*records))
    again = plan(*records)
    check_every_row_has_one_fate(again)
    assert not again.items
