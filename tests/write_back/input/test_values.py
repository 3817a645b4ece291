"""Dates are read as people write them, and never in two ways."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from write_back.input.rows import cell_of
from write_back.input.values import BadValue, moment

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("value", "wall"),
    [
        ("20.11.2026 14:00", "2026-11-20 14:00"),
        ("20.11.2026", "2026-11-20 00:00"),
        ("1.2.2026, 9:05", "2026-02-01 09:05"),
        ("2026-11-20T14:00Z", "2026-11-20 15:00"),
        ("2026-11-20 2:00 PM", "2026-11-20 14:00"),
        ("Nov 20, 2026 2:00 PM", "2026-11-20 14:00"),
        ("november 20 2026", "2026-11-20 00:00"),
        ("Sept. 3, 2026 at 2:00 PM", "2026-09-03 14:00"),
        ("20 Nov 2026", "2026-11-20 00:00"),
        ("20-NOV-2026 14:00", "2026-11-20 14:00"),
        ("20. May 2026 14:00+02:00", "2026-05-20 14:00"),
        (dt.datetime(2026, 11, 20, 14), "2026-11-20 14:00"),
        (dt.date(2026, 11, 20), "2026-11-20 00:00"),
    ],
)
def test_dates_are_read_as_people_write_them(value: object, wall: str) -> None:
    assert moment(cell_of(value), BERLIN).wall == dt.datetime.fromisoformat(wall)


@pytest.mark.parametrize(
    "text",
    [
        "20.13.2026",
        "31 Feb 2026",
        "20 Foo 2026",
        "20.11.26",
        "Nov 20",
        "20.11.2026 25:00",
        "20.11.20261",
        "x" * 999,
    ],
)
def test_what_is_no_date_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(BadValue, match="write it like 2026-01-31 14:05"):
        moment(text, BERLIN)


_DAYS = st.dates(dt.date(1971, 1, 1), dt.date(2099, 12, 31))


@given(_DAYS, st.sampled_from(["%d.%m.%Y", "%d %b %Y", "%d-%B-%Y", "%B %d, %Y", "%b %d %Y"]))
def test_every_day_is_read_back_from_every_form(day: dt.date, form: str) -> None:
    assert moment(day.strftime(form), BERLIN).wall.date() == day


@given(_DAYS, st.sampled_from(["%d/%m/%Y", "%m/%d/%Y"]))
def test_dates_with_slashes_are_read_as_they_were_meant_or_not_at_all(day: dt.date, form: str) -> None:
    if day.day > 12 or day.day == day.month:
        assert moment(day.strftime(form), BERLIN).wall.date() == day
    else:
        with pytest.raises(BadValue, match="day or the month first: write it like 2026-01-31"):
            moment(day.strftime(form), BERLIN)


def test_am_and_pm_stand_beside_the_month_first_as_the_service_writes_it() -> None:
    zone = ZoneInfo("UTC")
    assert moment("02/03/2026 02:05 PM", zone).wall == dt.datetime(2026, 2, 3, 14, 5)
    assert moment("13/02/2026 02:05 PM", zone).wall == dt.datetime(2026, 2, 13, 14, 5)
    with pytest.raises(BadValue, match="day or the month first"):
        moment("02/03/2026 14:05", zone)
