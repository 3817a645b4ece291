"""What an answer to a daily series proves: never that a day is empty which the service left out."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from assets.days import DateRange
from assets.series import NOT_YET, Proof, prove

TODAY = dt.date(2026, 11, 22)
ASKED = DateRange(dt.date(2025, 1, 1), TODAY)
Days = set[dt.date]


def days(first: str, last: str) -> Days:
    return each(DateRange(dt.date.fromisoformat(first), dt.date.fromisoformat(last)))


def each(range_: DateRange) -> Days:
    return {range_.first + dt.timedelta(days=number) for number in range((range_.last - range_.first).days + 1)}


def proof(*served: Days, asked: DateRange = ASKED, known: Days = frozenset(), covered: tuple[DateRange, ...] = ()) -> Proof:  # type: ignore[assignment]
    return prove(asked, served, [known for _ in served], covered, TODAY)


def span(first: str, last: str) -> DateRange:
    return DateRange(dt.date.fromisoformat(first), dt.date.fromisoformat(last))


def test_series_that_reaches_from_end_to_end_proves_all() -> None:
    assert proof(each(ASKED)) == Proof(ASKED)


def test_series_that_ends_before_the_range_lacks_the_rest() -> None:
    assert proof(days("2025-01-01", "2025-04-10")) == Proof(span("2025-01-01", "2025-04-10"), after=span("2025-04-11", "2026-11-22"))


def test_series_that_begins_after_the_range_lacks_what_comes_before_until_that_was_read() -> None:
    served = days("2026-08-15", "2026-11-22")
    assert proof(served) == Proof(span("2026-08-15", "2026-11-22"), before=span("2025-01-01", "2026-08-14"))
    covered = span("2025-01-01", "2025-06-30")
    assert proof(served, covered=(covered,)).before == span("2025-07-01", "2026-08-14"), "goes on from what an earlier run read"
    covered = span("2026-03-01", "2026-11-21")
    assert proof(served, covered=(covered,)).before == span("2025-01-01", "2026-02-28"), "from either end"
    assert proof(served, covered=(span("2025-01-01", "2026-08-14"),)).before is None


def test_a_request_for_the_days_before_that_brings_nothing_proves_the_beginning() -> None:
    before = span("2025-01-01", "2026-08-14")
    assert proof(set(), asked=before, known=days("2026-08-15", "2026-11-22")) == Proof(before)


def test_today_and_yesterday_may_not_be_there_yet_and_do_not_count_as_read() -> None:
    for last in ("2026-11-20", "2026-11-21"):
        assert proof(days("2025-01-01", last)) == Proof(span("2025-01-01", last))
    assert proof(days("2025-01-01", "2026-11-19")).after == span("2026-11-20", "2026-11-22")


def test_series_with_days_left_out_proves_all() -> None:
    sparse = {day for day in each(ASKED) if day.toordinal() % 3 and day < dt.date(2026, 1, 1)}
    assert proof(sparse) == Proof(ASKED)
    assert proof(set(), set()) == Proof(ASKED)


def test_what_has_few_entries_is_not_believed_beyond_what_lists_every_day() -> None:
    sparse = {day for day in each(ASKED) if not day.toordinal() % 5}
    assert proof(sparse, days("2025-01-01", "2025-04-10")).days == span("2025-01-01", "2025-04-10")


def test_a_few_days_are_judged_with_those_known_from_before() -> None:
    week = span("2026-11-10", "2026-11-18")
    short = days("2026-11-10", "2026-11-13")
    assert proof(short, asked=week) == Proof(week), "four days in a row tell nothing"
    assert proof(short, asked=week, known=days("2026-11-01", "2026-11-09")).after == span("2026-11-14", "2026-11-18")
    assert proof(set(), asked=week, known=days("2026-11-01", "2026-11-09")) == Proof(None, after=week)


def test_a_series_that_ended_before_others_is_not_asked_for_again() -> None:
    tail = span("2026-10-01", "2026-11-22")
    ended, going_on = days("2026-09-01", "2026-09-30"), each(tail)
    assert prove(tail, [set(), going_on], [ended, set()], (), TODAY) == Proof(tail), "the request for the rest brought others alone"
    window = span("2026-09-20", "2026-11-22")
    assert prove(window, [days("2026-09-20", "2026-09-30"), each(window)], [ended, set()], [tail], TODAY) == Proof(window)


def test_days_that_were_listed_before_and_are_not_now_are_not_gone() -> None:
    week = span("2026-11-13", "2026-11-20")
    known = days("2026-10-01", "2026-11-20")
    found = proof(days("2026-11-13", "2026-11-15"), asked=week, known=known, covered=(span("2015-01-01", "2026-11-20"),))
    assert found == Proof(span("2026-11-13", "2026-11-15"), after=span("2026-11-16", "2026-11-20"))
    found = proof(days("2026-11-17", "2026-11-20"), asked=week, known=known, covered=(span("2015-01-01", "2026-11-20"),))
    assert found == Proof(span("2026-11-17", "2026-11-20")), "what came first was read before, and stays as it was"


@given(
    begins=st.integers(0, 600),
    ends=st.integers(0, 40),
    cut=st.integers(7, 300),
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
    truth = [living] * dense + [[all_days[number] for number in sorted(sparse) if all_days[number] in set(living)]]
    served = [set(one[:cut] if keeps_first else one[-cut:]) for one in truth]
    found = prove(ASKED, served, [set() for _ in served], (), TODAY)
    if len(living) < 7:
        return
    assert found.days is not None
    again = set().union(*(each(range_) for range_ in (found.before, found.after) if range_))
    for there, shown in zip(truth, served, strict=True):
        assert not (set(there) & each(found.days)) - shown
        assert {day for day in there if day not in shown and day <= TODAY - NOT_YET} <= again
