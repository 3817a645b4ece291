from typing import Any

import pytest

from marketing_api.operations import lists
from marketing_api.records.lists import Audience, ContactList, ListField
from tests.marketing_api import samples
from tests.marketing_api.responses import read, records, utc


def test_misspelt_confirmation_fields_are_read() -> None:
    (found,) = records(ContactList, lists.GETLISTS, samples.LISTS)
    assert (found.list_id, found.name, found.is_double_opt_in) == (5, "Newsletter", True)
    assert (found.confirmation_email, found.confirmation_message) == ("<p>[CONFIRM]</p>", "Check your mail")
    assert found.created_at == utc("2014-11-04 21:33:00")
    assert found.extra is None


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [("a", "", "a"), ("", "b", "b"), ("a", "b", "a")],
    ids=["right", "wrong", "both"],
)
def test_of_two_spellings_the_one_with_a_value_counts(right: str, wrong: str, expected: str) -> None:
    entry = {"id": 1, "confirmation_email": right, "confimation_email": wrong}
    (found,) = records(ContactList, lists.GETLIST, {"list": entry}, id=1)
    assert found.confirmation_email == expected
    assert found.extra is None


@pytest.mark.parametrize(
    "fields", [{"12": {"label": "City", "kind": "text"}}, [{"ID": "12", "name": "City", "kind": "text"}]]
)
def test_what_else_is_told_of_a_field_is_kept(fields: Any) -> None:
    (found,) = records(ListField, lists.GETLIST, {"list": {"id": 5, "fields": fields}}, id=5)
    assert (found.field_id, found.label, found.extra) == ("12", "City", {"kind": "text"})


def test_detail_adds_the_custom_fields() -> None:
    found = records(ListField, lists.GETLIST, samples.LIST_DETAIL, id=5)
    assert [(each.list_id, each.field_id, each.label) for each in found] == [
        (5, "12", "City"),
        (5, "13", "Birthday"),
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"12": "City"}, [("12", "City")]),
        ([{"id": 12, "name": "City"}], [("12", "City")]),
        ([], []),
        (None, []),
    ],
)
def test_listing_may_carry_custom_fields_in_any_shape(fields: Any, expected: list[tuple[str, str]]) -> None:
    found = records(ListField, lists.GETLISTS, {"lists": {"items": {"1": {"id": 5, "fields": fields}}}})
    assert [(each.field_id, each.label) for each in found] == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"audiences": {"count": 3, "items": {"1": {"id": "611", "name": "Opened"}}}},
        {"id": "611", "name": "Opened"},
        [{"id": "611", "name": "Opened"}],
        {"1": {"id": "611", "name": "Opened"}},
        {"count": 1, "items": {"12": "City"}},
        {"12s": "City"},
        {"12": None},
        "City",
    ],
    ids=str,
)
@pytest.mark.parametrize("is_listed", [True, False], ids=["getlists", "getlist"])
def test_what_may_be_no_fields_proves_no_field_to_be_gone(fields: Any, is_listed: bool) -> None:
    entry = {"id": 5, "fields": fields}
    found = (
        read(lists.GETLISTS, {"lists": {"items": [entry]}})
        if is_listed
        else read(lists.GETLIST, {"list": entry}, id=5)
    )
    assert any(rows.missing or rows.rejected for rows in found if rows.record is ListField)


@pytest.mark.parametrize("fields", [{"12": "City"}, {}, []], ids=str)
def test_labels_by_id_are_all_fields_of_a_list(fields: Any) -> None:
    assert not any(
        rows.missing or rows.rejected
        for rows in read(lists.GETLIST, {"list": {"id": 5, "fields": fields}}, id=5)
    )


@pytest.mark.parametrize(
    "fields",
    [{"audiences": {"count": 3, "items": [{"id": 6, "name": "Opened"}]}}, [{"id": 6, "subject": "Hi"}]],
    ids=str,
)
def test_the_members_of_another_answer_are_no_fields(fields: Any) -> None:
    found = [
        rows
        for rows in read(lists.GETLIST, {"list": {"id": 5, "fields": fields}}, id=5)
        if rows.record is ListField
    ]
    assert [(rows.records, len(rows.rejected)) for rows in found] == [([], 1)]


@pytest.mark.parametrize(
    "wrap", [lambda inside: {"fields": inside}, lambda inside: {"items": inside}, lambda inside: [inside]]
)
def test_fields_in_a_wrapper_are_read(wrap: Any) -> None:
    (found,) = records(ListField, lists.GETLIST, {"list": {"id": 5, "fields": wrap({"12": "City"})}}, id=5)
    assert (found.field_id, found.label) == ("12", "City")


def test_listing_tells_only_the_columns_it_has() -> None:
    (found,) = records(ContactList, lists.GETLISTS, {"lists": {"items": [{"id": 5, "name": "Newsletter"}]}})
    assert found.model_fields_set == {"list_id", "name"}


def test_audiences_are_rows() -> None:
    (audience,) = records(Audience, lists.GETAUDIENCES, samples.AUDIENCES)
    assert (audience.audience_id, audience.name) == (6, "Regulars")
