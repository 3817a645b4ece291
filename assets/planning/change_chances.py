"""How likely each request brings something new: from the candidate's own history and from signals.

Pure functions of columns. Not here: what is requested (`order`)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from assets.planning.candidates import DAY_S, NO_DAY, Candidates, Flags, Floats, Ints

#: How often something new came with each signal that was noticed since the last request. Measured
#: with simulated accounts (`tests.benchmarks.bench_economy`).
SIGNAL_PRECISION: Mapping[str, float] = {
    "clicked": 0.95,
    "pushed": 0.9,
    "campaign": 0.65,
    "redeemed": 0.5,
    "row": 0.3,
    "list": 0.3,
}
#: Changes a day while nothing is known, and how many days of history that guess is worth.
PRIOR_RATE = 0.02
PRIOR_DAYS = 20.0
#: Limits of the shape of the Gamma distribution of rates: how uneven contacts may be taken to be.
_SHAPES = (0.01, 20.0)
_ALMOST_SURE = 0.99

# Factors of a day: how much more often than usual something happens a number of days after the last
# active day, and a number of days after registration.
#: Days before today from which the factors are learnt, and of about how many contacts.
_LEARNT_DAYS = 28
_SAMPLE = 10_000
#: Active days that the guess "no difference" is worth to each factor, and how often all are fitted.
_PRIOR_ACTIVE_DAYS = 3.0
_ROUNDS = 3
#: Days that are computed one by one; for those before them only the rate counts.
_LAST_DAYS = 14
#: Where the classes begin, in days. Each day has a class of its own for five weeks, as messages
#: come monthly.
_GAPS = np.array([*range(2, 36), 41, 61, 91])
_TENURES = np.array([*range(1, 36), 41, 61, 91])


def change_chances(candidates: Candidates, now: float) -> Floats:
    """The probability that each response has something new; 1 for a candidate that was never
    requested.

    Each signal that was noticed since leaves the chance that it was a false alarm; these multiply
    (Busa-Fekete et al., A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals,
    2025, arXiv 2502.02430)."""
    unchanged = log_unchanged(candidates, now)
    for signal, precision in SIGNAL_PRECISION.items():
        unchanged = unchanged + math.log(1 - precision) * candidates.has_signal(signal)
    return np.where(candidates.is_new, 1.0, -np.expm1(unchanged))


def log_unchanged(candidates: Candidates, now: float) -> Floats:
    """The logarithm of the chance that nothing has happened to each candidate by itself since its
    last request: -rate x days, with the last days weighted by factors where responses are dated."""
    rate = estimate_rates(candidates.changes, candidates.history_days)
    if candidates.active is None:
        days = np.maximum(np.nan_to_num((now - candidates.requested) / DAY_S), 0.0)
        return -rate * days
    today = int(now // DAY_S)
    factors = _learn_factors(candidates, today)
    requested_ago = _days_before(today, candidates.requested)
    registered_ago = _days_before(today, candidates.registered)
    unchanged: Floats = -rate * np.maximum(requested_ago - _LAST_DAYS, 0)
    for ago in range(1, _LAST_DAYS + 1):
        among = np.flatnonzero(requested_ago >= ago)
        gap = np.maximum(candidates.last_active[among] - ago, 1)
        classes = _classify(gap, registered_ago[among] - ago)
        weight = math.prod(factor[class_] for factor, class_ in zip(factors, classes, strict=True))
        unchanged[among] += np.log1p(-np.minimum(rate[among] * weight, _ALMOST_SURE))
    return unchanged


def estimate_rates(changes: Ints, days: Floats) -> Floats:
    """Changes a day of each, after so many changes in so many days.

    Empirical Bayes (Robbins 1956): the rates differ from contact to contact as a Gamma
    distribution, and each result is the mean of the posterior. The shape of the distribution
    follows from how much more the changes vary than one rate for all would let them."""
    mean = float((changes.sum() + PRIOR_RATE * PRIOR_DAYS) / (days.sum() + PRIOR_DAYS))
    expected = mean * days
    surplus = float(np.sum((changes - expected) ** 2 - expected))
    shape = float(np.clip(np.sum(expected**2) / surplus, *_SHAPES)) if surplus > 0 else _SHAPES[1]
    rates: Floats = (shape + changes) / (shape / mean + days)
    return rates


def _learn_factors(candidates: Candidates, today: int) -> list[Floats]:
    """The factors by class of gap and tenure, from the last weeks of a sample and the rates of the
    time before."""
    sample = np.arange(0, len(candidates), max(len(candidates) // _SAMPLE, 1))
    is_active = candidates.active_on(sample)
    before = is_active[:, _LEARNT_DAYS + 1 :]
    learnt = is_active[:, 1 : _LEARNT_DAYS + 1]
    requested_ago = _days_before(today, candidates.requested[sample])[:, None]
    registered_ago = _days_before(today, candidates.registered[sample])[:, None]
    days_before = np.clip(registered_ago[:, 0] - _LEARNT_DAYS, 0, before.shape[1])
    rates = estimate_rates(before.sum(axis=1), days_before.astype(float))[:, None]
    days = np.arange(1, _LEARNT_DAYS + 1)
    gaps = _find_gaps(is_active)[:, :_LEARNT_DAYS]
    classes = _classify(gaps, registered_ago - days)
    is_known = (days > requested_ago) & (days <= registered_ago)
    known_rates, *known_classes = (
        np.broadcast_to(values, is_known.shape)[is_known] for values in (rates, *classes)
    )
    return _fit_factors(known_rates, known_classes, learnt[is_known])


def _fit_factors(rates: Floats, classes: list[Ints], is_active: Flags) -> list[Floats]:
    """A log-linear model, fitted by iterative proportional fitting (Bishop, Fienberg and Holland,
    Discrete Multivariate Analysis, 1975): in the end each class expects as many active days as
    there were."""
    factors = [np.ones(size) for size in (len(_GAPS) + 1, len(_TENURES) + 1)]
    for _ in range(_ROUNDS):
        for number, class_ in enumerate(classes):
            other_factors = [
                factor[classes[at]] for at, factor in enumerate(factors) if at != number
            ]
            size = len(factors[number])
            expected = np.bincount(class_, math.prod([rates, *other_factors]), size)
            found = np.bincount(class_, is_active, size)
            factors[number] = (found + _PRIOR_ACTIVE_DAYS) / (expected + _PRIOR_ACTIVE_DAYS)
    return factors


def _find_gaps(is_active: Flags) -> Ints:
    """For 1, 2, … days before today: how many days before it the last active day was."""
    count, days = is_active.shape
    last = np.full(count, NO_DAY)
    gaps = np.empty((count, days - 1), np.int64)
    for ago in range(days - 1, 0, -1):
        gaps[:, ago - 1] = last - ago
        last = np.where(is_active[:, ago], ago, last)
    return gaps


def _classify(gap: Ints, tenure: Ints) -> list[Any]:
    return [np.searchsorted(_GAPS, gap, "right"), np.searchsorted(_TENURES, tenure, "right")]


def _days_before(today: int, at: Floats) -> Ints:
    """Days from each moment (unix seconds) to today; NO_DAY where it is not known."""
    return today - np.floor(np.nan_to_num(at / DAY_S, nan=today - NO_DAY)).astype(np.int64)
