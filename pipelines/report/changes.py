"""What happened on a day and in a week, from counts by day. Not here: where the counts are from (`data`), how they look (`sections`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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

    `is_seen`: the count is a change since the night before, so it happened on the day before `day_on`. A span that begins before the first
    known day is not known. Days without a row had nothing.
    """
    shift = _DAY if is_seen else dt.timedelta()
    counts = {row["day_on"] - shift: row[column] for row in rows if row[column] is not None}
    yesterday = today - _DAY
    return Change(
        _sum(counts, yesterday, yesterday),
        _sum(counts, yesterday - _WEEK + _DAY, yesterday),
        _sum(counts, yesterday - 2 * _WEEK + _DAY, yesterday - _WEEK),
    )


def _sum(counts: Mapping[dt.date, float], first: dt.date, last: dt.date) -> float | None:
    if not counts or min(counts) > first:
        return None
    return sum(value for on, value in counts.items() if first <= on <= last)
