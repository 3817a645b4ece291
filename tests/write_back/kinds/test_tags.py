"""Tags: one request for all tags of a contact and action, nothing twice, in any order of rows."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.write_back.desk import Desk
from tests.write_back.planner import Planner, check_every_row_has_one_fate, fates, requests
from tests.write_back.plans import tag
from write_back.account_state import Known
from write_back.input.rows import InputError, Seen
from write_back.item import State
from write_back.kinds import TAGS
from write_back.planning import OTHER_ACCOUNT


@pytest.fixture
def plan(known: Known) -> Planner:
    return Planner(known, TAGS)


def row(email: str | None, tag: str, action: str | None = "add", contact_id: Any = None) -> dict[str, Any]:
    return {"email": email, "contact_id": contact_id, "tag": tag, "action": action}


def test_all_tags_of_a_contact_and_action_go_in_one_request(plan: Planner) -> None:
    planned = plan(
        row("ann@example.com", "vip, new,"),
        row("ANN@example.com", "Gold", "ADD"),
        row("nobody@example.com", "👨‍👩‍👧"),
        row(None, "vip", "remove", 202),
        row(None, "new", contact_id="102.0"),
    )
    check_every_row_has_one_fate(planned)
    assert [(item.rows, item.operation, dict(item.params)) for item in planned.items] == [
        ((2, 3), "emailmarketing/addtag", {"email": "ann@example.com", "tagname": "Gold,new,vip"}),
        ((4,), "emailmarketing/addtag", {"email": "nobody@example.com", "tagname": "👨‍👩‍👧"}),
        ((5,), "emailmarketing/removetag", {"email": "ed@example.com", "id": "202", "tagname": "vip"}),
        ((6,), "emailmarketing/addtag", {"email": "Bo@Example.com", "id": "102", "tagname": "new"}),
    ]
    assert (planned.new_count, planned.changed_count) == (4, 1)


def test_a_number_that_is_displayed_with_a_comma_is_not_two_tags(plan: Planner) -> None:
    assert "with a comma" in fates(plan(row("ann@example.com", Seen("2,026", 2026.0))))[2]


def test_rows_of_another_account_are_rejected(plan: Planner) -> None:
    names = {"main": "ann@example.com", "other": "bo@example.com", None: "ed@example.com"}
    rows = [row(email, "vip") | {"Account": account} for account, email in names.items()]
    assert fates(plan(*rows)) == {2: "sent", 3: f"bad: {OTHER_ACCOUNT}", 4: "sent"}


def test_removing_by_address_takes_a_request_for_each_contact_of_it(plan: Planner) -> None:
    planned = plan(row("ann@example.com", "vip", "remove"), row("nobody@example.com", "vip", "remove"))
    assert list(requests(planned)) == [
        {"email": "ann@example.com", "id": "101", "tagname": "vip"},
        {"email": "ann@example.com", "id": "301", "tagname": "vip"},
        {"email": "ann@example.com", "id": "201", "tagname": "vip"},
        {"email": "nobody@example.com", "tagname": "vip"},
    ]
    assert [item.must_look_up for item in planned.items] == [False, False, False, True]
    assert planned.request_count == 6


def test_rows_that_contradict_each_other_are_both_bad(plan: Planner) -> None:
    planned = plan(
        row("ed@example.com", "a,b"),
        row(None, "b", "remove", 202),
        row("ed@example.com", "c", "remove"),
        row("fay@example.com", "b"),
    )
    assert fates(planned) == {
        2: "bad: row 3 removes the tag “b” of the same contact: keep one of them",
        3: "bad: row 2 adds the tag “b” of the same contact: keep one of them",
        4: "sent",
        5: "sent",
    }


def test_an_empty_action_means_add_only_where_no_row_has_one(plan: Planner) -> None:
    missing = "bad: the action is missing, but other rows have one: write add or remove"
    rows = [row("ann@example.com", "a", "remove"), row("ed@example.com", "a", None)]
    assert fates(plan(*rows)) == {2: "sent", 3: missing}
    (item,) = plan(rows[1]).items
    assert item.operation == "emailmarketing/addtag"


def test_a_row_that_says_nothing_new_names_the_first(plan: Planner) -> None:
    planned = plan(row("a@example.com", "x,y"), row("A@example.com", "y"), row("a@example.com", "y,z"))
    assert fates(planned) == {2: "sent", 3: "bad: it says the same as row 2", 4: "sent"}
    assert [params["tagname"] for params in requests(planned)] == ["x,y,z"]


def test_what_was_done_last_decides(plan: Planner) -> None:
    add, remove = row("ann@example.com", "vip"), row("ann@example.com", "vip", "remove")
    plan.sent(add)
    assert fates(plan(add)) == {2: "idle: sent before"}
    assert len(plan(add, send_all=True).items) == 1
    assert fates(plan(row(None, "vip", contact_id=201))) == {2: "idle: sent before"}
    plan.sent(row(None, "vip", "remove", 201))
    assert fates(plan(add)) == {2: "sent"}  # one of the contacts has lost it
    assert [params["id"] for params in requests(plan(remove))] == ["101", "301"]
    plan.sent(remove)
    assert fates(plan(remove)) == {2: "idle: sent before"}
    plan.sent(add, state=State.UNKNOWN)
    assert fates(plan(add, send_all=True)) == {2: "idle: already queued"}
    assert fates(plan(remove)) == {2: "sent"}


def test_a_removal_that_was_looked_up_is_remembered_by_address(plan: Planner, known: Known) -> None:
    remove = row("nobody@example.com", "vip", "remove")
    plan.sent(remove)
    assert fates(plan(remove)) == {2: "idle: sent before"}
    assert fates(plan(row("nobody@example.com", "vip"))) == {2: "sent"}


def test_what_the_service_refused_is_refused_and_the_rest_of_the_row_goes_on(plan: Planner) -> None:
    plan.sent(row("a@example.com", "bad"), state=State.REJECTED)
    planned = plan(row("a@example.com", "bad"), row("a@example.com", "bad,good"))
    assert [(bad.rows[0], bad.by_service) for bad in planned.bad] == [(2, True)]
    assert fates(planned)[3] == "bad: it says the same as row 2" or [
        params["tagname"] for params in requests(planned)
    ] == ["good"]
    planned = plan(row("a@example.com", "bad,good"))
    assert (fates(planned), [params["tagname"] for params in requests(planned)]) == ({2: "sent"}, ["good"])
    assert any("sent in part" in warning for warning in planned.warnings)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row("a@example.com", ""), "the tag is missing"),
        (row("a@example.com", " , "), "the tag is missing"),
        (row("a@example.com", "x" * 256), "a tag is too long"),
        (row("a@example.com", "a\nb"), "line break"),
        (row("a@example.com", "a", "drop"), "“drop” is not an action"),
        (row(None, "a"), "neither an e-mail address nor a contact id"),
        (row(None, "a", contact_id="x1"), "the contact id has to be a whole number"),
        (row(None, "a", contact_id=77), "there is no contact 77 (contacts were read on 2026-03-02 09:00)"),
        (row(None, "a", contact_id=999), "there is no contact 999"),
        (row("bo@example.com", "a", contact_id=101), "contact 101 has another e-mail address"),
        (row("nobody", "a"), "not an e-mail address"),
    ],
)
def test_a_bad_row_is_said_and_the_others_go_on(plan: Planner, bad: dict[str, Any], said: str) -> None:
    planned = plan(bad, row("good@example.com", "a"))
    assert said in fates(planned)[2]
    assert fates(planned)[3] == "sent"


def test_an_unknown_id_is_trusted_while_some_contacts_were_never_read(known: Known) -> None:
    plan = Planner(replace(known, is_all_known=False), TAGS)
    planned = plan(row("x@example.com", "a", contact_id=77), row(None, "a", contact_id=78))
    assert list(requests(planned)) == [{"email": "x@example.com", "id": "77", "tagname": "a"}]
    assert "the address of contact 78 is not known" in fates(planned)[3]


def test_missing_columns_are_said(plan: Planner) -> None:
    with pytest.raises(InputError, match="no columns email or contact_id and tag"):
        plan({"labels": "a"})


def test_addresses_that_the_warehouse_does_not_know_are_counted_once(plan: Planner) -> None:
    rows = (
        row("x@example.com", "a"),
        row("X@example.com", "b", "remove"),
        row("ann@example.com", "a"),
        row(None, "a", contact_id=102),
    )
    planned = plan(*rows, row("y@example.com", "a"), row("z at example.com", "a"))
    assert planned.unknown_address_count == 2
    plan.sent(*rows)
    assert plan(*rows).unknown_address_count == 0  # nothing is sent


_ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["ann@example.com", "ED@example.com", "ed@example.com", "nobody@example.com", None]),
        st.sampled_from(["a", "b", "a,b", "c,a", ""]),
        st.sampled_from(["add", "remove", None]),
        st.sampled_from([None, None, 101, 201, 202, 5]),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=40)
@given(_ROWS, _ROWS, st.randoms(use_true_random=False))
@pytest.mark.slow
def test_rows_have_one_fate_in_any_order_and_nothing_is_left_once_they_were_sent(
    known: Known, before: list[dict[str, Any]], rows: list[dict[str, Any]], chance: random.Random
) -> None:
    plan = Planner(known, TAGS)
    plan.sent(*before)
    mixed = chance.sample(rows, len(rows))
    assert sorted(str(params).lower() for params in requests(plan(*mixed))) == sorted(
        str(params).lower() for params in requests(plan(*rows))
    )
    check_every_row_has_one_fate(plan.sent(*rows))
    again = plan(*rows)
    check_every_row_has_one_fate(again)
    assert not again.items


def test_an_address_that_nobody_has_any_more_is_rejected(desk: Desk) -> None:
    _, sent = desk.push(tag(2, "nobody@example.com"))
    assert (sent.applied, sent.rejected) == (0, 1)
