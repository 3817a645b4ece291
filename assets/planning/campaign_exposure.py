"""Campaign exposure: whom a sending probably reached, and so whose timeline may have something new.

Pure functions of columns. The service does not report to whom a campaign went, but its statistics say how many it reached and name
those who clicked, and the lists of those are known. Not here: single contacts' own rates (`change_rates`).
"""

from dataclasses import dataclass

import numpy as np

from assets.planning.candidates import Candidates, Floats, Ints
from assets.planning.change_rates import gamma

#: Clicks that the guess "all were reached alike" is worth.
PRIOR_CLICKS = 0.5
#: How much more often than its fellows a contact may be written to; the nearest of these counts.
_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Exposure:
    """Observations in the order of `seen`: at each, a `share` of those whom its campaign reached had something new.

    `campaign` counts from 0 into `reached` (contacts it reached, bounces included) and `clickers` (addresses that clicked);
    `clicked` has the clickers by campaign and segment.
    """

    seen: Floats
    share: Floats
    campaign: Ints
    reached: Floats
    clickers: Floats
    clicked: Floats


def received(exposure: Exposure, members: Floats) -> Floats:
    """The share of each segment's members that each campaign reached: (campaigns, segments).

    If a campaign reached all n members of a segment, k n of them are expected among its clickers, k being its clickers over its
    reach. With a Gamma prior worth `PRIOR_CLICKS` clicks at the overall share, the posterior mean is (clicked + a) / (k n + a / share).
    """
    overall = np.clip(exposure.reached / max(members.sum(), 1.0), 1e-6, 1.0)
    expected = (exposure.clickers / np.maximum(exposure.reached, 1.0))[:, None] * members[None, :]
    found: Floats = np.clip((exposure.clicked + PRIOR_CLICKS) / (expected + (PRIOR_CLICKS / overall)[:, None]), 0.0, 1.0)
    return found


def unreached(candidates: Candidates, exposure: Exposure) -> Floats:
    """Per candidate, the logarithm of the chance that none of the observations since it was fetched concerned it (0: none at all)."""
    if not len(exposure.seen) or not len(candidates):
        return np.zeros(len(candidates))
    members = np.bincount(candidates.segment[candidates.is_active], minlength=exposure.clicked.shape[1]).astype(float)
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
    """How much more often than others of its segment each gets campaigns, as a position in `_FACTORS`: they go to parts of lists, and
    mostly to the same."""
    shape, seen, mean = gamma(candidates.messages.astype(float), candidates.history_days, candidates.segment)
    factor = (shape + candidates.messages) / (seen * mean)
    between = np.sqrt(np.multiply(_FACTORS[1:], np.maximum(_FACTORS[:-1], _FACTORS[1] / 4)))
    return np.searchsorted(between, factor)
