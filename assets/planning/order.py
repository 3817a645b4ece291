"""Which candidates are fetched, in which order and why: maximum age first, then what is new or probably
changed, then what deadline smoothing fetches early. Pure functions of columns. Not here: probabilities
(`change_rates`), where the budget comes from (`crawl_plan`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from assets.planning.candidates import DAY_S, SIGNALS, Candidates, Deadlines, Flags, Floats, Ints

#: A request is worth it when one in so many such requests finds something new.
WORTH = 1 / 4
#: While the maximum age cannot be kept anyway, even this chance counts for more than a long wait: what waits
#: longest has as much.
LEAST_WORTH = 1 / 10
#: Of a budget that cannot keep the maximum age, so much at most goes to what waits longest, and only to what
#: has waited for so many rounds (the nights in which the budget would fetch everything); the rest to what has
#: probably changed, then to the longest wait.
MAX_AGE_SHARE, STARVING_ROUNDS = 0.1, 3
#: A night is the unit: what is fetched within half a day of its deadline is in time, wherever in the night it
#: stands.
GRACE_S = DAY_S / 2


class Reason(StrEnum):
    """Why something is fetched, and the `meaning` of that in words."""

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> Self:
        reason = str.__new__(cls, name)
        reason._value_, reason.meaning = name, meaning
        return reason

    DUE = "due", "older than allowed by tomorrow"
    NEW = "new", "never requested"
    CLICKED = "clicked", "named by a campaign's statistics since"
    PUSHED = "pushed", "written to by us since"
    REDEEMED = "redeemed", "redeemed a coupon since"
    ROW = "row", "its row in the listing changed since"
    CAMPAIGN = "campaign", "a campaign probably reached it since"
    PROBABLE = "probable", "changes often"
    TURN = "turn", "not due yet, but every night has about as many"
    ALL = "all", "all were asked for, with `--all`"


REASONS = tuple(Reason)


def by_reason(codes: npt.NDArray[np.int8]) -> dict[Reason, int]:
    """Requests by reason, in the order of reasons."""
    found = np.bincount(codes, minlength=len(REASONS)).tolist()
    return {reason: count for reason, count in zip(REASONS, found, strict=True) if count}


def in_words(counts: Mapping[Any, int]) -> str:
    """Requests by reason, e.g. `due 3, new 12`."""
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.items()) or "nothing is due"


@dataclass(frozen=True)
class Order:
    """`positions` of the candidates to fetch, in that order, with the `reasons` (indexes into REASONS) for
    each.

    `needed`: requests that this night takes for what is new and for the maximum age. Left out, although:
    `is_late`, its deadline passes before the next night; `is_waiting`, it was never fetched."""

    positions: Ints
    reasons: npt.NDArray[np.int8]
    needed: int
    is_late: Flags
    is_waiting: Flags


def in_full(candidates: Deadlines) -> Order:
    """All of them, the newest and most active first."""
    count = len(candidates)
    reasons = np.where(candidates.is_new, REASONS.index(Reason.NEW), REASONS.index(Reason.ALL)).astype(
        np.int8
    )
    none = np.zeros(count, bool)
    return Order(np.arange(count), reasons, count, none, none)


def order(
    candidates: Deadlines, chance: Floats, why: npt.NDArray[np.int8], now: float, *, limit: int | None
) -> Order:
    """What to fetch within `limit` requests (None: as many as are worth it). The same input gives the same
    order.

    Every candidate costs one request, so fetching by falling probability finds the most changes per request:
    the greedy rule of Azar, Horvitz, Lubetzky, Peres and Shahaf (Tractable near-optimal policies for
    crawling, PNAS 115(32), 2018) for nightly batches. They pass over pages that change again at once; here
    freshness is judged right after the request, so these are fetched like the others. `why`: the reason that
    a candidate is probable (index into REASONS)."""
    chosen = _Choice(candidates, chance, now)
    wanted = chosen.by_chance(chosen.is_new | (chance >= WORTH))
    early = chosen.smoothed(leaving_out=wanted)
    needed = int(chosen.is_new.sum()) + chosen.smoothed(leaving_out=np.flatnonzero(chosen.is_new))
    if limit is None or len(wanted) + early <= limit:
        picked, turns = wanted, chosen.rest(wanted, early)
    else:
        picked, turns = chosen.within(wanted, limit, needed)
    return _order(chosen, picked, turns, why, needed)


class _Choice:
    """The candidates with what the choice goes by."""

    def __init__(self, candidates: Deadlines, chance: Floats, now: float) -> None:
        self.candidates = candidates
        self.chance = chance
        self.nights = nights_left(candidates.deadline, now)
        self.now = now
        self.draw = np.random.default_rng(int(now // DAY_S)).random(len(chance))  # another one every night
        self.is_new = candidates.is_new
        self._tonight = int(
            (candidates.requested > now - GRACE_S).sum()
        )  # by an earlier run of the same night

    def by_chance(self, among: Flags) -> Ints:
        """Those positions, the most probable first; equal ones as they stand: the newest first."""
        found = np.flatnonzero(among)
        return found[np.argsort(-self.chance[found], kind="stable")]

    def rest(self, leaving_out: Ints, size: int) -> Ints:
        """The first `size` positions fetched before that are not in `leaving_out`: by the night of their
        deadline, then the most probable, then at random. Only nights that can be among them are sorted."""
        found = np.flatnonzero(self._others(leaving_out))
        if not size or not len(found):
            return found[:0]
        night = ((self.candidates.deadline[found] - self.now + GRACE_S) // DAY_S).astype(np.int64)
        night -= night.min()
        last = np.searchsorted(np.cumsum(np.bincount(night)), min(size, len(found)))
        kept = night <= last
        found, night = found[kept], night[kept]
        return found[np.lexsort((self.draw[found], -self.chance[found], night))[:size]]

    def smoothed(self, leaving_out: Ints) -> int:
        """How many of the rest have to be fetched tonight."""
        return smoothed_size(self.nights[self._others(leaving_out)], self._tonight)

    def _others(self, leaving_out: Ints) -> Flags:
        """What was fetched before, but for these positions."""
        found = ~self.is_new
        found[leaving_out] = False
        return found

    def within(self, wanted: Ints, limit: int, needed: int) -> tuple[Ints, Ints]:
        """The maximum age as far as it goes, then the most probable of all others."""
        if needed <= limit:
            size = 0
            # what is fetched for its probability need not be fetched early: the more of it the less of this
            for _ in range(3):
                size = min(self.smoothed(leaving_out=wanted[: limit - size]), limit)
            first = wanted[: limit - size]
            return first, self.rest(first, size)
        # What waits longest of all, whatever else could be fetched: it may be what nothing is ever noticed
        # about.
        a_round = len(self.chance) / max(limit, 1) * DAY_S
        starved = int((self.now - self.candidates.requested > STARVING_ROUNDS * a_round).sum())
        turns = self.rest(np.empty(0, np.int64), min(int(MAX_AGE_SHARE * limit), starved))
        free = np.ones(len(self.chance), bool)
        free[turns] = False
        picked = self.by_chance(free & (self.is_new | (self.chance >= LEAST_WORTH)))[: limit - len(turns)]
        spare = self.rest(np.concatenate([picked, turns]), limit - len(turns) - len(picked))
        return picked, np.concatenate([turns, spare])


def _order(chosen: _Choice, picked: Ints, turns: Ints, why: npt.NDArray[np.int8], needed: int) -> Order:
    """Deadlines of tonight first, then the picked, then turns that could wait."""
    due, later = turns[chosen.nights[turns] == 0], turns[chosen.nights[turns] > 0]
    positions = np.concatenate([due, picked, later])
    reasons = np.where(chosen.is_new[picked], REASONS.index(Reason.NEW), why[picked])
    codes = [
        np.full(len(due), REASONS.index(Reason.DUE)),
        reasons,
        np.full(len(later), REASONS.index(Reason.TURN)),
    ]
    left = np.ones(len(chosen.chance), bool)
    left[positions] = False
    return Order(
        positions,
        np.concatenate(codes).astype(np.int8),
        needed,
        left & (chosen.nights == 0) & ~chosen.is_new,
        left & chosen.is_new,
    )


def reasons(candidates: Candidates, unreached: Floats | None) -> npt.NDArray[np.int8]:
    """The best reason to fetch each candidate: what was noticed about it, a campaign, or its own habits."""
    found = np.full(len(candidates), REASONS.index(Reason.PROBABLE), np.int8)
    if unreached is not None:
        found[unreached < -0.1] = REASONS.index(Reason.CAMPAIGN)
    for signal in reversed(SIGNALS):
        found[candidates.noticed(signal)] = REASONS.index(Reason(signal))
    return found


# --- deadline smoothing ---


def nights_left(deadline: Floats, now: float) -> Ints:
    """How many nights each may still be left out: 0 is due tonight, as is what is late already."""
    found = np.floor((deadline - now + GRACE_S) / DAY_S)
    return np.maximum(found, 0).astype(np.int64)


def smoothed_size(nights: Ints, done_tonight: int = 0) -> int:
    """The least constant rate that fetches everything in time, for tonight: the maximum over h of (due within
    h nights) / (h + 1).

    That is the processor demand criterion of earliest-deadline-first scheduling (Baruah, Rosier and Howell
    1990) with one request as the unit of work. Rounded down, or a single candidate would be fetched every
    night; what is due tonight is always among them. `done_tonight`: fetched already by an earlier run of this
    night, in whose place nothing need be."""
    if not len(nights):
        return 0
    due = np.cumsum(np.bincount(nights)) + done_tonight
    slots = np.arange(1, len(due) + 1)
    return max(0, int(np.max(due // slots)) - done_tonight, int((nights == 0).sum()))
