"""What a spreadsheet shows of a number: by its format, as ECMA-376 part 1, 18.8.30 and 18.8.31 describe them,
in English.

Dates in the form of the reader's own system stand as 2026-01-31, since a file does not say which that is. Not
here: reading workbooks (`workbook`)."""

import datetime as dt
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from write_back.input.rows import number_text

#: Formats that are not written into the file.
BUILTIN = {
    **{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?"},
    **{13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM"},
    **{19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0 ;(#,##0)"},
    **{38: "#,##0 ;[Red](#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;[Red](#,##0.00)"},
    **{45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@"},
    **dict.fromkeys((41, 42, 43, 44), '#,##0.00_);(#,##0.00);"-"_);@'),
}
#: Parts of a format: a literal (quoted, escaped), what is not shown or as wide as a blank, what stands for
#: digits, dates and texts. What is in brackets is looked into further.
_PART = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|\[(?P<bracket>[^\]]*)\]?|(?P<fill>\*.)|(?P<blank>_.)'
    r"|(?P<general>General)|(?P<half>AM/PM|A/P)|(?P<fraction>(?<=[s\]])\.0+)"
    r"|(?P<exponent>E[+-])|(?P<date>y+|m+|d+|h+|s+|e+|b+)|(?P<digit>[0#?])|(?P<point>\.)|(?P<comma>,)"
    r"|(?P<percent>%)|(?P<slash>/)|(?P<text>@)|(?P<end>;)|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
#: Within brackets: elapsed time, for which numbers a section is, a currency with a language.
_ELAPSED = re.compile(r"h+|m+|s+", re.IGNORECASE)
_LIMIT = re.compile(r"([<>=]{1,2})(-?\d{1,15}(?:\.\d{1,15})?)", re.ASCII)
_DAYS = ("Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_MONTHS = tuple(dt.date(2000, month, 1).strftime("%B") for month in range(1, 13))
_DATES = {"date", "elapsed", "half"}
#: The system's own forms of a day and a time, and days beyond those that a spreadsheet shows.
_SYSTEM_DAY, _SYSTEM_TIME, _LAST_DAY = "f800", "f400", 2_958_466
#: As a spreadsheet rounds, for numbers of any size.
_ROUNDING = Context(prec=700, rounding=ROUND_HALF_UP)
_ENGLISH = re.compile(r"[0-9a-f]*09", re.IGNORECASE)


class Unshown(ValueError):
    """A spreadsheet shows nothing but #####."""


class _Part(NamedTuple):
    kind: str
    text: str


class _Section(NamedTuple):
    """`condition`: sign and limit, for whom it is; empty: by its place."""

    parts: tuple[_Part, ...]
    condition: tuple[str, float] | None

    @property
    def is_date(self) -> bool:
        return any(part.kind in _DATES for part in self.parts)

    def of(self, kind: str) -> int:
        return sum(part.kind == kind for part in self.parts)


def shown_text(text: str, code: str) -> str:
    """A text with a format."""
    sections = _sections(code)
    last = sections[-1]
    if len(sections) < 4 and not last.of("text"):
        return text
    return "".join(text if part.kind == "text" else _literal(part) for part in last.parts)


def shown_number(value: float, code: str, *, since_1904: bool = False) -> tuple[str, dt.datetime | None]:
    """A number with a format, and the moment that it stands for where the format shows a whole date. Raises
    Unshown."""
    section, is_bare = _section_for(value, _sections(code))
    if section is None:
        return "", None
    try:
        if section.is_date:
            return _shown_date(value, section, since_1904)
        text = _shown_number(abs(value), section)
    except Unshown:
        raise
    except (ArithmeticError, ValueError):  # a format that no spreadsheet takes
        return number_text(value) or "", None
    is_zero = not any(digit in text for digit in "123456789")
    return (text if is_bare or value >= 0 or is_zero else f"-{text}").strip(), None


# -- formats


@lru_cache(maxsize=1 << 10)
def _sections(code: str) -> tuple[_Section, ...]:
    found: list[list[re.Match[str]]] = [[]]
    for match in _PART.finditer(code):
        if match.lastgroup == "end":
            found.append([])
        else:
            found[-1].append(match)
    return tuple(_section(matches) for matches in found)


def _section(matches: list[re.Match[str]]) -> _Section:
    brackets = [match["bracket"] for match in matches if match["bracket"]]
    limits = list(filter(None, map(_LIMIT.fullmatch, brackets)))
    languages = [each.partition("-")[2].lower() for each in brackets if each[0] == "$" and "-" in each]
    parts = list(map(_part, matches))
    has_names = any(part.kind == "date" and len(part.text) > 2 and part.text[0] in "md" for part in parts)
    if _SYSTEM_DAY in languages or (has_names and not all(map(_ENGLISH.fullmatch, languages))):
        parts = list(_sections("yyyy-mm-dd")[0].parts)
    elif _SYSTEM_TIME in languages:
        parts = list(_sections("h:mm:ss")[0].parts)
    condition = (limits[0][1], float(limits[0][2])) if limits else None
    return _Section(_with_minutes(parts), condition)


def _part(match: re.Match[str]) -> _Part:
    kind = match.lastgroup or ""
    if kind == "bracket":
        return _bracket(match[kind])
    if kind in ("quoted", "escaped", "other"):
        return _Part("literal", match[kind])
    return _Part(kind, match[0].lower() if kind == "date" else match[0])


def _bracket(text: str) -> _Part:
    if _ELAPSED.fullmatch(text):
        return _Part("elapsed", text.lower())
    return _Part("literal", text[1:].partition("-")[0] if text[:1] == "$" else "")


def _with_minutes(parts: list[_Part]) -> tuple[_Part, ...]:
    """`m` behind hours or before seconds is one of minutes, of the kind `n`."""
    times = [place for place, part in enumerate(parts) if part.kind in ("date", "elapsed")]
    for before, place, after in zip([None, *times], times, [*times[1:], None], strict=False):
        is_behind = before is not None and parts[before].text[0] == "h"
        is_before = after is not None and parts[after].text[0] == "s"
        part = parts[place]
        if part.kind == "date" and part.text in ("m", "mm") and (is_behind or is_before):
            parts[place] = _Part("date", "n" * len(part.text))
    return tuple(parts)


def _section_for(value: float, sections: tuple[_Section, ...]) -> tuple[_Section | None, bool]:
    """The one for the value, None where nothing is to be shown of it; and whether its sign is not."""
    numbers = sections[:3] if len(sections) < 4 and not sections[-1].of("text") else sections[:-1] or sections
    if any(section.condition for section in numbers):
        for section in numbers:
            if section.condition is None or _fits(value, *section.condition):
                return section, section is not numbers[0] and section.condition is None
        raise Unshown
    place = 0 if value > 0 or len(numbers) < 2 else 1 if value < 0 else 2 if len(numbers) > 2 else 0
    section = numbers[place]
    return (section if section.parts or len(sections) == 1 else None), place == 1


def _fits(value: float, sign: str, limit: float) -> bool:
    is_true = {"<": value < limit, ">": value > limit, "=": value == limit}
    return value != limit if sign == "<>" else any(is_true[each] for each in sign)


def _literal(part: _Part) -> str:
    return part.text if part.kind == "literal" else " " if part.kind == "blank" else ""


# -- numbers


def _shown_number(value: float, section: _Section) -> str:
    parts = section.parts
    if section.of("general") or (section.of("text") and not section.of("digit")):
        plain = number_text(value) or ""
        return "".join(plain if part.kind in ("general", "text") else _literal(part) for part in parts)
    if not section.of("digit"):
        return "".join(map(_unnumbered, parts))
    number = Decimal(f"{value:.15g}").scaleb(2 * section.of("percent"))
    if section.of("exponent"):
        return _scientific(number, parts)
    if section.of("slash"):
        return _fraction(number, parts)
    return _decimal(number, parts)


def _unnumbered(part: _Part) -> str:
    return part.text if part.kind in ("percent", "point", "comma", "slash") else _literal(part)


def _decimal(number: Decimal, parts: tuple[_Part, ...]) -> str:
    kinds = [part.kind for part in parts]
    last = max(place for place, kind in enumerate(kinds) if kind == "digit")
    point = kinds.index("point") if "point" in kinds else None
    end = last + 1 if point is None or point > last else point
    commas = [place for place, kind in enumerate(kinds) if kind == "comma"]
    first = kinds.index("digit")
    scale = sum(all(kind == "comma" for kind in kinds[end : place + 1]) for place in commas if place >= end)
    scale += sum(
        all(kind == "comma" for kind in kinds[last + 1 : place + 1])
        for place in commas
        if place > last >= end
    )
    decimals = [part.text for part in parts[end:] if part.kind == "digit"]
    rounded = number.scaleb(-3 * scale).quantize(Decimal(1).scaleb(-len(decimals)), context=_ROUNDING)
    whole, _, rest = f"{rounded:f}".partition(".")
    is_grouped = any(first < place < end for place in commas)
    return _filled(parts[:end], "" if whole == "0" else whole, is_grouped=is_grouped) + _behind(
        parts[end:], rest
    )


def _filled(parts: tuple[_Part, ...], digits: str, *, is_grouped: bool) -> str:
    """The digits in their places, from the last; those that find none stand in front of the first."""
    found: list[str] = []
    left, count, places = list(digits), 0, sum(part.kind == "digit" for part in parts)
    for part in reversed(parts):
        if part.kind != "digit":
            found.append("" if part.kind == "comma" else _unnumbered(part))
            continue
        places -= 1
        wanted = len(left) if places == 0 else 1
        taken = [left.pop() for _ in range(min(wanted, len(left)))] or [
            {"0": "0", "?": " "}.get(part.text, "")
        ]
        for digit in taken:
            found.append("," if is_grouped and count and count % 3 == 0 and digit.isdigit() else "")
            found.append(digit)
            count += bool(digit.strip())
    return "".join(reversed(found))


def _behind(parts: tuple[_Part, ...], digits: str) -> str:
    found: list[str] = []
    wanted = "".join(part.text for part in parts if part.kind == "digit")
    kept = len(digits)
    while kept and digits[kept - 1] == "0" and wanted[kept - 1] != "0":
        kept -= 1
    place = 0
    for part in parts:
        if part.kind == "digit":
            found.append(digits[place] if place < kept else " " if part.text == "?" else "")
            place += 1
        else:
            found.append("" if part.kind == "comma" else _unnumbered(part))
    return "".join(found)


def _scientific(number: Decimal, parts: tuple[_Part, ...]) -> str:
    at = next(place for place, part in enumerate(parts) if part.kind == "exponent")
    mantissa = parts[:at]
    kinds = [part.kind for part in mantissa]
    step = kinds[: kinds.index("point")].count("digit") if "point" in kinds else kinds.count("digit")
    exponent = number.adjusted() // step * step if number else 0
    decimals = kinds.count("digit") - step
    rounded = number.scaleb(-exponent).quantize(Decimal(1).scaleb(-decimals), context=_ROUNDING)
    if rounded and rounded.adjusted() >= step:
        exponent += step
    sign = "-" if exponent < 0 else "+" if parts[at].text.endswith("+") else ""
    shown = _filled(parts[at + 1 :], str(abs(exponent)) if exponent else "", is_grouped=False)
    return f"{_decimal(number.scaleb(-exponent), mantissa)}E{sign}{shown}"


def _fraction(number: Decimal, parts: tuple[_Part, ...]) -> str:
    at = next(place for place, part in enumerate(parts) if part.kind == "slash")
    behind = parts[at + 1 :]
    fixed = "".join(part.text for part in behind if part.text.isdigit())
    digits = sum(part.kind == "digit" for part in behind)
    has_whole = (
        len([1 for is_digit, _ in groupby(parts[:at], lambda part: part.kind == "digit") if is_digit]) > 1
    )
    whole = int(number) if has_whole else 0
    rest = Fraction(number) - whole
    if fixed.strip("0"):
        bottom = int(fixed)
        top = int(rest * bottom + Fraction(1, 2))
    else:
        near = rest.limit_denominator(10**digits - 1)
        top, bottom = near.numerator, near.denominator
    if has_whole and top == bottom:
        whole, top = whole + 1, 0
    if has_whole and not top:
        return str(whole)
    return (f"{whole} " if whole else "") + f"{top}/{bottom}"


# -- dates and durations


def _shown_date(value: float, section: _Section, since_1904: bool) -> tuple[str, dt.datetime | None]:
    """Of seconds, the nearest; of what is longer, the one that is not over."""
    if value < 0 or value >= _LAST_DAY:
        raise Unshown
    shows = {part.text[0] for part in section.parts if part.kind == "date"}
    digits = max((len(part.text) - 1 for part in section.parts if part.kind == "fraction"), default=0)
    seconds = (Decimal(f"{value:.15g}") * 86_400).quantize(Decimal(1).scaleb(-digits), context=_ROUNDING)
    days, in_day = divmod(seconds, 86_400)
    if days >= _LAST_DAY:
        raise Unshown
    year, month, day = _day(int(days), since_1904)
    hour = int(in_day // 3600)
    known = {
        "y": (f"{year % 100:02}", f"{year:04}"),
        "e": (f"{year:04}",),
        "b": (f"{(year + 543) % 100:02}", f"{year + 543}"),
        "d": _numbers(day) + _names(_DAYS[(int(days) + (6 if since_1904 else 0)) % 7]),
        "m": _numbers(month) + _names(_MONTHS[month - 1]) + (_MONTHS[month - 1][0],),
        "n": _numbers(int(in_day // 60 % 60)),
        "h": _numbers((hour % 12 or 12) if section.of("half") else hour),
        "s": _numbers(int(in_day % 60)),
    }
    elapsed = {"h": int(seconds // 3600), "m": int(seconds // 60), "s": int(seconds)}
    found: list[str] = []
    for part in section.parts:
        if part.kind == "date":
            forms = known[part.text[0]]
            place = (len(part.text) > 2) if part.text[0] in "yb" else len(part.text) - 1
            found.append(forms[min(place, len(forms) - 1)])
        elif part.kind == "elapsed":
            found.append(f"{elapsed[part.text[0]]:0{len(part.text)}}")
        elif part.kind == "half":
            half = "AM" if hour < 12 else "PM"
            found.append(half if len(part.text) > 3 else half[0])
        elif part.kind == "fraction":
            found.append(f"{in_day % 1:.{digits}f}"[1 : len(part.text) + 1])
        else:
            found.append(part.text if part.kind == "digit" else _unnumbered(part))
    is_moment = {"m", "d"} <= shows and (shows & {"y", "e"}) and (year, month, day) != (1900, 2, 29) and day
    moment = (
        dt.datetime(year, month, day)
        + dt.timedelta(seconds=float(in_day.quantize(Decimal(1), context=_ROUNDING)))
        if is_moment
        else None
    )
    return "".join(found).strip(), moment


def _day(days: int, since_1904: bool) -> tuple[int, int, int]:
    """Year, month and day. Spreadsheets show the 29th of February 1900, which never was, and a day 0."""
    if since_1904:
        date = dt.date(1904, 1, 1) + dt.timedelta(days=min(days, _LAST_DAY - 1463))
    elif days in (0, 60):
        return (1900, 1, 0) if days == 0 else (1900, 2, 29)
    else:
        date = dt.date(1899, 12, 31 if days < 60 else 30) + dt.timedelta(days=days)
    return date.year, date.month, date.day


def _numbers(number: int) -> tuple[str, ...]:
    return str(number), f"{number:02}"


def _names(name: str) -> tuple[str, ...]:
    return name[:3], name
