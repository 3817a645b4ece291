"""The one place where the time of day comes from: whoever needs it is given a `Clock`. Not here: what time decides."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

Clock = Callable[[], dt.datetime]


def utc_now() -> dt.datetime:
    """The moment, aware, in UTC."""
    return dt.datetime.now(dt.UTC)
