"""How likely each request finds something new: from the candidate's own history and from signals.

Pure functions of columns. Not here: what is requested (`order`)."""

import math

import numpy as np

from assets.planning.candidates import (
    DAY_S,
    NO_DAY,
    SIGNAL_PRECISION,
    Candidates,
    Flags,
    Floats,
    Ints,
    days_between,
)

#: Changes a day while nothing is known, and how many days of history that guess counts as.
PRIOR_RATE = 0.02
PRIOR_DAYS = 20.0
#: Limits of the shape of the Gamma distribution of rates: the smaller, the more contacts differ.
_LEAST_SHAPE = 0.01
_LARGEST_SHAPE = 20.0
_ALMOST_SURE = 0.99

# Factors of a day: how much more often than usual something happens a number of days after the last
# active day (gap), and a number of days after registration (tenure).
#: Days before today from which the factors are learned, and from about how many contacts.
_LEARNT_DAYS = 28
_SAMPLE = 10_000
#: How many active days the guess "no difference" counts as, and how often all factors are fitted.
_PRIOR_ACTIVE_DAYS = 3.0
_ROUNDS = 3
#: Days that are computed one by one; for days before them only the rate counts.
_LAST_DAYS = 14
#: Where classes begin, in days. Each day has its own class for five weeks, since messages come
#: monthly.
_CLASSES = np.array([*range(1, 36), 41, 61, 91])
_CLASS_COUNT = len(_CLASSES) + 1


def change_chances(candidates: Candidates, now: float) -> Floats:
    """The probability that each response has something new; 1 for a candidate that was never
    requested.

    Each signal since the last request may be a false alarm; the chances of that multiply
    (Busa-Fekete et al., A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals,
    2025, arXiv 2502.02430)."""
    unchanged = log_unchanged(candidates, now)
    for signal, precision in SIGNAL_PRECISION.items():
        unchanged += math.log(1 - precision) * candidates.has_signal(signal)
    return np.where(candidates.is_new, 1.0, -np.expm1(unchanged))


def log_unchanged(candidates: Candidates, now: float) -> Floats:
    """The logarithm of the chance that nothing has happened to each candidate since its last
    request, without regard to signals: -rate x days. If responses are dated, the last days are
    weighted by factors."""
    rate = estimate_rates(candidates.changes, candidates.history_days)
    last_active = candidates.last_active
    if last_active is None:
        return -rate * days_between(candidates.requested, now)
    today = int(now // DAY_S)
    gap_factors, tenure_factors = _learn_factors(candidates, today)
    requested_ago = _days_before(today, candidates.requested)
    registered_ago = _days_before(today, candidates.registered)
    unchanged: Floats = -rate * np.maximum(requested_ago - _LAST_DAYS, 0)
    for ago in range(1, _LAST_DAYS + 1):
        among = np.flatnonzero(requested_ago >= ago)
        gaps = _classify(np.maximum(last_active[among] - ago, 1))
        tenures = _classify(registered_ago[among] - ago)
        chance = rate[among] * gap_factors[gaps] * tenure_factors[tenures]
        unchanged[among] += np.log1p(-np.minimum(chance, _ALMOST_SURE))
    return unchanged


def estimate_rates(changes: Ints, days: Floats) -> Floats:
    """Changes a day of each candidate, from its changes in its days.

    Empirical Bayes (Robbins 1956): the rates of contacts have a Gamma distribution, and each result
    is the mean of the posterior. The shape of the distribution follows from how much more the
    changes vary than they would with one rate for all."""
    mean = float((changes.sum() + PRIOR_RATE * PRIOR_DAYS) / (days.sum() + PRIOR_DAYS))
    expected = mean * days
    surplus = float(np.sum((changes - expected) ** 2 - expected))
    shape = _LARGEST_SHAPE
    if surplus > 0:
        shape = max(min(float(np.sum(expected**2)) / surplus, shape), _LEAST_SHAPE)
    rates: Floats = (shape + changes) / (shape / mean + days)
    return rates


def _learn_factors(candidates: Candidates, today: int) -> tuple[Floats, Floats]:
    """The factors by class of gap and of tenure, from the last weeks of a sample and the rates of
    the time before."""
    step = max(len(candidates) // _SAMPLE, 1)
    sample = np.arange(0, len(candidates), step)
    is_active = candidates.active_on(sample)
    before = is_active[:, _LEARNT_DAYS + 1 :]
    requested_ago = _days_before(today, candidates.requested[sample])[:, None]
    registered_ago = _days_before(today, candidates.registered[sample])[:, None]
    days_before = np.clip(registered_ago - _LEARNT_DAYS, 0, before.shape[1]).astype(float)
    rates = estimate_rates(before.sum(axis=1, keepdims=True), days_before)
    days = np.arange(1, _LEARNT_DAYS + 1)
    is_known = (days > requested_ago) & (days <= registered_ago)
    return _fit_factors(
        np.broadcast_to(rates, is_known.shape)[is_known],
        _classify(_find_gaps(is_active)[is_known]),
        _classify((registered_ago - days)[is_known]),
        is_active[:, days][is_known],
    )


def _fit_factors(
    rates: Floats, gaps: Ints, tenures: Ints, is_active: Flags
) -> tuple[Floats, Floats]:
    """A log-linear model, fitted by iterative proportional fitting (Bishop, Fienberg and Holland,
    Discrete Multivariate Analysis, 1975): in the end each class expects as many active days as
    there were."""

    def fit_factor(classes: Ints, weights: Floats) -> Floats:
        expected = np.bincount(classes, weights, _CLASS_COUNT)
        found = np.bincount(classes, is_active, _CLASS_COUNT)
        return (found + _PRIOR_ACTIVE_DAYS) / (expected + _PRIOR_ACTIVE_DAYS)

    tenure_factors = np.ones(_CLASS_COUNT)
    for _ in range(_ROUNDS):
        gap_factors = fit_factor(gaps, rates * tenure_factors[tenures])
        tenure_factors = fit_factor(tenures, rates * gap_factors[gaps])
    return gap_factors, tenure_factors


def _find_gaps(is_active: Flags) -> Ints:
    """For 1, 2, … _LEARNT_DAYS before today: how many days before it the last active day was."""
    count, days = is_active.shape
    last = np.full(count, NO_DAY)
    gaps = np.empty((count, days), np.int64)
    for ago in reversed(range(days)):
        gaps[:, ago] = last - ago
        last = np.where(is_active[:, ago], ago, last)
    return gaps[:, 1 : _LEARNT_DAYS + 1]


def _classify(days: Ints) -> Ints:
    return np.searchsorted(_CLASSES, days, "right")


def _days_before(today: int, at: Floats) -> Ints:
    """Days from each moment (unix seconds) to today; NO_DAY if it is unknown."""
    days = np.nan_to_num(at / DAY_S, nan=today - NO_DAY)
    return today - np.floor(days).astype(np.int64)
