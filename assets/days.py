"""Which days a date-ranged read requests, what day it is, and what the response to a daily series
proves of the days.

The first sync backfills from the start of history, later ones read the last days; a person can
choose any days (a backfill).

Services cut long series: then the days that lack are unknown, not empty. Nothing shows whether a
day without an entry had none or was left out, unless the series lists every day: where a week or
more is listed without a gap, the days beyond its end lack. Its late beginning may be the account's
own, or the service listed the newest days only: a request for the days before settles it. Where all
that came is less than a week in a row, the service may have cut it to that: a request for the days
on either side settles that, too."""

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from zoneinfo import ZoneInfo

#: Where a day begins first.
FIRST_ZONE = "Etc/GMT-14"
_DAY = dt.timedelta(days=1)
#: Days in a row after which a series counts as one that lists every day.
_DENSE_DAYS = 7
#: Today is not over, and a service that counts in a zone of its own may be a day behind the
#: account.
NOT_YET = dt.timedelta(days=2)


def today_in(zone: str | ZoneInfo, moment: dt.datetime) -> dt.date:
    return moment.astimezone(ZoneInfo(zone) if isinstance(zone, str) else zone).date()


@dataclass(frozen=True, slots=True, order=True)
class DateRange:
    """Whole days in the account's time zone, both ends included; none when the first is after the
    last."""

    first: dt.date
    last: dt.date

    def split_years(self) -> Iterator["DateRange"]:
        """The same days, cut at the turns of the years."""
        for year in range(self.first.year, self.last.year + 1):
            yield DateRange(
                max(self.first, dt.date(year, 1, 1)), min(self.last, dt.date(year, 12, 31))
            )

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
    """The days that a person chose to read; without a last one, until the account's own today."""

    first: dt.date
    last: dt.date | None = None

    def limit_to(self, today: dt.date) -> DateRange:
        return DateRange(self.first, self.last or today)


def first_missing(covered: Iterable[DateRange], since: dt.date) -> dt.date:
    """The first day from `since` on that no range covers."""
    return next((days.last + _DAY for days in join_ranges(covered) if since in days), since)


def last_missing(covered: Iterable[DateRange], until: dt.date) -> dt.date:
    """The last day up to `until` that no range covers."""
    return next((days.first - _DAY for days in join_ranges(covered) if until in days), until)


def join_ranges(covered: Iterable[DateRange]) -> list[DateRange]:
    """The same days in as few ranges as hold them, in order."""
    found: list[DateRange] = []
    for days in sorted(covered):
        if found and days.first <= found[-1].last + _DAY:
            found[-1] = DateRange(found[-1].first, max(found[-1].last, days.last))
        else:
            found.append(days)
    return found


def days_to_fetch(
    covered: Iterable[DateRange],
    today: dt.date,
    *,
    history_start: dt.date,
    lookback_days: int,
    ahead: int = 0,
    chosen: ChosenDays | None = None,
) -> DateRange:
    """The days of one read: exactly those that a person chose, `ahead` or not.

    Otherwise from the first day that was never read (history on the first night, the nights that
    were missed later), and at least `lookback_days`, to today and as many days `ahead`."""
    if chosen is not None:
        return chosen.limit_to(today)
    first = min(first_missing(covered, history_start), today - dt.timedelta(days=lookback_days))
    return DateRange(first, today + dt.timedelta(days=ahead))


@dataclass(frozen=True, slots=True)
class Proof:
    """`days`: what the response proves, listed or not; None: nothing. `before` and `after` lack and
    are to be requested again."""

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
    """What the response to `requested` proves that has these days of each series; `known` were
    listed by others, `covered` read before.

    A response proves no more of any of its series than of the dense ones: what has few entries is
    cut later. Without a dense one, a few days in a row may be what a cut left of one. A series with
    nothing beside others that have something ended before, as has one that was requested on its own
    and listed nothing more."""
    series = list(zip(served, known, strict=True))
    has_dense = any(_has_dense_end(days, days | listed_before) for days, listed_before in series)
    first = max(
        [
            requested.first,
            *(
                min(days)
                for days, listed_before in series
                if _may_be_cut(days, listed_before, has_dense)
            ),
        ]
    )
    last = _last_proven(requested, series, covered, has_dense=has_dense)
    before = DateRange(first_missing(covered, requested.first), last_missing(covered, first - _DAY))
    after = DateRange(last + _DAY, requested.last)
    is_cut = last < min(requested.last, today - NOT_YET)
    return Proof(DateRange(first, last) or None, before or None, after if is_cut else None)


def _last_proven(
    requested: DateRange,
    series: Sequence[tuple[Set[dt.date], Set[dt.date]]],
    covered: Sequence[DateRange],
    *,
    has_dense: bool,
) -> dt.date:
    """The end of the series (its days, and those that others listed) that ends first, of those that
    may have been cut."""
    is_empty = not any(days for days, _ in series)
    ends = [requested.last]
    for days, listed_before in series:
        end = max(days, default=requested.first - _DAY)
        is_few = not has_dense and _is_row(days)
        is_cut = is_few or ((days or is_empty) and _is_dense(days | listed_before, end))
        if is_cut and not _has_ended(end, listed_before, covered):
            ends.append(end)
    return min(ends)


def _has_dense_end(days: Set[dt.date], listed: Set[dt.date]) -> bool:
    return bool(days) and (_is_dense(listed, min(days)) or _is_dense(listed, max(days)))


def _may_be_cut(days: Set[dt.date], listed_before: Set[dt.date], has_dense: bool) -> bool:
    """Whether the days before the first one of the series may have been cut off."""
    if not days:
        return False
    is_few = not has_dense and _is_row(days)
    return is_few or _is_dense(days | listed_before, min(days))


def _has_ended(end: dt.date, known: Set[dt.date], covered: Sequence[DateRange]) -> bool:
    """Whether the day behind was read before, and had nothing."""
    return end + _DAY not in known and any(end + _DAY in days for days in covered)


def _is_row(days: Set[dt.date]) -> bool:
    """Whether there are days, and none between the first and the last is missing."""
    return bool(days) and len(DateRange(min(days), max(days))) == len(days)


def _is_dense(listed: Set[dt.date], day: dt.date) -> bool:
    """Whether the day is one of a week or more in a row."""
    return sum(_count_run(listed, day, step) for step in (_DAY, -_DAY)) > _DENSE_DAYS


def _count_run(listed: Set[dt.date], day: dt.date, step: dt.timedelta) -> int:
    days = (day + step * number for number in range(_DENSE_DAYS))
    return sum(1 for _ in itertools.takewhile(listed.__contains__, days))
