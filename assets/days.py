"""Which days a date-ranged read asks for.

The first sync reads everything back to the start of history, later ones the last days; a person can choose any days.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class DateRange:
    """Whole days in the account's time zone, both ends included."""

    first: dt.date
    last: dt.date

    def years(self) -> Iterator[DateRange]:
        """The same days, cut at the turns of the years."""
        for year in range(self.first.year, self.last.year + 1):
            yield DateRange(max(self.first, dt.date(year, 1, 1)), min(self.last, dt.date(year, 12, 31)))

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


def first_missing(covered: Iterable[DateRange], since: dt.date) -> dt.date:
    """The first day from `since` on that no range covers."""
    day = since
    for days in sorted(covered):
        if days.first > day:
            break
        day = max(day, days.last + dt.timedelta(days=1))
    return day


def joined(covered: Iterable[DateRange]) -> list[DateRange]:
    """The same days in as few ranges as hold them, in order."""
    found: list[DateRange] = []
    for days in sorted(covered):
        if found and days.first <= found[-1].last + dt.timedelta(days=1):
            found[-1] = DateRange(found[-1].first, max(found[-1].last, days.last))
        else:
            found.append(days)
    return found


def days_to_ask(
    covered: Iterable[DateRange], today: dt.date, *, history_start: dt.date, lookback_days: int, chosen: DateRange | None
) -> DateRange:
    """The days of one read.

    Days that end before today are asked as chosen. Otherwise the range reaches back to the first day that was never read
    (history on the first night, the nights that were missed later), and at least `lookback_days`.
    """
    if chosen is not None and chosen.last < today:
        return chosen
    first = min(first_missing(covered, history_start), today - dt.timedelta(days=lookback_days))
    if chosen is not None:
        first = min(first, chosen.first)
    return DateRange(first, max(today, chosen.last) if chosen else today)
