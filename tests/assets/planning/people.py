"""Candidates for the tests of planning: as columns, and as the Arrow tables that a warehouse gives."""

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from assets.planning.candidates import ACTIVE, DAY_S, Candidates

NOW = dt.datetime(2026, 11, 21, 2, 0, tzinfo=dt.UTC)
T = NOW.timestamp()


def candidates(asked_days_ago: Sequence[float | None], **columns: Any) -> Candidates:
    """One per entry, asked so many days ago (None: never), seven days of guarantee, everything else plain."""
    count = len(asked_days_ago)
    asked = np.array([np.nan if days is None else T - days * DAY_S for days in asked_days_ago], float)
    plain = Candidates(
        registered=np.full(count, T - 100 * DAY_S),
        requested=asked,
        deadline=np.where(np.isnan(asked), T, asked) + 7 * DAY_S,
        changes=np.zeros(count, np.int64),
        history_days=np.zeros(count),
    )
    return replace(plain, **{name: np.asarray(values) for name, values in columns.items()})


def active(days_before: Sequence[Collection[int]]) -> np.ndarray:
    """For each, the days before today on which it had something new, as `Candidates.active` has them."""
    words = [sum(1 << int(day) for day in set(days)) for days in days_before]
    return np.array([[word % 2**64 for word in words], [word >> 64 for word in words]], np.uint64)


def rows(asked_days_ago: Sequence[float | None], **columns: Sequence[Any]) -> pa.Table:
    """The same as `Warehouse.timeline_candidates` gives them."""
    count = len(asked_days_ago)
    moments = [None if days is None else NOW - dt.timedelta(days=days) for days in asked_days_ago]
    at = pa.timestamp("us", "UTC")
    plain: dict[str, pa.Array] = {
        "contact_id": pa.array(range(1, count + 1), pa.int64()),
        "registered_at": pa.array([NOW - dt.timedelta(days=100)] * count, at),
        "first_seen_at": pa.array([NOW - dt.timedelta(days=30)] * count, at),
        "asked_at": pa.array(moments, at),
        **{name: pa.array([None] * count, pa.uint64()) for name in (*ACTIVE, "days_since_active")},
        **{
            name: pa.array([None] * count, at)
            for name in ("row_at", "clicked_at", "redeemed_at", "pushed_at", "list_at", "campaign_at")
        },
    }
    return pa.table(
        {
            name: pa.array(columns[name], values.type) if name in columns else values
            for name, values in plain.items()
        }
    )
