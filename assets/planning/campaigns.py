"""Whose statistics are asked tonight: young campaigns every night, old ones weekly, very old ones monthly.

Pure functions of Arrow tables (`warehouse.candidates`). Not here: contacts (`plan`).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from assets.planning.candidates import DAY_S, Floats, asked_by, noticed_by
from assets.planning.order import draws
from assets.planning.turns import is_tonight, nights_left, turn_size

#: (days since a campaign was made or its totals moved last, how old its statistics may be in days); the last one is for all others.
AGE_RULE: tuple[tuple[float, float], ...] = ((30, 1), (180, 7), (float("inf"), 30))


@dataclass(frozen=True)
class CampaignPlan:
    """The campaigns to ask as (id, type), the newest first; `counts`: how many by reason; `due_at`: when the first of all is due next."""

    campaigns: list[tuple[int, str]]
    counts: dict[str, int]
    total: int
    due_at: dt.datetime


def plan_campaigns(rows: pa.Table, now: dt.datetime, *, seed: int = 1, asks_everybody: bool = False) -> CampaignPlan:
    """Never asked, changed in the listing since, or as old as the age rule allows; of those with time left, an even share a night."""
    moment = now.timestamp()
    ages = max_ages(rows, moment)
    asked = asked_by(_seconds(rows["asked_at"]), moment, ages * DAY_S)
    is_new = np.isnan(asked)
    is_changed = ~is_new & (noticed_by(_seconds(rows["row_at"]), moment) > asked)
    deadline = np.where(is_new, moment, asked) + ages * DAY_S
    nights = nights_left(deadline, moment)
    rest = np.flatnonzero(~is_new & ~is_changed)
    size = turn_size(nights[rest], int(is_tonight(asked[rest], moment).sum()))
    drawn = draws(rows["campaign_id"].to_numpy().astype(np.int64), seed, 0)
    turns = rest[np.lexsort((drawn[rest], deadline[rest]))][: len(rest) if asks_everybody else size]
    due = nights[turns] == 0
    counts = {"new": is_new.sum(), "row": is_changed.sum(), "due": due.sum(), "all" if asks_everybody else "turn": (~due).sum()}
    chosen = is_new | is_changed
    chosen[turns] = True
    ids, types = rows["campaign_id"].to_pylist(), rows["type"].to_pylist()
    picked = [(ids[at], types[at]) for at in np.flatnonzero(chosen)]
    next_due = float(np.min(np.where(chosen, moment + ages * DAY_S, deadline), initial=moment + AGE_RULE[-1][1] * DAY_S))
    found = {name: int(count) for name, count in counts.items() if count}
    return CampaignPlan(picked, found, len(rows), dt.datetime.fromtimestamp(next_due, dt.UTC))


def max_ages(rows: pa.Table, now: float) -> Floats:
    """Days that each campaign's statistics may be old, by `AGE_RULE`. One of unknown age counts as young."""
    alive = np.fmax(np.fmax(_seconds(rows["created_at"]), _seconds(rows["moved_on"])), -np.inf)
    days = (now - np.where(np.isfinite(alive), alive, now)) / DAY_S
    limits, ages = (np.array(column) for column in zip(*AGE_RULE, strict=True))
    found: Floats = ages[np.searchsorted(limits, np.maximum(days, 0.0), side="left")]
    return found


def _seconds(column: pa.ChunkedArray) -> Floats:
    at = column.cast(pa.timestamp("us", "UTC") if pa.types.is_timestamp(column.type) else pa.timestamp("us"))
    found: Floats = at.cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e6
    return found
