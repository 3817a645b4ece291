"""Moments of a warehouse as the numbers that planning compares."""

import datetime as dt

import numpy as np
import pyarrow as pa

from assets.planning.candidates import unix_seconds
from tests.assets.planning.people import NOW, T


def test_a_moment_more_than_half_a_day_ahead_is_unknown() -> None:
    moments = [NOW - dt.timedelta(days=1), NOW + dt.timedelta(hours=11), NOW + dt.timedelta(hours=13), None]
    seconds = unix_seconds(pa.chunked_array([pa.array(moments, pa.timestamp("us", "UTC"))]), T)
    assert np.isnan(seconds).tolist() == [False, False, True, True]
