"""Contacts' own habits: how likely something happens to each by itself, from the days on which its timeline shows something.

Pure functions of columns. Responses that date what they contain tell more than whether they changed: bursts of visits, automations so
many days after registration, messages that come every month, quiet weekends. Not here: contacts without dated responses or campaigns
(`change_rates`).
"""

import math
from typing import Any

import numpy as np

from assets.planning.candidates import DAY_S, NO_DAY, Candidates, Flags, Floats, Ints
from assets.planning.change_rates import gamma

#: Days before today from which the factors are learnt, of about so many contacts.
_LEARNT_DAYS, _SAMPLE = 28, 10_000
#: Active days that the guess "it makes no difference" is worth to each factor, and how often all are fitted again.
_PRIOR, _ROUNDS = 3.0, 3
#: The same for the mean rate: days of history, and the active days in them.
_PRIOR_DAYS, _PRIOR_ACTIVE = 50.0, 1.0
#: Days that are looked at one by one; of those before only the rate is expected.
_LAST_DAYS = 14
#: Where cells begin, in days since the last active one, and since registration: each day alone for five weeks, as messages come monthly.
_GAPS = np.array([*range(2, 36), 41, 61, 91])
_TENURES = np.array([*range(1, 36), 41, 61, 91])
_MOST = 0.99


def unchanged_by_habit(candidates: Candidates, now: float) -> Floats:
    """The logarithm of the chance that nothing of its own has happened to each candidate since it was requested."""
    today = int(now // DAY_S)
    shape, seen, _ = gamma(candidates.active_days.astype(float), candidates.history_days, candidates.segment)
    rate = (shape + candidates.active_days) / seen
    factors = learnt(candidates, shape, today)
    requested = np.where(candidates.is_new, now, candidates.requested) / DAY_S
    asked, last, registered = _days_before(today, requested), candidates.last_active, _days_before(today, candidates.registered / DAY_S)
    quiet: Floats = -rate * np.maximum(asked - _LAST_DAYS, 0)
    for ago in range(min(int(asked.max(initial=0)), _LAST_DAYS) + 1):
        mine = np.flatnonzero(asked >= ago)
        ends = now / DAY_S if ago == 0 else today - ago + 1  # days that are not over, and those of the request, count in part
        part = np.clip(ends - np.maximum(requested[mine], today - ago), 0.0, 1.0)
        cells = _cells(np.maximum(last[mine] - ago, 1), registered[mine] - ago, today - ago)
        expected = rate[mine] * math.prod(factor[cell] for factor, cell in zip(factors, cells, strict=True))
        quiet[mine] += np.log1p(-np.minimum(expected, _MOST) * part)
    return quiet


def learnt(candidates: Candidates, shape: float, today: int) -> list[Floats]:
    """How many times a contact's rate a day has: by days since its last active one, by days since registration, by weekday. Learnt from
    the last weeks of some contacts; the rates are those of the time before."""
    few = np.arange(0, len(candidates), max(len(candidates) // _SAMPLE, 1))
    active, days = candidates.active_on(few), np.arange(1, _LEARNT_DAYS + 1)
    asked, registered = (_days_before(today, at[few] / DAY_S)[:, None] for at in (candidates.requested, candidates.registered))
    known = (days > asked) & (days <= registered)
    cells = _cells(_gaps(active)[:, :_LEARNT_DAYS], registered - days, (today - days)[None, :])
    rates, *places = (
        np.broadcast_to(values, known.shape)[known] for values in (_rate_before(active, registered[:, 0], shape)[:, None], *cells)
    )
    return _fitted(rates, places, active[:, 1 : _LEARNT_DAYS + 1][known])


def _rate_before(active: Flags, registered: Ints, shape: float) -> Floats:
    """The mean of what is known of each rate (`gamma`) from the days before those that are learnt from."""
    found = active[:, _LEARNT_DAYS + 1 :].sum(axis=1)
    history = np.clip(registered, _LEARNT_DAYS, active.shape[1] - 1) - _LEARNT_DAYS
    mean = (found.sum() + _PRIOR_ACTIVE) / (history.sum() + _PRIOR_DAYS)
    rate: Floats = (shape + found) / (shape / mean + history)
    return rate


def _gaps(active: Flags) -> Ints:
    """For 1, 2, … days before today: how many days before it the last active day was."""
    count, days = active.shape
    last, found = np.full(count, NO_DAY), np.empty((count, days - 1), np.int64)
    for ago in range(days - 1, 0, -1):
        found[:, ago - 1] = last - ago
        last = np.where(active[:, ago], ago, last)
    return found


def _fitted(rate: Floats, cells: list[Ints], active: Flags) -> list[Floats]:
    """A log-linear model, fitted by iterative proportional fitting (Bishop, Fienberg and Holland, Discrete Multivariate Analysis, 1975): in
    the end each cell expects as many active days as there were."""
    factors = [np.ones(size) for size in (len(_GAPS) + 1, len(_TENURES) + 1, 7)]
    for _ in range(_ROUNDS):
        for place, cell in enumerate(cells):
            others = [factor[cells[other]] for other, factor in enumerate(factors) if other != place]
            expected, found = (np.bincount(cell, each, len(factors[place])) for each in (math.prod([rate, *others]), active))
            factors[place] = (found + _PRIOR) / (expected + _PRIOR)
    return factors


def _cells(gap: Ints, tenure: Ints, day: Ints | int) -> list[Any]:
    """Where the factors of such days stand; `day` counts from 1970."""
    return [np.searchsorted(_GAPS, gap, "right"), np.searchsorted(_TENURES, tenure, "right"), day % 7]


def _days_before(today: int, at: Floats) -> Ints:
    """From the day of each moment, in days since 1970, to today; very many for those that are not known."""
    return today - np.floor(np.nan_to_num(at, nan=today - NO_DAY)).astype(np.int64)
