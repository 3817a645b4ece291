"""A contact is sent when it is new or differs, once for all lists that need the same, without guessing."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.records.contacts import EDITCONTACT, STATUSES, SYNCCONTACT
from tests.write_back.planner import (
    LATER,
    Planner,
    check_every_row_has_one_fate,
    fates,
    make_warehouse,
    open_known,
    requests,
)
from write_back.account_state import Known
from write_back.consent import LEFT, decide_status, is_raised
from write_back.input.rows import InputError
from write_back.item import BeforePush, Expected, State
from write_back.kinds import CONTACTS
from write_back.kinds.contact_planning import ADDED_AGAIN, REMOVED, RESUBSCRIBED
from write_back.planning import REACHES_PEOPLE


@pytest.fixture
def plan(known: Known) -> Planner:
    return Planner(known, CONTACTS)


def row(email: str, lists: Any = "News", **more: Any) -> dict[str, Any]:
    return {"email": email, "list": lists, **more}


# -- what changes


def test_what_is_known_to_be_so_is_not_sent(plan: Planner) -> None:
    planned = plan(
        row(" ANN@example.com", status="Active", city="London"),
        row("bo@example.com", city="Köln", status="2", HOME_phone="0221"),
        row("new@example.com", "Shop"),
        row("cy@example.com", status="bounced"),
        row("ed@example.com", 3, city=None),
        row("ed@example.com", "friends, family", city="Oslo"),
    )
    check_every_row_has_one_fate(planned)
    assert fates(planned) == {row: "sent" if row in (4, 6) else "idle: unchanged" for row in range(2, 8)}
    assert (planned.new_count, planned.changed_count) == (2, 0)
    assert "unchanged: as of 2026-03-02 09:00, when the contacts were last read" in planned.warnings


def test_that_somebody_new_to_a_list_may_be_sent_mail_is_said(plan: Planner) -> None:
    """By an automation that starts there (observation 52)."""
    assert REACHES_PEOPLE in plan(row("ann@example.com", "Shop"), row("new@example.com")).warnings
    assert REACHES_PEOPLE not in plan(row("bo@example.com", city="Bonn")).warnings


def test_whoever_is_known_keeps_the_status_that_the_service_has_by_now(plan: Planner) -> None:
    """The warehouse may not know yet that somebody has unsubscribed: no status is sent but the row's own."""
    planned = plan(
        row("bo@example.com", city="Bonn"),
        row("cy@example.com", city="Bern"),
        row("di@example.com", city="Ulm"),
        row("new@example.com"),
    )
    assert [(item.operation, item.contact_id, dict(item.params)) for item in planned.items] == [
        (EDITCONTACT.name, 102, {"fields[11]": "Bonn"}),
        (EDITCONTACT.name, 103, {"fields[11]": "Bern"}),
        (EDITCONTACT.name, 104, {"fields[11]": "Ulm"}),
        (SYNCCONTACT.name, None, {"email": "new@example.com", "listid": "1", "status": "Active"}),
    ]
    assert [(each.row, each.column, each.old, each.new) for each in planned.changes] == [
        (2, "city", "Köln", "Bonn"),
        (3, "city", "", "Bern"),
        (4, "city", "Rome", "Ulm"),
        (5, "list", None, "News"),
    ]
    assert planned.items[0].expected == Expected(
        fields={"11": "Bonn"},
        lists=[1],
        contact_ids={1: [102]},
        before={1: BeforePush(True, {"11": "Köln", "status": "unsubscribed"})},
    )


def test_subscribing_somebody_again_takes_a_switch_and_is_said(plan: Planner) -> None:
    rows = (
        row("bo@example.com", status="active"),
        row("cy@example.com", status="1", city="Bern"),
        row("di@example.com", status="active"),
        row("ed@example.com", status=1),
        row("bo@example.com", "Shop", status="active"),
    )
    planned = plan(*rows)
    left = f"idle: {LEFT}"
    assert fates(planned) == {2: left, 3: "sent", 4: left, 5: "sent", 6: left}
    assert (planned.items[0].contact_id, next(requests(planned))) == (103, {"fields[11]": "Bern"})
    assert f"1 row: {LEFT}" in planned.warnings
    assert [each for each in planned.changes if each.column == "status"] == []
    planned = plan(*rows, resubscribe=True)
    assert [params.get("status") for params in requests(planned)] == ["Active"] * 5
    raised = [warning for warning in planned.warnings if "is made active" in warning]
    assert raised == [f"4 rows: {RESUBSCRIBED}"]
    before = [(each.old, each.new) for each in planned.changes if each.column == "status"]
    assert before == [(old, "active") for old in ("unsubscribed", "bounced", "unconfirmed")]
    assert [item.expected.may_raise for item in planned.items] == [True] * 5


@pytest.mark.parametrize("status", [None, "active"])
@pytest.mark.parametrize("email", ["bo@example.com", "cy@example.com", "di@example.com", "left@example.com"])
def test_somebody_who_is_not_active_on_one_list_is_not_added_to_another(
    plan: Planner, email: str, status: str | None
) -> None:
    assert fates(plan(row(email, "Shop", status=status))) == {2: f"idle: {LEFT}"}
    assert fates(plan(row(email, "Shop", status="unsubscribed"))) == {2: "sent"}
    switched = plan(row(email, "Shop", status=status), resubscribe=True)
    assert fates(switched) == {2: "sent" if status else f"idle: {LEFT}"}


def test_a_contact_counts_on_its_lists_under_each_of_its_addresses(tmp_path: Path) -> None:
    """One reading of a list is older than the change of the address, the other one newer."""
    contacts = [(101, 1, "ann@old.example", 2, None), (101, 2, "ann@new.example", 1, None)]
    plan = Planner(open_known(make_warehouse(tmp_path / "warehouse.duckdb", contacts)), CONTACTS)
    assert fates(plan(row("ann@new.example", "Shop"))) == {2: f"idle: {LEFT}"}


def test_somebody_whom_staff_took_off_a_list_is_added_again_and_the_plan_says_what_follows(
    plan: Planner,
) -> None:
    planned = plan(row("gone@example.com"), row("new@example.com"), row("gone@example.com", "Shop"))
    assert set(fates(planned).values()) == {"sent"}
    assert f"1 row: {ADDED_AGAIN}" in planned.warnings


def test_an_audience_sync_leaves_off_a_list_whom_staff_took_off(plan: Planner) -> None:
    rows = (row("gone@example.com"), row("new@example.com"), row("gone@example.com", "Shop"))
    planned = plan(*rows, is_standing=True)
    assert fates(planned) == {2: f"idle: {REMOVED}", 3: "sent", 4: "sent"}
    assert not any(ADDED_AGAIN in warning for warning in planned.warnings)
    assert set(fates(plan(*rows, is_standing=True, send_all=True)).values()) == {"sent"}


def test_whoever_was_unsubscribed_when_they_were_taken_off_a_list_is_not_new_there(plan: Planner) -> None:
    left = "left@example.com"
    assert fates(plan(row(left))) == {2: f"idle: {LEFT}"}
    assert fates(plan(row(left), resubscribe=True)) == {2: f"idle: {LEFT}"}, "no status was asked for"
    assert fates(plan(row(left, status="active"), resubscribe=True)) == {2: "sent"}


def test_whoever_could_be_subscribed_is_looked_up_and_that_is_counted(plan: Planner) -> None:
    """Once for all lists; somebody whose status is not changed is edited, which subscribes nobody."""
    people = (row("bo@example.com", city="Bonn"), row("ann@example.com", city="Rom"))
    rows = (row("new@example.com", "1,3"), *people)
    planned = plan(*rows)
    assert [item.expected.look_up_count for item in planned.items] == [1, 0, 0]
    assert (planned.look_up_count, planned.request_count) == (1, 1 + 3 + 1)
    # nobody is subscribed by that
    assert plan(row("ann@example.com", status="unsubscribed")).look_up_count == 0


@given(
    st.lists(st.sampled_from([*STATUSES.values(), None, "9"]), max_size=3),
    st.lists(st.sampled_from([*STATUSES.values(), None, "9"]), max_size=3),
    st.sampled_from([*STATUSES.values(), None]),
)
def test_no_status_that_is_sent_makes_mails_reach_more_than_before(
    present: list[str | None], elsewhere: list[str | None], wanted: str | None
) -> None:
    decision = decide_status(present, wanted, elsewhere=elsewhere)
    target = wanted or (None if present else "active")
    assert decision.status in (None, target)
    if decision.status is not None:
        assert not any(is_raised(now, decision.status) for now in [*present, *elsewhere])
    assert not decision.is_left or any(is_raised(now, target) for now in [*present, *elsewhere])
    assert decide_status(present, wanted, elsewhere=elsewhere, may_raise=True).status in (
        (target,) if not present else (target, None)
    )


def test_several_lists_take_one_request_where_they_need_the_same_and_only_those_that_change(
    plan: Planner,
) -> None:
    planned = plan(
        row("new@example.com", "1;3"),
        row("two@example.com", "1,2,3", city="Rom"),
        row("ann@example.com", "News, Shop, 2", city=None, status="active"),
        resubscribe=True,
    )
    assert list(requests(planned)) == [
        {"email": "new@example.com", "listid": "1,3", "status": "Active"},
        {"email": "ann@example.com", "listid": "2", "status": "Active"},
    ]
    assert fates(planned)[3] == "bad: list “Shop” has no field “city”"
    planned = plan(
        row("two@example.com", "1,2,3", status="active"), row("tri@example.com", "1,2", city="Rom")
    )
    assert list(requests(planned)) == [
        {"email": "two@example.com", "listid": "1,2,3", "status": "Active"},
        {"email": "tri@example.com", "listid": "1", "status": "Active", "fields[11]": "Rom"},
        {"email": "tri@example.com", "listid": "2", "status": "Active", "fields[21]": "Rom"},
    ]
    assert (planned.new_count, planned.request_count) == (2, 1 + 3 + 3)


def test_an_empty_cell_leaves_its_field_as_it_is_unless_it_is_to_be_emptied(plan: Planner) -> None:
    people = [row(f"{name}@example.com", city=None) for name in ("ann", "cy", "new")]
    assert [item.email for item in plan(*people).items] == ["new@example.com"]
    planned = plan(*people, clear_empty=True)
    assert list(requests(planned)) == [
        {"fields[11]": ""},
        {"email": "new@example.com", "listid": "1", "status": "Active", "fields[11]": ""},
    ]


def test_an_ip_address_is_sent_along_and_never_compared(plan: Planner) -> None:
    planned = plan(
        row("ann@example.com", ip_address="203.0.113.7"),
        row("new@example.com", ip_address="2001:DB8::7"),
        row("no@example.com", ip_address="1.2.3"),
    )
    assert fates(planned)[2] == "idle: unchanged"
    assert next(requests(planned))["ipaddress"] == "2001:db8::7"
    assert "IP address" in fates(planned)[4]


def test_a_field_that_the_service_does_not_show_counts_as_changed_until_we_have_sent_it(
    plan: Planner,
) -> None:
    rows = (row("ed@example.com", 2, VIP_since="2020"),)
    assert fates(plan.sent(*rows)) == {2: "sent"}
    assert fates(plan(*rows)) == {2: "idle: sent before"}
    plan.read_again()
    assert fates(plan(*rows)) == {2: "idle: unchanged"}
    assert fates(plan(row("ed@example.com", 2, VIP_since="2021"))) == {2: "sent"}


def test_contacts_of_one_address_with_different_statuses_keep_them_unless_the_row_says_one(
    plan: Planner,
) -> None:
    (edit,) = plan(row("fay@example.com", "Shop", ip_address="203.0.113.7"), send_all=True).items
    assert (edit.operation, edit.expected.contact_ids) == (EDITCONTACT.name, {3: [302, 303]})
    assert fates(plan(row("fay@example.com", "Shop"))) == {2: "idle: unchanged"}
    assert fates(plan(row("fay@example.com", "Shop", status="active"))) == {2: f"idle: {LEFT}"}
    assert fates(plan(row("fay@example.com", "Shop", status="active"), resubscribe=True)) == {2: "sent"}
    assert fates(plan(row("fay@example.com", "Shop", status="unsubscribed"))) == {2: "sent"}


# -- what was done before


def test_what_was_sent_counts_until_it_was_read_again(plan: Planner) -> None:
    rows = (row("ann@example.com", city="Rom"), row("new@example.com", "1,3"))
    plan.sent(*rows)
    assert set(fates(plan(*rows)).values()) == {"idle: sent before"}
    # as it was before: the warehouse does not know better
    assert fates(plan(row("ann@example.com", city="London"))) == {2: "sent"}
    assert fates(plan(row("ann@example.com", status="active"))) == {2: "idle: sent before"}
    plan.read_again(LATER + 60)  # the service's queue may not have been through when that was read
    assert set(fates(plan(*rows)).values()) == {"idle: sent before"}
    plan.read_again()
    assert set(fates(plan(*rows)).values()) == {"sent"}  # read since, and not there


def test_what_was_read_back_as_sent_needs_no_time_for_the_queue(plan: Planner) -> None:
    rows = row("ann@example.com", city="Rom")
    plan.sent(rows, state=State.VERIFIED)
    assert fates(plan(rows)) == {2: "idle: sent before"}
    plan.read_again(LATER + 10)
    assert fates(plan(rows)) == {2: "sent"}  # somebody has changed it back since


def test_what_was_read_back_otherwise_is_not_done_until_a_later_reading_tells(plan: Planner) -> None:
    ann, new = row("ann@example.com", city="Rom"), row("new@example.com", "1,3")
    rows = (ann, new, row("di@example.com", status="2"))
    plan.drifted(*rows)
    planned = plan(*rows)
    assert [(bad.rows[0], bad.by_service) for bad in planned.bad] == [(2, True), (3, True), (4, True)]
    assert "sent before, with a mismatch on read-back (`marketing-sync push retry`" in planned.bad[0].reason
    assert not planned.items
    others = (row("ann@example.com", city="London"), row("di@example.com", status="0"))
    assert fates(plan(*others)) == {2: "sent", 3: "sent"}
    assert "sent" not in fates(plan(*rows, is_standing=True)).values()
    plan.read_again()
    assert set(fates(plan(*rows)).values()) == {"sent"}
    standing = plan(*rows, is_standing=True)
    assert [(bad.rows[0], bad.by_service) for bad in standing.bad] == [(2, True), (3, True), (4, True)]
    other = row("ann@example.com", city="Bonn")
    assert fates(plan(other, is_standing=True)) == {2: "sent"}, "until it says something else"


def test_a_field_that_has_a_value_is_left_where_only_empty_ones_are_filled(plan: Planner) -> None:
    rows = [row("ann@example.com", city="Rom", **{"Home Phone": "030"}), row("new@example.com", city="Rom")]
    ann, new = (item.params for item in plan(*rows, fill_only=True).items)
    assert [each for each in ann if each.startswith("fields")] == ["fields[12]"]
    assert new["fields[11]"] == "Rom"
    assert fates(plan(row("di@example.com", city="Bonn"), fill_only=True)) == {2: "idle: unchanged"}


def test_a_plan_is_known_by_what_it_would_send(plan: Planner) -> None:
    one, other = row("ann@example.com", city="Rom"), row("di@example.com", city="Bonn")
    assert plan(one, other).plan_id == plan(other, one).plan_id
    plans = ([one], [other], [one, other], [{**one, "city": "Bonn"}])
    assert len({plan(*rows).plan_id for rows in plans}) == 4


def test_what_is_not_so_though_it_was_sent_is_sent_once_more_and_read_back(plan: Planner) -> None:
    rows = (row("ann@example.com", city="Rom"), row("di@example.com", city="Pisa"))
    plan.sent(rows[0])
    plan.read_again()
    repeated, first = plan(*rows, is_standing=True).items
    assert (repeated.expected.is_repeated, first.expected.is_repeated) == (True, False)


@pytest.mark.parametrize("state", [State.PLANNED, State.SENDING, State.UNKNOWN])
def test_what_is_queued_is_not_queued_twice(plan: Planner, state: State) -> None:
    plan.sent(row("ann@example.com", city="Rom"), state=state)
    assert fates(plan(row("ann@example.com", city="Rom"), send_all=True)) == {2: "idle: already queued"}
    # or the queue would have the last word
    assert fates(plan(row("ann@example.com", city="London"))) == {2: "sent"}


def test_what_the_service_refused_is_refused_until_it_says_something_else(plan: Planner) -> None:
    plan.sent(row("ann@example.com", city="Rom"), row("x@example.com", "1,3"), state=State.REJECTED)
    for options in ({}, {"send_all": True}):
        planned = plan(row("ann@example.com", city="Rom"), row("x@example.com", "News"), **options)
        assert [(bad.rows[0], bad.by_service) for bad in planned.bad] == [(2, True), (3, True)]
        assert "the service rejected this before: Not allowed" in planned.bad[0].reason
        assert planned.bad_count == 0
    others = (row("ann@example.com", city="Ulm"), row("x@example.com", "2"))
    assert fates(plan(*others)) == {2: "sent", 3: "sent"}


def test_all_may_be_sent_whatever_is_known(plan: Planner) -> None:
    rows = (row("ann@example.com", city="London"), row("new@example.com", status="active"))
    plan.sent(*rows)
    planned = plan(*rows, send_all=True)
    assert [item.email for item in planned.items] == ["ann@example.com", "new@example.com"]
    check_every_row_has_one_fate(planned)


# -- bad rows


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row("nobody"), "this is not an e-mail address"),
        (row(""), "the e-mail address is missing"),
        (row("a b@example.com"), "a blank or an invisible character"),
        (row("a@example.com,b@example.com"), "more than one @"),
        (row("x" * 250 + "@example.com"), "too long"),
        (row("a@example.com", "Nwes"), "there is no list “Nwes” (did you mean “News”?)"),
        (row("a@example.com", "1,7"), "there is no list “7”"),
        (row("a@example.com", None), "the list is missing"),
        (row("a@example.com", ";"), "the list is missing"),
        (row("a@example.com", status="pending"), "“pending” is not a status"),
        (row("a@example.com", city="x" * 5001), "column “city” is too long: 5,001 characters, at most 5,000"),
        (row("a@example.com", city="\x1b[0m"), "control character"),
        (row("a@example.com", city="Rom", VIP_since="2020"), "list “News” has no field “VIP_since”"),
    ],
)
def test_a_bad_row_is_said_and_the_others_go_on(plan: Planner, bad: dict[str, Any], said: str) -> None:
    planned = plan(bad, row("good@example.com"))
    assert said in fates(planned)[2]
    assert "@example" not in fates(planned)[2].replace("name@example.com", "")
    assert fates(planned)[3] == "sent"
    assert planned.bad_count == 1


def test_rows_that_contradict_each_other_are_all_bad_and_repetitions_name_the_first(plan: Planner) -> None:
    planned = plan(
        row("a@example.com", "1,3", status="active"),
        row("A@Example.com", "3", status="1"),
        row("a@example.com", "1", status="unsubscribed"),
        row("a@example.com", "2,3", status="active"),
        row("a@example.com", "2", status="active"),
    )
    other = "says something else about the same address and list “News”: keep one of them"
    assert fates(planned) == {
        2: f"bad: row 4 {other}",
        3: "sent",
        4: f"bad: row 2 {other}",
        5: "sent",
        6: "bad: it says the same as row 5",
    }
    assert [params["listid"] for params in requests(planned)] == ["3", "2"]


def test_every_push_since_the_last_sync_counts(plan: Planner) -> None:
    plan.sent(row("ann@example.com", "1", city="Rome"))
    plan.sent(row("ann@example.com", "1", status="unsubscribed"))
    planned = plan(row("ann@example.com", "1", city="London"))
    assert [(change.old, change.new) for change in planned.changes] == [("Rome", "London")]


def test_last_row_counts_only_on_its_own_lists(plan: Planner) -> None:
    rows = [row("a@example.com", "1,3"), row("a@example.com", "1", status="unsubscribed")]
    sent = [(params["listid"], params["status"]) for params in requests(plan(*rows, keep="last"))]
    assert sent == [("3", "Active"), ("1", "Disactive")]


def test_unknown_and_missing_columns_are_one_error_that_says_what_to_do(plan: Planner) -> None:
    with pytest.raises(InputError) as refusal:
        plan({"who": "a@example.com", "lst": "News", "citty": "Rom"})
    said = str(refusal.value)
    assert "the input has no columns email and list_id" in said
    assert "“citty” (did you mean “City”?)" in said
    assert "--map OURS=who" in said
    assert "--ignore" in said
    assert "\n" not in said
    with pytest.raises(InputError, match="is data or a title"):
        plan({"ann@example.com": "bo@example.com", "News": "News"})


def test_columns_are_renamed_and_left_out(plan: Planner) -> None:
    rows = {"Mail": "new@example.com", "email": "old", "to": "News", "x": "Rom", "note": "hm"}
    planned = plan(rows, mapping={"email": "mail", "list": "TO", "home phone": "x"}, ignore=("Note", "email"))
    assert list(requests(planned)) == [
        {"email": "new@example.com", "listid": "1", "status": "Active", "fields[12]": "Rom"}
    ]
    for mapping, said in (
        ({"emial": "Mail"}, "did you mean “email”"),
        ({"email": "Mial"}, "did you mean “Mail”"),
    ):
        with pytest.raises(InputError, match=said):
            plan(rows, mapping=mapping)
    twice = {"email": "a@example.com", "E_mail": "b@example.com", "list": 1}
    with pytest.raises(InputError, match="may both be “email”"):
        plan(twice)
    (item,) = plan(twice, ignore=("E_mail",)).items
    assert item.email == "a@example.com"


def test_usual_spellings_are_recognized_and_the_plan_names_them(plan: Planner) -> None:
    rows = {"E-Mail": "new@example.com", "Liste": "News", "City": "Rom", "status": "active"}
    planned = plan(rows)
    assert list(requests(planned)) == [
        {"email": "new@example.com", "listid": "1", "status": "Active", "fields[11]": "Rom"}
    ]
    assert planned.columns == (("email", "E-Mail"), ("list", "Liste"))
    assert plan({"email": "new@example.com", "list": "News"}).columns == ()


def test_new_contacts_leave_room_for_changes_and_unknown_addresses_are_counted(plan: Planner) -> None:
    new = [row("new0@example.com", "News", city="Rom")]
    new += [row(f"new{number}@example.com", "News, Shop", city=None) for number in range(1, 9)]
    known = (
        row("ann@example.com", city="Rom"),
        row("bo@example.com", "Shop"),
        row("NEW0@example.com", "Shop"),
    )
    planned = plan(*new, *known)
    changes = [(each.row, each.column, each.new) for each in planned.changes]
    assert changes[:3] == [(2, "list", "News; city: Rom"), (3, "list", "News"), (3, "list", "Shop")]
    assert (11, "city", "Rom") in changes
    assert planned.unknown_address_count == 9  # of bo@example.com, another list is known
    plan.sent(*new)
    assert plan(row("new0@example.com", city="Ulm")).unknown_address_count == 0  # we have added it since


# -- whatever comes

_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "email": st.sampled_from(["ann", "BO", "cy", "new", "fay"]).map(lambda who: f"{who}@example.com")
            | st.just("bad"),
            "list": st.sampled_from(["1", "News", "2", "3", "1;3", "1,2", "2,3,1", "9", ""]),
        },
        optional={
            "city": st.sampled_from(["London", "Rom", "", "Köln"]),
            "status": st.sampled_from(["active", "2", "", "bounced", "hm"]),
            "vip since": st.sampled_from(["", "2020"]),
        },
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60)
@given(_ROWS, st.booleans())
@pytest.mark.slow
def test_every_row_has_one_fate_and_nothing_is_left_once_it_was_sent(
    known: Known, rows: list[dict[str, str]], clear: bool
) -> None:
    plan = Planner(known, CONTACTS)
    first = plan.sent(*rows, clear_empty=clear)
    check_every_row_has_one_fate(first)
    subjects = [subject for item in first.items for subject in item.effects]
    assert len(subjects) == len(set(subjects))
    again = plan(*rows, clear_empty=clear)
    check_every_row_has_one_fate(again)
    assert not again.items
    assert list(again.bad) == list(first.bad)
