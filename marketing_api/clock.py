"""The only source of the time of day: code that needs it takes a `Clock`. Not here: what time
decides.

The machine's clock may be wrong, and may jump at any moment. So it only dates things for people and
calendars. Request ids say which of two things was first (`exchange`). `steady_seconds` or the
monotonic clock measures how long something takes."""

import datetime as dt
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

Clock = Callable[[], dt.datetime]
#: A smaller difference between the clocks of machine and service is ignored.
TOLERANCE = dt.timedelta(minutes=5)
#: A service whose date is not between these does not know the date.
_CREDIBLE_FROM = dt.datetime(2015, 1, 1, tzinfo=dt.UTC)
_CREDIBLE_UNTIL = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


def unix_now() -> float:
    """Unix seconds by the machine's clock."""
    return time.time()


def utc_now() -> dt.datetime:
    """The moment by the machine's clock, aware, in UTC."""
    return dt.datetime.fromtimestamp(unix_now(), dt.UTC)


def steady_seconds() -> float:
    """Seconds on a clock that only goes forward. Time that the machine was suspended counts where
    the system reports it (Linux)."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return time.monotonic()
    return time.clock_gettime(boot)


class SteadyClock:
    """A clock that is set once, by `now`, and runs evenly even if the machine's clock is set."""

    def __init__(self, now: Clock = utc_now) -> None:
        self._now = now
        self._set_to = now()
        self._began = steady_seconds()

    def __call__(self) -> dt.datetime:
        return self._set_to + dt.timedelta(seconds=steady_seconds() - self._began)

    def seconds(self) -> float:
        """The same as unix seconds."""
        return self().timestamp()

    @property
    def jump(self) -> dt.timedelta:
        """By how much the machine's clock was moved since; positive if it is ahead of this one
        now."""
        return self._now() - self()


class ServiceClock:
    """The service's time: a steady clock, corrected by the `Date` of the first response if the two
    differ.

    Dates in responses and requested days are days of the service's clock. Thread-safe."""

    def __init__(self) -> None:
        self.steady = SteadyClock()
        self.skew = dt.timedelta()  # by how much the service is ahead of the machine
        self._is_known = False

    def learn(self, headers: Mapping[str, str], sent_at: dt.datetime) -> None:
        """Learn from a response that came now, to a request that was sent at `sent_at` on the
        steady clock: its date lies between the two.

        A cache that responds instead of the service says how old the response is.
        """
        if self._is_known:
            return
        date = _date_of(headers)
        if date is None:
            return
        self._is_known = True
        ahead = date - self.steady()
        behind = sent_at - date
        if ahead > TOLERANCE or behind > TOLERANCE:
            self.skew = ahead if ahead > TOLERANCE else -behind


def _date_of(headers: Mapping[str, str]) -> dt.datetime | None:
    """When the response was made, by its own headers; None without a credible date."""
    folded = {name.lower(): value for name, value in headers.items()}
    try:
        age = dt.timedelta(seconds=int(folded.get("age", 0)))
        date = parsedate_to_datetime(folded["date"]) + age
        is_credible = _CREDIBLE_FROM < date < _CREDIBLE_UNTIL
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    if is_credible:
        return date
    return None
