"""Reading single cells: addresses, ids, statuses, tags, texts, times. Each function returns the
value or raises BadValue.

Reasons are sentences for the person who made the row, and never repeat an address. Not here: checks
that need the warehouse."""

import datetime as dt
import ipaddress
import re
from typing import NamedTuple
from zoneinfo import ZoneInfo

from marketing_api.records.contacts import STATUSES
from marketing_api.records.values import read_moment
from write_back.input.rows import MARKS, Cell, as_seen, cell_text, show_name, text_of

#: RFC 5321: 254 characters on the wire, 64 before the @.
MAX_ADDRESS = 254
MAX_LOCAL_PART = 64
#: The service documents no limits ("Maximum sizes …: not shown"). These are generous; they only
#: catch a whole document in a cell.
MAX_TAG = 255
MAX_FIELD = 5_000
MAX_DESCRIPTION = 10_000
_MAX_ID = 2**63 - 1

#: Any name of a status → its word.
STATUS_WORDS = {name: word for code, word in STATUSES.items() for name in (word, str(code))}
STATUS_WORDS["disactive"] = "unsubscribed"  # as the service calls it


class BadValue(Exception):
    """Why a row cannot be sent."""


#: Quotes that may be around a copied address.
_AROUND = "'\"`´“”„‟‘’‚‛‹›«»*"
#: A local part, and a label of a domain, with letters of any script.
_LOCAL = re.compile(
    r"[^\x00-\x20\x7f\"(),.:;<>@\[\\\]\ufffd]+(?:\.[^\x00-\x20\x7f\"(),.:;<>@\[\\\]\ufffd]+)*"
)
_LABEL = re.compile(r"(?!-)[^\x00-\x2c\x2e\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\ufffd]{1,63}(?<!-)")


def read_address(cell: Cell) -> str:
    """An e-mail address: practical syntax, letters of any script."""
    text = text_of(cell)
    if text is None:
        raise BadValue("the e-mail address is missing")
    if text.strip(_AROUND) != text:
        raise BadValue("the e-mail address has quotes around it: remove them")
    if text.endswith(">") and " <" in text:
        raise BadValue(
            "the cell has a name and an e-mail address: leave only what is between < and >"
        )
    if text.count("@") > 1:
        raise BadValue("the cell has more than one @: write one e-mail address per row")
    if " " in text or not text.isprintable():
        raise BadValue("the e-mail address has a blank or an invisible character in it")
    local, _, domain = text.partition("@")
    if not _is_domain(domain) or _LOCAL.fullmatch(local) is None:
        raise BadValue("this is not an e-mail address: it looks like name@example.com")
    if len(text) > MAX_ADDRESS or len(local) > MAX_LOCAL_PART:
        raise BadValue(
            f"the e-mail address is too long: at most {MAX_ADDRESS} characters, {MAX_LOCAL_PART} "
            "before the @"
        )
    return text


def _is_domain(text: str) -> bool:
    labels = text.split(".")
    top = labels[-1]
    return (
        len(labels) > 1
        and all(map(_LABEL.fullmatch, labels))
        and len(top) > 1
        and not top[0].isdigit()
    )


_ID = re.compile(r"(\d{1,19})(?:\.0+)?", re.ASCII)


def read_id(cell: Cell, what: str) -> int:
    """A positive whole number, also written as `12.0`."""
    match = _ID.fullmatch(cell_text(cell) or "")
    if match is None or not 0 < (number := int(match[1])) <= _MAX_ID:
        raise BadValue(f"{what} has to be a whole number")
    return number


def read_status(text: str) -> str:
    """One of `STATUSES`."""
    word = STATUS_WORDS.get(text.lower())
    if word is None:
        raise BadValue(
            f"{show_name(text)} is not a status: write active, unsubscribed, bounced or unconfirmed"
        )
    return word


def ip_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise BadValue(
            "this is not an IP address: it looks like 203.0.113.7 or 2001:db8::7"
        ) from None


_BREAKS = re.compile(r"[\t\n\r\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: Programs write this for a letter that they could not read.
_LOST = "\ufffd"


#: A long number that a spreadsheet has shortened: its last digits are lost.
_SHORTENED = re.compile(r"[+-]?\d(?:[.,]\d{1,16})?E\+\d{2,3}", re.ASCII | re.IGNORECASE)


def field_value(text: str, what: str) -> str:
    """The value of a custom field."""
    if _SHORTENED.fullmatch(text):
        raise BadValue(
            f"{what} has {show_name(text)}, a number that a spreadsheet has shortened: format the "
            "column as text and enter it again"
        )
    return check_text(text, what, MAX_FIELD)


def check_text(text: str, what: str, limit: int) -> str:
    """Allows line breaks and tabs, but no other control characters."""
    if len(text) > limit:
        raise BadValue(f"{what} is too long: {len(text):,} characters, at most {limit:,}")
    if not text.isprintable() and _CONTROL.search(text):  # the former takes a third of the time
        raise BadValue(f"{what} has a control character in it")
    if _LOST in text:
        raise BadValue(f"{what} has {_LOST} in place of a letter: write it again")
    return text


def read_action(cell: Cell) -> str:
    text = text_of(cell)
    if text is None:
        raise BadValue("the action is missing, but other rows have one: write add or remove")
    word = text.lower()
    if word not in ("add", "remove"):
        raise BadValue(f"{show_name(text)} is not an action: write add or remove")
    return word


#: Separators of tags; HTML entities, which have a `;`; quotes that may be around tags.
_SIGNS = re.compile(r",|;|\|")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|\w{1,31});", re.ASCII | re.IGNORECASE)
_QUOTES = "\"'`“”„‘’«»[]{}"


def read_tags(text: str) -> tuple[str, ...]:
    """Each tag once, in their order. Raises BadValue if the text is ambiguous."""
    if _BREAKS.search(text.strip()):
        raise BadValue("a tag has a line break in it: put commas between tags")
    if _ENTITY.search(text):
        raise BadValue(
            f"{show_name(text)} has an HTML code in it, like &amp;: write the character itself"
        )
    if len(set(_SIGNS.findall(text))) > 1:
        raise BadValue("the tags have several kinds of separators: put commas between them")
    parts = map(as_seen, _SIGNS.split(text))
    found = tuple(dict.fromkeys(filter(None, parts)))
    if not found:
        raise BadValue("the tag is missing")
    for tag in found:
        check_text(tag, "a tag", MAX_TAG)
        if tag in MARKS:
            raise BadValue(
                f"the tag {show_name(tag)} means that there is none in many programs: leave it out"
            )
        if tag[0] in _QUOTES:
            raise BadValue(
                f"it is unclear where the tag {show_name(tag)} ends: put only commas between tags"
            )
        if len(tag.split(" #")) > 1 and tag[0] == "#":
            raise BadValue(f"{show_name(tag)} looks like several tags: put commas between them")
    return found


_EARLIEST = 1970
_LATEST = 2100
_HINT = "write it like 2026-01-31 14:05, 31.01.2026 14:05 or 2026-01-31T14:05:00+01:00"
#: Dates that begin with the year or do not; a time may follow.
_YEAR_FIRST = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})(?!\d)", re.ASCII)
_NUMBERED = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?!\d)(?:,| at)?", re.ASCII)
#: Universal time, and offsets of whole hours, as databases write them.
_UNIVERSAL = re.compile(r"(?<=\d) ?(?:UTC|GMT|Z)$", re.IGNORECASE)
_WHOLE_HOURS = re.compile(r"(?<=:\d\d)(?:\.\d{1,9})? ?[+-]\d\d$|(?<=\.\d{6})[+-]\d\d$", re.ASCII)


class Moment(NamedTuple):
    """`wall`: local time in the account's zone, to the second. `at`: unix seconds."""

    wall: dt.datetime
    at: int


def _one_way(text: str) -> str:
    """The text in an unambiguous form. Raises BadValue if the day or the month may be first."""
    text = _UNIVERSAL.sub("+00:00", text)
    if _WHOLE_HOURS.search(text):
        text += ":00"
    match = _YEAR_FIRST.match(text)
    if match:
        year, month, day = match.groups()
    elif match := _NUMBERED.match(text):
        first, sign, second, year = match.groups()
        month, day = _month_and_day(int(first), int(second), sign)
    else:
        return text
    return f"{year}-{month}-{day}{text[match.end() :]}"


def _month_and_day(first: int, second: int, sign: str) -> tuple[int, int]:
    if sign == "." or first > 12:
        return second, first
    if first != second and second <= 12:
        raise BadValue("the date may have the day or the month first: write it like 2026-01-31")
    return first, second


def parse_moment(cell: Cell, zone: ZoneInfo) -> Moment:
    """Raises BadValue for text that is not a date-time, and for a local time that a clock change
    skips or repeats, because the service only gets local times."""
    aware = _parse_aware(_one_way(cell_text(cell) or ""), zone)
    wall = aware.astimezone(zone).replace(tzinfo=None, microsecond=0, fold=0)
    first, second = (int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    if first != second:
        raise BadValue(f"this time occurs twice in {zone.key}: the clocks go back then")
    return Moment(wall, first)


def _parse_aware(text: str, zone: ZoneInfo) -> dt.datetime:
    try:
        in_utc = read_moment(text, dt.UTC)
        if in_utc is not None and not _EARLIEST <= in_utc.year <= _LATEST:
            raise BadValue(
                f"the date-time has the year {in_utc.year}: it has to be between {_EARLIEST} and "
                f"{_LATEST}"
            )
        found = read_moment(text, zone)
    except ValueError as error:
        raise BadValue(f"the date-time cannot be read ({error}): {_HINT}") from None
    if found is None or in_utc is None:
        raise BadValue("the date-time is missing")
    # a skipped time from the service counts as before the clock change; from a person it is a
    # mistake
    local = found.astimezone(zone).replace(tzinfo=None)
    if found != in_utc and local != in_utc.replace(tzinfo=None):
        raise BadValue(f"this time doesn't exist in {zone.key}: the clocks go forward then")
    return found
