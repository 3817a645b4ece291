"""Which candidates are fetched, in which order and why: maximum age first, then what is new or probably
changed, then what deadline smoothing fetches early. Pure functions of columns. Not here: probabilities
(`change_chances`), where the budget comes from (`crawl_plan`)."""

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
    LIST = "list", "a campaign went to its lists since"
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


def order_requests(
    candidates: Deadlines, chance: Floats, why: npt.NDArray[np.int8], now: float, *, limit: int | None
) -> Order:
    """What to request within `limit` requests (None: as many as are worth it). The same input gives the same
    order. `why`: the reason that a candidate is probable (index into REASONS).

    Every candidate costs one request, so requesting by falling probability finds the most changes per
    request: the greedy rule of Azar, Horvitz, Lubetzky, Peres and Shahaf (Tractable near-optimal policies for
    crawling, PNAS 115(32), 2018) for nightly batches. They pass over pages that change again at once; here
    freshness is judged right after the request, so these are requested like the others."""
    choice = _Choice(candidates, chance, now)
    budget = len(candidates) if limit is None else limit
    needed = int(choice.is_new.sum()) + choice.count_turns(np.flatnonzero(choice.is_new))
    if needed > budget:
        return choice.make_order(*choice.spend_budget(budget), why, needed)
    worth_it = choice.by_chance(choice.is_new | (chance >= WORTH))
    turns = 0
    for _ in range(3):  # what is requested for its chance needs no turn, so fewer of these are more turns
        turns = min(choice.count_turns(worth_it[: budget - turns]), budget)
    picked = worth_it[: budget - turns]
    return choice.make_order(picked, choice.by_deadline(picked, turns), why, needed)


class _Choice:
    """The candidates with what the choice goes by."""

    def __init__(self, candidates: Deadlines, chance: Floats, now: float) -> None:
        self.chance, self.is_new = chance, candidates.is_new
        self._nights = np.floor((candidates.deadline - now + GRACE_S) / DAY_S).astype(np.int64)
        self._waited = now - candidates.requested
        self._done_tonight = int((self._waited < GRACE_S).sum())  # by an earlier run

    def by_chance(self, among: Flags) -> Ints:
        """Those positions, the most probable first; equal ones as they stand: the newest first."""
        found = np.flatnonzero(among)
        return found[np.argsort(-self.chance[found], kind="stable")]

    def by_deadline(self, leaving_out: Ints, size: int) -> Ints:
        """The first `size` positions that were requested before and are not in `leaving_out`: by the night of
        their deadline, then the most probable."""
        found = np.flatnonzero(self._others_than(leaving_out))
        return found[np.lexsort((-self.chance[found], self._nights[found]))[:size]]

    def count_turns(self, leaving_out: Ints) -> int:
        """How many of the others have to be requested tonight."""
        return smoothed_size(np.maximum(self._nights[self._others_than(leaving_out)], 0), self._done_tonight)

    def _others_than(self, leaving_out: Ints) -> Flags:
        found = ~self.is_new
        found[leaving_out] = False
        return found

    def spend_budget(self, limit: int) -> tuple[Ints, Ints]:
        """A budget that can't keep the maximum age: first what has waited for rounds, then what has probably
        changed, then the oldest. What was never noticed has its turn that way."""
        a_round = len(self.chance) / max(limit, 1) * DAY_S
        starved = int((self._waited > STARVING_ROUNDS * a_round).sum())
        turns = self.by_deadline(np.empty(0, np.int64), min(int(MAX_AGE_SHARE * limit), starved))
        free = self.is_new | (self.chance >= LEAST_WORTH)
        free[turns] = False
        picked = self.by_chance(free)[: limit - len(turns)]
        oldest = self.by_deadline(np.concatenate([picked, turns]), limit - len(turns) - len(picked))
        return picked, np.concatenate([turns, oldest])

    def make_order(self, picked: Ints, turns: Ints, why: npt.NDArray[np.int8], needed: int) -> Order:
        """Deadlines of tonight first, then the picked, then turns that could wait."""
        is_due = self._nights <= 0
        due, later = turns[is_due[turns]], turns[~is_due[turns]]
        reasons = [
            np.full(len(due), REASONS.index(Reason.DUE)),
            np.where(self.is_new[picked], REASONS.index(Reason.NEW), why[picked]),
            np.full(len(later), REASONS.index(Reason.TURN)),
        ]
        positions = np.concatenate([due, picked, later])
        is_left = np.ones(len(self.chance), bool)
        is_left[positions] = False
        is_late, is_waiting = is_left & is_due & ~self.is_new, is_left & self.is_new
        return Order(positions, np.concatenate(reasons).astype(np.int8), needed, is_late, is_waiting)


def find_reasons(candidates: Candidates) -> npt.NDArray[np.int8]:
    """The best reason to request each candidate: the most precise signal, or its own habits."""
    found = np.full(len(candidates), REASONS.index(Reason.PROBABLE), np.int8)
    for signal in reversed(SIGNALS):
        found[candidates.has_signal(signal)] = REASONS.index(Reason(signal))
    return found


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
