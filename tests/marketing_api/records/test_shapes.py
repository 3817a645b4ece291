from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.records.shapes import (
    add_keys,
    as_object,
    as_objects,
    first_member,
    is_whole,
    items_of,
    lift_members,
    list_entries,
)

RAWS = st.lists(
    st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.sampled_from(["x", "y"])}), max_size=12
)


def keys(raws: list[dict[str, Any]]) -> list[str]:
    return [raw["key"] for raw in add_keys(raws, "key", lambda raw: (raw["a"], raw["b"]))]


@given(RAWS)
def test_keys_are_unique_and_stable(raws: list[dict[str, Any]]) -> None:
    assert len(set(keys(raws))) == len(raws)
    assert keys(raws) == keys(raws)


@given(RAWS, st.randoms())
def test_keys_as_a_set_do_not_depend_on_the_order(raws: list[dict[str, Any]], random: Any) -> None:
    shuffled = random.sample(raws, len(raws))
    assert Counter(keys(raws)) == Counter(keys(shuffled))


@given(RAWS, RAWS)
def test_later_entries_do_not_change_earlier_keys(
    raws: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    assert keys(raws + more)[: len(raws)] == keys(raws)


@given(RAWS)
def test_keys_are_the_same_for_numbers_and_texts(raws: list[dict[str, Any]]) -> None:
    assert keys([{**raw, "a": str(raw["a"])} for raw in raws]) == keys(raws)


def test_an_absent_value_is_not_an_empty_text() -> None:
    first, second = add_keys([{"a": None}, {"a": ""}], "key", lambda raw: [raw["a"]])
    assert first["key"] != second["key"]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([1, 2], [1, 2]),
        ({"1": "a", "2": "b"}, ["a", "b"]),
        ([], []),
        ({}, []),
        (None, []),
        ("", []),
        ("...", ["..."]),
        (7, [7]),
    ],
)
def test_entries_of_every_shape(items: Any, expected: list[Any]) -> None:
    assert list(list_entries(items)) == expected


def test_mapping_refuses_what_is_no_object() -> None:
    assert as_object([]) == as_object(None) == {}
    assert as_object(["a"]) == {"0": "a"}
    with pytest.raises(ValueError, match="not an object"):
        as_object("text")


def test_member_prefers_the_exact_name() -> None:
    assert first_member({"reviews": 1, "Reviews": 2}, "Reviews") == 2
    assert first_member({"REVIEWS": 3}, "Reviews") == 3
    assert first_member([], "Reviews") is None


def test_wrappers_and_single_fetches() -> None:
    assert items_of({"count": 1, "Items": [1]}) == [1]
    assert items_of([1]) == [1]
    assert as_objects({"id": 1}) == [{"id": 1}]
    assert as_objects([{"id": 1}, {"id": 2}]) == [{"id": 1}, {"id": 2}]
    assert as_objects({}) == as_objects([]) == as_objects(None) == []


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"url": {"filter": "is", "link": "x"}}, {"url_filter": "is", "url_link": "x"}),
        ({"url": {"filter": "is", "new": 1}}, {"url_filter": "is", "url": {"new": 1}}),
        ({"url": []}, {"url_filter": None, "url_link": None}),
        ({"url": "plain"}, {"url": "plain"}),
        ({}, {}),
    ],
)
def test_lift_turns_named_members_into_columns_and_keeps_the_rest(
    raw: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert lift_members(raw, "url", {"filter": "url_filter", "link": "url_link"}) == expected


@pytest.mark.parametrize(
    ("collection", "expected"),
    [
        ([], True),
        ({}, True),
        ([1, 2], True),
        ({"1": 1, "2": 2}, True),
        ({"id": 7, "name": "x"}, True),
        ({"1": 1, "X": 2}, False),
        ({"header": {}, "data": {}}, False),
        ({"id": None}, False),
        (None, False),
        ("", False),
        ("x", False),
    ],
    ids=str,
)
def test_only_a_list_in_one_of_its_shapes_is_told(collection: Any, expected: bool) -> None:
    assert is_whole(None, collection) is expected


@pytest.mark.parametrize(
    ("count", "collection", "expected"),
    [
        (2, [1, 2], True),
        ("1", [1, 2], True),
        (3, [1, 2], False),
        (0, None, True),
        (1, "", False),
        ([], [1], False),
    ],
)
def test_a_list_is_whole_with_no_less_than_the_count_beside_it(
    count: Any, collection: Any, expected: bool
) -> None:
    assert is_whole({"count": count}, collection) is expected
