"""Reading one raw value into one Python value, however the service writes it.

Every function raises ValueError when it cannot read the value; the message does not repeat the value, which may be personal
data. Not here: which types fields have (`fields`), collections (`shapes`).
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

#: How the service says "nothing here" (api-observed row 21 and the coupon's `N/A`).
_NOTHING = frozenset({"", "-", "n/a", "null", "none"})


def is_nothing(value: Any) -> bool:
    """True for None, an empty collection and the words the service uses for a missing value."""
    if isinstance(value, str):
        return len(value) < 9 and value.strip().lower() in _NOTHING
    return value is None or (isinstance(value, (list, dict)) and not value)


def read_int(value: Any) -> int:
    """`"12"`, `12`, `12.0`, `"12.0"`, `"1,204"` → 12, 12, 12, 12, 1204; within 64 bits."""
    if type(value) is int:
        number = value
    elif isinstance(value, str) and value.isdecimal() and len(value) < 40:
        number = int(value)
    else:
        exact = read_decimal(int(value) if isinstance(value, bool) else value)
        if not exact.is_finite() or exact.adjusted() > 30 or exact != (number := int(exact)):
            raise ValueError("not a whole number")
    if not -(2**63) <= number < 2**63:
        raise ValueError("a number beyond 64 bits")
    return number


def read_decimal(value: Any) -> Decimal:
    try:
        number = Decimal(str(value).strip().replace(",", ""))
    except InvalidOperation:
        raise ValueError("not a number") from None
    if not number.is_finite():
        raise ValueError("not a number")
    return number


_TRUE = frozenset({"1", "yes", "true", "y", "on"})
_FALSE = frozenset({"0", "no", "false", "n", "off"})


def read_bool(value: Any) -> bool:
    """`0/1`, `Yes/No`, `true/false`, as text, number or boolean."""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("neither yes nor no")


def read_text(value: Any) -> str | None:
    """Text as it came; numbers become text, an empty collection stands for nothing."""
    if value is None or isinstance(value, str):
        return value
    if value == [] or value == {}:
        return None
    if isinstance(value, (list, dict, bool)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


_DATE_TIME = re.compile(
    r"(?:(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
    r"|(?P<m2>\d{1,2})/(?P<d2>\d{1,2})/(?P<y2>\d{4})"
    r"|(?P<d3>\d{1,2})-(?P<m3>\d{1,2})-(?P<y3>\d{4}))"
    r"(?:[ T]+(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.\d+)?)?\s*(?P<half>[AaPp][Mm])?\s*(?P<offset>Z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_UNIX = re.compile(r"\d{9,11}(\.\d+)?", re.ASCII)
#: MySQL's zero dates, in either order.
_ZERO_DATES = ("0000-00-00", "00/00/0000")


def is_no_moment(value: Any) -> bool:
    """True when no date or time is given."""
    if isinstance(value, str):
        return value.strip().startswith(_ZERO_DATES) or value == "0" or is_nothing(value)
    return is_nothing(value) or value == 0


def read_moment(value: Any, zone: dt.tzinfo) -> dt.datetime | None:
    """Every date-time form of api-observed row 21 → an aware UTC date-time, None for none; local forms are in `zone`.

    `14:52 PM` (24 h and PM at once) is 14:52. Unix seconds may be a number or text.
    """
    try:
        if isinstance(value, str):
            if value.isdecimal() and len(value) in _UNIX_DIGITS:
                return dt.datetime.fromtimestamp(int(value), dt.UTC)
            if (hour := _HOUR_FORM.fullmatch(value)) and (begin := _begin_of_hour(hour[1], zone)) is not None:
                return begin + _MINUTES[int(hour[2])]
            if (match := _DATE_TIME.fullmatch(value.strip())) is not None:
                return _local(match, zone).astimezone(dt.UTC)
            if _UNIX.fullmatch(value.strip()):
                return dt.datetime.fromtimestamp(float(value), dt.UTC)
        elif isinstance(value, (int, float)) and value and not isinstance(value, bool):
            return dt.datetime.fromtimestamp(value, dt.UTC)
    except (ValueError, OverflowError, OSError):
        if not is_no_moment(value):
            raise ValueError("a date or time that does not exist") from None
    if is_no_moment(value):
        return None
    raise ValueError("not a date or time")


_UNIX_DIGITS = range(9, 12)

#: `11/04/2014 16:33`, as in listings: a million of these come in one answer, so an hour's place in UTC is worked out once.
_HOUR_FORM = re.compile(r"(\d\d/\d\d/\d{4} \d\d):([0-5]\d)", re.ASCII)
_MINUTES = [dt.timedelta(minutes=minute) for minute in range(60)]


@functools.lru_cache(maxsize=1 << 16)
def _begin_of_hour(text: str, zone: dt.tzinfo) -> dt.datetime | None:
    """The local hour's first moment in UTC; None when the zone's clocks change within that hour."""
    month, day, year, hour = int(text[:2]), int(text[3:5]), int(text[6:10]), int(text[11:])
    begin = dt.datetime(year, month, day, hour, tzinfo=zone)
    last = begin.replace(minute=59)
    return begin.astimezone(dt.UTC) if begin.utcoffset() == last.utcoffset() else None


def _local(match: re.Match[str], zone: dt.tzinfo) -> dt.datetime:
    y, m, d, m2, d2, y2, d3, m3, y3, hour, minute, second, half, offset = match.groups()
    clock = (_hour_of_day(int(hour), half) if half else int(hour), int(minute), int(second or 0)) if hour else (0, 0, 0)
    return dt.datetime(int(y or y2 or y3), int(m or m2 or m3), int(d or d2 or d3), *clock, tzinfo=_offset(offset) if offset else zone)


def _hour_of_day(hour: int, half: str) -> int:
    if hour > 12:
        return hour
    return hour % 12 + (12 if half.lower() == "pm" else 0)


def _offset(text: str) -> dt.tzinfo:
    if text == "Z":
        return dt.UTC
    sign = -1 if text[0] == "-" else 1
    return dt.timezone(sign * dt.timedelta(hours=int(text[1:3]), minutes=int(text[-2:])))


_SHARE = re.compile(r"\s*(-?\d[\d,]*)\s*(?:\(\s*(-?\d[\d,]*(?:\.\d+)?)\s*%?\s*\))?\s*", re.ASCII)


def read_share(value: Any) -> tuple[int | None, float | None]:
    """`"11 (366.67%)"` → (11, 366.67); the percentage may be absent, and over 100 (api-observed row 25)."""
    if is_nothing(value):
        return None, None
    match = _SHARE.fullmatch(str(value))
    if match is None:
        raise ValueError("not a count with a percentage")
    return read_int(match[1]), float(match[2].replace(",", "")) if match[2] else None


_CLICKER = re.compile(r"\s*(\S.*?)\s*(?:\(\s*(\d[\d,]*)\s*clicks?\s*\))?\s*", re.ASCII | re.IGNORECASE)


def read_clicker(value: Any) -> tuple[str, int]:
    """`"name@example.com(2 clicks)"` → ("name@example.com", 2); without a number it is one click."""
    match = _CLICKER.fullmatch(value) if isinstance(value, str) else None
    if match is None or "@" not in match[1]:
        raise ValueError("not an address with a number of clicks")
    return match[1], read_int(match[2]) if match[2] else 1


def singular(word: str) -> str:
    """Lower case and singular: `Pages` → page, `companies` → company, `Positives` → positive, `business` stays."""
    word = word.strip().lower()
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) and len(word) > 2 else word
