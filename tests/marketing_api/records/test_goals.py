from decimal import Decimal
from typing import Any

import pytest

from marketing_api.operations import goals
from marketing_api.records.goals import Goal
from tests.marketing_api import samples
from tests.marketing_api.responses import records


def test_nested_members_of_a_goal_become_columns() -> None:
    (goal,) = records(Goal, goals.SHOW, samples.GOAL_DETAIL, id=21)
    assert (goal.goal_id, goal.value_type, goal.value) == (21, "Fixed", Decimal("80.0000"))
    assert goal.links == ["https://corner.example/order", "https://corner.example/thanks"]
    assert (goal.has_action, goal.action_id, goal.action_name) == (True, 9, "Action is deleted!")
    assert goal.extra is None


def test_domain_is_told_by_the_listing_that_asked_for_it() -> None:
    (by_domain,) = records(Goal, goals.LISTBYDOMAIN, samples.GOALS, domainid=2)
    (listed,) = records(Goal, goals.LISTS, samples.GOALS)
    assert by_domain.domain_id == 2
    assert "domain_id" not in listed.model_fields_set


def test_goal_without_an_action_is_known_to_have_none() -> None:
    (goal,) = records(
        Goal,
        goals.SHOW,
        {"goal": {"id": 1, "has_action": "No", "action": [], "goal_value": {"type": "Variable"}}},
        id=1,
    )
    assert (goal.has_action, goal.action_id, goal.value) == (False, None, None)
    assert {"action_id", "action_name"} <= goal.model_fields_set
    assert "value" not in goal.model_fields_set


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        ({"1": "a", "2": "b"}, ["a", "b"]),
        ("a", ["a"]),
        ([], []),
        ("", []),
        (None, None),
    ],
)
def test_links_in_any_shape_are_a_list(links: Any, expected: list[str] | None) -> None:
    (goal,) = records(Goal, goals.LISTS, {"goals": {"items": [{"id": 1, "links": links}]}})
    assert goal.links == expected
