"""Which candidates are requested tonight, in which order and why. Pure functions of columns.

| what fits into the night            | what is requested                                       |
|-------------------------------------|---------------------------------------------------------|
| all candidates                      | all, the most probable first                            |
| fewer                               | new contacts, probable ones, and a share of the oldest  |
| not even new and due ones (a limit) | a twentieth for the oldest, the rest for probable ones  |

Not here: how probable a change is (`change_chances`), how much fits (`crawl_plan`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from assets.planning.candidates import DAY_S, SIGNAL_PRECISION, Candidates, Flags, Floats, Ints

#: A request is worth making if one in four finds something new.
WORTH = 1 / 4
#: The share for the oldest candidates of a limit that can't keep the maximum age.
OLDEST_SHARE = 0.05
#: A candidate that was requested within half a day is not requested again. A deadline within half a
#: day is tonight's.
HALF_DAY_S = DAY_S / 2


class Reason(IntEnum):
    """Why something is requested: a number in arrays, and a word in `sync.plans`."""

    DUE = 0
    NEW = 1
    CLICKED = 2
    PUSHED = 3
    REDEEMED = 4
    ROW = 5
    CAMPAIGN = 6
    LIST = 7
    PROBABLE = 8
    ROOM = 9

    def __str__(self) -> str:
        return self.name.lower()


#: The reasons as people read them, after a number.
_WORDS = {
    Reason.DUE: "about to exceed the maximum age",
    Reason.NEW: "never requested",
    Reason.CLICKED: "clicked in a campaign",
    Reason.PUSHED: "changed by a push",
    Reason.REDEEMED: "redeemed a coupon",
    Reason.ROW: "changed in the listing",
    Reason.CAMPAIGN: "probably got a campaign",
    Reason.LIST: "on a list that got a campaign",
    Reason.PROBABLE: "changing often",
    Reason.ROOM: "because the night has time",
}


def by_reason(reasons: npt.NDArray[np.int8]) -> dict[Reason, int]:
    """Requests by reason, in the order of reasons."""
    counts = np.bincount(reasons).tolist()
    return {Reason(number): count for number, count in enumerate(counts) if count}


def in_words(counts: Mapping[Reason, int]) -> str:
    """Requests by reason, e.g. `12 never requested, 3 clicked in a campaign`."""
    parts = (f"{count:,} {_WORDS[reason]}" for reason, count in counts.items())
    return ", ".join(parts) or "nothing is due"


@dataclass(frozen=True)
class Rules:
    """The rules of a night. `room`: requests that fit into it; more are only sent for new, probable
    or due candidates. `limit`: a number of requests that is never exceeded (None: no limit). Every
    candidate is requested within `max_age_days`. `requests_all`: request all candidates, even if
    they were requested a moment ago."""

    max_age_days: float = 7
    room: float = math.inf
    limit: int | None = None
    requests_all: bool = False


@dataclass(frozen=True)
class Order:
    """`positions` of the candidates to request, in that order, with the `reasons` (numbers of
    Reason) for each.

    `needed`: requests that this night needs for new candidates and for the maximum age. Candidates
    that are left out: `is_late` if the deadline passes before the next night, `is_waiting` if it
    was never requested."""

    positions: Ints
    reasons: npt.NDArray[np.int8]
    needed: int
    is_late: Flags
    is_waiting: Flags


def order_requests(
    requested: Floats,
    deadline: Floats,
    chance: Floats,
    why: npt.NDArray[np.int8],
    now: float,
    rules: Rules,
) -> Order:
    """What to request tonight. The same input gives the same order. `why`: the reason that a
    candidate is probable (the number of a Reason).

    Every candidate costs one request, so requesting by falling probability finds the most changes
    per request: the greedy rule of Azar, Horvitz, Lubetzky, Peres and Shahaf (Tractable
    near-optimal policies for crawling, PNAS 115(32), 2018) for nightly batches."""
    is_new = np.isnan(requested)
    is_due = deadline - now < HALF_DAY_S
    is_open = is_new | (now - requested >= HALF_DAY_S) | rules.requests_all
    is_worth = is_open & (is_new | (chance >= WORTH))
    needed, size, turns = _count_requests(is_new, is_due, is_open, is_worth, rules)
    oldest = _sort_by(deadline, is_open & ~is_worth)[:turns]
    is_open[oldest] = False
    picked = _sort_by(-chance, is_open)[: size - len(oldest)]
    positions = np.concatenate([oldest, picked])
    reasons = why.copy()
    reasons[~is_worth] = Reason.ROOM
    reasons[is_new] = Reason.NEW
    reasons[oldest] = Reason.DUE
    is_left = np.ones(len(requested), bool)
    is_left[positions] = False
    is_late = is_left & is_due & ~is_new
    return Order(positions, reasons[positions], needed, is_late, is_left & is_new)


def _count_requests(
    is_new: Flags, is_due: Flags, is_open: Flags, is_worth: Flags, rules: Rules
) -> tuple[int, int, int]:
    """How many requests the night needs, how many it has, and how many of these are for the oldest
    candidates."""
    open_count = int(is_open.sum())
    done = len(is_open) - open_count  # by an earlier run of this night

    def count_turns(candidates: Flags) -> int:
        """How many of these are requested tonight for their age."""
        a_night = math.ceil((int(candidates.sum()) + done) / rules.max_age_days)
        return max(a_night - done, int((candidates & is_due).sum()))

    needed = int(is_new.sum()) + count_turns(is_open & ~is_new)
    turns = count_turns(is_open & ~is_worth)
    worth = int(is_worth.sum())
    room = open_count if rules.requests_all else int(min(rules.room, len(is_open))) - done
    size = max(worth + turns, room)
    if rules.limit is not None and rules.limit < size:
        size = rules.limit
        turns = min(turns, size)
        if size < needed:
            turns = max(int(size * OLDEST_SHARE), size - worth)
    return needed, size, 0 if size >= open_count else turns


def _sort_by(values: Floats, among: Flags) -> Ints:
    """The positions of these candidates, the smallest value first."""
    positions = np.flatnonzero(among)
    return positions[np.argsort(values[positions], kind="stable")]


def find_reasons(candidates: Candidates) -> npt.NDArray[np.int8]:
    """The best reason to request each candidate: the most precise signal, or its own history."""
    found = np.full(len(candidates), Reason.PROBABLE, np.int8)
    for signal in reversed(SIGNAL_PRECISION):
        found[candidates.has_signal(signal)] = Reason[signal.upper()]
    return found
