"""The requests that may be made, as columns of numbers for the planner.

Belongs here: the shape, and reading it from Arrow. Not here: where the rows come from
(`Warehouse.find_rows`), what is computed from them (`change_chances`, `order`)."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warehouse.warehouse import HISTORY_DAYS

DAY_S = 86_400.0
#: A date further in the future comes from a wrong clock.
_AHEAD_S = DAY_S / 2

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint64]

#: How many days ago something was that never happened.
NO_DAY = 10_000
#: The columns of active days: the last 64, and the 64 before.
ACTIVE = ("active_lately", "active_before")
#: What may be noticed about a candidate, and how often a request after it finds something new: the
#: most precise first. Measured with simulated accounts (`tests.benchmarks.bench_economy`). The
#: column NAME_at says when it was noticed, if the rows have it.
SIGNAL_PRECISION = {
    "clicked": 0.95,
    "pushed": 0.9,
    "campaign": 0.65,
    "redeemed": 0.5,
    "row": 0.3,
    "list": 0.3,
}


@dataclass(frozen=True)
class Candidates:
    """One request per position, the newest and most active first. Times are unix seconds, NaN for
    none.

    `requested`: when it was made last; `deadline`: when the maximum age requires it at the latest;
    `changes` in `history_days`; `signals`: when each was noticed. If responses are dated, changes
    are active days: days on which the contact did something or got a message. `active` has them as
    bits of two words: bit k for k days before today, and for k + 64. `last_active`: days from the
    last one to today; NO_DAY if there is none."""

    requested: Floats
    deadline: Floats
    registered: Floats
    changes: Ints
    history_days: Floats
    active: Bits | None = None  # (2, n)
    last_active: Ints | None = None
    signals: dict[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.requested)

    @property
    def is_new(self) -> Flags:
        return np.isnan(self.requested)

    def active_on(self, positions: Ints) -> Flags:
        """(positions, days before today): whether the day is an active one."""
        assert self.active is not None
        words = np.ascontiguousarray(self.active[:, positions].T)
        days = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        return days[:, : HISTORY_DAYS + 1].astype(bool)

    def has_signal(self, signal: str) -> Flags:
        """Whether the signal came after the last request. False for a new candidate."""
        return self.signals.get(signal, np.nan) > self.requested


def from_arrow(rows: pa.Table, max_age_s: float, now: float) -> Candidates:
    """The candidates in the rows of `queries/timeline_candidates.sql` or
    `coupon_candidates.sql`."""
    at = {
        name.removesuffix("_at"): unix_seconds(rows[name], now)
        for name in rows.column_names
        if name.endswith("_at")
    }
    requested = at["asked"]
    first_seen = at["first_seen"]
    registered = at["registered"]
    active = None
    last_active = None
    if ACTIVE[0] in rows.column_names:
        active = np.stack([_fill_nulls(rows[name], 0) for name in ACTIVE])
        last_active = _fill_nulls(rows["days_since_active"], NO_DAY).astype(np.int64)
        changes = np.bitwise_count(active).sum(axis=0, dtype=np.int64)
        history_began = np.fmax(registered, now - HISTORY_DAYS * DAY_S)
    else:  # the first response is no change
        responses = _fill_nulls(rows["times_changed"], 0).astype(np.int64)
        changes = np.maximum(responses - 1, 0)
        history_began = at["first_asked"]
    known_since = np.where(np.isnan(requested), np.fmin(first_seen, now), requested)
    return Candidates(
        requested=requested,
        deadline=known_since + max_age_s,
        registered=np.where(np.isnan(registered), first_seen, registered),
        changes=changes,
        history_days=days_between(history_began, requested),
        active=active,
        last_active=last_active,
        signals={name: at[name] for name in SIGNAL_PRECISION if name in at},
    )


def days_between(begin: Floats, end: Floats | float) -> Floats:
    """0 if one of the two is unknown."""
    return np.maximum(np.nan_to_num((end - begin) / DAY_S), 0.0)


def unix_seconds(column: pa.ChunkedArray, now: float) -> Floats:
    """Moments or days as unix seconds; NaN for moments in the future, which come from a wrong
    clock: such a signal would be new every night until then."""
    zone = "UTC" if pa.types.is_timestamp(column.type) else None
    microseconds = column.cast(pa.timestamp("us", zone)).cast(pa.int64())
    at = microseconds.to_numpy() / 1e6
    return np.where(at > now + _AHEAD_S, np.nan, at)


def _fill_nulls(column: pa.ChunkedArray, value: int) -> Bits:
    found: Bits = column.cast(pa.uint64()).fill_null(value).to_numpy()
    return found
