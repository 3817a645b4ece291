"""What Excel displays of a number or date, in English, for formats that nearly all cells have:
leading zeros, decimals, thousands, percent, dates and times. ECMA-376 part 1, 18.8.30 and 18.8.31,
describes them all.

A cell with another format becomes `Stored`: it keeps its stored value, and the plan names its
column. Not here: reading workbooks (`workbook`)."""

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from pathlib import Path

from write_back.input.rows import Seen, Stored, number_text, text_of

#: Formats that follow the reader's own system, which a workbook does not have.
_OF_THE_SYSTEM = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd hh:mm"}
_NUMBER = re.compile(r"(#,##(?=0[.%]|0$))?(0+)(?:\.(0+))?( ?%)?")
#: Quoted signs between the parts of a date.
_MARKED = re.compile(r'"([^"a-z]*)"|\\([^a-z])', re.IGNORECASE)
#: The language of a format, which only matters for words.
_LANGUAGE = re.compile(r"\[\$-[0-9a-f]{1,4}\]")
_WORDS = re.compile("mmm|ddd|am/pm")
#: `m` after hours or before seconds.
_MINUTES = re.compile(r"(?<=h)[^a-z]*mm?(?!m)|(?<!m)mm?(?=[^a-z]*s)")
_DATE_PART = re.compile("am/pm|y+|m+|d+|h+|n+|s+")
_DATE_FORMS: Mapping[str, str] = tomllib.loads(
    Path(__file__).with_name("date_forms.toml").read_text(encoding="utf-8")
)


def show_number(value: float, code: str) -> Seen:
    """The text that Excel displays for a number with a format."""
    stored = number_text(value) or ""
    if code in ("General", "@"):
        return Seen(stored, value)
    match = _NUMBER.fullmatch(code)
    if match is None or "e" in stored:
        return Stored(stored, value)
    try:
        return Seen(_format_number(Decimal(stored), *match.groups("")), value)
    except ArithmeticError:  # the number is too large
        return Stored(stored, value)


def _format_number(value: Decimal, thousands: str, zeros: str, decimals: str, percent: str) -> str:
    number = value.scaleb(2 if percent else 0)
    rounded = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP) + 0  # no -0
    width = len(zeros) + (1 + len(decimals) if decimals else 0)
    comma = "," if thousands else ""
    return f"{'-' if rounded < 0 else ''}{abs(rounded):0{width}{comma}f}{percent}"


def show_date(value: dt.datetime | dt.time, code: str) -> Seen:
    """The text that Excel displays for a date or time with a format."""
    stored = value if isinstance(value, dt.datetime) else str(value)
    form = _date_form(_OF_THE_SYSTEM.get(code, code))
    if form is None:
        return Stored(text_of(stored) or "", stored)
    return Seen(value.strftime(form), stored)


@lru_cache
def _date_form(code: str) -> str | None:
    """The date format for `strftime`; None if it is not supported."""
    # without the format of texts, and without the language English
    plain = code.lower().removesuffix(";@").replace("[$-409]", "")
    if not _WORDS.search(plain):
        plain = _LANGUAGE.sub("", plain)
    plain = _MARKED.sub(lambda marked: marked[1] or marked[2] or "", plain)
    plain = _MINUTES.sub(lambda minutes: minutes[0].replace("m", "n"), plain)
    parts = _DATE_PART.findall(plain)
    if _DATE_PART.sub("", plain).strip(" -/.:,") or not set(parts) <= _DATE_FORMS.keys():
        return None
    hours = "I" if "am/pm" in parts else "H"
    return _DATE_PART.sub(lambda part: _DATE_FORMS[part[0]].replace("H", hours), plain)
