"""What a spreadsheet shows of a number: by its format, as ECMA-376 part 1, 18.8.30 and 18.8.31 describe them,
in English.

Dates in the form of the reader's own system stand as 2026-01-31, since a file does not say which that is. Not
here: reading workbooks (`workbook`)."""

import datetime as dt
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, takewhile
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
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_DATES = {"date", "elapsed", "half"}
#: The system's own forms of a day and a time, and the first day that a spreadsheet does not show.
_SYSTEM_DAY, _SYSTEM_TIME, _DAY_LIMIT = "f800", "f400", 2_958_466
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

    def count_of(self, kind: str) -> int:
        return sum(part.kind == kind for part in self.parts)


def shown_text(text: str, code: str) -> str:
    """A text with a format."""
    sections = _sections(code)
    last = sections[-1]
    if len(sections) < 4 and not last.count_of("text"):
        return text
    return "".join(text if part.kind == "text" else _literal(part) for part in last.parts)


def shown_number(value: float, code: str, *, since_1904: bool = False) -> tuple[str, dt.datetime | None]:
    """A number with a format, and the moment that it stands for where the format shows a whole date. Raises
    Unshown."""
    section, is_unsigned = _section_for(value, _sections(code))
    if section is None:
        return "", None
    try:
        if section.is_date:
            return _shown_date(value, section, since_1904)
        text = _formatted(abs(value), section)
    except Unshown:
        raise
    except (ArithmeticError, ValueError):  # a format that no spreadsheet takes
        return number_text(value) or "", None
    is_zero = not any(digit in text for digit in "123456789")
    return (text if is_unsigned or value >= 0 or is_zero else f"-{text}").strip(), None


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
    parts = list(map(_part, matches))
    if form := _system_form(brackets, parts):
        parts = list(_sections(form)[0].parts)
    condition = (limits[0][1], float(limits[0][2])) if limits else None
    return _Section(_with_minutes(parts), condition)


def _system_form(brackets: list[str], parts: list[_Part]) -> str | None:
    """What stands for a form of the reader's own system, and for names that are not English."""
    languages = [each.partition("-")[2].lower() for each in brackets if each[0] == "$" and "-" in each]
    has_names = any(part.kind == "date" and len(part.text) > 2 and part.text[0] in "md" for part in parts)
    if _SYSTEM_DAY in languages or (has_names and not all(map(_ENGLISH.fullmatch, languages))):
        return "yyyy-mm-dd"
    return "h:mm:ss" if _SYSTEM_TIME in languages else None


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
    numbers = (
        sections[:3] if len(sections) < 4 and not sections[-1].count_of("text") else sections[:-1] or sections
    )
    if any(section.condition for section in numbers):
        return _section_that_fits(value, numbers)
    place = 0 if value > 0 else 1 if value < 0 else 2
    if place >= len(numbers):
        place = 0
    section = numbers[place]
    return (section if section.parts or len(sections) == 1 else None), place == 1


def _section_that_fits(value: float, sections: tuple[_Section, ...]) -> tuple[_Section, bool]:
    """The first of those with conditions, and whether the sign is not shown."""
    for section in sections:
        if section.condition is None or _fits(value, *section.condition):
            return section, section is not sections[0] and section.condition is None
    raise Unshown


def _fits(value: float, sign: str, limit: float) -> bool:
    is_true = {"<": value < limit, ">": value > limit, "=": value == limit}
    return value != limit if sign == "<>" else any(is_true[each] for each in sign)


def _literal(part: _Part) -> str:
    return part.text if part.kind == "literal" else " " if part.kind == "blank" else ""


# -- numbers


def _formatted(value: float, section: _Section) -> str:
    parts = section.parts
    if section.count_of("general") or (section.count_of("text") and not section.count_of("digit")):
        plain = number_text(value) or ""
        return "".join(plain if part.kind in ("general", "text") else _literal(part) for part in parts)
    if not section.count_of("digit"):
        return "".join(map(_punctuation, parts))
    number = Decimal(f"{value:.15g}").scaleb(2 * section.count_of("percent"))
    if section.count_of("exponent"):
        return _scientific(number, parts)
    if section.count_of("slash"):
        return _fraction(number, parts)
    return _fixed_point(number, parts)


def _punctuation(part: _Part) -> str:
    return part.text if part.kind in ("percent", "point", "comma", "slash") else _literal(part)


def _between_digits(part: _Part) -> str:
    """A comma there groups or divides, and is none of its own."""
    return "" if part.kind == "comma" else _punctuation(part)


def _fixed_point(number: Decimal, parts: tuple[_Part, ...]) -> str:
    kinds = [part.kind for part in parts]
    first, last = kinds.index("digit"), len(kinds) - 1 - kinds[::-1].index("digit")
    end = kinds.index("point") if "point" in kinds[:last] else last + 1
    thousands = len(list(takewhile("comma".__eq__, kinds[last + 1 :])))
    smallest = Decimal(1).scaleb(-kinds[end:].count("digit"))
    rounded = number.scaleb(-3 * thousands).quantize(smallest, context=_ROUNDING)
    whole, _, rest = f"{rounded:f}".partition(".")
    is_grouped = "comma" in kinds[first:end]
    shown = _whole(parts[:end], "" if whole == "0" else whole, is_grouped=is_grouped)
    return shown + _decimals(parts[end:], rest)


def _whole(parts: tuple[_Part, ...], digits: str, *, is_grouped: bool) -> str:
    """The digits in their places, from the last; those that find none stand in front of the first."""
    found: list[str] = []
    left, count, places = list(digits), 0, sum(part.kind == "digit" for part in parts)
    for part in reversed(parts):
        if part.kind != "digit":
            found.append(_between_digits(part))
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


def _decimals(parts: tuple[_Part, ...], digits: str) -> str:
    """From the point on; zeros at the end are left out where the format has # or ?."""
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
            found.append(_between_digits(part))
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
    shown = _whole(parts[at + 1 :], str(abs(exponent)) if exponent else "", is_grouped=False)
    return f"{_fixed_point(number.scaleb(-exponent), mantissa)}E{sign}{shown}"


def _fraction(number: Decimal, parts: tuple[_Part, ...]) -> str:
    at = next(place for place, part in enumerate(parts) if part.kind == "slash")
    has_whole = (
        len([1 for is_digit, _ in groupby(parts[:at], lambda part: part.kind == "digit") if is_digit]) > 1
    )
    whole = int(number) if has_whole else 0
    top, bottom = _nearest(Fraction(number) - whole, parts[at + 1 :])
    if has_whole and top == bottom:
        whole, top = whole + 1, 0
    if has_whole and not top:
        return str(whole)
    return (f"{whole} " if whole else "") + f"{top}/{bottom}"


def _nearest(number: Fraction, denominator: tuple[_Part, ...]) -> tuple[int, int]:
    """Numerator and denominator: the one that the format names, or one of as many digits."""
    fixed = "".join(part.text for part in denominator if part.text.isdigit())
    if fixed.strip("0"):
        return int(number * int(fixed) + Fraction(1, 2)), int(fixed)
    near = number.limit_denominator(10 ** sum(part.kind == "digit" for part in denominator) - 1)
    return near.numerator, near.denominator


# -- dates and durations


def _shown_date(value: float, section: _Section, since_1904: bool) -> tuple[str, dt.datetime | None]:
    """Seconds are rounded to the nearest, what is longer down."""
    if value < 0 or value >= _DAY_LIMIT:
        raise Unshown
    digits = max((len(part.text) - 1 for part in section.parts if part.kind == "fraction"), default=0)
    seconds = (Decimal(f"{value:.15g}") * 86_400).quantize(Decimal(1).scaleb(-digits), context=_ROUNDING)
    days, in_day = divmod(seconds, 86_400)
    if days >= _DAY_LIMIT:
        raise Unshown
    date = _date(int(days), since_1904)
    weekday = _DAYS[(int(days) + (6 if since_1904 else 0)) % 7]
    forms = _forms(date, weekday, in_day, has_half=section.count_of("half") > 0)
    shown = [_date_part(part, forms, seconds, digits) for part in section.parts]
    return "".join(shown).strip(), _moment(date, in_day, section)


def _forms(
    date: tuple[int, int, int], weekday: str, in_day: Decimal, *, has_half: bool
) -> dict[str, tuple[str, ...]]:
    """Letter of a date's part → how it is shown, by how often the letter stands there."""
    (year, month, day), hour = date, int(in_day // 3600)
    name = _MONTHS[month - 1]
    return {
        "y": (f"{year % 100:02}", f"{year:04}"),
        "e": (f"{year:04}",),
        "b": (f"{(year + 543) % 100:02}", f"{year + 543}"),
        "d": _number_forms(day) + _name_forms(weekday),
        "m": _number_forms(month) + _name_forms(name) + (name[0],),
        "n": _number_forms(int(in_day // 60 % 60)),
        "h": _number_forms((hour % 12 or 12) if has_half else hour),
        "s": _number_forms(int(in_day % 60)),
    }


def _date_part(part: _Part, forms: dict[str, tuple[str, ...]], seconds: Decimal, digits: int) -> str:
    """`digits`: decimals that `seconds` are rounded to."""
    letter, size = part.text[:1], len(part.text)
    if part.kind == "date":
        place = (size > 2) if letter in "yb" else size - 1
        return forms[letter][min(place, len(forms[letter]) - 1)]
    if part.kind == "elapsed":
        return f"{int(seconds // _SECONDS[letter]):0{size}}"
    if part.kind == "half":
        half = "AM" if seconds % 86_400 < 43_200 else "PM"
        return half if size > 3 else half[0]
    if part.kind == "fraction":
        return f"{seconds % 1:.{digits}f}"[1 : size + 1]
    return part.text if part.kind == "digit" else _punctuation(part)


def _moment(date: tuple[int, int, int], in_day: Decimal, section: _Section) -> dt.datetime | None:
    """To the nearest second; None where the format shows no whole date, or one that never was."""
    letters = {part.text[0] for part in section.parts if part.kind == "date"}
    if not {"m", "d"} <= letters or letters.isdisjoint("ye") or date == (1900, 2, 29) or not date[2]:
        return None
    seconds = int(in_day.quantize(Decimal(1), context=_ROUNDING))
    return dt.datetime(*date) + dt.timedelta(seconds=seconds)


def _date(days: int, since_1904: bool) -> tuple[int, int, int]:
    """Year, month and day. Spreadsheets show the 29th of February 1900, which never was, and a day 0."""
    if since_1904:
        date = dt.date(1904, 1, 1) + dt.timedelta(days=min(days, _DAY_LIMIT - 1463))
    elif days in (0, 60):
        return (1900, 1, 0) if days == 0 else (1900, 2, 29)
    else:
        date = dt.date(1899, 12, 31 if days < 60 else 30) + dt.timedelta(days=days)
    return date.year, date.month, date.day


def _number_forms(number: int) -> tuple[str, ...]:
    return str(number), f"{number:02}"


def _name_forms(name: str) -> tuple[str, ...]:
    return name[:3], name
