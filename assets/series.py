"""What an answer to a daily series proves. Services cut long ones: then the days that lack are unknown, not empty.

Nothing tells a day without an entry from one that was left out, unless the series lists every day: where a week or more is
listed without a gap, the days beyond its end lack. Its late beginning may be the account's own, or the service listed the newest
days only: a request for the days before tells. Not here: asking (`ask`).
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence, Set
from dataclasses import dataclass

from assets.days import DateRange, first_missing, last_missing

_DAY = dt.timedelta(days=1)
#: Days in a row after which a series counts as one that lists every day.
_DENSE_DAYS = 7
#: Today is not over, and a service that counts in a zone of its own may be a day behind the account.
NOT_YET = dt.timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Proof:
    """`days`: what the answer proves, listed or not; None: nothing. `before` and `after` lack and are to be asked again."""

    days: DateRange | None
    before: DateRange | None = None
    after: DateRange | None = None


def prove(
    asked: DateRange, served: Sequence[Set[dt.date]], known: Sequence[Set[dt.date]], covered: Sequence[DateRange], today: dt.date
) -> Proof:
    """What the answer to `asked` proves that has these days of each series; `known` were listed by others, `covered` read before.

    An answer proves no more of any of its series than of the dense ones: what has few entries is cut later. A series with nothing
    beside others that have something ended before, as has one that was asked on its own and had nothing more.
    """
    first, last, is_empty = asked.first, asked.last, not any(served)
    for days, others in zip(served, known, strict=True):
        listed = days | others
        if days and _is_dense(listed, min(days)):
            first = max(first, min(days))
        end = max(days, default=asked.first - _DAY)
        has_ended = end + _DAY not in others and any(end + _DAY in some for some in covered)
        if (days or is_empty) and not has_ended and _is_dense(listed, end):
            last = min(last, end)
    before = DateRange(first_missing(covered, asked.first), last_missing(covered, first - _DAY))
    after = DateRange(last + _DAY, asked.last)
    is_cut = last < min(asked.last, today - NOT_YET)
    return Proof(DateRange(first, last) or None, before or None, after if is_cut else None)


def _is_dense(listed: Set[dt.date], day: dt.date) -> bool:
    """Whether the day is one of a week or more in a row."""
    return sum(_run(listed, day, step) for step in (_DAY, -_DAY)) > _DENSE_DAYS


def _run(listed: Set[dt.date], day: dt.date, step: dt.timedelta) -> int:
    days = (day + step * number for number in range(_DENSE_DAYS))
    return sum(1 for _ in itertools.takewhile(listed.__contains__, days))
