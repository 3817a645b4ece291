"""The requests that may be made, as columns of numbers: what planning computes with.

Belongs here: the shape, and reading it from Arrow. Not here: where the rows come from (`Warehouse.found`),
what is made of them (`change_rates`, `order`)."""

import datetime as dt
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
_ONE, _WORD = np.uint64(1), 64

#: Segments with fewer members than the largest so many are treated as one: what is computed per segment stays
#: small.
MOST_SEGMENTS = 1000

#: The columns of active days: the last 64, and the 64 before.
ACTIVE = ("active_lately", "active_before")
#: What was noticed since a request was made, and the column that says when.
SIGNALS = ("clicked", "pushed", "redeemed", "row")


@dataclass(frozen=True)
class Deadlines:
    """One request per position, the newest and most active first. Times are unix seconds, NaN where there is
    none.

    `deadline` is when the maximum age requires it at the latest, `requested` when it was made last.
    """

    requested: Floats
    deadline: Floats

    def __len__(self) -> int:
        return len(self.requested)

    @property
    def is_new(self) -> Flags:
        return np.isnan(self.requested)


@dataclass(frozen=True)
class Candidates(Deadlines):
    """With what is known about each; `segment` counts from 0, `signals` hold when each was noticed."""

    segment: Ints
    is_active: Flags
    registered: Floats
    first_requested: Floats
    times_requested: Ints
    times_changed: Ints
    active: Bits  # (2, n): the days with something of its own, bit k for k days before today, and for k + 64
    history_days: Floats  # length of that history, up to when it was fetched last
    messages: Ints  # of campaigns, within that history
    signals: dict[str, Floats] = field(default_factory=dict)

    @property
    def active_days(self) -> Ints:
        found: Ints = np.bitwise_count(self.active).sum(axis=0, dtype=np.int64)
        return found

    @property
    def last_active(self) -> Ints:
        """How many days before today the last of them was; very many when there is none."""
        lowest = [np.bitwise_count((word & (~word + _ONE)) - _ONE).astype(np.int64) for word in self.active]
        return np.select([self.active[0] > 0, self.active[1] > 0], [lowest[0], lowest[1] + _WORD], NO_DAY)

    def active_on(self, positions: Ints) -> Flags:
        """(positions, days before today): whether the day has something of its own."""
        words = [word[positions, None] >> np.arange(_WORD, dtype=np.uint64) & _ONE for word in self.active]
        return np.hstack(words)[:, : HISTORY_DAYS + 1].astype(bool)

    def noticed(self, signal: str) -> Flags:
        """Whether the signal came after the last request; never of one that is new."""
        at = self.signals.get(signal)
        return np.zeros(len(self), bool) if at is None else at > self.requested


def from_arrow(
    rows: pa.Table, max_age: dt.timedelta, now: float
) -> tuple[Candidates, npt.NDArray[np.uint64]]:
    """The candidates in the rows of `warehouse.warehouse`, and the numbers that those have for the segments
    0, 1, …"""
    segments, segment = _segments(rows["segment"].to_numpy())
    requested, is_dated = (
        requested_by(seconds(rows["asked_at"]), now, max_age.total_seconds()),
        ACTIVE[0] in rows.column_names,
    )
    since = np.where(np.isnan(requested), seconds(rows["first_seen_at"]), requested)
    registered = seconds(rows["registered_at"])
    covered = requested - np.fmax(registered, now - HISTORY_DAYS * DAY_S)
    return (
        Candidates(
            segment=segment.astype(np.int64),
            is_active=np.asarray(rows["is_active"].to_numpy(zero_copy_only=False), bool),
            registered=np.where(np.isnan(registered), seconds(rows["first_seen_at"]), registered),
            requested=requested,
            first_requested=np.minimum(seconds(rows["first_asked_at"]), now),
            times_requested=_filled(rows["times_asked"]).astype(np.int64),
            times_changed=_filled(rows["times_changed"]).astype(np.int64),
            deadline=since + max_age.total_seconds(),
            active=np.stack(
                [_filled(rows[name]) if is_dated else np.zeros(len(rows), np.uint64) for name in ACTIVE]
            ),
            history_days=np.maximum(np.nan_to_num(covered / DAY_S), 0.0) if is_dated else np.zeros(len(rows)),
            messages=_filled(rows["messages"]).astype(np.int64)
            if is_dated
            else np.zeros(len(rows), np.int64),
            signals={
                name: noticed_by(seconds(rows[f"{name}_at"]), now)
                for name in SIGNALS
                if f"{name}_at" in rows.column_names
            },
        ),
        segments,
    )


def requested_by(at: Floats, now: float, max_age: Floats | float) -> Floats:
    """When each was requested. One that is dated in the future is of unknown age: it counts as due
    (`max_age`: seconds)."""
    return np.where(at > now + _AHEAD_S, now - max_age, np.minimum(at, now))


def noticed_by(at: Floats, now: float) -> Floats:
    """When each thing was noticed; not at all, when that is dated in the future: it would be news every night
    until then."""
    return np.where(at > now + _AHEAD_S, np.nan, at)


def seconds(column: pa.ChunkedArray) -> Floats:
    """Moments or days as unix seconds, chunk by chunk: whole columns in between would double what planning
    needs."""
    kind = pa.timestamp("us", "UTC" if pa.types.is_timestamp(column.type) else None)
    found, at = np.empty(len(column)), 0
    for chunk in column.chunks:
        micros = chunk.cast(kind).cast(pa.int64()).to_numpy(zero_copy_only=False)
        found[at : at + len(chunk)] = micros / 1e6
        at += len(chunk)
    return found


def _filled(column: pa.ChunkedArray) -> Bits:
    """Numbers, 0 where there is none."""
    found: Bits = column.cast(pa.uint64()).fill_null(0).to_numpy()
    return found


def _segments(found: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], Ints]:
    """The largest ones by name, and each row's position among them; all others are the one behind the
    last."""
    names, position, sizes = np.unique(found, return_inverse=True, return_counts=True)
    if len(names) <= MOST_SEGMENTS:
        return names, position.astype(np.int64)
    kept = np.sort(np.argsort(-sizes, kind="stable")[:MOST_SEGMENTS])
    place = np.full(len(names), MOST_SEGMENTS)
    place[kept] = np.arange(MOST_SEGMENTS)
    return names[kept], place[position].astype(np.int64)
