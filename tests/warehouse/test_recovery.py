"""Loads are logged before they are applied, applied once, and survive a kill in between."""

import datetime as dt
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import warehouse.warehouse
from marketing_api.exchange import Response
from marketing_api.operations import contacts, lists
from tests.warehouse.answering import Home
from tests.warehouse.timelines import TABLES, event, load, timeline
from warehouse import tables
from warehouse.loads.load import Load
from warehouse.warehouse import Warehouse


class Killed(BaseException):
    """The process ends here."""


def page(home: Home, *numbers: int, list_id: int = 12, minutes: float = 0) -> Response:
    items = [{"id": number, "email": f"c{number}@x.com"} for number in numbers]
    return home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, minutes, listid=list_id)


def kill_before_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise Killed

    monkeypatch.setattr("warehouse.warehouse.write_load", die)


def test_a_load_that_was_logged_and_not_applied_is_applied_by_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_before_commit(patch)
        with pytest.raises(Killed):
            home.load([page(home, 1)], tables.CONTACTS)
    assert home.rows(tables.CONTACTS) == []
    home.load([page(home, 2, list_id=13)], tables.CONTACTS)
    assert home.values(tables.CONTACTS, "contact_id") == [1, 2]
    assert len(list(home.archive.ledger.list_loads())) == 2


def _load_and_die(path: Path) -> None:
    """Applies a load and is killed when its rows are written and not committed."""
    home = Home(path)
    setattr(warehouse.warehouse, "write_load", lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))  # noqa: B010 - not a public name
    home.load([page(home, 1)], tables.CONTACTS)


@pytest.mark.slow
def test_a_process_that_is_killed_in_the_middle_of_a_load_leaves_it_to_the_next(tmp_path: Path) -> None:
    process = get_context("spawn").Process(target=_load_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    home = Home(tmp_path)
    assert home.rows(tables.CONTACTS) == []
    home.warehouse.finish_assets([("main", "contacts")])
    assert home.values(tables.CONTACTS, "contact_id") == [1]
    assert home.values("sync.coverage", "scope") == ["list_id=12"]
    home.close()


def test_pending_loads_are_applied_in_the_order_they_were_logged(home: Home) -> None:
    for opened in "abc":
        answer = timeline(home, 1, event(1, opened))
        home.archive.ledger.log_loads(home.event([answer], *TABLES).to_event())
    home.warehouse.finish_assets([("main", "timelines")])
    assert home.values(tables.TIMELINE_EVENTS, "details") == [
        '[{"key":"open-date","label":"Opened","value":"c"}]'
    ]


def test_the_same_load_is_applied_once(home: Home) -> None:
    answers = [page(home, 1)]
    home.load(answers, tables.CONTACTS)
    home.load([page(home, 2, minutes=60)], tables.CONTACTS)
    before = home.contents()
    report = home.load(answers, tables.CONTACTS, logged_at=dt.datetime.now(dt.UTC))
    assert report.tables["contacts"].new == 0
    assert home.contents() == before
    assert len(list(home.archive.ledger.list_loads())) == 2


def test_a_retry_of_a_load_that_was_killed_applies_it_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [timeline(home, 1, event(1))]
    with monkeypatch.context() as patch:
        kill_before_commit(patch)
        with pytest.raises(Killed):
            load(home, *answers)
    report = load(home, *answers)
    assert report.tables["timeline_events"].new == 1
    assert len(list(home.archive.ledger.list_loads())) == 1


def test_answers_that_cannot_be_interpreted_are_tried_again_by_a_rebuild_and_keep_nobody_out(
    home: Home,
) -> None:
    def broken(*_: Any) -> Iterator[Any]:
        raise KeyError("a mistake in the parser")

    home.warehouse.parse_rows = broken
    with pytest.raises(KeyError):
        home.load([page(home, 1)], tables.CONTACTS)
    with pytest.raises(KeyError):
        home.load([page(home, 2, list_id=13)], tables.CONTACTS)
    home.warehouse.parse_rows = Warehouse(home.path, home.archive).parse_rows
    home.load([page(home, 3, list_id=14)], tables.CONTACTS)
    assert home.values(tables.CONTACTS, "contact_id") == [2, 3]
    rows = home.rows("sync.loads", "outcome, error")
    assert [row["outcome"] for row in rows].count("failed") == 1
    assert any("KeyError" in (row["error"] or "") for row in rows)


def test_a_load_that_failed_can_be_applied_once_its_answers_are_understood(home: Home) -> None:
    def broken(*_: Any) -> Iterator[Any]:
        raise KeyError("a mistake in the parser")

    understood, home.warehouse.parse_rows = home.warehouse.parse_rows, broken
    answers = [page(home, 1)]
    for each in (answers, [page(home, 2, list_id=13)]):
        with pytest.raises(KeyError):
            home.load(each, tables.CONTACTS)
    home.warehouse.parse_rows = understood
    assert home.values("sync.loads", "outcome") == ["failed"]
    assert home.load(answers, tables.CONTACTS).tables["contacts"].new == 1
    assert home.values(tables.CONTACTS, "contact_id") == [1, 2]
    assert home.values("sync.loads", "outcome") == ["applied", "applied"]


def test_a_logged_load_whose_answers_are_lost_keeps_nobody_out(home: Home) -> None:
    home.archive.ledger.log_loads(Load("main", "test", ("contacts",), (999,), "UTC").to_event())
    home.load([page(home, 1)], tables.CONTACTS)
    assert home.values(tables.CONTACTS, "contact_id") == [1]
    assert home.values("sync.loads", "error", "outcome = 'failed'")[0].startswith("NotArchived")


def test_a_load_survives_its_way_through_the_log() -> None:
    now = dt.datetime.now(dt.UTC)
    load = Load("main", "a", ("contacts",), (1, 2), "Europe/Berlin", {"list_id": 3}, False, 0.5, 10, now, now)
    assert Load.from_event(load.to_event()) == load
    assert Load.from_event({**load.to_event(), "of a later version": 1}).load_id == load.load_id


def test_a_loads_id_does_not_depend_on_how_the_log_writes_its_request_ids() -> None:
    load = Load("main", "a", ("contacts",), tuple(range(10**18, 10**18 + 1000, 7)), "UTC")
    assert Load.from_event(load.to_event()) == load
    as_list = Load.from_event({**load.to_event(), "request_ids": list(load.request_ids)})
    assert as_list.load_id == load.load_id == Load.from_event(load.to_event()).load_id


def test_what_tells_loads_apart_is_what_they_change() -> None:
    load = Load("main", "a", ("lists",), (1,), "UTC")
    assert (
        replace(load, due_at=dt.datetime.now(dt.UTC), logged_at=dt.datetime.now(dt.UTC)).load_id
        == load.load_id
    )
    assert replace(load, is_complete=False).load_id != load.load_id
    assert replace(load, request_ids=(2,)).load_id != load.load_id


def test_nothing_is_half_applied_when_a_table_fails(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = home.answer(
        lists.GETLISTS, {"lists": {"items": [{"id": 1, "name": "A", "fields": {"7": "City"}}]}}
    )

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("warehouse.loads.drift.note_drift", fail)
        with pytest.raises(RuntimeError):
            home.load([listing], tables.LISTS, tables.LIST_FIELDS)
    assert home.rows(tables.LISTS) == home.rows("sync.coverage") == []
