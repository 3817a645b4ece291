"""A kind of push says its effect, and that is enough: plans, the outbox, `sync.writebacks` and the shrink check
honour a kind that nothing but this file names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from marketing_api.records.contacts import DELETECONTACT
from tests.write_back.desk import Desk
from tests.write_back.planner import READ_AT, Memory, Planner, fates
from warehouse.archive import Archive
from warehouse.warehouse import Warehouse
from write_back.account_state import Known, read_who
from write_back.input.columns import Spec
from write_back.item import Effect, EffectKind, Item, State
from write_back.kinds import CONTACTS, DELETIONS, KINDS, MOVES
from write_back.kinds.kind import BY_WHO, LIST, WHO, Kind
from write_back.planning import Planning
from write_back.writebacks_export import export_writebacks


class RetirementsPlanning(Planning):
    def run(self) -> None:
        cells, lists = self.picked.cells, self.known.lists
        for index, number in enumerate(self.rows.numbers):
            who, list_id = read_who(cells, index), lists.one(cells["list"][index])
            self.send(retired(who.contact_id or 0, list_id, row=number), is_new=False)


class Retirements(Kind):
    """Contacts by id that are taken off one list."""

    name = "retirements"
    effect = EffectKind.LEAVES
    columns = Spec({**WHO, "list": LIST}, (BY_WHO, ("list",)))
    planning = RetirementsPlanning


RETIREMENTS = Retirements()


def retired(contact_id: int, list_id: int, *, row: int = 2) -> Item:
    return Item(
        RETIREMENTS,
        (row,),
        DELETECONTACT.name,
        {"id": str(contact_id), "listid": str(list_id)},
        (Effect(f"{contact_id}|{list_id}"),),
        contact_id=contact_id,
    )


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, RETIREMENTS, RETIREMENTS)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """A list of which four contacts are known."""
    with Archive(tmp_path / "archive") as archive:
        warehouse = Warehouse(tmp_path, archive)
        listed = [
            {"account": "main", "list_id": 1801, "contact_id": number, "_deleted_at": None}
            for number in range(1, 5)
        ]
        read = {"account": "main", "table_name": "contacts", "scope": "list_id=1801", "as_of": READ_AT}
        with warehouse.writing() as connection:
            for table, rows in (("source.contacts", listed), ("sync.coverage", [read])):
                connection.register("arrow_rows", pa.Table.from_pylist(rows))
                connection.execute(f"insert into {table} by name from arrow_rows")
                connection.unregister("arrow_rows")
        yield warehouse


def test_whom_it_took_off_a_list_other_kinds_know_to_be_gone(known: Known) -> None:
    memory = Memory()
    retirements, contacts, moves = (Planner(known, kind, memory) for kind in (RETIREMENTS, CONTACTS, MOVES))
    on_it, moved = {"email": "ann@example.com", "list": "News"}, {"contact_id": 101, "from": 1, "to": 2}
    assert fates(contacts(on_it)) == {2: "idle: unchanged"}
    retirements.sent({"contact_id": 101, "list": "News"})
    assert fates(contacts(on_it)) == {2: "sent"}, "put there again"
    assert "is not on list" in fates(moves(moved))[2]


def test_what_the_first_try_took_away_the_second_need_not_find(desk: Desk) -> None:
    (person, *others) = desk.people()
    push_id, sent = desk.push(retired(int(person["id"]), 1801))
    assert sent.applied == 1
    assert desk.people() == others
    (entry,) = desk.outbox.items(push_id)
    desk.outbox.settle(entry.item_id, State.APPLIED, drift={"source list": ["not on it", "on it"]})
    assert desk.outbox.retry("main", not_idempotent=()).planned == 1
    assert desk.send().applied == 1, "the service says that the contact does not exist"


@pytest.mark.parametrize("kind", [RETIREMENTS, DELETIONS])
def test_the_next_reading_of_the_list_may_lack_them(
    desk: Desk, warehouse: Warehouse, tmp_path: Path, kind: Kind
) -> None:
    push_id = desk.outbox.enqueue(desk.plan(replace(retired(1, 1801), kind=kind)))
    (entry,) = desk.outbox.items(push_id)
    export_writebacks(warehouse.writing(), tmp_path)
    assert warehouse.taken_away("main") == {}, "nothing was sent yet"
    assert desk.outbox.claim(entry.item_id)
    desk.outbox.settle(entry.item_id, State.APPLIED)
    export_writebacks(warehouse.writing(), tmp_path)
    assert warehouse.taken_away("main") == {1801: 0.25}
    shown = warehouse.read("select kind, effect, left_list_id from sync.writebacks").to_pylist()
    assert shown == [{"kind": str(kind), "effect": "leaves", "left_list_id": 1801}]
