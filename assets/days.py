"""Which days a date-ranged read requests, what day it is, and which days the response to a daily
series proves.

The first sync backfills from the start of history, later ones read the last days; a person can
choose any days (a backfill).

The service cuts long series. Then the missing days are unknown, not empty. A day without an entry
may have had none, or may have been left out. Only a series that lists every day shows the
difference:
- If a week or more is listed without a gap, the days after its end are missing. The days before its
  beginning may be missing, too, or the account may be that young: a request for them shows it.
- If there are only a few days in a row, the service may have cut the series to these days: a
  request for the days on either side shows it."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from zoneinfo import ZoneInfo

#: The time zone in which a day begins first.
FIRST_ZONE = "Etc/GMT-14"
_DAY = dt.timedelta(days=1)
#: A series with this many days in a row counts as one that lists every day.
_DENSE_DAYS = 7
#: The last days of a series may not be there yet: today is not over, and a service that counts in
#: another time zone may be a day behind the account.
NOT_YET = dt.timedelta(days=2)


def today_in(zone: str | ZoneInfo, moment: dt.datetime) -> dt.date:
    if isinstance(zone, str):
        zone = ZoneInfo(zone)
    return moment.astimezone(zone).date()


def next_moment(at: dt.time, zone: str, now: dt.datetime) -> dt.datetime:
    """The next time that a clock in the zone shows `at`."""
    local = now.astimezone(ZoneInfo(zone))
    moment = dt.datetime.combine(local, at, local.tzinfo)
    if moment.astimezone(dt.UTC) <= now:
        moment += dt.timedelta(days=1)
    return moment.astimezone(dt.UTC)


@dataclass(frozen=True, slots=True, order=True)
class DateRange:
    """Whole days in the account's time zone, including both ends; empty if the first is after the
    last."""

    first: dt.date
    last: dt.date

    def split_years(self) -> Iterator["DateRange"]:
        """The same days, a range for each year."""
        for year in range(self.first.year, self.last.year + 1):
            first = max(self.first, dt.date(year, 1, 1))
            last = min(self.last, dt.date(year, 12, 31))
            yield DateRange(first, last)

    def list_days(self) -> Iterator[dt.date]:
        return (self.first + _DAY * number for number in range(len(self)))

    def __len__(self) -> int:
        return max(0, (self.last - self.first).days + 1)

    def __contains__(self, day: dt.date) -> bool:
        return self.first <= day <= self.last

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class ChosenDays:
    """The days that a person chose to read; without a last day, until the account's today."""

    first: dt.date
    last: dt.date | None = None

    def limit_to(self, today: dt.date) -> DateRange:
        return DateRange(self.first, self.last or today)


def first_missing(covered: Iterable[DateRange], since: dt.date) -> dt.date:
    """The first day from `since` on that no range covers."""
    for days in join_ranges(covered):
        if since in days:
            return days.last + _DAY
    return since


def last_missing(covered: Iterable[DateRange], until: dt.date) -> dt.date:
    """The last day up to `until` that no range covers."""
    for days in join_ranges(covered):
        if until in days:
            return days.first - _DAY
    return until


def join_ranges(covered: Iterable[DateRange]) -> list[DateRange]:
    """The same days in as few ranges as possible, in order."""
    found: list[DateRange] = []
    for days in sorted(covered):
        before = found[-1] if found else None
        if before and days.first <= before.last + _DAY:
            last = max(before.last, days.last)
            found[-1] = DateRange(before.first, last)
        else:
            found.append(days)
    return found


def list_ranges(ranges: Iterable[DateRange]) -> str:
    """The joined ranges in words."""
    return ", ".join(map(str, join_ranges(ranges)))


def days_to_fetch(
    covered: Iterable[DateRange],
    today: dt.date,
    *,
    history_start: dt.date,
    lookback_days: int,
    ahead: int = 0,
    chosen: ChosenDays | None = None,
) -> DateRange:
    """The days of one read. If a person chose days, exactly these.

    Otherwise from the first day that was never read (on the first night the start of history), and
    at least `lookback_days` ago, to `ahead` days after today."""
    if chosen is not None:
        return chosen.limit_to(today)
    lookback_start = today - dt.timedelta(days=lookback_days)
    first_unread = first_missing(covered, history_start)
    first = min(first_unread, lookback_start)
    last = today + dt.timedelta(days=ahead)
    return DateRange(first, last)


@dataclass(frozen=True, slots=True)
class Proof:
    """`days`: the days that the response proves, listed or not; None for none. `before` and `after`
    are missing and must be requested again."""

    days: DateRange | None
    before: DateRange | None = None
    after: DateRange | None = None


def prove_days(
    requested: DateRange,
    served: Sequence[Set[dt.date]],
    known: Sequence[Set[dt.date]],
    covered: Sequence[DateRange],
    today: dt.date,
) -> Proof:
    """What the response to `requested` proves. `served`: the days that it lists, by series;
    `known`: the days that other responses listed; `covered`: the ranges that were read before.

    The dense series decide for all series, since a series with few entries is cut later. Without a
    dense one, a few days in a row may be the rest of a cut series. A series without days, beside
    others with some, has ended. So has one that was requested alone and listed nothing more."""
    series = list(zip(served, known, strict=True))
    has_dense = any(_has_dense_end(days, days | listed_before) for days, listed_before in series)
    first = requested.first
    for days, listed_before in series:
        if _may_be_cut(days, listed_before, has_dense):
            first = max(first, min(days))
    last = _last_proven(requested, series, covered, has_dense=has_dense)
    first_before = first_missing(covered, requested.first)
    last_before = last_missing(covered, first - _DAY)
    before = DateRange(first_before, last_before)
    last_expected = min(requested.last, today - NOT_YET)
    after = None
    if last < last_expected:
        after = DateRange(last + _DAY, requested.last)
    proven = DateRange(first, last)
    return Proof(proven or None, before or None, after)


def _last_proven(
    requested: DateRange,
    series: Sequence[tuple[Set[dt.date], Set[dt.date]]],
    covered: Sequence[DateRange],
    *,
    has_dense: bool,
) -> dt.date:
    """The first end of a series (its days, and the days that others listed) that may have been
    cut."""
    day_before = requested.first - _DAY
    is_empty = not any(days for days, _ in series)
    ends = [requested.last]
    for days, listed_before in series:
        listed = days | listed_before
        end = max(days, default=day_before)
        is_few = not has_dense and _is_row(days)
        is_dense = (days or is_empty) and _is_dense(listed, end)
        may_be_cut = is_few or is_dense
        if may_be_cut and not _has_ended(end, listed_before, covered):
            ends.append(end)
    return min(ends)


def _has_dense_end(days: Set[dt.date], listed: Set[dt.date]) -> bool:
    if not days:
        return False
    first = min(days)
    last = max(days)
    return _is_dense(listed, first) or _is_dense(listed, last)


def _may_be_cut(days: Set[dt.date], listed_before: Set[dt.date], has_dense: bool) -> bool:
    """Whether the days before the first one of the series may have been cut off."""
    if not days:
        return False
    if not has_dense and _is_row(days):
        return True
    listed = days | listed_before
    first = min(days)
    return _is_dense(listed, first)


def _has_ended(end: dt.date, known: Set[dt.date], covered: Sequence[DateRange]) -> bool:
    """Whether the day after the end was read before, and had no entry."""
    next_day = end + _DAY
    if next_day in known:
        return False
    return any(next_day in days for days in covered)


def _is_row(days: Set[dt.date]) -> bool:
    """Whether there are days, and none between the first and the last is missing."""
    if not days:
        return False
    span = DateRange(min(days), max(days))
    return len(span) == len(days)


def _is_dense(listed: Set[dt.date], day: dt.date) -> bool:
    """Whether the day is one of a week or more in a row."""
    days_from = _count_run(listed, day, _DAY)
    days_until = _count_run(listed, day, -_DAY)
    return days_from + days_until > _DENSE_DAYS


def _count_run(listed: Set[dt.date], day: dt.date, step: dt.timedelta) -> int:
    for number in range(_DENSE_DAYS):
        if day + step * number not in listed:
            return number
    return _DENSE_DAYS
