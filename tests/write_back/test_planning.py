"""Rows are planned in batches, of which nobody sees anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.write_back.planner import (
    CONTACTS,
    Planner,
    check_every_row_has_one_fate,
    fates,
    make_warehouse,
    open_known,
    requests,
)
from warehouse.connection import connect
from write_back import planning
from write_back.account_state import Known
from write_back.item import Plan, Reason
from write_back.kinds import KINDS, TAGS
from write_back.packed import Packed

_WHO: Mapping[str, Any] = {
    "email": st.sampled_from(
        [
            "ann@example.com",
            "ANN@example.com",
            "fay@example.com",
            "fern@example.com",
            "new@example.com",
            "x",
            "",
        ]
    ),
    "contact_id": st.sampled_from(["", "101", "302", "303", "7", "?"]),
}
_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "contacts": {
        "email": _WHO["email"],
        "list": st.sampled_from(["1", "1,2", "3", "9"]),
        "city": st.sampled_from("ab"),
    },
    "tags": {**_WHO, "tag": st.sampled_from(["a", "b", "a,b"]), "action": st.sampled_from(["add", "remove"])},
    "activities": {**_WHO, "description": st.sampled_from("ab"), "datetime": st.just("2026-02-01 10:30")},
    "moves": {**_WHO, "from": st.sampled_from("13"), "to": st.sampled_from("23")},
    "deletions": {**_WHO, "list": st.sampled_from(["1", "3", "1,3"])},
}


def _all(plan: Plan) -> tuple[Any, ...]:
    counts = plan.new_count, plan.changed_count, plan.unknown_address_count, plan.request_count
    rows = [item.rows for item in plan.items]
    return (
        counts,
        rows,
        list(requests(plan)),
        fates(plan),
        set(plan.warnings),
        list(plan.bad),
        list(plan.idle),
    )


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """A contact got another address between the readings of its lists."""
    contacts = [*CONTACTS, (303, 1, "fern@example.com", 1, None), (303, 2, "flo@example.com", 1, None)]
    path = make_warehouse(tmp_path_factory.mktemp("moved") / "warehouse.duckdb", contacts)
    with connect(path, read_only=True):
        yield open_known(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.integers(1, 3))
def test_batches_plan_what_all_rows_at_once_do(
    known: Known, kind: str, data: st.DataObject, size: int
) -> None:
    plan = Planner(known, KINDS[kind])
    table = st.lists(st.fixed_dictionaries(_COLUMNS[kind]), min_size=size + 1, max_size=8)
    plan.sent(*data.draw(table))
    rows = data.draw(table)
    whole = plan(*rows)
    with mock.patch.object(planning, "BATCH", size):
        parts = plan(*rows)
    check_every_row_has_one_fate(parts)
    assert _all(parts) == _all(whole)


def test_a_batch_is_as_small_as_its_people_allow(known: Known) -> None:
    plan, sizes = Planner(known, TAGS), []
    people = ["ann@example.com", "new@example.com", "fay@example.com", "Ann@example.com"]
    with (
        mock.patch.object(planning, "BATCH", 1),
        mock.patch.object(Packed, "add", lambda _, batch: sizes.append(len(batch))),
    ):
        plan(*({"email": email, "tag": f"tag {number}"} for number, email in enumerate(people)))
    assert [size for size in sizes if size] == [1, 1, 1]  # requests: one about Ann


@given(st.lists(st.lists(st.integers(0, 5000), unique=True)))
def test_packed_values_come_back_in_order_of_their_rows(batches: list[list[int]]) -> None:
    packed = Packed(Reason)
    for batch in batches:
        packed.add([Reason((row,), "unchanged", email=f"{row}@example.com") for row in sorted(batch)])
    assert [each.rows[0] for each in packed] == sorted(row for batch in batches for row in batch)
    assert len(packed) == sum(map(len, batches))


def test_one_contact_with_two_addresses_is_one_person(known: Known) -> None:
    """Found by neither address alone: 303 is on lists that were read before and after it got another."""
    plan = Planner(known, KINDS["activities"])
    said = {"description": "Called", "datetime": "2026-02-01 10:30"}
    with mock.patch.object(planning, "BATCH", 1):
        made = plan({"email": "fern@example.com", **said}, {"email": "flo@example.com", **said})
    assert len(made.items) == 1
    assert fates(made)
