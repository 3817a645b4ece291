"""Which days are asked: history once, missed nights made up for, chosen days as chosen."""

import datetime as dt
import itertools

from hypothesis import given
from hypothesis import strategies as st

from assets.days import DateRange, days_to_ask, first_missing, joined

TODAY = dt.date(2026, 11, 21)
START = dt.date(2015, 1, 1)


def ask(*covered: DateRange, chosen: DateRange | None = None) -> DateRange:
    return days_to_ask(covered, TODAY, history_start=START, lookback_days=7, chosen=chosen)


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


def test_chosen_days_up_to_today_reach_back_to_what_was_never_read() -> None:
    assert ask(chosen=days("2026-11-14", "2026-11-21")) == DateRange(START, TODAY)


def test_chosen_days_reach_back_as_far_as_chosen() -> None:
    assert ask(days("2015-01-01", "2026-11-20"), chosen=days("2026-01-01", "2026-11-21")) == days("2026-01-01", "2026-11-21")


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


@given(ranges)
def test_years_cut_a_range_without_gap_or_overlap(whole: DateRange) -> None:
    years = list(whole.years())
    assert (years[0].first, years[-1].last) == (whole.first, whole.last)
    assert all(after.first - before.last == dt.timedelta(days=1) for before, after in itertools.pairwise(years))
