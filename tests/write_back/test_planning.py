"""Every row of a plan has one fate, and a person is one, however they are named."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.operations import contacts
from tests.write_back.planner import (
    CONTACTS,
    Planner,
    check_every_row_has_one_fate,
    fates,
    make_warehouse,
    open_known,
)
from warehouse.connection import open_database
from write_back.account_state import Known
from write_back.input.values import BadValue
from write_back.kinds import KINDS
from write_back.planning import bind_parameters

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
}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """A contact got another address between the readings of its lists."""
    contacts = [*CONTACTS, (303, 1, "fern@example.com", 1, None), (303, 2, "flo@example.com", 1, None)]
    path = make_warehouse(tmp_path_factory.mktemp("moved") / "warehouse.duckdb", contacts)
    with open_database(path, read_only=True):
        yield open_known(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_every_row_has_one_fate(known: Known, kind: str, data: st.DataObject) -> None:
    plan = Planner(known, KINDS[kind])
    table = st.lists(st.fixed_dictionaries(_COLUMNS[kind]), min_size=1, max_size=8)
    plan.sent(*data.draw(table))
    check_every_row_has_one_fate(plan(*data.draw(table)))


def test_one_contact_with_two_addresses_is_one_person(known: Known) -> None:
    """Found by neither address alone: 303 is on lists that were read before and after it got another."""
    plan = Planner(known, KINDS["activities"])
    said = {"description": "Called", "datetime": "2026-02-01 10:30"}
    made = plan({"email": "fern@example.com", **said}, {"email": "flo@example.com", **said})
    assert len(made.items) == 1
    assert fates(made)


@pytest.mark.parametrize("contact_id", [7, None])
def test_a_value_that_the_operation_refuses_is_a_bad_row(contact_id: int | None) -> None:
    with pytest.raises(BadValue, match="the service would refuse it: status is not allowed"):
        bind_parameters(contacts.EDITCONTACT, id=contact_id, status="Sleeping")
