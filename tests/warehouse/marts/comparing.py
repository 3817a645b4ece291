"""Compares what a mart holds with what was worked out, column by column."""

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from tests.warehouse.marts.expected import Found, plain


def differences(mart: pd.DataFrame, expected: Found, key: Sequence[str]) -> Iterator[str]:
    """In words: rows that are missing or too many, columns that nobody worked out, values that differ."""
    columns = [name for name in mart.columns if not name.startswith("_")]  # those are for the building
    actual = {tuple(row[name] for name in key): row for row in plain(mart)}
    wanted = {tuple(row[name] for name in key): row for row in expected}
    if len(wanted) != len(expected):
        yield f"{len(expected) - len(wanted)} expected rows share a key"
    for word, keys in (
        ("missing", wanted.keys() - actual.keys()),
        ("too many", actual.keys() - wanted.keys()),
    ):
        if keys:
            yield f"{len(keys)} rows {word}, e.g. {min(keys, key=str)}"
    if wanted and (unknown := set(columns) ^ set(next(iter(wanted.values())))):
        yield f"columns on one side only: {sorted(unknown)}"
        return
    for name in columns:
        wrong = [
            place
            for place in wanted.keys() & actual.keys()
            if not is_same(actual[place][name], wanted[place][name])
        ]
        if wrong:
            place = min(wrong, key=str)
            yield (
                f"{name} differs in {len(wrong)} rows, e.g. {place}: {actual[place][name]!r}, not "
                f"{wanted[place][name]!r}"
            )


def is_same(one: Any, other: Any) -> bool:
    """Numbers to nine digits, moments by the second."""
    if one is None or other is None:
        return one is None and other is None
    if isinstance(one, dt.datetime) and isinstance(other, dt.datetime):
        return abs((one - other).total_seconds()) < 1
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)
