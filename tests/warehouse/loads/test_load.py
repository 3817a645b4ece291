"""Loads survive the log."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from warehouse.loads.load import Load, pack_ids, unpack_ids


@given(st.lists(st.integers(0, 2**62)))
def test_packed_ids_come_back(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == tuple(ids)


def test_a_night_of_ids_takes_few_bytes() -> None:
    ids = [(1_795_000_000_000_000 + 66_667 * number) << 10 | number % 1024 for number in range(500)]
    assert len(pack_ids(ids)) < 8 * len(ids)


def test_a_logged_load_is_the_load() -> None:
    load = Load(
        "main",
        "timelines",
        ("timeline_events",),
        tuple(range(100)),
        "UTC",
        logged_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
    )
    assert Load.from_event(load.to_event()) == load
