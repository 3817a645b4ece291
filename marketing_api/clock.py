"""The only source of the time of day: code that needs it takes a `Clock`. Not here: what time
decides.

The machine's clock may be wrong, and may jump at any moment. So it dates things for people and for
calendars; request ids say which of two things was first (`exchange`), and how long something
takes by `steady_seconds` or the monotonic clock."""

import datetime as dt
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

Clock = Callable[[], dt.datetime]
#: Clocks of machine and service that differ by less are left as they are; and dates that no service
#: gives in earnest.
TOLERANCE = dt.timedelta(minutes=5)
_CREDIBLE = (dt.datetime(2015, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC))


def unix_now() -> float:
    """Unix seconds by the machine's clock."""
    return time.time()


def utc_now() -> dt.datetime:
    """The moment by the machine's clock, aware, in UTC."""
    return dt.datetime.fromtimestamp(unix_now(), dt.UTC)


def steady_seconds() -> float:
    """Seconds on a clock that only goes forward; the time of a suspended machine counts where the
    system tells it (Linux)."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SteadyClock:
    """A clock that is set once, by `now`, and runs evenly whatever happens to the machine's."""

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
        """By how much the machine's clock was moved since: positive when it is ahead of this one
        now."""
        return self._now() - self()


class ServiceClock:
    """What one service calls now: a steady clock, put right by the `Date` of its first response
    when the two differ.

    The dates in its responses are by its clock, and so are the days that are requested.
    Thread-safe."""

    def __init__(self) -> None:
        self.steady = SteadyClock()
        self.skew = dt.timedelta()  # by how much the service is ahead of the machine
        self._is_known = False

    def learn(self, headers: Mapping[str, str], sent_at: dt.datetime) -> None:
        """Take in a response that came just now to a request of that moment on the steady clock:
        its date is of some time between.

        A cache that responds in the service's place says how old the response is.
        """
        if self._is_known or (date := _date_of(headers)) is None:
            return
        self._is_known = True
        ahead = date - self.steady()
        behind = sent_at - date
        if ahead > TOLERANCE or behind > TOLERANCE:
            self.skew = ahead if ahead > TOLERANCE else -behind


def _date_of(headers: Mapping[str, str]) -> dt.datetime | None:
    """When the response was made, by its own headers; None without a credible date."""
    said = {name.lower(): value for name, value in headers.items() if len(name) in (3, 4)}
    try:
        date = parsedate_to_datetime(said["date"]) + dt.timedelta(seconds=int(said.get("age", 0)))
        return date if _CREDIBLE[0] < date < _CREDIBLE[1] else None
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
