"""What happened on a day and in a week, from counts by day. Not here: where the counts are from (`data`), how they look (`sections`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.report.charts import Column

Row = Mapping[str, Any]

_WEEK = dt.timedelta(days=7)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Change:
    """Counts of yesterday, of the week that ends with it, and of the week before; None where not known."""

    yesterday: float | None
    week: float | None
    week_before: float | None

    @property
    def difference(self) -> float | None:
        """Of the two weeks."""
        return None if self.week is None or self.week_before is None else self.week - self.week_before


def change(rows: Iterable[Row], column: str, today: dt.date, *, is_seen: bool = False) -> Change:
    """Of rows with `day_on` and the count in `column`.

    `is_seen`: the count is a change since the night before, so it happened on the day before `day_on`; what a missing night would have told
    is in the next one. A span that begins before the first known day, or has a day that is not known, is not known. Days without a row had
    nothing.
    """
    shift = _DAY if is_seen else dt.timedelta()
    counts = {row["day_on"] - shift: row[column] for row in rows}
    if is_seen:
        last = max((on for on, value in counts.items() if value is not None), default=today)
        counts = {on: value for on, value in counts.items() if value is not None or on > last}
    yesterday = today - _DAY
    return Change(
        _sum(counts, yesterday, yesterday),
        _sum(counts, yesterday - _WEEK + _DAY, yesterday),
        _sum(counts, yesterday - 2 * _WEEK + _DAY, yesterday - _WEEK),
    )


def _sum(counts: Mapping[dt.date, float | None], first: dt.date, last: dt.date) -> float | None:
    known = [on for on, value in counts.items() if value is not None]
    if not known or min(known) > first:
        return None
    values = [value for on, value in counts.items() if first <= on <= last]
    return None if None in values else sum(value for value in values if value is not None)


def by_week(days: Iterable[Row], up: str, down: str, today: dt.date, count: int) -> list[Column]:
    """The last weeks, the newest of them ending today, from the first that is known on; a week is when all of its days are."""
    by_day = {row["day_on"]: row for row in days}
    found: list[Column] = []
    for back in reversed(range(count)):
        begins = today - back * _WEEK - _WEEK + _DAY
        week = [by_day.get(begins + number * _DAY, {}) for number in range(7)]
        column = Column(begins, _whole(week, up), _whole(week, down))
        if found or column.up is not None or column.down is not None:
            found.append(column)
    return found


def _whole(week: Iterable[Row], column: str) -> float | None:
    values = [day.get(column) for day in week]
    return None if None in values else sum(value for value in values if value is not None)
