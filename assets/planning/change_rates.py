"""How likely each request brings something new: its candidate's own rate of change, that of its group, what
was noticed, and campaigns.

Pure functions of columns. Not here: what is fetched (`order`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from assets.planning.candidates import DAY_S, NO_DAY, SIGNALS, Candidates, Flags, Floats, Ints

#: Changes a day of what nothing is known about, and how many days that guess is worth.
PRIOR_RATE, PRIOR_DAYS = 0.02, 20.0
#: How many days the account's rate is worth to a group: where responses date what they contain, and where
#: they do not.
GROUP_DAYS, GROUP_INTERVALS = 300.0, 10.0
#: How uneven contacts may be taken to be (shape of the Gamma distribution of rates).
_SHAPES = (0.01, 20.0)
#: How often what was noticed came with a change, before anything was learnt: (changed, requested).
SIGNAL_PRIORS: Mapping[str, tuple[float, float]] = {
    "clicked": (19, 20),
    "pushed": (18, 20),
    "redeemed": (10, 20),
    "row": (6, 20),
}
#: How often a first response holds anything, before anything was learnt.
NEW_PRIORS: Mapping[str, tuple[float, float]] = {"timelines": (20, 20), "coupons": (6, 20)}
_LEAST_INTERVAL = 1 / 24  # days: what is requested twice within minutes is no observation of a day
#: So many responses of one reason weigh as much as all earlier ones: habits change.
_MEMORY = 20_000.0
_NOTHING_SEEN = (0.0, 0.0, 0.0)


#: What requests for a reason have brought, by asset and reason: (changed, requested, expected to change
#: without that reason).
Yields = Mapping[tuple[str, str], tuple[float, float, float]]


def _share(seen: tuple[float, float, float], prior: tuple[float, float]) -> float:
    """How often the reason itself came with something new: mean of the Beta posterior (prior as made-up
    observations).

    Of `requested`, `expected` would have changed anyway: false alarms are those that did not, among the
    requested - expected others."""
    changed, requested, expected = seen
    fade = min(1.0, _MEMORY / requested) if requested else 1.0
    false = (prior[1] - prior[0] + (requested - changed) * fade) / (
        prior[1] + max(requested - expected, 0.0) * fade
    )
    return min(max(1 - false, 0.0), 1.0)


def change_rates(candidates: Candidates) -> Floats:
    """Changes a day of each candidate; its group is its segment.

    Of n intervals between requests, X ended with something new. One shows a change however many there were
    in it, so that X is too few: -n ln((n - X + 0.5) / (n + 0.5)) changes explain it (Cho and Garcia-Molina,
    Estimating Frequency of Change, ACM TOIT 3(3), 2003, section 4), in the time of all intervals.
    """
    n = np.maximum(candidates.times_requested - 1, 0).astype(float)
    quiet = n - np.minimum(np.maximum(candidates.times_changed - 1, 0), n)
    days = np.where(n > 0, (candidates.requested - candidates.first_requested) / DAY_S, 0.0)
    days = np.maximum(
        np.where(np.isnan(days), n, days), n * _LEAST_INTERVAL
    )  # before first requests were kept: a day each
    changes = -n * np.log((quiet + 0.5) / (n + 0.5))
    shape, seen, _ = gamma(changes, days, candidates.segment, GROUP_INTERVALS)
    rates: Floats = (shape + changes) / seen
    return rates


def unchanged(candidates: Candidates, now: float) -> Floats:
    """The logarithm of the chance that nothing of its own has happened to each candidate since it was
    requested, by what requests found."""
    days = np.maximum(np.nan_to_num((now - candidates.requested) / DAY_S), 0.0)
    return -change_rates(candidates) * days


def gamma(
    count: Floats, history: Floats, group: Ints, group_days: float = GROUP_DAYS
) -> tuple[float, Floats, Floats]:
    """What is known of rates a day after `count` in a history of so many days: shape, days seen, the group's
    mean rate.

    Rates differ from contact to contact as a Gamma distribution (Robbins 1956: empirical Bayes): with shape r
    and the group's mean rate m, r / m + history days are what the posterior has seen, and (r + count) / seen
    is its mean. The shape follows from how much more the counts vary than the same rate for all would let
    them."""
    size = int(group.max(initial=-1)) + 1
    whole = _mean_rate(count, history)
    totals, spans = (np.bincount(group, weights, size) for weights in (count, history))
    mean = np.maximum(((totals + whole * group_days) / (spans + group_days))[group], 1e-9)
    expected = mean * history
    surplus = float(np.sum((count - expected) ** 2 - expected))
    shape = float(np.clip(np.sum(expected**2) / surplus, *_SHAPES)) if surplus > 0 else _SHAPES[1]
    return shape, shape / mean + history, mean


def _mean_rate(count: Floats | Ints, history: Floats | Ints) -> float:
    """Changes a day of all together, with the guess of what nothing is known about."""
    return float((count.sum() + PRIOR_RATE * PRIOR_DAYS) / (history.sum() + PRIOR_DAYS))


def chances(
    asset: str, candidates: Candidates, own: Floats, *, unreached: Floats | None = None, yields: Yields
) -> Floats:
    """The probability that each response has something new.

    Of what was requested before: 1 - P(own habits left it alone) x product of (1 - precision) over what was
    noticed x P(no campaign reached it). Each noisy signal leaves the chance that it was a false alarm
    (Busa-Fekete et al., A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals, 2025, arXiv
    2502.02430); its precision is learnt from what such requests brought. `own`: logarithm as of `unchanged`;
    `unreached`: as of the function. Of what is new: the share of first responses that held anything."""
    quiet = own if unreached is None else own + unreached
    for signal in SIGNALS:
        false = 1 - min(0.999, _share(yields.get((asset, signal), _NOTHING_SEEN), SIGNAL_PRIORS[signal]))
        quiet = quiet + np.log(false) * candidates.noticed(signal)
    new = _share(yields.get((asset, "new"), _NOTHING_SEEN), NEW_PRIORS[asset])
    return np.where(candidates.is_new, new, -np.expm1(quiet))


# ---- contacts' own habits: how likely something happens to each by itself, from the days on which its
# timeline shows something. Responses that date what they contain tell more than whether they changed: bursts
# of visits, automations so many days after registration, messages that come every month, quiet weekends.

#: Days before today from which the factors are learnt, of about so many contacts.
_LEARNT_DAYS, _SAMPLE = 28, 10_000
#: Active days that the guess "it makes no difference" is worth to each factor, and how often all are fitted
#: again.
_PRIOR, _ROUNDS = 3.0, 3
#: Days that are looked at one by one; of those before only the rate is expected.
_LAST_DAYS = 14
#: Where cells begin, in days since the last active one, and since registration: each day alone for five
#: weeks, as messages come monthly.
_GAPS = np.array([*range(2, 36), 41, 61, 91])
_TENURES = np.array([*range(1, 36), 41, 61, 91])
_MOST = 0.99


def unchanged_by_habit(candidates: Candidates, now: float) -> Floats:
    """The logarithm of the chance that nothing of its own has happened to each candidate since it was
    requested."""
    today = int(now // DAY_S)
    shape, seen, _ = gamma(candidates.active_days.astype(float), candidates.history_days, candidates.segment)
    rate = (shape + candidates.active_days) / seen
    factors = _habits(candidates, shape, today)
    requested = np.where(candidates.is_new, now, candidates.requested) / DAY_S
    asked, last, registered = (
        _days_before(today, requested),
        candidates.last_active,
        _days_before(today, candidates.registered / DAY_S),
    )
    quiet: Floats = -rate * np.maximum(asked - _LAST_DAYS, 0)
    for ago in range(min(int(asked.max(initial=0)), _LAST_DAYS) + 1):
        mine = np.flatnonzero(asked >= ago)
        ends = (
            now / DAY_S if ago == 0 else today - ago + 1
        )  # days that are not over, and those of the request, count in part
        part = np.clip(ends - np.maximum(requested[mine], today - ago), 0.0, 1.0)
        cells = _cells(np.maximum(last[mine] - ago, 1), registered[mine] - ago, today - ago)
        expected = rate[mine] * math.prod(factor[cell] for factor, cell in zip(factors, cells, strict=True))
        quiet[mine] += np.log1p(-np.minimum(expected, _MOST) * part)
    return quiet


def _habits(candidates: Candidates, shape: float, today: int) -> list[Floats]:
    """How many times a contact's rate a day has: by days since its last active one, by days since
    registration, by weekday. Learnt from the last weeks of some contacts; the rates are those of the time
    before."""
    few = np.arange(0, len(candidates), max(len(candidates) // _SAMPLE, 1))
    active, days = candidates.active_on(few), np.arange(1, _LEARNT_DAYS + 1)
    asked, registered = (
        _days_before(today, at[few] / DAY_S)[:, None] for at in (candidates.requested, candidates.registered)
    )
    known = (days > asked) & (days <= registered)
    cells = _cells(_gaps(active)[:, :_LEARNT_DAYS], registered - days, (today - days)[None, :])
    rates, *places = (
        np.broadcast_to(values, known.shape)[known]
        for values in (_rate_before(active, registered[:, 0], shape)[:, None], *cells)
    )
    return _fitted(rates, places, active[:, 1 : _LEARNT_DAYS + 1][known])


def _rate_before(active: Flags, registered: Ints, shape: float) -> Floats:
    """The mean of what is known of each rate (`gamma`) from the days before those that are learnt from."""
    found = active[:, _LEARNT_DAYS + 1 :].sum(axis=1)
    history = np.clip(registered, _LEARNT_DAYS, active.shape[1] - 1) - _LEARNT_DAYS
    rate: Floats = (shape + found) / (shape / _mean_rate(found, history) + history)
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
    """A log-linear model, fitted by iterative proportional fitting (Bishop, Fienberg and Holland, Discrete
    Multivariate Analysis, 1975): in the end each cell expects as many active days as there were."""
    factors = [np.ones(size) for size in (len(_GAPS) + 1, len(_TENURES) + 1, 7)]
    for _ in range(_ROUNDS):
        for place, cell in enumerate(cells):
            others = [factor[cells[other]] for other, factor in enumerate(factors) if other != place]
            expected, found = (
                np.bincount(cell, each, len(factors[place])) for each in (math.prod([rate, *others]), active)
            )
            factors[place] = (found + _PRIOR) / (expected + _PRIOR)
    return factors


def _cells(gap: Ints, tenure: Ints, day: Ints | int) -> list[Any]:
    """Where the factors of such days stand; `day` counts from 1970."""
    return [np.searchsorted(_GAPS, gap, "right"), np.searchsorted(_TENURES, tenure, "right"), day % 7]


def _days_before(today: int, at: Floats) -> Ints:
    """From the day of each moment, in days since 1970, to today; very many for those that are not known."""
    return today - np.floor(np.nan_to_num(at, nan=today - NO_DAY)).astype(np.int64)


# ---- campaign exposure: whom a sending probably reached, and so whose timeline may have something new. The
# service does not report to whom a campaign went, but its statistics say how many it reached and name those
# who clicked, and the lists of those are known.

#: Clicks that the guess "all were reached alike" is worth.
PRIOR_CLICKS = 0.5
#: How much more often than its fellows a contact may be written to; the nearest of these counts.
_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Exposure:
    """Observations in the order of `seen`: at each, a `share` of those whom its campaign reached had
    something new.

    `campaign` counts from 0 into `reached` (contacts it reached, bounces included) and `clickers` (addresses
    that clicked); `clicked` has the clickers by campaign and segment."""

    seen: Floats
    share: Floats
    campaign: Ints
    reached: Floats
    clickers: Floats
    clicked: Floats


def received(exposure: Exposure, members: Floats) -> Floats:
    """The share of each segment's members that each campaign reached: (campaigns, segments).

    If a campaign reached all n members, k n of them are expected among its clickers, k being its clickers
    over its reach. With a Gamma prior worth `PRIOR_CLICKS` clicks at the overall share, the posterior mean is
    (clicked + a) / (k n + a / share)."""
    overall = np.clip(exposure.reached / max(members.sum(), 1.0), 1e-6, 1.0)
    expected = (exposure.clickers / np.maximum(exposure.reached, 1.0))[:, None] * members[None, :]
    found: Floats = np.clip(
        (exposure.clicked + PRIOR_CLICKS) / (expected + (PRIOR_CLICKS / overall)[:, None]), 0.0, 1.0
    )
    return found


def unreached(candidates: Candidates, exposure: Exposure) -> Floats:
    """Per candidate, the logarithm of the chance that none of the observations since it was fetched concerned
    it (0: none at all)."""
    if not len(exposure.seen) or not len(candidates):
        return np.zeros(len(candidates))
    members = np.bincount(
        candidates.segment[candidates.is_active], minlength=exposure.clicked.shape[1]
    ).astype(float)
    active = np.bincount(candidates.segment, candidates.is_active, exposure.clicked.shape[1]) > 0
    by_segment = received(exposure, members) * active[None, :]
    known = np.searchsorted(exposure.seen, np.nan_to_num(candidates.requested, nan=-np.inf), side="right")
    written, found = written_to(candidates), np.zeros(len(candidates))
    for place in np.unique(written):
        mine, factor = written == place, _FACTORS[place]
        steps = np.log1p(-np.minimum(factor * by_segment[exposure.campaign] * exposure.share[:, None], 0.999))
        passed = np.vstack([np.zeros(steps.shape[1]), np.cumsum(steps, axis=0)])
        segment = candidates.segment[mine]
        found[mine] = passed[-1, segment] - passed[known[mine], segment]
    return found


def written_to(candidates: Candidates) -> Ints:
    """How much more often than others of its segment each gets campaigns, as a position in `_FACTORS`: they
    go to parts of lists, and mostly to the same."""
    shape, seen, mean = gamma(candidates.messages.astype(float), candidates.history_days, candidates.segment)
    factor = (shape + candidates.messages) / (seen * mean)
    between = np.sqrt(np.multiply(_FACTORS[1:], np.maximum(_FACTORS[:-1], _FACTORS[1] / 4)))
    return np.searchsorted(between, factor)
