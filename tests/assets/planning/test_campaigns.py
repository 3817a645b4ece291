"""Young campaigns nightly, old ones weekly."""

import datetime as dt
from typing import Any

import pyarrow as pa

from assets.planning.crawl_plan import plan_campaigns
from assets.planning.order import Rules
from tests.assets.planning.people import NOW

AT = pa.timestamp("us", "UTC")


def campaigns(*made: dict[str, Any]) -> pa.Table:
    """Each given by `age`, `asked`, `moved`, `row`: days ago."""

    def ago(days: float | None) -> dt.datetime | None:
        return None if days is None else NOW - dt.timedelta(days=days)

    moved = [ago(one.get("moved")) for one in made]
    return pa.table(
        {
            "campaign_id": pa.array(range(1, len(made) + 1), pa.int64()),
            "type": pa.array(["standard"] * len(made)),
            "created_at": pa.array([ago(one.get("age")) for one in made], AT),
            "row_at": pa.array([ago(one.get("row", one.get("age"))) for one in made], AT),
            "asked_at": pa.array([ago(one.get("asked")) for one in made], AT),
            "moved_on": pa.array(
                [None if moment is None else moment.date() for moment in moved], pa.date32()
            ),
        }
    )


def asked(*made: dict[str, Any]) -> list[int]:
    return [campaign_id for campaign_id, _ in plan_campaigns(campaigns(*made), NOW, Rules()).campaigns]


def test_the_age_rule() -> None:
    young, old = {"age": 5}, {"age": 60}
    assert asked(young | {"asked": 1}, old | {"asked": 1}) == [1]
    assert asked(young | {"asked": 7}, old | {"asked": 7}) == [1, 2]


def test_a_campaign_that_still_moves_is_young() -> None:
    assert asked({"age": 300, "asked": 1, "moved": 2}, {"age": 300, "asked": 1, "moved": 200}) == [1]


def test_what_is_new_or_changed_in_the_listing_is_asked_whatever_its_age() -> None:
    assert asked({"age": 300}, {"age": 300, "asked": 2, "row": 1}, {"age": 300, "asked": 2, "row": 3}) == [
        1,
        2,
    ]


def test_nothing_is_asked_twice_in_a_night() -> None:
    assert asked({"age": 5, "asked": 0.1}) == []


def test_a_person_may_ask_for_all_of_them() -> None:
    plan = plan_campaigns(campaigns({"age": 300, "asked": 0.1}), NOW, Rules(requests_all=True))
    assert plan.campaigns == [(1, "standard")]


def test_it_is_told_when_the_first_is_due_next() -> None:
    plan = plan_campaigns(campaigns({"age": 60, "asked": 1}, {"age": 300, "asked": 2}), NOW, Rules())
    assert plan.due_at == NOW + dt.timedelta(days=5)


def test_a_campaign_asked_or_changed_in_the_future_is_asked_now_and_then_as_its_age_wants() -> None:
    assert asked({"age": 60, "asked": -10}) == [1]
    assert asked(*[{"age": 60, "asked": 1, "row": -10}] * 3) == []
