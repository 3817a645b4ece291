"""Which days are asked: history once, missed nights made up for, chosen days as chosen."""

import datetime as dt
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.days import (
    FIRST_ZONE,
    LAST_ZONE,
    ChosenDays,
    DateRange,
    days_of_run,
    days_to_ask,
    first_missing,
    joined,
    last_missing,
    today_in,
)

TODAY = dt.date(2026, 11, 21)
START = dt.date(2015, 1, 1)


def ask(*covered: DateRange, chosen: DateRange | None = None, ahead: int = 0) -> DateRange:
    wanted = ChosenDays(chosen.first, chosen.last) if chosen else None
    return days_to_ask(covered, TODAY, history_start=START, lookback_days=7, ahead=ahead, chosen=wanted)


def days(first: str, last: str) -> DateRange:
    return DateRange(dt.date.fromisoformat(first), dt.date.fromisoformat(last))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=8))
def test_joined_ranges_hold_the_same_days_and_do_not_touch(pairs: list[tuple[int, int]]) -> None:
    ranges = [DateRange(START + dt.timedelta(days=first), START + dt.timedelta(days=first + more)) for first, more in pairs]
    found = joined(ranges)
    assert days_of(found) == days_of(ranges)
    assert all(later.first - earlier.last > dt.timedelta(days=1) for earlier, later in itertools.pairwise(found))


def days_of(ranges: list[DateRange]) -> set[dt.date]:
    return {each.first + dt.timedelta(days=more) for each in ranges for more in range((each.last - each.first).days + 1)}


def test_the_first_night_reads_all_of_history() -> None:
    assert ask() == DateRange(START, TODAY)


def test_later_nights_read_the_last_days_again() -> None:
    assert ask(days("2015-01-01", "2026-11-20")) == days("2026-11-14", "2026-11-21")


def test_missed_nights_are_made_up_for() -> None:
    assert ask(days("2015-01-01", "2026-10-01")) == days("2026-10-02", "2026-11-21")


def test_a_gap_in_history_is_read_again() -> None:
    assert ask(days("2015-01-01", "2018-12-31"), days("2020-01-01", "2026-11-20")) == days("2019-01-01", "2026-11-21")


def test_chosen_days_in_the_past_are_asked_as_chosen() -> None:
    assert ask(chosen=days("2024-02-01", "2024-02-29")) == days("2024-02-01", "2024-02-29")


@pytest.mark.parametrize("ahead", [0, 90])
@pytest.mark.parametrize("last", ["2026-11-20", "2026-11-21", "2026-11-30"])
def test_chosen_days_are_asked_as_chosen_wherever_they_end(last: str, ahead: int) -> None:
    assert ask(chosen=days("2026-11-14", last), ahead=ahead) == days("2026-11-14", last)
    assert ask(days("2015-01-01", "2026-11-20"), chosen=days("2026-01-01", last), ahead=ahead) == days("2026-01-01", last)


def test_chosen_days_without_an_end_last_until_the_accounts_own_today() -> None:
    def until(today: dt.date) -> DateRange:
        return days_to_ask((), today, history_start=START, lookback_days=7, ahead=90, chosen=ChosenDays(dt.date(2026, 11, 1)))

    assert until(TODAY) == days("2026-11-01", "2026-11-21")
    assert until(TODAY + dt.timedelta(days=1)) == days("2026-11-01", "2026-11-22")


def test_only_what_is_not_chosen_reaches_ahead() -> None:
    assert ask(days("2015-01-01", "2026-11-20"), ahead=90) == days("2026-11-14", "2027-02-19")


ZONES = [f"Etc/GMT{-offset:+d}" for offset in range(-11, 15)] + [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
]
#: An ordinary day, and those on which clocks change in New York, in Berlin and on Lord Howe, forth and back.
DAYS = ("2026-06-10", "2026-03-08", "2026-11-01", "2026-03-29", "2026-10-25", "2026-10-04", "2026-04-05", "2026-12-31")


def hours() -> Iterator[dt.datetime]:
    for day in DAYS:
        for half in range(48):
            yield dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC) + dt.timedelta(minutes=30 * half)


def test_every_accounts_today_lies_between_the_first_and_the_last_anywhere() -> None:
    for moment in hours():
        first, last = today_in(LAST_ZONE, moment), today_in(FIRST_ZONE, moment)
        todays = {today_in(zone, moment) for zone in ZONES}
        assert todays <= {first, last, first + dt.timedelta(days=1)}
        assert last - first <= dt.timedelta(days=2)


def test_the_days_of_a_run_hold_the_last_days_of_each_account() -> None:
    for moment, zone in itertools.product(hours(), ZONES):
        run = days_of_run(moment, [zone, "UTC"], 7)
        own = days_to_ask([DateRange(START, today_in(zone, moment))], today_in(zone, moment), history_start=START, lookback_days=7)
        assert run.first <= own.first
        assert own.last <= run.last
        assert days_of_run(moment, [zone], 7) == own, "of one account they are its own"


ranges = st.tuples(st.dates(dt.date(2014, 1, 1), dt.date(2027, 1, 1)), st.integers(0, 800)).map(
    lambda pair: DateRange(pair[0], pair[0] + dt.timedelta(days=pair[1]))
)


@given(st.lists(ranges, max_size=8))
def test_every_day_before_the_first_missing_one_is_covered_and_it_is_not(covered: list[DateRange]) -> None:
    missing = first_missing(covered, START)
    assert not any(some.first <= missing <= some.last for some in covered)
    for ahead in range(0, (missing - START).days, 97):
        day = START + dt.timedelta(days=ahead)
        assert any(some.first <= day <= some.last for some in covered)


@given(st.lists(ranges, max_size=8), st.dates(dt.date(2014, 1, 1), dt.date(2029, 1, 1)))
def test_the_last_missing_day_is_the_first_one_looked_at_from_behind(covered: list[DateRange], until: dt.date) -> None:
    days = days_of(covered)
    missing = until
    while missing in days:
        missing -= dt.timedelta(days=1)
    assert last_missing(covered, until) == missing


@given(ranges)
def test_years_cut_a_range_without_gap_or_overlap(whole: DateRange) -> None:
    years = list(whole.years())
    assert (years[0].first, years[-1].last) == (whole.first, whole.last)
    assert all(after.first - before.last == dt.timedelta(days=1) for before, after in itertools.pairwise(years))
