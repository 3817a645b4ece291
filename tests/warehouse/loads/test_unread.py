"""Entries that could not be read, and fields that no column holds."""

from typing import Any

from marketing_api.exchange import Response
from marketing_api.operations import contacts, goals, lists, reputation
from tests.warehouse.answering import START, Home
from warehouse import tables
from warehouse.rebuild import rebuild_warehouse

GOOD: dict[str, Any] = {"id": "1", "email": "a@x.com"}
BAD: dict[str, Any] = {"id": "one", "email": "b@x.com"}


def page(home: Home, *items: Any, list_id: int = 12, minutes: float = 0) -> Response:
    return home.answer(contacts.GETCONTACTS, {"contacts": {"items": list(items)}}, minutes, listid=list_id)


def reviews(
    home: Home, first: int, last: int, *days: int, bad: int | None = None, minutes: float = 0
) -> None:
    items: list[dict[str, Any]] = [{"id": day, "date": f"03/{day:02}/2026"} for day in days]
    items += [{"id": "?", "date": f"03/{bad:02}/2026"}] if bad else []
    scope = {"from_on": f"2026-03-{first:02}", "to_on": f"2026-03-{last:02}"}
    days = {"from_": scope["from_on"], "to": scope["to_on"]}
    data = {"reviews": {"items": items}}
    answer = home.answer(reputation.DIRECT, data, minutes, filter="date", **days)
    home.load([answer], tables.DIRECT_REVIEWS, scope=scope)


def test_an_entry_that_cannot_be_read_is_kept_with_its_reason_and_the_rest_goes_on(home: Home) -> None:
    answer = page(home, GOOD, BAD)
    report = home.load([answer], tables.CONTACTS)
    assert report.tables["contacts"].rejected == 1
    assert home.values(tables.CONTACTS, "contact_id") == [1]
    (row,) = home.rows("sync.rejected_records")
    assert (row["table_name"], row["scope"]) == ("contacts", "list_id=12")
    assert (row["request_id"], row["requested_at"]) == (answer.request_id, START)
    assert '"one"' in row["raw"]
    assert "one" not in row["reason"]


def test_an_entry_that_two_readings_of_a_listing_show_is_set_aside_once(home: Home) -> None:
    second = page(home, GOOD, BAD, {"id": 2, "status": ["?"]}, minutes=1)
    report = home.load([page(home, GOOD, BAD), second], tables.CONTACTS)
    assert (report.tables["contacts"].rejected, report.tables["contacts"].flawed) == (1, 1)
    assert len(home.rows("sync.rejected_records")) == 2


def test_reading_the_scope_again_replaces_what_was_set_aside(home: Home) -> None:
    home.load([page(home, BAD), page(home, BAD, list_id=13)], tables.CONTACTS)
    home.load([page(home, GOOD, minutes=60)], tables.CONTACTS)
    assert home.values("sync.rejected_records", "scope") == ["list_id=13"]
    assert home.warehouse.rejected_count(tables.CONTACTS) == 1


def test_a_value_too_large_for_its_column_costs_itself_only(home: Home) -> None:
    items = [{"id": 1, "goal_value": {"value": "80"}}]
    items += [{"id": 2, "name": "B", "goal_value": {"value": "9" * 30}}]
    report = home.load([home.answer(goals.LISTS, {"goals": {"items": items}})], tables.GOALS)
    _, second = home.rows(tables.GOALS, "goal_id, name, value is null as is_null")
    assert second == {"goal_id": 2, "name": "B", "is_null": True}
    assert (report.tables["goals"].rejected, report.tables["goals"].flawed) == (0, 1)
    (row,) = home.rows("sync.rejected_records")
    assert row["reason"] == "value: missing, or too large for the column"
    assert "9" * 30 in row["raw"]


def test_a_value_that_cannot_be_read_is_kept_aside_and_keeps_nothing_from_being_marked_as_deleted(
    home: Home,
) -> None:
    home.load([page(home, GOOD, {"id": 2, "registration_date": "soon"}, {"id": 3})], tables.CONTACTS)
    later = page(home, GOOD, {"id": 2, "registration_date": "later"}, minutes=60)
    report = home.load([later], tables.CONTACTS)
    assert report.refused == {}
    counts = report.tables["contacts"]
    assert (counts.deleted, counts.rejected, counts.flawed) == (1, 0, 1)
    rows = home.rows("source.contacts", "contact_id, _deleted_at is null as is_there, registered_at")
    found = [tuple(each.values()) for each in rows]
    assert found == [(1, True, None), (2, True, None), (3, False, None)]
    (row,) = home.rows("sync.rejected_records")
    assert (row["scope"], row["reason"]) == ("list_id=12", "registration_date: not a date or time")
    assert "later" in row["raw"]
    assert home.rows("sync.coverage", "is_complete, reason") == [{"is_complete": True, "reason": None}]


def test_an_entry_that_ranges_share_is_set_aside_once(home: Home) -> None:
    reviews(home, 1, 8, 2, bad=4)
    reviews(home, 2, 9, 2, bad=4, minutes=60)
    assert home.values("sync.rejected_records", "scope") == ["2026-03-02..2026-03-09"]


def test_a_range_that_holds_an_earlier_one_replaces_what_that_set_aside(home: Home) -> None:
    reviews(home, 3, 5, bad=4)
    reviews(home, 7, 20, bad=8, minutes=1)
    reviews(home, 1, 10, 4, minutes=2)
    assert home.values("sync.rejected_records", "scope") == ["2026-03-07..2026-03-20"]


def test_details_set_aside_are_replaced_by_the_same_rows_detail(home: Home) -> None:
    listing = home.answer(goals.LISTS, {"goals": {"items": [{"id": 1}, {"id": 2}]}})
    bad = [home.answer(goals.SHOW, {"goal": {"id": id_, "has_action": "perhaps"}}, id=id_) for id_ in (1, 2)]
    home.load([listing, *bad], tables.GOALS)
    good = home.answer(goals.SHOW, {"goal": {"id": 1, "has_action": "Yes"}}, 60, id=1)
    listing = home.answer(goals.LISTS, {"goals": {"items": [{"id": 1}, {"id": 2}]}}, 60)
    home.load([listing, good], tables.GOALS)
    assert home.values("sync.rejected_records", "scope") == ["goal_id=2"]


def test_unknown_fields_are_noted_when_they_first_come(home: Home) -> None:
    def listing(minutes: float, **more: Any) -> None:
        data = {"audiences": {"items": [{"id": 1, "name": "A", **more}]}}
        home.load([home.answer(lists.GETAUDIENCES, data, minutes)], tables.AUDIENCES)

    listing(0, colour="red")
    listing(60, colour="blue", size=3)
    rows = home.rows("sync.schema_changes", "field, change, sample, noticed_at")
    assert [(row["noticed_at"] - START).seconds for row in rows] == [0, 3600]
    found = [(row["field"], row["change"], row["sample"]) for row in rows]
    assert found == [("colour", "new field", "text of 3 characters"), ("size", "new field", "number")]
    assert home.values(tables.AUDIENCES, "extra") == ['{"colour":"blue","size":3}']


def test_a_field_is_missing_when_no_entry_has_it_any_more(home: Home) -> None:
    def load_entries(days: int, *entries: dict[str, str]) -> None:
        items = [{"id": place, "name": "A", **entry} for place, entry in enumerate(entries)]
        answer = home.answer(lists.GETAUDIENCES, {"audiences": {"items": items}}, days * 24 * 60)
        home.load([answer], tables.AUDIENCES)

    whole = {"colour": "red", "size": "3"}
    load_entries(0, whole, whole)
    load_entries(8, {"colour": "red"}, {})  # the first week is learned
    assert home.values("sync.schema_changes", "field", "change = 'field missing'") == ["size"]


def test_a_field_of_any_name_is_announced_once_and_for_good(home: Home) -> None:
    names = ["ann@example.com", "bob@example.com", "ann%40example.com", "n" * 300, "n" * 250 + "m"]
    names += ["a b", "", "x.y", "%", "'"]

    def night(number: int, *fields: str) -> list[str]:
        audience = {"id": 1, "name": "A", **dict.fromkeys(fields, number)}
        answer = home.answer(lists.GETAUDIENCES, {"audiences": {"items": [audience]}}, 60 * number)
        return home.load([answer], tables.AUDIENCES).tables["audiences"].drift

    assert night(0) == []
    # addresses are one name, and so are those that begin with the same 200 characters
    assert len(night(1, *names)) == 7
    assert [night(number, *names) for number in range(2, 5)] == [[], [], []]
    assert len(night(5, *names, "colour")) == 1
    before = home.contents()
    rebuild_warehouse(home.path, archive=home.archive)
    assert home.contents() == before
    assert not any("example.com" in str(row["field"]) for row in home.rows("sync.schema_changes"))


def test_what_is_known_of_fields_names_nobody(home: Home) -> None:
    def night(number: int, *addresses: str) -> list[str]:
        theirs = dict.fromkeys(addresses, 1)
        items = {"items": [{"id": 1, "name": "A", "more": {"of": {**theirs}}, **theirs}]}
        answer = home.answer(lists.GETAUDIENCES, {"audiences": items, **theirs}, 60 * number)
        return home.load([answer], tables.AUDIENCES).tables["audiences"].drift

    night(0)
    night(1, "ann@example.com", "ann%40example.com")
    assert night(2, "bob@example.com") == [], "another address is no change"
    fields = home.values("sync.known_shapes", "field")
    assert {"•••", "more.of.•••"} <= set(fields)
    assert not any("example.com" in field for field in fields)
