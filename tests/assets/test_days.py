"""Which days are asked: history once, missed nights made up for, chosen days as chosen."""

import datetime as dt
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.days import (
    FIRST_ZONE,
    NOT_YET,
    ChosenDays,
    DateRange,
    Proof,
    days_to_fetch,
    first_missing,
    join_ranges,
    last_missing,
    next_moment,
    prove_days,
    today_in,
)

TODAY = dt.date(2026, 11, 21)
START = dt.date(2015, 1, 1)


def ask(*covered: DateRange, chosen: DateRange | None = None, ahead: int = 0) -> DateRange:
    wanted = ChosenDays(chosen.first, chosen.last) if chosen else None
    return days_to_fetch(covered, TODAY, history_start=START, lookback_days=7, ahead=ahead, chosen=wanted)


def days(first: str, last: str) -> DateRange:
    return DateRange(dt.date.fromisoformat(first), dt.date.fromisoformat(last))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=8))
def test_joined_ranges_hold_the_same_days_and_do_not_touch(pairs: list[tuple[int, int]]) -> None:
    ranges = [
        DateRange(START + dt.timedelta(days=first), START + dt.timedelta(days=first + more))
        for first, more in pairs
    ]
    found = join_ranges(ranges)
    assert days_of(found) == days_of(ranges)
    assert all(
        later.first - earlier.last > dt.timedelta(days=1) for earlier, later in itertools.pairwise(found)
    )


def days_of(ranges: list[DateRange]) -> set[dt.date]:
    return {
        each.first + dt.timedelta(days=more)
        for each in ranges
        for more in range((each.last - each.first).days + 1)
    }


def test_the_first_night_reads_all_of_history() -> None:
    assert ask() == DateRange(START, TODAY)


def test_later_nights_read_the_last_days_again() -> None:
    assert ask(days("2015-01-01", "2026-11-20")) == days("2026-11-14", "2026-11-21")


def test_missed_nights_are_made_up_for() -> None:
    assert ask(days("2015-01-01", "2026-10-01")) == days("2026-10-02", "2026-11-21")


def test_a_gap_in_history_is_read_again() -> None:
    assert ask(days("2015-01-01", "2018-12-31"), days("2020-01-01", "2026-11-20")) == days(
        "2019-01-01", "2026-11-21"
    )


def test_chosen_days_in_the_past_are_asked_as_chosen() -> None:
    assert ask(chosen=days("2024-02-01", "2024-02-29")) == days("2024-02-01", "2024-02-29")


@pytest.mark.parametrize("ahead", [0, 90])
@pytest.mark.parametrize("last", ["2026-11-20", "2026-11-21", "2026-11-30"])
def test_chosen_days_are_asked_as_chosen_wherever_they_end(last: str, ahead: int) -> None:
    assert ask(chosen=days("2026-11-14", last), ahead=ahead) == days("2026-11-14", last)
    assert ask(days("2015-01-01", "2026-11-20"), chosen=days("2026-01-01", last), ahead=ahead) == days(
        "2026-01-01", last
    )


def test_chosen_days_without_an_end_last_until_the_accounts_own_today() -> None:
    def until(today: dt.date) -> DateRange:
        return days_to_fetch(
            (), today, history_start=START, lookback_days=7, ahead=90, chosen=ChosenDays(dt.date(2026, 11, 1))
        )

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
DAYS = (
    "2026-06-10",
    "2026-03-08",
    "2026-11-01",
    "2026-03-29",
    "2026-10-25",
    "2026-10-04",
    "2026-04-05",
    "2026-12-31",
)


def hours() -> Iterator[dt.datetime]:
    for day in DAYS:
        for half in range(48):
            yield dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC) + dt.timedelta(minutes=30 * half)


def test_every_accounts_today_lies_between_the_first_and_the_last_anywhere() -> None:
    for moment in hours():
        first, last = today_in("Etc/GMT+12", moment), today_in(FIRST_ZONE, moment)
        todays = {today_in(zone, moment) for zone in ZONES}
        assert todays <= {first, last, first + dt.timedelta(days=1)}
        assert last - first <= dt.timedelta(days=2)


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
def test_the_last_missing_day_is_the_first_one_looked_at_from_behind(
    covered: list[DateRange], until: dt.date
) -> None:
    days = days_of(covered)
    missing = until
    while missing in days:
        missing -= dt.timedelta(days=1)
    assert last_missing(covered, until) == missing


@given(ranges)
def test_years_cut_a_range_without_gap_or_overlap(whole: DateRange) -> None:
    years = list(whole.split_years())
    assert (years[0].first, years[-1].last) == (whole.first, whole.last)
    assert all(
        after.first - before.last == dt.timedelta(days=1) for before, after in itertools.pairwise(years)
    )


SERIES_TODAY = dt.date(2026, 11, 22)
ASKED = DateRange(dt.date(2025, 1, 1), SERIES_TODAY)
Days = set[dt.date]


def each_day(first: str, last: str) -> Days:
    return each(DateRange(dt.date.fromisoformat(first), dt.date.fromisoformat(last)))


def each(range_: DateRange) -> Days:
    return {
        range_.first + dt.timedelta(days=number) for number in range((range_.last - range_.first).days + 1)
    }


def proof(
    *served: Days, asked: DateRange = ASKED, known: Days = frozenset(), covered: tuple[DateRange, ...] = ()
) -> Proof:  # type: ignore[assignment]
    return prove_days(asked, served, [known for _ in served], covered, SERIES_TODAY)


def span(first: str, last: str) -> DateRange:
    return DateRange(dt.date.fromisoformat(first), dt.date.fromisoformat(last))


def test_series_that_reaches_from_end_to_end_proves_all() -> None:
    assert proof(each(ASKED)) == Proof(ASKED)


def test_series_that_ends_before_the_range_lacks_the_rest() -> None:
    assert proof(each_day("2025-01-01", "2025-04-10")) == Proof(
        span("2025-01-01", "2025-04-10"), after=span("2025-04-11", "2026-11-22")
    )


def test_series_that_begins_after_the_range_lacks_what_comes_before_until_that_was_read() -> None:
    served = each_day("2026-08-15", "2026-11-22")
    assert proof(served) == Proof(span("2026-08-15", "2026-11-22"), before=span("2025-01-01", "2026-08-14"))
    covered = span("2025-01-01", "2025-06-30")
    assert proof(served, covered=(covered,)).before == span("2025-07-01", "2026-08-14"), (
        "goes on from what an earlier run read"
    )
    covered = span("2026-03-01", "2026-11-21")
    assert proof(served, covered=(covered,)).before == span("2025-01-01", "2026-02-28"), "from either end"
    assert proof(served, covered=(span("2025-01-01", "2026-08-14"),)).before is None


def test_a_request_for_the_days_before_that_brings_nothing_proves_the_beginning() -> None:
    before = span("2025-01-01", "2026-08-14")
    assert proof(set(), asked=before, known=each_day("2026-08-15", "2026-11-22")) == Proof(before)


def test_today_and_yesterday_may_not_be_there_yet_and_do_not_count_as_read() -> None:
    for last in ("2026-11-20", "2026-11-21"):
        assert proof(each_day("2025-01-01", last)) == Proof(span("2025-01-01", last))
    assert proof(each_day("2025-01-01", "2026-11-19")).after == span("2026-11-20", "2026-11-22")


def test_few_days_prove_nothing_on_either_side_until_a_request_for_it_brings_nothing() -> None:
    """The service may have cut a daily series to less than the week that makes it one."""
    five = each_day("2026-09-23", "2026-09-27")
    before, after = span("2025-01-01", "2026-09-22"), span("2026-09-28", "2026-11-22")
    assert proof(five) == Proof(span("2026-09-23", "2026-09-27"), before, after)
    assert proof(set(), asked=before, known=five) == Proof(before)
    assert proof(set(), asked=after, known=five) == Proof(after)
    assert proof(five, covered=(span("2025-01-01", "2026-11-20"),)) == Proof(
        span("2026-09-23", "2026-11-22")
    ), "the day behind was read before, and had nothing"
    assert proof(set(), set()) == Proof(ASKED)


def test_series_with_days_left_out_proves_all() -> None:
    sparse = {day for day in each(ASKED) if day.toordinal() % 3 and day < dt.date(2026, 1, 1)}
    assert proof(sparse) == Proof(ASKED)


def test_what_has_few_entries_is_not_believed_beyond_what_lists_every_day() -> None:
    sparse = {day for day in each(ASKED) if not day.toordinal() % 5}
    assert proof(sparse, each_day("2025-01-01", "2025-04-10")).days == span("2025-01-01", "2025-04-10")


def test_a_few_days_are_judged_with_those_known_from_before() -> None:
    week = span("2026-11-10", "2026-11-18")
    short = each_day("2026-11-10", "2026-11-13")
    assert proof(short, asked=week).after == span("2026-11-14", "2026-11-18")
    assert proof(short, asked=week, known=each_day("2026-11-01", "2026-11-09")).after == span(
        "2026-11-14", "2026-11-18"
    )
    assert proof(set(), asked=week, known=each_day("2026-11-01", "2026-11-09")) == Proof(None, after=week)


def test_a_series_that_ended_before_others_is_not_asked_for_again() -> None:
    tail = span("2026-10-01", "2026-11-22")
    ended, going_on = each_day("2026-09-01", "2026-09-30"), each(tail)
    assert prove_days(tail, [set(), going_on], [ended, set()], (), SERIES_TODAY) == Proof(tail), (
        "the request for the rest brought others alone"
    )
    window = span("2026-09-20", "2026-11-22")
    assert prove_days(
        window, [each_day("2026-09-20", "2026-09-30"), each(window)], [ended, set()], [tail], SERIES_TODAY
    ) == Proof(window)


def test_days_that_were_listed_before_and_are_not_now_are_not_gone() -> None:
    week = span("2026-11-13", "2026-11-20")
    known = each_day("2026-10-01", "2026-11-20")
    found = proof(
        each_day("2026-11-13", "2026-11-15"),
        asked=week,
        known=known,
        covered=(span("2015-01-01", "2026-11-20"),),
    )
    assert found == Proof(span("2026-11-13", "2026-11-15"), after=span("2026-11-16", "2026-11-20"))
    found = proof(
        each_day("2026-11-17", "2026-11-20"),
        asked=week,
        known=known,
        covered=(span("2015-01-01", "2026-11-20"),),
    )
    assert found == Proof(span("2026-11-17", "2026-11-20")), (
        "what came first was read before, and stays as it was"
    )


@given(
    begins=st.integers(0, 600),
    ends=st.integers(0, 40),
    cut=st.integers(1, 300),
    keeps_first=st.booleans(),
    sparse=st.sets(st.integers(0, 690)),
    dense=st.integers(1, 2),
)
def test_no_day_that_the_service_left_out_is_proven_empty_and_all_the_others_are_asked_again(
    begins: int, ends: int, cut: int, keeps_first: bool, sparse: set[int], dense: int
) -> None:
    """Whatever a service cuts its series to, a dense one beside it gives the sparse one away, too."""
    all_days = sorted(each(ASKED))
    living = all_days[begins : len(all_days) - ends]
    truth = [living] * dense + [
        [all_days[number] for number in sorted(sparse) if all_days[number] in set(living)]
    ]
    served = [set(one[:cut] if keeps_first else one[-cut:]) for one in truth]
    found = prove_days(ASKED, served, [set() for _ in served], (), SERIES_TODAY)
    if len(living) < 7:
        return
    again = set().union(*(each(range_) for range_ in (found.before, found.after) if range_))
    for there, shown in zip(truth, served, strict=True):
        assert not found.days or not (set(there) & each(found.days)) - shown
        assert {day for day in there if day not in shown and day <= SERIES_TODAY - NOT_YET} <= again


def test_until_is_the_next_time_that_the_clock_of_the_zone_shows_it() -> None:
    now = dt.datetime(2026, 11, 22, 2, tzinfo=dt.UTC)
    assert next_moment(dt.time(6), "UTC", now) == now.replace(hour=6)
    assert next_moment(dt.time(1), "UTC", now) == now.replace(hour=1) + dt.timedelta(days=1)
    assert next_moment(dt.time(6), "America/New_York", now) == now.replace(hour=11)
