"""How many requests an account may spend tonight. Pure functions of numbers. Not here: counting them (`marketing_api.rate_limit`)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

#: Of a night's seconds times its rate, so much arrives as answers (measured: 98.9-99.4 % of the limit, and a repeat now and then).
USABLE = 0.97
#: Kept back for repeats and for what the other assets still ask.
_SPARE_SHARE, _SPARE_LEAST = 0.02, 5


@dataclass(frozen=True)
class Allowance:
    """What one account may still spend tonight: `requests` (None: no limit), and the `rate` they leave at, a second."""

    requests: int | None
    rate: float

    def seconds(self, requests: int) -> float:
        """How long so many take at the limit."""
        return requests / max(self.rate, 1e-9)

    def after(self, requests: int) -> Allowance:
        """What is left when so many have gone before."""
        return self if self.requests is None else replace(self, requests=max(self.requests - requests, 0))


def allowance(left: int | None, until: dt.datetime | None, now: dt.datetime, rate: float, *, accounts: int = 1) -> Allowance:
    """From the requests that the run has `left` for all its accounts and the moment it must end, whichever is less."""
    limits = []
    if left is not None:
        share = left // max(accounts, 1)
        limits.append(share - max(int(share * _SPARE_SHARE), min(_SPARE_LEAST, share // 2)))
    if until is not None:
        limits.append(int(max((until - now).total_seconds(), 0.0) * rate * USABLE))
    return Allowance(min(limits, default=None), rate)


def next_moment(at: dt.time, zone: str, now: dt.datetime) -> dt.datetime:
    """The next time that a clock in the zone shows `at`."""
    local = now.astimezone(ZoneInfo(zone))
    for days in (0, 1):
        moment = dt.datetime.combine(local.date() + dt.timedelta(days=days), at, ZoneInfo(zone)).astimezone(dt.UTC)
        if moment > now:
            return moment
    raise AssertionError("a clock shows every time within two days")
