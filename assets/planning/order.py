"""Which candidates are requested tonight, in which order and why. Pure functions of columns.

    everything that is open fits into the night: all of it, the most probable first
    it does not fit: new contacts, probable ones, and a share of the oldest
    a limit is too small even for new and due ones: a twentieth for the oldest, then probable ones

Not here: how probable a change is (`change_chances`), how much fits (`crawl_plan`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from assets.planning.candidates import DAY_S, SIGNALS, Candidates, Flags, Floats, Ints

#: A request is worth it when one in so many such requests finds something new.
WORTH = 1 / 4
#: Of an allowance that can't keep the maximum age, the share for what waits longest.
OLDEST_SHARE = 0.05
#: What was requested within half a day is not requested again; a deadline within half a day is
#: tonight's.
HALF_DAY_S = DAY_S / 2


class Reason(StrEnum):
    """Why something is requested, and the `meaning` of that in words."""

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> Self:
        reason = str.__new__(cls, name)
        reason._value_ = name
        reason.meaning = meaning
        return reason

    DUE = "due", "its turn: nobody gets older than the maximum age"
    NEW = "new", "never requested"
    CLICKED = "clicked", "named by a campaign's statistics since"
    PUSHED = "pushed", "written to by us since"
    REDEEMED = "redeemed", "redeemed a coupon since"
    ROW = "row", "its row in the listing changed since"
    CAMPAIGN = "campaign", "a campaign probably reached it since"
    LIST = "list", "a campaign went to its lists since"
    PROBABLE = "probable", "changes often"
    ROOM = "room", "no sign of a change, but the night has room for it"


REASONS = tuple(Reason)


def by_reason(codes: npt.NDArray[np.int8]) -> dict[Reason, int]:
    """Requests by reason, in the order of reasons."""
    found = np.bincount(codes, minlength=len(REASONS)).tolist()
    return {reason: count for reason, count in zip(REASONS, found, strict=True) if count}


def in_words(counts: Mapping[Any, int]) -> str:
    """Requests by reason, e.g. `due 3, new 12`."""
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.items()) or "nothing is due"


@dataclass(frozen=True)
class Rules:
    """What a night has to keep to. `room`: requests that fit into it; more are sent only for what
    is new, probable or due. `limit`: requests that are never exceeded (None: any number).
    Everything is requested within `max_age_days`. `requests_all`: whatever that takes, also what
    was requested a moment ago."""

    max_age_days: float = 7
    room: float = math.inf
    limit: int | None = None
    requests_all: bool = False


@dataclass(frozen=True)
class Order:
    """`positions` of the candidates to request, in that order, with the `reasons` (indexes into
    REASONS) for each.

    `needed`: requests that this night takes for what is new and for the maximum age. Left out,
    although: `is_late`, its deadline passes before the next night; `is_waiting`, it was never
    requested."""

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
    candidate is probable (index into REASONS).

    Every candidate costs one request, so requesting by falling probability finds the most changes
    per request: the greedy rule of Azar, Horvitz, Lubetzky, Peres and Shahaf (Tractable
    near-optimal policies for crawling, PNAS 115(32), 2018) for nightly batches."""
    count = len(requested)
    is_new = np.isnan(requested)
    is_due = deadline - now < HALF_DAY_S
    is_open = is_new | (now - requested >= HALF_DAY_S) | (rules.requests_all)
    done = count - int(is_open.sum())  # by an earlier run of this night

    def count_turns(candidates: Flags) -> int:
        """How many of these are requested tonight for their age."""
        a_night = int(np.ceil((candidates.sum() + done) / rules.max_age_days)) - done
        return max(a_night, int((candidates & is_due).sum()))

    is_worth = is_open & (is_new | (chance >= WORTH))
    needed = int(is_new.sum()) + count_turns(is_open & ~is_new)
    turns = count_turns(is_open & ~is_worth)
    room = count if rules.requests_all else int(min(rules.room, count)) - done
    size = max(int(is_worth.sum()) + turns, room)
    if rules.limit is not None and rules.limit < size:
        size = rules.limit
        turns = min(turns, size)
        if size < needed:
            turns = max(int(size * OLDEST_SHARE), size - int(is_worth.sum()))
    if size >= is_open.sum():
        turns = 0
    open_candidates = np.flatnonzero(is_open & ~is_worth)
    oldest = open_candidates[np.argsort(deadline[open_candidates], kind="stable")][:turns]
    is_open[oldest] = False
    open_now = np.flatnonzero(is_open)
    picked = open_now[np.argsort(-chance[open_now], kind="stable")][: size - len(oldest)]
    positions = np.concatenate([oldest, picked])
    is_left = np.ones(count, bool)
    is_left[positions] = False
    reasons = np.where(is_worth[picked], why[picked], REASONS.index(Reason.ROOM))
    reasons[is_new[picked]] = REASONS.index(Reason.NEW)
    due = np.full(len(oldest), REASONS.index(Reason.DUE))
    return Order(
        positions,
        np.concatenate([due, reasons]).astype(np.int8),
        needed,
        is_left & is_due & ~is_new,
        is_left & is_new,
    )


def find_reasons(candidates: Candidates) -> npt.NDArray[np.int8]:
    """The best reason to request each candidate: the most precise signal, or its own habits."""
    found = np.full(len(candidates), REASONS.index(Reason.PROBABLE), np.int8)
    for signal in reversed(SIGNALS):
        found[candidates.has_signal(signal)] = REASONS.index(Reason(signal))
    return found
