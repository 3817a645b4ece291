"""A row of a push is about the contacts with its address, however spelled, and nobody else."""

from pathlib import Path

import pytest

from marketing_api.address import normal_form
from tests.spellings import SPELLINGS
from tests.write_back.planner import Planner, make_warehouse, open_known
from write_back.account_state import Known
from write_back.kinds import KINDS
from write_back.outbox.outbox import Entry, Outbox
from write_back.send_order import keys_of


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    people = [(number, 1, shown, 1, None) for number, (shown, *_) in enumerate(SPELLINGS, 1)]
    return open_known(make_warehouse(tmp_path_factory.mktemp("spelled") / "warehouse.duckdb", people))


def entry_of(outbox: Outbox, planner: Planner, email: str) -> Entry:
    (entry,) = outbox.list_entries(outbox.enqueue_plan(planner({"email": email, "tag": "vip"})))
    return entry


def test_rows_find_their_contacts_and_no_others(known: Known) -> None:
    found = known.by_address(normal_form(given) for _, given, _ in SPELLINGS)
    assert [member.contact_id for members in found.values() for member in members] == [1, 2, 3, 4, 5, 6]
    assert known.by_address(normal_form(other) for *_, other in SPELLINGS) == {}


@pytest.mark.parametrize(("shown", "given", "other"), SPELLINGS)
def test_two_rows_about_one_address_are_one_and_of_others_are_two(
    known: Known, shown: str, given: str, other: str
) -> None:
    tags, contacts = Planner(known, KINDS["tags"]), Planner(known, KINDS["contacts"])
    (item,) = tags({"email": given, "tag": "vip"}, {"email": shown.strip(), "tag": "vip"}).items
    number = SPELLINGS.index((shown, given, other)) + 1
    assert {subject.partition("|")[0] for subject in item.effects} == {str(number), normal_form(given)}
    rows = [{"email": each, "list": "News", "status": "active"} for each in (given, shown.strip(), other)]
    plan = contacts(*rows)
    assert sum(len(one.rows) for one in plan.items) + len(plan.idle) == 2
    assert [bad.reason for bad in plan.bad] == ["it says the same as row 2"]


@pytest.mark.slow
@pytest.mark.parametrize(("given", "again"), [(given, shown.strip()) for shown, given, _ in SPELLINGS])
def test_who_was_looked_up_is_known_by_the_id_from_then_on(
    known: Known, tmp_path: Path, given: str, again: str
) -> None:
    nobody = open_known(make_warehouse(tmp_path / "warehouse.duckdb", [(99, 1, "zoe@example.com", 1, None)]))
    with Outbox(tmp_path / "outbox.sqlite") as outbox:
        entry, other = (entry_of(outbox, Planner(nobody, KINDS["tags"]), each) for each in (given, again))
        assert keys_of(entry, ()) == keys_of(other, ()), "one after the other"
        outbox.claim_item(entry.item_id, contact_id=7)
        assert [
            subject.partition("|")[0] for subject in outbox.find_subjects([entry.item_id])[entry.item_id]
        ] == [
            "7",
            normal_form(given),
        ]
