"""A timeline that says what was loaded last only counts as asked: no row is read, and nothing else is
different."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.exchange import Response
from marketing_api.operations import contacts
from marketing_api.parsing import Rows, parse_rows
from tests.depth import examples
from tests.warehouse.answering import START, Home
from tests.warehouse.in_memory import Tables, answer
from tests.warehouse.loads.test_accumulate import opened
from tests.warehouse.loads.test_contact_coverage import coverage, timeline_state
from tests.warehouse.timelines import TABLES, event, timeline
from warehouse import tables
from warehouse.loads import staging
from warehouse.loads.load import Load, LoadReport
from warehouse.loads.staging import LastLoaded, last_loaded
from warehouse.rebuild import rebuild_warehouse
from warehouse.tables import Table
from warehouse.warehouse import Warehouse

LOCAL = {"key": "note", "snippet": "Called", "datetime": "03/01/2026 10:00 AM", "details": []}


class Counting:
    """Reads answers and remembers whose."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, answer: Response, zone: ZoneInfo, day: dt.date) -> Iterable[Rows]:
        self.read.append(answer.call.params["id"])
        return parse_rows(answer, zone, day)

    def taken(self) -> list[str]:
        taken, self.read = self.read, []
        return taken


@pytest.fixture
def reading(home: Home) -> Counting:
    """What the home's warehouse has read."""
    home.warehouse.parse_rows = counting = Counting()
    return counting


def load(home: Home, *answers: Response, filled: Sequence[Table] = TABLES, **options: Any) -> LoadReport:
    """As a night does it: with the answers at hand."""
    return home.warehouse.apply_load(home.event(answers, *filled, **options))


def test_only_what_says_something_else_is_read(home: Home, reading: Counting) -> None:
    load(home, *(timeline(home, id_, event(1), total=5) for id_ in (1, 2)))
    assert reading.taken() == ["1", "2"]
    load(
        home,
        timeline(home, 1, event(1), total=5, minutes=60),
        timeline(home, 2, event(1), event(2), minutes=60),
    )
    assert reading.taken() == ["2"]
    assert (timeline_state(home, 1), timeline_state(home, 2)) == ((2, 1, 1, 5), (2, 2, 2, 2))
    assert coverage(home)["timeline_asked_at"] == START + dt.timedelta(hours=1)
    assert len(home.rows(tables.TIMELINE_EVENTS)) == 3


@pytest.mark.slow
def test_an_answer_is_read_again_when_it_could_become_other_rows(
    home: Home, reading: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes = itertools.count(0, 60)

    def again(**options: Any) -> bool:
        load(home, timeline(home, 1, LOCAL, minutes=next(minutes)), **options)
        return bool(reading.taken())

    assert (again(), again()) == (True, False)
    assert (again(zone="Asia/Tokyo"), again(zone="Asia/Tokyo")) == (True, False)
    assert home.values(tables.TIMELINE_EVENTS, "occurred_at") == [dt.datetime(2026, 3, 1, 1, tzinfo=dt.UTC)]
    assert (again(filled=TABLES[:2]), again(filled=TABLES[:2]), again()) == (True, False, True)
    monkeypatch.setattr(staging, "code_digest", lambda: "another version")
    staging.reading_key.cache_clear()
    assert (again(), again()) == (True, False)
    staging.reading_key.cache_clear()


def test_what_could_not_be_read_is_read_each_time(home: Home, reading: Counting) -> None:
    for minutes in (0, 60):
        assert (
            load(home, timeline(home, 1, event(1), {"odd": 1, **event(2), "timestamp": "?"}, minutes=minutes))
            .tables["timeline_events"]
            .flawed
        )
    assert reading.taken() == ["1", "1"]
    assert len(home.rows("sync.rejected_records")) == 1


def test_an_answer_that_is_loaded_late_is_not_taken_for_the_newest(home: Home, reading: Counting) -> None:
    new, old = timeline(home, 1, event(1, "new"), minutes=60), timeline(home, 1, event(1, "old"))
    load(home, new)
    load(home, old)
    load(home, timeline(home, 1, event(1, "new"), minutes=120))
    assert reading.taken() == ["1", "1", "1"]
    assert opened(home) == ["new"]


def test_a_contact_that_is_twice_in_a_load_is_read_twice_and_once_more(home: Home, reading: Counting) -> None:
    load(home, timeline(home, 1, event(1, "a")))
    load(home, timeline(home, 1, event(1, "b"), minutes=60), timeline(home, 1, event(1, "a"), minutes=61))
    assert opened(home) == ["a"], "of two the last one counts"
    reading.taken()
    load(home, timeline(home, 1, event(1, "a"), minutes=120))
    assert reading.taken() == ["1"]


def test_what_another_process_loads_in_between_is_not_overlooked(
    home: Home, reading: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(home, timeline(home, 1, event(1, "first")))
    other = Warehouse(home.path, home.archive)
    between = timeline(home, 1, event(1, "other"), minutes=60)
    queue = home.warehouse._queue
    do = queue.run_in_turn

    def meanwhile(work: Any, urgency: int = 0) -> Any:
        other.apply_load(home.event([between], *TABLES))
        return do(work, urgency)

    monkeypatch.setattr(queue, "run_in_turn", meanwhile)
    load(home, timeline(home, 1, event(1, "first"), minutes=120))
    assert opened(home) == ["first"]
    assert timeline_state(home) == (3, 3, 1, 1)


def test_of_unchanged_answers_in_the_archive_not_even_the_body_is_read(
    home: Home, reading: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = home.archive.responses
    requested: list[int] = []

    def noted(request_ids: Sequence[int]) -> Iterable[Response]:
        requested.extend(request_ids)
        return read(request_ids)

    monkeypatch.setattr(home.archive, "responses", noted)
    first = [timeline(home, id_, event(1)) for id_ in (1, 2)]
    second = [timeline(home, 1, event(1), minutes=60), timeline(home, 2, event(2), minutes=60)]
    for answers in (first, second):
        home.archive.seal_requests()
        home.warehouse.apply_load(home.event(answers, *TABLES))
    assert requested == [answer.request_id for answer in (*first, second[1])]
    assert (timeline_state(home, 1), timeline_state(home, 2)) == ((2, 1, 1, 1), (2, 2, 1, 1))


@pytest.mark.slow
def test_a_replay_passes_over_what_the_nights_passed_over(home: Home, reading: Counting) -> None:
    for night in range(4):
        events = [event(1), LOCAL, event(2, str(night // 2))]
        load(home, *(timeline(home, id_, *events[:id_], minutes=60 * night) for id_ in (1, 2, 3)))
    again = Warehouse(home.path, home.archive, file_name="again.duckdb")
    again.parse_rows = reading
    assert reading.taken() == ["1", "2", "3", "3"]
    with again.open_for_writing() as connection:
        assert all(again.replay_loads(connection, map(Load.from_event, home.archive.ledger.list_loads())))
    assert reading.taken() == ["1", "2", "3", "3"]
    assert again.run_query("from source.timeline_events order by all") == home.warehouse.run_query(
        "from source.timeline_events order by all"
    )


def test_a_large_answer_is_passed_over_too(home: Home, reading: Counting, tmp_path: Path) -> None:
    for night in range(2):
        answer = timeline(home, 1, event(1), minutes=60 * night)
        (spool := tmp_path / f"{night}.json").write_bytes(bytes(answer.body))
        large = replace(answer, body=spool)
        load(home, large)
    assert reading.taken() == ["1"]


@pytest.mark.slow
def test_nights_that_were_passed_over_are_the_same_when_rebuilt(home: Home, reading: Counting) -> None:
    for night in range(4):
        events = [event(1), LOCAL, event(2, str(night // 2))]
        load(home, *(timeline(home, id_, *events[:id_], total=9, minutes=60 * night) for id_ in (1, 2, 3)))
    assert reading.taken() == ["1", "2", "3", "3"]
    before = home.contents()
    rebuild_warehouse(home.path, archive=home.archive)
    assert home.contents() == before


entries = st.one_of(
    st.builds(event, st.integers(1, 2), st.sampled_from(["0", "1"])),
    st.sampled_from([LOCAL, "no event", {**event(3), "odd": "field"}]),
)
payloads = st.lists(st.tuples(st.lists(entries, max_size=4), st.booleans()), min_size=2, max_size=3)
#: Whose timeline says which of the payloads, asked at which minute.
said_by = st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 6))
nights = st.lists(
    st.tuples(
        st.lists(said_by, min_size=1, max_size=3),
        st.sampled_from(["UTC", "UTC", "UTC", "Asia/Tokyo"]),
        st.integers(0, 1),
    ),
    min_size=2,
    max_size=5,
)


@settings(max_examples=examples(12))
@given(payloads=payloads, nights=nights)
@pytest.mark.slow
def test_passing_over_what_was_said_before_changes_nothing_but_the_work(
    memory: Tables,
    payloads: list[tuple[list[Any], bool]],
    nights: list[tuple[list[tuple[int, int, int]], str, int]],
) -> None:
    """Whatever is asked, loaded early or late, several times in a load, or loaded by another since it was
    compared."""

    def said_of(contact: int, payload: int, minutes: int) -> Response:
        events, cut = payloads[payload % len(payloads)]
        data = {"id": 1, "timeline": {"data": events, "count": len(events), "total": len(events) + cut}}
        return answer(contacts.TIMELINE, data, minutes, id=contact)

    loads = [([said_of(*one) for one in asked], zone, lag) for asked, zone, lag in nights]
    plain = memory.fresh()
    for answers, zone, _ in loads:
        plain.load(answers, *TABLES, zone=zone)
    expected = plain.contents()

    quick = memory.fresh()
    said: list[dict[int, LastLoaded]] = [{}]
    for answers, zone, lag in loads:
        quick.load(answers, *TABLES, zone=zone, said=said[-1 - min(lag, len(said) - 1)])
        said.append(last_loaded(quick.connection, "main", [1, 2]))
    assert quick.contents() == expected
