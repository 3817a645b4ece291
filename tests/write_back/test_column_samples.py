"""What a plan shows of the columns of an input."""

import datetime as dt
from pathlib import Path

import pytest

from home.output import InputColumn, ValueSample
from tests.write_back.planner import Planner, make_warehouse, open_known
from write_back.account_state import Known
from write_back.column_samples import list_readers
from write_back.input.rows import Seen
from write_back.kinds import ACTIVITIES, CONTACTS, KINDS, TAGS


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    path: Path = tmp_path_factory.mktemp("home") / "warehouse.duckdb"
    return open_known(make_warehouse(path))


def test_values_that_change_go_first_and_invalid_ones_last(known: Known) -> None:
    day = Seen("20.11.26", dt.datetime(2026, 11, 20))
    dates = ["11/12/2026", "2026-11-20 14:00:00", day, None, "20.11.2026 14:30", "2026-11-20 14:00:00"]
    calls = [
        {"Mail": f"a{row}@example.com", "description": "called", "Datum": date, "Notes": "x"}
        for row, date in enumerate(dates, 2)
    ]
    email, description, date, notes = Planner(known, ACTIVITIES)(*calls, ignore=("Notes",)).input_columns
    assert (email.taken_for, len(email.samples)) == ("email", 3)
    assert description.samples == [ValueSample("called", "called")]
    assert notes == InputColumn("Notes", None)
    assert (date.title, date.taken_for) == ("Datum", "datetime")
    assert date.samples == [
        ValueSample("2026-11-20", "2026-11-20 00:00:00"),
        ValueSample("20.11.2026 14:30", "2026-11-20 14:30:00"),
        ValueSample("2026-11-20 14:00:00", "2026-11-20 14:00:00"),
    ]


def test_lists_tags_and_custom_fields_are_shown_as_they_are_sent(known: Known) -> None:
    percent = Seen("15%", 0.15)
    contact = {"email": "a@example.com", "list": "1;Friends, Family", "status": "1", "city": percent}
    columns = Planner(known, CONTACTS)(contact).input_columns
    assert [
        (column.taken_for, value.before, value.after) for column in columns for value in column.samples
    ] == [
        ("email", "a@example.com", "a@example.com"),
        ("list", "1;Friends, Family", "News, Friends, Family"),
        ("status", "1", "active"),
        ("City", "0.15", "15%"),
    ]
    tags = Planner(known, TAGS)({"email": "@example.com", "tag": "a;b"}).input_columns
    assert [column.samples[0].after for column in tags] == [None, "a, b"]


def test_each_column_of_a_kind_has_a_reader(known: Known) -> None:
    columns = {name for kind in KINDS.values() for name in kind.columns.names}
    assert columns - list_readers(known).keys() == {"description"}
