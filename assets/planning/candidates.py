"""The requests that may be made, as columns of numbers: what planning computes with.

Belongs here: the shape, and reading it from Arrow. Not here: where the rows come from
(`Warehouse.find_rows`), what is made of them (`change_chances`, `order`)."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warehouse.warehouse import HISTORY_DAYS

DAY_S = 86_400.0
#: What is dated so far in the future was dated by a clock that was wrong.
_AHEAD_S = DAY_S / 2

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint64]

#: Days before today of a day that never was.
NO_DAY = 10_000
_ONE = np.uint64(1)
_WORD = 64
#: The columns of active days: the last 64, and the 64 before.
ACTIVE = ("active_lately", "active_before")
#: What may be noticed about a candidate; the column that says when is NAME_at.
SIGNALS = ("clicked", "pushed", "campaign", "redeemed", "row", "list")


@dataclass(frozen=True)
class Candidates:
    """One request per position, the newest and most active first. Times are unix seconds, NaN where
    there is none.

    `requested`: when it was made last; `deadline`: when the maximum age requires it at the latest;
    `changes` in `history_days`; `signals`: when each was noticed. Where responses are dated,
    changes are active days: days on which a timeline has something of the contact's own. `active`
    has them as bits of two words: bit k for k days before today, and for k + 64."""

    requested: Floats
    deadline: Floats
    registered: Floats
    changes: Ints
    history_days: Floats
    active: Bits | None = None  # (2, n)
    signals: dict[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.requested)

    @property
    def is_new(self) -> Flags:
        return np.isnan(self.requested)

    @property
    def last_active(self) -> Ints:
        """Days from the last active day to today; NO_DAY when there is none."""
        assert self.active is not None
        lowest = [
            np.bitwise_count((word & (~word + _ONE)) - _ONE).astype(np.int64)
            for word in self.active
        ]
        return np.select(
            [self.active[0] > 0, self.active[1] > 0], [lowest[0], lowest[1] + _WORD], NO_DAY
        )

    def active_on(self, positions: Ints) -> Flags:
        """(positions, days before today): whether the day is an active one."""
        assert self.active is not None
        words = [
            word[positions, None] >> np.arange(_WORD, dtype=np.uint64) & _ONE
            for word in self.active
        ]
        return np.hstack(words)[:, : HISTORY_DAYS + 1].astype(bool)

    def has_signal(self, signal: str) -> Flags:
        """Whether the signal came after the last request; never of one that is new."""
        at = self.signals.get(signal)
        return np.zeros(len(self), bool) if at is None else at > self.requested


def from_arrow(rows: pa.Table, max_age_s: float, now: float) -> Candidates:
    """The candidates in the rows of `queries/timeline_candidates.sql` or
    `coupon_candidates.sql`."""
    requested = unix_seconds(rows["asked_at"], now)
    first_seen, registered = (
        unix_seconds(rows[name], now) for name in ("first_seen_at", "registered_at")
    )
    active = None
    if ACTIVE[0] in rows.column_names:
        active = np.stack([_fill_zeros(rows[name]) for name in ACTIVE])
        changes = np.bitwise_count(active).sum(axis=0, dtype=np.int64)
        history_began = np.fmax(registered, now - HISTORY_DAYS * DAY_S)
    else:  # the first response is no change
        changes = np.maximum(_fill_zeros(rows["times_changed"]).astype(np.int64) - 1, 0)
        history_began = unix_seconds(rows["first_asked_at"], now)
    return Candidates(
        requested=requested,
        deadline=np.where(np.isnan(requested), np.fmin(first_seen, now), requested) + max_age_s,
        registered=np.where(np.isnan(registered), first_seen, registered),
        changes=changes,
        history_days=np.maximum(np.nan_to_num((requested - history_began) / DAY_S), 0.0),
        active=active,
        signals={
            name: unix_seconds(rows[f"{name}_at"], now)
            for name in SIGNALS
            if f"{name}_at" in rows.column_names
        },
    )


def unix_seconds(column: pa.ChunkedArray, now: float) -> Floats:
    """Moments or days as unix seconds; NaN for those in the future, which a wrong clock has dated:
    such a signal would be news every night until then."""
    kind = pa.timestamp("us", "UTC" if pa.types.is_timestamp(column.type) else None)
    at = column.cast(kind).cast(pa.int64()).to_numpy() / 1e6
    return np.where(at > now + _AHEAD_S, np.nan, at)


def _fill_zeros(column: pa.ChunkedArray) -> Bits:
    """Numbers, 0 where there is none."""
    found: Bits = column.cast(pa.uint64()).fill_null(0).to_numpy()
    return found
