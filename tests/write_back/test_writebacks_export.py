"""sync.writebacks shows what the outbox holds, however often and whenever it is brought up to date."""

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from home.door import outbox_of
from marketing_api.clock import utc_now
from tests.write_back.plans import a_plan, contact, tag
from warehouse.archive.archive import Archive
from warehouse.bookkeeping import written_revision
from warehouse.policies import Kept
from warehouse.rebuild import rebuild_warehouse
from warehouse.retention import let_go
from warehouse.warehouse import Warehouse
from write_back.item import Reason, State
from write_back.outbox.outbox import Outbox, open_outbox
from write_back.writebacks_export import export_writebacks


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with Archive(tmp_path / "archive") as archive:
        yield Warehouse(tmp_path, archive)


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    with open_outbox(tmp_path) as outbox:
        yield outbox


def shown(
    warehouse: Warehouse, columns: str = "item_id, state, row_numbers, rejected_by"
) -> list[tuple[Any, ...]]:
    return [
        tuple(row.values())
        for row in warehouse.run_query(f"select {columns} from sync.writebacks order by item_id").to_pylist()
    ]


def test_every_entry_is_a_row(warehouse: Warehouse, outbox: Outbox, tmp_path: Path) -> None:
    item = contact(2, "ann@example.com", 7, fields={"12": "Köln"})
    push_id = outbox.enqueue_plan(a_plan(item, idle=[3], bad=[Reason((4,), "no address")]), run="r1")
    assert export_writebacks(warehouse.open_for_writing(), tmp_path) == 3
    assert shown(warehouse) == [
        (1, "planned", [2], None),
        (2, "rejected", [4], "check"),
        (3, "skipped", [3], None),
    ]
    columns = "email, operation, params ->> 'fields[12]', message, run, push_id, source"
    assert shown(warehouse, columns)[0] == (
        "ann@example.com",
        "emailmarketing/synccontact",
        "Köln",
        None,
        "r1",
        push_id,
        "rows.csv",
    )


def test_what_changed_replaces_its_row_and_nothing_else_is_written(
    warehouse: Warehouse, outbox: Outbox, tmp_path: Path
) -> None:
    outbox.enqueue_plan(a_plan(tag(2), tag(3)))
    export_writebacks(warehouse.open_for_writing(), tmp_path)
    assert outbox.claim_item(1)
    outbox.settle_item(1, State.APPLIED, request_id=77, drift={"status": ["active", "bounced"]})
    assert export_writebacks(warehouse.open_for_writing(), tmp_path) == 1
    columns = "state, attempts, request_id, drift ->> '$.status[1]', done_at is not null"
    assert shown(warehouse, columns) == [
        ("applied", 1, 77, "bounced", True),
        ("planned", 0, None, None, False),
    ]
    assert export_writebacks(warehouse.open_for_writing(), tmp_path) == 0


def test_it_survives_a_rebuild_of_the_warehouse(warehouse: Warehouse, outbox: Outbox, tmp_path: Path) -> None:
    outbox.enqueue_plan(a_plan(tag(2), tag(3)))
    export_writebacks(warehouse.open_for_writing(), tmp_path)
    before = shown(warehouse, "*")
    rebuild_warehouse(tmp_path, archive=warehouse.archive)
    export_writebacks(warehouse.open_for_writing(), tmp_path)
    assert shown(warehouse, "*") == before


def test_a_warehouse_that_was_lost_is_filled_anew(
    warehouse: Warehouse, outbox: Outbox, tmp_path: Path
) -> None:
    outbox.enqueue_plan(a_plan(tag(2)))
    export_writebacks(warehouse.open_for_writing(), tmp_path)
    warehouse.path.unlink()
    rebuild_warehouse(tmp_path, archive=warehouse.archive)
    assert export_writebacks(warehouse.open_for_writing(), tmp_path) == 1


def test_a_new_outbox_does_not_overwrite_what_the_old_one_did(
    warehouse: Warehouse, outbox: Outbox, tmp_path: Path
) -> None:
    outbox.enqueue_plan(a_plan(tag(2)))
    export_writebacks(warehouse.open_for_writing(), tmp_path)
    with open_outbox(tmp_path / "another") as another:
        another.enqueue_plan(a_plan(tag(5)))
    assert export_writebacks(warehouse.open_for_writing(), tmp_path / "another") == 1
    assert [row[2] for row in shown(warehouse)] == [[2], [5]]


def test_rows_that_had_nothing_to_do_go_after_a_week(warehouse: Warehouse, tmp_path: Path) -> None:
    with Outbox(outbox_of(tmp_path), clock=lambda: time.time() - 8 * 86_400) as old:
        old.enqueue_plan(a_plan(tag(2), idle=[3], bad=[Reason((4,), "no address")]))
        begun_at = old.begun_at or 0
    export_writebacks(warehouse.open_for_writing(), tmp_path)
    with warehouse.open_for_writing() as connection:
        assert written_revision(connection, dt.datetime.fromtimestamp(begun_at, dt.UTC)) > 0
        let_go(connection, Kept(), utc_now())
    assert [row[1] for row in shown(warehouse)] == ["planned", "rejected"]


def test_nothing_is_made_where_nothing_was_pushed(warehouse: Warehouse, tmp_path: Path) -> None:
    assert export_writebacks(warehouse.open_for_writing(), tmp_path) == 0
    assert not outbox_of(tmp_path).exists()
    assert not warehouse.path.exists()
