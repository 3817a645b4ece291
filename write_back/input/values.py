"""What single cells mean: addresses, ids, statuses, tags, texts, times. Each function returns the value or
raises BadValue.

Reasons are sentences for the person who made the row; they never repeat an address. Not here: what needs the
warehouse."""

import datetime as dt
import ipaddress
import re
from typing import NamedTuple
from zoneinfo import ZoneInfo

from marketing_api.records.contacts import STATUSES
from marketing_api.records.values import read_moment
from write_back.input.rows import Cell, held, shown, text_of

#: RFC 5321: 254 characters on the wire, 64 before the @.
MAX_ADDRESS, MAX_LOCAL_PART = 254, 64
#: No limits are documented ("Maximum sizes …: not shown"): generous ones, so that a whole document in a cell
#: is noticed.
MAX_TAG, MAX_FIELD, MAX_DESCRIPTION = 255, 5_000, 10_000
_MAX_ID = 2**63 - 1

_STATUSES = {name: word for code, word in STATUSES.items() for name in (word, str(code))}
_STATUSES["disactive"] = "unsubscribed"  # as the service calls it


class BadValue(Exception):
    """Why a row cannot be sent."""


#: What a local part and a label of a domain may be, with letters of any script.
_LOCAL = re.compile(r"[^\x00-\x20\x7f\"(),.:;<>@\[\\\]]+(?:\.[^\x00-\x20\x7f\"(),.:;<>@\[\\\]]+)*")
_LABEL = re.compile(r"(?!-)[^\x00-\x2c\x2e\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]{1,63}(?<!-)")


def address(cell: Cell) -> str:
    """An e-mail address: practical syntax, letters of any script."""
    text = text_of(cell)
    if text is None:
        raise BadValue("the e-mail address is missing")
    if " " in text or not text.isprintable():
        raise BadValue("the e-mail address has a blank or an invisible character in it")
    if text.count("@") > 1:
        raise BadValue("the cell has more than one @: write one e-mail address per row")
    local, _, domain = text.partition("@")
    *labels, top = domain.split(".")
    is_domain = all(map(_LABEL.fullmatch, [*labels, top])) and len(top) > 1 and not top[0].isdigit()
    if not labels or not is_domain or _LOCAL.fullmatch(local) is None:
        raise BadValue("this is not an e-mail address: it looks like name@example.com")
    if len(text) > MAX_ADDRESS or len(local) > MAX_LOCAL_PART:
        raise BadValue(
            f"the e-mail address is too long: at most {MAX_ADDRESS} characters, {MAX_LOCAL_PART} before the @"
        )
    return text


_ID = re.compile(r"(\d{1,19})(?:\.0+)?", re.ASCII)


def identifier(cell: Cell, what: str) -> int:
    """A whole positive number, also as `12.0`, as which some programs write it."""
    match = _ID.fullmatch(held(cell) or "")
    if match is None or not 0 < (number := int(match[1])) <= _MAX_ID:
        raise BadValue(f"{what} has to be a whole number")
    return number


def status(text: str) -> str:
    """One of `STATUSES`."""
    if (word := _STATUSES.get(text.lower())) is None:
        raise BadValue(f"{shown(text)} is no status: it is active, unsubscribed, bounced or unconfirmed")
    return word


def ip_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise BadValue("the IP address cannot be one: it looks like 203.0.113.7 or 2001:db8::7") from None


_BREAKS = re.compile(r"[\t\n\r\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def check_text(text: str, what: str, limit: int) -> str:
    """Line breaks and tabs may be in it, other control characters not."""
    if len(text) > limit:
        raise BadValue(f"{what} is too long: {len(text):,} characters, at most {limit:,}")
    if not text.isprintable() and _CONTROL.search(text):  # the former takes a third of the time
        raise BadValue(f"{what} has a control character in it")
    return text


def action(cell: Cell) -> str:
    """`add` when the cell is empty."""
    text = text_of(cell) or "add"
    if (word := text.lower()) not in ("add", "remove"):
        raise BadValue(f"{shown(text)} is no action: it is add or remove")
    return word


def tags(text: str) -> tuple[str, ...]:
    """Each once, in their order."""
    found = tuple(dict.fromkeys(part for part in (part.strip() for part in text.split(",")) if part))
    if not found:
        raise BadValue("the tag is missing")
    for tag in found:
        check_text(tag, "a tag", MAX_TAG)
        if _BREAKS.search(tag):
            raise BadValue("a tag has a line break in it")
    return found


_EARLIEST, _LATEST = 1970, 2100
_HINT = "write it like 2026-01-31 14:05, 31.01.2026 14:05 or 2026-01-31T14:05:00+01:00"
#: As people write dates and the service does not: `20.11.2026`, `20 Nov 2026`, `Nov 20, 2026`; a time may
#: follow.
_WRITTEN = re.compile(
    r"(?:(\d{1,2})\.(\d{1,2})\.|(\d{1,2})(?:\. ?|[ -])([A-Za-z]{3,9})(?:\. ?|[ -])|([A-Za-z]{3,9})\.? "
    r"(\d{1,2})(?:, ?| ))"
    r"(\d{4})(?!\d)(?:,| at)?",
    re.ASCII,
)
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
#: Who writes 2:05 PM beside slashes writes the month first, as the service itself does.
_HALF_DAY = re.compile(r"[ap]\.?m\.?$", re.ASCII | re.IGNORECASE)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)", re.ASCII)


class Moment(NamedTuple):
    """`wall`: what the clocks in the account's zone showed, to the second. `at`: unix seconds, of its first
    reading when the clocks showed it twice (`is_twice`); `again`: of the second."""

    wall: dt.datetime
    at: int
    again: int

    @property
    def is_twice(self) -> bool:
        return self.at != self.again


def _one_way(text: str) -> str:
    """A date with slashes at the beginning is written so that it can be read in one way; BadValue when that
    is open."""
    if (match := _SLASHED.match(text)) is None:
        return text
    first, second = int(match[1]), int(match[2])
    if first != second and max(first, second) <= 12 and not _HALF_DAY.search(text):
        raise BadValue("the date may have the day or the month first: write it like 2026-01-31")
    return f"{match[3]}-{second}-{first}{text[match.end() :]}" if first > 12 else text


def moment(cell: Cell, zone: ZoneInfo) -> Moment:
    """BadValue for what is no date-time, and for a local one that a clock change skips."""
    aware = _aware(_one_way(held(cell) or ""), zone)
    wall = aware.astimezone(zone).replace(tzinfo=None, microsecond=0, fold=0)
    _check_year(wall)
    first, second = (int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    return Moment(wall, first, second)


def _check_year(moment: dt.datetime) -> None:
    if not _EARLIEST <= moment.year <= _LATEST:
        raise BadValue(
            f"the date-time has the year {moment.year}: it has to be between {_EARLIEST} and {_LATEST}"
        )


def _aware(text: str, zone: ZoneInfo) -> dt.datetime:
    try:
        shown = read_moment(text, dt.UTC)
        if shown is not None:
            _check_year(shown)
        found = read_moment(text, zone)
    except ValueError as problem:
        if (
            iso := _iso(text)
        ) is not None:  # what the service writes is tried first: it is what most files have
            return _aware(iso, zone)
        raise BadValue(f"the date-time cannot be read ({problem}): {_HINT}") from None
    if found is None or shown is None:
        raise BadValue("the date-time is missing")
    # of the service's such a time is read by the clock before the change; of a person's it is a mistake
    if found != shown and found.astimezone(zone).replace(tzinfo=None) != shown.replace(tzinfo=None):
        raise BadValue(f"there is no such time in {zone.key}: the clocks were put forward over it")
    return found


def _iso(text: str) -> str | None:
    """A text that begins with a date as people write it; None for another one."""
    if (match := _WRITTEN.match(text)) is None:
        return None
    day, month, day2, name, name2, day3, year = match.groups()
    word = (name or name2 or "").lower()
    number = month or next((number for number, each in enumerate(_MONTHS, 1) if each.startswith(word)), 0)
    return f"{year}-{number}-{day or day2 or day3}{text[match.end() :]}"
