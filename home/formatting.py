"""Numbers, shares, changes, dates and long texts as the report writes them; the templates' filters.
An unknown value is a dash."""

import datetime as dt
import math

UNKNOWN = "–"


def _round_half_up(value: float, digits: int = 0) -> str:
    """Halves are rounded away from 0, as in a query with DuckDB's `round`: 3.25 → `3.3`."""
    scale = 10**digits
    rounded = math.floor(abs(float(value)) * scale + 0.5) / scale
    return f"{-rounded if value < 0 < rounded else rounded:,.{digits}f}"


def format_number(value: float | None) -> str:
    """1234 → `1,234`."""
    return UNKNOWN if value is None else _round_half_up(value)


def format_share(rate: float | None) -> str:
    """0.2345 → `23.5 %`."""
    return UNKNOWN if rate is None else f"{_round_half_up(100 * rate, 1)} %"


def whole_share(rate: float) -> str:
    """0.2 → `20 %`, as ticks of an axis are written."""
    return f"{100 * rate:,.0f} %"


def format_rating(value: float | None) -> str:
    """4.25 → `4.3` (of 5)."""
    return UNKNOWN if value is None else _round_half_up(value, 1)


def change_of(value: float | None, digits: int = 0) -> str:
    """12 → `+12`, −3 → `−3`, 0 → `±0`."""
    if value is None:
        return UNKNOWN
    text = _round_half_up(abs(value), digits)
    if float(text.replace(",", "")) == 0:
        return "±0"
    return f"+{text}" if value > 0 else f"−{text}"


def format_points(value: float | None) -> str:
    """Difference of two rates: 0.021 → `+2.1 pts`."""
    return UNKNOWN if value is None else f"{change_of(100 * value, 1)} pts"


def format_day(value: dt.date | dt.datetime | None) -> str:
    """`21 Nov 2026`."""
    return UNKNOWN if value is None else f"{value.day} {value:%b %Y}"


def short_day(value: dt.date | dt.datetime) -> str:
    """`21 Nov`."""
    return f"{value.day} {value:%b}"


def days_of(first: dt.date, count: int = 7) -> str:
    """A number of days from the first on: `16–22 Nov 2026`, `28 Dec 2026 – 3 Jan 2027`."""
    last = first + dt.timedelta(days=count - 1)
    if first == last:
        return format_day(first)
    if first.year != last.year:
        return f"{format_day(first)} – {format_day(last)}"
    return (
        f"{first.day}–{format_day(last)}"
        if first.month == last.month
        else f"{short_day(first)} – {format_day(last)}"
    )


def format_month(value: dt.date) -> str:
    """`November 2026`."""
    return f"{value:%B %Y}"


def count_of(count: int, one: str, many: str = "") -> str:
    """`1 contact`, `1,200 contacts`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cut_text(value: str, most: int) -> str:
    """The text, or its beginning with `…`."""
    value = " ".join(value.split()) if len(value) > most else value.strip()
    return value if len(value) <= most else value[: most - 1].rstrip() + "…"


def without_blank_lines(value: str) -> str:
    """Each line without blanks around it."""
    return "\n".join(filter(None, map(str.strip, value.splitlines())))


def network_name(name: str) -> str:
    """`linkedin` → `LinkedIn`."""
    return {
        "linkedin": "LinkedIn",
        "youtube": "YouTube",
        "tiktok": "TikTok",
        "googleplus": "Google+",
    }.get(name, name.capitalize())
