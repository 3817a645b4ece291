"""What the service says about its rate limit. Not here: what follows from it (`pacing`)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from marketing_api.envelope import Envelope, decode
from marketing_api.records.values import read_bool, read_decimal, read_int, read_or_none


@dataclass(frozen=True, slots=True)
class RateReport:
    """The `rate-limit` object: `reset` in unix seconds, `after` in seconds; None for what was not said or not
    readable."""

    limit: int | None = None  # requests allowed in a window of one second
    requests: int | None = None
    remaining: int | None = None
    reached: bool = False  # this very request was blocked
    reset: float | None = None
    after: float | None = None

    @property
    def count(self) -> float | None:
        """How many requests the service has counted in its window, this one included."""
        if self.requests is not None:
            return float(self.requests)
        return None if self.limit is None or self.remaining is None else float(self.limit - self.remaining)

    def left(self, wall: float) -> float:
        """Seconds until the window resets, as far as the service's clock can be trusted; 0 when it does not
        say."""
        return 0.0 if self.reset is None else self.reset - wall


_HEADER = re.compile(r"x-rate-?limit-(\w+)", re.IGNORECASE)


def rate_report(envelope: Envelope | None, headers: Mapping[str, str]) -> RateReport:
    """The report in the body, whatever level it stands at, completed by the headers (api-observed row 27)."""
    values = limit_in_headers(headers) | limit_in_body(envelope)
    known: dict[str, Any] = {name: read_or_none(read, values.get(name)) for name, read in _READERS.items()}
    return RateReport(**known, reached=bool(read_or_none(read_bool, values.get("reached"))))


def limit_in_headers(headers: Mapping[str, str]) -> dict[str, Any]:
    """What the headers say, as it stands there, by names in lower case."""
    values: dict[str, Any] = {}
    for name, value in headers.items():
        if name[:2].lower() == "x-" and (match := _HEADER.fullmatch(name)):
            values[match[1].lower()] = value
        elif len(name) == 11 and name.lower() == "retry-after":
            values.setdefault("after", _seconds_until(value, headers))
    return values


_READERS: dict[str, Callable[[Any], float]] = dict.fromkeys(("limit", "requests", "remaining"), read_int)
_READERS |= dict.fromkeys(("reset", "after"), lambda value: float(read_decimal(value)))


def _seconds_until(moment: str, headers: Mapping[str, str]) -> Any:
    """`Retry-After` may be a date: the seconds from the response's own, whose clock it is. Anything else as
    it came."""
    now = next((value for name, value in headers.items() if name.lower() == "date"), "")
    try:
        return (parsedate_to_datetime(moment) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return moment


def limit_in_body(envelope: Envelope | None) -> dict[str, Any]:
    """The same of the body: top level first, where it was observed; `data` last, which may be huge."""
    for level in envelope.levels.values() if envelope else ():
        for name, raw in level.items():
            if name.lower().replace("_", "-") in ("rate-limit", "ratelimit"):
                found = read_or_none(decode, raw)
                if isinstance(found, dict):
                    return {key.lower(): value for key, value in found.items() if value is not None}
    return {}
