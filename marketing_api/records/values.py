"""Reading one raw value into one Python value, in every form in which the service writes it.

A value that is neither recognized nor a word for "nothing" is refused: nothing is guessed. Every
function raises ValueError and nothing else; the message does not repeat the value, which may be
personal data. Its time is linear in the length of a text. Not here: which types fields have
(`fields`), collections (`shapes`)."""

import datetime as dt
import functools
import json
import re
import string
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Value = TypeVar("Value")

#: How the service says "nothing here" (observation 21 and the coupon's `N/A`).
_NOTHING = frozenset({"", "-", "n/a", "null", "none"})
#: A text that begins with one of these is a value. Nearly all are, and this check is fast.
_SOMETHING = frozenset(string.ascii_letters + string.digits) - frozenset("nN")


def is_nothing(value: Any) -> bool:
    """True for None, an empty collection, blanks, and the words the service uses for a missing
    value."""
    if isinstance(value, str):
        if value[:1] in _SOMETHING:
            return False
        if len(value) > 8:
            return value.isspace()
        return value.strip().lower() in _NOTHING
    return value is None or (isinstance(value, (list, dict)) and not value)


def read_or_none(read: Callable[[Any], Value], value: Any) -> Value | None:
    try:
        return read(value)
    except ValueError:
        return None


#: A decimal point, and commas between correct groups of three digits: in `0,123` and `12,34` the
#: comma may be a decimal one, so these are refused.
_NUMBER = re.compile(r"[+-]?(?:(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?|\.\d+)", re.ASCII)
_DIGITS = re.compile(r"\d{1,39}", re.ASCII)
#: No number of the service is longer, and none is larger.
_LONGEST_NUMBER = 40
_LARGEST_NUMBER = 1e30
#: From here on a float may be one of several whole numbers.
_EXACT = 2**53


def read_int(value: Any) -> int:
    """`"12"`, `12`, `12.0`, `"12.0"`, `"1,204"` → 12, 12, 12, 12, 1204; within 64 bits. `"1.000"`
    may be a thousand: refused."""
    if type(value) is int:
        number = value
    elif isinstance(value, str) and _DIGITS.fullmatch(value):
        number = int(value)
    else:
        exact = read_decimal(value)
        number = int(exact)
        may_be_thousands = isinstance(value, str) and value.rstrip().endswith(".000")
        if exact != number or may_be_thousands:
            raise ValueError("not a whole number")
        if isinstance(value, float) and abs(number) >= _EXACT:
            raise ValueError("a number too large to be exact")
    if not -(2**63) <= number < 2**63:
        raise ValueError("a number beyond 64 bits")
    return number


def read_decimal(value: Any) -> Decimal:
    """A number, or a text with a decimal point and perhaps commas between thousands; no exponents,
    underscores, other digits."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text):
            return Decimal(text.replace(",", ""))
    elif type(value) in (int, float, Decimal) and abs(value) < _LARGEST_NUMBER:
        return Decimal(str(value))
    raise ValueError("not a number")


_TRUE = frozenset({"1", "yes", "true", "y", "on"})
_FALSE = frozenset({"0", "no", "false", "n", "off"})


def read_bool(value: Any) -> bool:
    """`0/1`, `Yes/No`, `true/false`, as text, number or boolean."""
    word = ""
    if isinstance(value, str):
        word = value.strip().lower()
    elif value in (0, 1):
        word = str(int(value))
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("neither yes nor no")


def read_text(value: Any) -> str | None:
    """Text unchanged; numbers and booleans as text; None for an empty collection. A collection with
    content is refused."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    is_exact = isinstance(value, float) and abs(value) < _EXACT
    if is_exact or isinstance(value, int):
        return str(value)
    if is_nothing(value):
        return None
    raise ValueError("not a text")


_LONGEST_WORD = 100


def read_word(value: Any) -> str:
    """A word of an open set in lower case: `Active` → active, `On hold` → on hold. A word begins
    with a letter."""
    word = _normalize_word(value) if isinstance(value, str) else ""
    if not word[:1].isalpha():
        raise ValueError("not a word")
    return word


#: Members beside the networks in responses.
_NO_NETWORKS = frozenset({"id", "count", "total", "totals", "all", "items"})


def read_network(value: Any) -> str:
    """The name of a social network in lower case, an open set: `Google+` → google+. A name has a
    letter."""
    network = _normalize_word(value) if isinstance(value, str) else ""
    if network in _NO_NETWORKS or not any(map(str.isalpha, network)):
        raise ValueError("not a network")
    return network


@functools.lru_cache(maxsize=1 << 10)
def _normalize_word(text: str) -> str:
    """The word in lower case; "" if it is none. Cached, since millions of entries have the same few
    words."""
    word = text.strip()
    if len(text) > _LONGEST_WORD or is_nothing(text) or not word.isprintable():
        return ""
    return word.lower()


def as_text(value: Any) -> str | None:
    """Any value as one text, structures as JSON: for a column that declares its raw form."""
    try:
        return read_text(value)
    except ValueError:
        pass
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


_DATE_TIME = re.compile(
    r"(?:(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
    r"|(?P<m2>\d{1,2})/(?P<d2>\d{1,2})/(?P<y2>\d{4})"
    r"|(?P<d3>\d{1,2})-(?P<m3>\d{1,2})-(?P<y3>\d{4}))"
    r"(?:(?: +|T)(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.(?P<f>\d{1,9}))?)?"
    r" *(?P<half>[AaPp][Mm])? *(?P<offset>Z|[+-]\d{2}:?[0-5]\d)?)?",
    re.ASCII,
)
_UNIX = re.compile(r"\d{9,10}(\.\d{1,9})?", re.ASCII)
#: Unix seconds from 1973 to 2100: a smaller number is a year, a day or an id, a larger one is in
#: milliseconds or a telephone number.
_UNIX_RANGE = range(100_000_000, 4_133_980_800)
#: MySQL's zero dates in any order, with or without a time of zero, and PHP's conversions of them.
_NO_DATE = re.compile(
    r"(?:0000-00-00|00/00/0000|00-00-0000|-0001-11-30|11/30/-0001)(?:[ "
    r"T]+(?:00?:00(?::00)?(?:\.0{1,9})?(?: "
    r"?AM)?|12:00 ?AM))?",
    re.ASCII | re.IGNORECASE,
)
#: No text of a date and time is longer.
_LONGEST_MOMENT = 40


def is_no_moment(value: Any) -> bool:
    """Whether no date or time is given: nothing, zero, false (PHP's word for none), a date of
    zeros."""
    if is_nothing(value):
        return True
    if not isinstance(value, str):
        return bool(value == 0)
    text = value.strip()
    if len(text) > _LONGEST_MOMENT:
        return False
    return text == "0" or _NO_DATE.fullmatch(text) is not None


def read_moment(value: Any, zone: dt.tzinfo) -> dt.datetime | None:
    """Every date-time form of observation 21 → an aware UTC date-time, None for none; local forms
    are in `zone`.

    A date alone is its first moment. `14:52 PM` (24 h and PM together) is 14:52; `14:52 AM` is
    refused. If clocks show an hour twice, it is the first one. If they skip it, it is read by the
    clock before the change, so 00:30 becomes 01:30 (as in java.time, and PEP 495 with fold=0). Unix
    seconds may be a number or text."""
    moment: dt.datetime | None = None
    try:
        if isinstance(value, str):
            moment = _read_moment_text(value, zone)
        elif type(value) in (int, float) and value:
            moment = _from_unix(value)
    except (ValueError, OverflowError):
        if not is_no_moment(value):
            raise ValueError("a date or time that does not exist") from None
    if moment is None and not is_no_moment(value):
        raise ValueError("not a date or time")
    return moment


def _read_moment_text(value: str, zone: dt.tzinfo) -> dt.datetime | None:
    """None if the text has no known form."""
    hour = _HOUR_FORM.fullmatch(value)
    if hour:
        begin = _begin_of_hour(hour[1], zone)
        if begin is not None:
            return begin + _MINUTES[int(hour[2])]
    text = value.strip()
    if len(text) > _LONGEST_MOMENT:
        return None
    if _UNIX.fullmatch(text):
        return _from_unix(float(text))
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return None
    return _read_local(match, zone)


#: `11/04/2014 16:33`, as in listings. One response may hold a million of these, so each hour is
#: converted to UTC once.
_HOUR_FORM = re.compile(r"(\d\d/\d\d/\d{4} \d\d):([0-5]\d)", re.ASCII)
_MINUTES = [dt.timedelta(minutes=minute) for minute in range(60)]


@functools.lru_cache(maxsize=1 << 16)
def _begin_of_hour(text: str, zone: dt.tzinfo) -> dt.datetime | None:
    """The local hour's first moment in UTC; None when the zone's clocks change within that hour."""
    month = int(text[:2])
    day = int(text[3:5])
    year = int(text[6:10])
    hour = int(text[11:])
    begin = dt.datetime(year, month, day, hour, tzinfo=zone)
    if begin.utcoffset() == begin.replace(minute=59).utcoffset():
        return begin.astimezone(dt.UTC)
    return None


def _from_unix(seconds: float) -> dt.datetime:
    if not _UNIX_RANGE.start <= seconds < _UNIX_RANGE.stop:
        raise ValueError("beyond the range of unix seconds")
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def _read_local(match: re.Match[str], zone: dt.tzinfo) -> dt.datetime:
    part = match.groupdict()
    year = part["y"] or part["y2"] or part["y3"]
    month = part["m"] or part["m2"] or part["m3"]
    day = part["d"] or part["d2"] or part["d3"]
    place = zone
    if part["offset"]:
        place = _read_offset(part["offset"])
    moment = dt.datetime(int(year), int(month), int(day), tzinfo=place)
    if part["H"] is not None:
        moment = moment.replace(
            hour=_hour_of_day(int(part["H"]), part["half"]),
            minute=int(part["M"]),
            second=int(part["S"] or 0),
            microsecond=int((part["f"] or "0").ljust(6, "0")[:6]),
        )
    return moment.astimezone(dt.UTC)


def _hour_of_day(hour: int, half: str | None) -> int:
    if half is None:
        return hour
    is_pm = half.lower() == "pm"
    if 1 <= hour <= 12:
        return hour % 12 + 12 * is_pm
    if is_pm != (hour > 12):
        raise ValueError("two times of day in one value")
    return hour


def _read_offset(text: str) -> dt.tzinfo:
    offset = dt.datetime.strptime(text, "%z").utcoffset()
    assert offset is not None
    if abs(offset) > _FARTHEST:
        raise ValueError("no zone has this offset")
    return dt.timezone(offset)


_FARTHEST = dt.timedelta(hours=14)


def read_zone(value: Any) -> str:
    """The name of a time zone in the tz database. DuckDB also knows `PST` and `BST`, which are none
    there."""
    try:
        return ZoneInfo(value.strip()).key
    except (AttributeError, ZoneInfoNotFoundError, ValueError, OSError):  # OSError: `Europe`
        raise ValueError("not a time zone") from None


def read_share(value: Any) -> tuple[int | None, float | None]:
    """`"11 (366.67%)"` → (11, 366.67); the percentage may be absent, and over 100 (observation
    25)."""
    if is_nothing(value):
        return None, None
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    try:
        if match is None:
            return read_int(value), None
        return read_int(match[1]), float(read_decimal(match[2]))
    except ValueError:
        raise ValueError("not a count with a percentage") from None


_SHARE = re.compile(r"([^(]*)\(([^%)]*)%\s*\)\s*")


#: Letters of other scripts; blanks and punctuation among them are left out.
_WIDE = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u2c00-\u2dff\u3005-\u3007\u3021-\u303c"
    "\u3040-\ufdff\ufe70-\uff00\uff21-\uff3a\uff41-\uff5a\uff66-\U0010ffff"
)
_LABEL = rf"[a-z0-9{_WIDE}](?:[a-z0-9{_WIDE}-]{{0,61}}[a-z0-9{_WIDE}])?"
#: The usual syntax. A cut address (`...son@…`) or a masked one (`a***@…`) is refused.
_ADDRESS = rf"""(?:"(?:[^"\\]|\\.){{1,62}}"|
    (?!\.|[^@]{{0,64}}(?:\*\*|\.\.\.))[a-z0-9!#$%&'*+/=?^_`{{|}}~.{_WIDE}-]{{1,64}})
    @(?:{_LABEL}\.)+(?:xn--[a-z0-9-]{{0,58}}[a-z0-9]|[a-z{_WIDE}]{{2,63}})"""
_B = r"[\s\xa0]{0,3}"
_NUMBER_OF_CLICKS = r"\d[\d,]{0,25}"
_COUNT = rf"{_B}(?:clicks?{_B}[:=]?{_B})?{_NUMBER_OF_CLICKS}{_B}(?:click(?:s|\(s\))?)?{_B}"
#: A hyphen and an x may be part of a domain, so as separators they need a blank beside them.
_CLICKER = re.compile(
    rf"""(?:\(?{_NUMBER_OF_CLICKS}{_B}clicks?(?:{_B}\)|(?=[\s\xa0<:,;|–—])){_B}
            (?:[:,;|–—]|(?<=\s)(?:by|from|-)\s)?{_B}
        |(?P<name>[^@<>]*)(?=<))?
    (?P<open><)?(?:mailto:)?(?P<email>{_ADDRESS})(?(open){_B}>)
    (?:{_B}(?:[:,;|=–—×]{_B})?(?:\({_COUNT}\)|\[{_COUNT}\])
        |[\s\xa0]{{1,3}}(?:-[\s\xa0]{{1,3}}|x)?(?:\({_COUNT}\)|{_COUNT})
        |{_B}[:,;|=–—×]{_COUNT})?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_LONGEST_ADDRESS = 254
_LONGEST_CLICKER = 1_000
_EMAIL = {"email", "email_address", "address"}
_CLICKS = {"clicks", "click_count", "count"}


def read_clicker(value: Any) -> tuple[str, int]:
    """`"name@example.com(2 clicks)"` → ("name@example.com", 2); without a number it is one click
    (observation 25).

    The count may be in brackets, after a separator or a blank, with or without the word, or with
    the word before the address. The address may be alone, with `mailto:`, or in `Name <address>`.
    The value may also be an object of address and clicks, or a list of the two."""
    text, *count = _clicker_parts(value)
    match = _match_clicker(text)
    if match is None:
        raise ValueError(_NO_CLICKER)
    name = match["name"] or ""
    before = match.string[len(name) : match.start("email")]
    after = match.string[match.end("email") :]
    found = re.findall(_NUMBER_OF_CLICKS, f"{before} {after}", re.ASCII)
    counts = [read_int(number) for number in (*count, *found)]
    # without a count, a number in the name may be the count
    has_number = any(map(str.isdigit, name))
    is_counted_by_name = "click" in name.lower() or (has_number and not counts)
    if is_counted_by_name or len(counts) > 1 or min(counts, default=1) < 0:
        raise ValueError(_NO_CLICKER)
    return match["email"], counts[0] if counts else 1


_NO_CLICKER = "not an address with a number of clicks"


def _match_clicker(text: Any) -> re.Match[str] | None:
    if not isinstance(text, str) or len(text) > _LONGEST_CLICKER:
        return None
    match = _CLICKER.fullmatch(text.strip())
    if match is None:
        return None
    email = match["email"]
    if len(email) > _LONGEST_ADDRESS or not email.isprintable():
        return None
    return match


def _clicker_parts(value: Any) -> list[Any]:
    """The address, and the count if the value is an object or a pair; a text has both."""
    if isinstance(value, dict):
        emails = [item for name, item in value.items() if name.lower() in _EMAIL]
        clicks = [item for name, item in value.items() if name.lower() in _CLICKS]
        is_clicker = len(emails) == 1 and len(emails + clicks) == len(value)
        value = emails + clicks if is_clicker else None
    if isinstance(value, list) and 1 <= len(value) <= 2 and None not in value:
        return value
    return [value]


#: Kinds, polarities and the like that the service names in the plural. Other words stay unchanged.
_REGULAR = (
    "page profile board group account channel location user handle instance blog video playlist "
    "server place store brand positive negative neutral mixed unknown"
)
_SINGULAR = {f"{word}s": word for word in _REGULAR.split()}
_SINGULAR |= {
    "companies": "company",
    "galleries": "gallery",
    "communities": "community",
    "properties": "property",
    "businesses": "business",
    "inboxes": "inbox",
}


def to_singular(word: str) -> str:
    """Lower case, and singular where the word is known: `Pages` → page, `Positives` → positive;
    `SMS` and `News` stay."""
    word = word.strip().lower()
    return _SINGULAR.get(word, word)
