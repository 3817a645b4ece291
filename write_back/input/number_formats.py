"""What Excel displays of a number, for the usual formats: percent, decimals, thousands, currency, dates and
times, leading zeros, accounting; in English. ECMA-376 part 1, 18.8.30 and 18.8.31, describes them all.

A cell with another format becomes `Stored`: it keeps its stored value, and the plan names its column. Not
here: reading workbooks (`workbook`)."""

import datetime as dt
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from write_back.input.rows import Seen, Stored, cell_text, number_text

#: Formats that a workbook names by number only; the reader's own short date is read as 2026-01-31. Others
#: are `UNKNOWN`: they depend on the reader's system.
BUILTIN = {
    **{0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 14: "yyyy-mm-dd"},
    **{15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm"},
    **{21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0 ;(#,##0)", 38: "#,##0 ;[Red](#,##0)"},
    **{39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;[Red](#,##0.00)", 45: "mm:ss", 49: "@"},
}
UNKNOWN = "[unknown]"
#: Letters of the longest format that Excel takes.
_LONGEST = 255

#: Texts that stand for themselves; `_x` is a blank, a fill of blanks or a colour is nothing.
_LITERAL = re.compile(
    r'"([^"]*)"|\\(.)|([-+$€£¥():=<> ])|\[\$([^]-]+)(?:-[^]]*)?\]|_.|\* '
    r"|\[(?:Black|Blue|Cyan|Green|Magenta|Red|White|Yellow|Color ?\d+)\]",
    re.IGNORECASE | re.DOTALL,
)
#: English, or another language of a format that shows no words.
_LANGUAGE = re.compile(
    r"\[\$-(?:(?:[0-9a-f]{0,2}09|en-[a-z]{2})\]"
    r"|(?!f[48]00)(?:[0-9a-f]{1,4}|[a-z]{2}-[a-z]{2})\](?!.*(?:mmm|ddd|am/pm)))",
    re.IGNORECASE,
)
#: `m` after hours or before seconds.
_MINUTES = re.compile(r"(?<=h)[^a-z;]*mm?(?!m)|(?<!m)mm?(?=[^a-z;]*s)")
#: Digits with a comma between thousands, places before the point and after it; or accounting's blanks.
_NUMBER = re.compile(
    r"([\0%]*)(?:((?:#+(,)(?=[#0]{3}(?![#0])))?#*(0*)(?:(\.)(0*)(#*))?(?<=[#0.])|\?+)([\0%]*))?"
)
#: Where the shape of a format has a literal, and AM/PM.
_TEXT, _HALF_DAY = "\0", "\1"
_DATE_PART = re.compile(f"{_HALF_DAY}|y+|m+|d+|h+|n+|s+")
#: For `strftime`; `n` are minutes.
_DATE_FORMS = {
    **{"yyyy": "%Y", "yy": "%y", "mmmm": "%B", "mmm": "%b", "mm": "%m", "m": "%-m"},
    **{"dddd": "%A", "ddd": "%a", "dd": "%d", "d": "%-d", "hh": "%H", "h": "%-H"},
    **{"nn": "%M", "n": "%-M", "ss": "%S", "s": "%-S", _HALF_DAY: "%p"},
}
#: Of dates, with the number of days until they end. Before March 1900 Excel is a day off: it has a 29th of
#: February 1900. The 1904 system begins 1,462 days later.
_DAY_0, _END, _LATER = dt.datetime(1899, 12, 30), 2_958_465.99999, 1_462
_FIRST_DAY = dt.datetime(1900, 3, 1)


class _Section(NamedTuple):
    """The part of a format for some values, in lower case; a zero byte has the place of each literal."""

    shape: str
    literals: list[str]

    def fill_literals(self, shown: str) -> str:
        """With the literals in their places."""
        literals = iter(self.literals)
        return re.sub(_TEXT, lambda _: next(literals), shown)


class _UnknownFormat(Exception):
    """The format is none of the usual ones, or not for this value."""


def show_number(value: float, code: str, *, since_1904: bool = False) -> Seen:
    """What a number displays with a format. Its value is a moment where the format has a whole date."""
    sections, moment = _parse_format(code), _read_serial(value, since_1904)
    is_whole = set("ymd") <= {part[0] for part in _DATE_PART.findall(sections[0].shape)}
    stored = moment if moment and moment >= _FIRST_DAY and is_whole else value
    try:
        return Seen(_format_value(value, moment, sections).strip(), stored)
    except (_UnknownFormat, ArithmeticError):  # the latter of huge numbers
        return Stored(cell_text(Seen("", stored)) or "", stored)


@lru_cache(maxsize=1 << 10)
def _parse_format(code: str) -> list[_Section]:
    """The sections of a format: for positive and negative numbers, zero and texts."""
    code = _LANGUAGE.sub("", code) if len(code) <= _LONGEST else UNKNOWN
    literals = filter(None, map(_read_literal, _LITERAL.finditer(code)))
    shape = _LITERAL.sub(lambda match: _TEXT if _read_literal(match) else "", code).lower()
    shape = shape.replace("am/pm", _HALF_DAY)
    shape = _MINUTES.sub(lambda minutes: minutes[0].replace("m", "n"), shape)
    return [_Section(part, list(islice(literals, part.count(_TEXT)))) for part in shape.split(";")]


def _read_literal(match: re.Match[str]) -> str:
    if match.lastindex:
        return match[match.lastindex]
    return " " if match[0].startswith("_") else ""


def _format_value(value: float, moment: dt.datetime | None, sections: list[_Section]) -> str:
    if any("[" in section.shape for section in sections):  # a condition, for one
        raise _UnknownFormat
    section, is_negative = _choose_section(value, sections)
    if section.shape in ("general", "@") and not is_negative:
        return number_text(value) or ""
    if moment and _DATE_PART.search(section.shape):
        return _show_date(moment, section)
    return _show_number(value, section, has_sign=is_negative)


def _choose_section(value: float, sections: list[_Section]) -> tuple[_Section, bool]:
    """The section for a number, and whether it is the one for negative numbers."""
    has_text = len(sections) > 3 or "@" in sections[-1].shape
    numbers = sections[:-1] if has_text and len(sections) > 1 else sections
    is_negative = value < 0 and len(numbers) > 1
    is_zero = value == 0 and len(numbers) > 2
    section = numbers[1 if is_negative else 2 if is_zero else 0]
    if not section.shape and len(numbers) < 3:
        raise _UnknownFormat
    return section, is_negative


def _show_number(value: float, section: _Section, *, has_sign: bool) -> str:
    """`has_sign`: the section is for negative numbers, and has a sign of its own."""
    match = _NUMBER.fullmatch(section.shape)
    if match is None:
        raise _UnknownFormat
    before, pattern, *places, after = match.groups("")
    number = Decimal(f"{abs(value):.15g}").scaleb(2 * section.shape.count("%"))
    digits = _show_digits(number, *places) if pattern.strip("?") else " " * len(pattern)
    shown = section.fill_literals(before + digits + after)
    is_signed = value < 0 and not has_sign
    if (value and "?" in pattern) or (is_signed and (not pattern or shown.startswith(" "))):
        raise _UnknownFormat
    return f"-{shown}" if is_signed and digits.strip("0.,") else shown


def _show_digits(number: Decimal, comma: str, zeros: str, point: str, decimals: str, optional: str) -> str:
    rounded = number.quantize(Decimal(1).scaleb(-len(decimals + optional)), ROUND_HALF_UP)
    whole, _, rest = f"{rounded:{comma}f}".partition(".")
    whole = whole.lstrip("0").rjust(len(zeros), "0")
    return whole + point + rest[: len(decimals)] + rest[len(decimals) :].rstrip("0")


def _read_serial(value: float, since_1904: bool) -> dt.datetime | None:
    """To the nearest second; None for what is no date."""
    later = _LATER if since_1904 else 0
    if not 0 <= value < _END - later:
        return None
    return _DAY_0 + dt.timedelta(days=later, seconds=int(value * 86_400 + 0.5))


def _show_date(moment: dt.datetime, section: _Section) -> str:
    parts = _DATE_PART.findall(section.shape)
    is_early = moment < _FIRST_DAY and any(part[0] in "ymd" for part in parts)
    rest = _DATE_PART.sub("", section.shape).strip("\0/.,")
    if is_early or rest or not set(parts) <= _DATE_FORMS.keys():
        raise _UnknownFormat
    hours = "I" if _HALF_DAY in parts else "H"
    forms = (_DATE_FORMS[part].replace("H", hours) for part in parts)
    return section.fill_literals(_DATE_PART.sub(lambda _: moment.strftime(next(forms)), section.shape))
