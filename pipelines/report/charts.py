"""Charts as small SVG pictures, as wide as a phone, so that two stand side by side; `templates/charts.html`
draws their figures."""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from home.formatting import short_day

_MACROS = Path(__file__).parent / "templates" / "charts.html"

WIDTH = 374
_PLOT_HEIGHT = 150
_ROW = 36  # of one labelled bar
_TOP = 8  # above the plot: half of the upper tick's label
_LEFT = 44  # for the ticks' labels, at least
_SPARK = (132, 26)  # below a figure
_LETTER, _CAPITAL, _WIDEST = 6.8, 9.0, 13.0  # of the font on most machines, rather too much

Format = Callable[[float], str]


class Bar(NamedTuple):
    """One labelled bar; `value` None is drawn as nothing and shown as the dash that `shown` is."""

    label: str
    value: float | None
    shown: str


class Column(NamedTuple):
    """One day or week: what goes up and what goes down; None where that is not known."""

    on: dt.date
    up: float | None
    down: float | None = 0


def bars(
    title: str,
    items: Sequence[Bar],
    *,
    axis: Format,
    unit: float = 1,
    reference: tuple[float, str] | None = None,
    top: int = 0,
) -> Markup:
    """Labelled bars on one scale from 0, whose ticks are multiples of `unit`, or 0 … `top`. `reference`: a
    value to compare with, named."""
    if not items:
        return Markup()
    most = max([item.value or 0 for item in items] + [reference[0] if reference else 0])
    ticks = list(map(float, range(top + 1))) if top and most <= top else _ticks(0, most, unit=unit)
    mark = _place(reference[0], ticks[-1]) if reference else None
    label = f"{title}: {'; '.join(f'{item.label}: {item.shown}' for item in items)}"
    return _drawn("bars", title, items, ticks, axis, reference, mark, label)


def line(title: str, points: Sequence[tuple[dt.date, float]], *, shown: Format) -> Markup:
    """One value over time. The axis need not begin at 0: it shows change."""
    if not points:
        return Markup()
    ticks = _ticks(min(value for _, value in points), max(value for _, value in points))
    left = _left(ticks, shown)
    first, last = points[0][0], points[-1][0]
    days = max((last - first).days, 1)
    places = [
        (_n(left + (on - first).days / days * (WIDTH - left - 5)), _n(_y(value, ticks)))
        for on, value in points
    ]
    label = f"from {shown(points[0][1])} on {short_day(first)} to {shown(points[-1][1])} on {short_day(last)}"
    note = f"{label[0].upper()}{label[1:]}."
    track, days_shown = _track(places), (first, last)
    return _drawn("line", title, track, places[-1], days_shown, left, ticks, shown, f"{title}: {label}", note)


def sparkline(name: str, values: Sequence[float]) -> Markup:
    """A series without an axis, called by its name; nothing when it never changed."""
    low, high = min(values, default=0), max(values, default=0)
    if low == high:
        return Markup()
    step = (_SPARK[0] - 6) / (len(values) - 1)
    places = [
        (_n(3 + place * step), _n(3 + (high - value) / (high - low) * (_SPARK[1] - 6)))
        for place, value in enumerate(values)
    ]
    return _drawn(
        "sparkline", *_SPARK, f"{name}: from {values[0]:g} to {values[-1]:g}", _track(places), places[-1]
    )


def columns(title: str, items: Sequence[Column], *, names: tuple[str, str], unit: str) -> Markup:
    """What goes up above the axis, in the accent's colour; what goes down below it, in the second one; from
    the first on of which either is known. Nothing where nothing moves."""
    items = list(dropwhile(lambda item: item.up is None and item.down is None, items))
    if not any(item.up or item.down for item in items):
        return Markup()
    ticks = _ticks(-max(item.down or 0 for item in items), max(item.up or 0 for item in items))
    up = _total(names[0], [(item.on, item.up) for item in items])
    down = _total(names[1], [(item.on, item.down) for item in items])
    since = f"{unit} from {short_day(items[0].on)} on"
    note, left = _drawn("columns_note", up, down, since), _left(ticks, _unsigned)
    return _drawn("columns", title, items, ticks, left, _unsigned, f"{title}: {up}, {down}; {since}", note)


def _total(name: str, values: Sequence[tuple[dt.date, float | None]]) -> str:
    """E.g. `left 12`, `left 12 since 3 Mar` where it is not known before."""
    known = [(on, value) for on, value in values if value is not None]
    if not known:
        return f"{name} not known"
    since = f" since {short_day(known[0][0])}" if known[0][0] != values[0][0] else ""
    return f"{name} {sum(value for _, value in known):,.0f}{since}"


def stack(title: str, parts: Sequence[tuple[str, float]], *, unit: str) -> Markup:
    """Parts of a whole in one bar over the whole width, from the strongest colour to the faintest; `swatch`
    says which is which."""
    if not parts:
        return Markup()
    whole = sum(value for _, value in parts) or 1
    label = "; ".join(f"{name}: {value:,.0f} {unit}, {100 * value / whole:.1f} %" for name, value in parts)
    return _drawn("stack", parts, whole, f"{title}: {label}")


def swatch(colour: str, opacity: float = 1) -> Markup:
    """A colour of a chart, to stand before the name of what it means."""
    return _drawn("swatch", colour, opacity)


def strength(place: int, count: int) -> float:
    """The opacity of a part of a `stack`."""
    return round(1 - 0.7 * place / max(count - 1, 1), 2)


@cache
def _macros() -> Any:
    """By name. Every text is escaped by itself."""
    made = Environment(autoescape=True, undefined=StrictUndefined)
    made.filters |= {"n": _n, "y": _y, "place": _place, "fitting": _fitting, "short_day": short_day}
    made.globals |= {"WIDTH": WIDTH, "ROW": _ROW, "PLOT_BOTTOM": _TOP + _PLOT_HEIGHT, "strength": strength}
    return made.from_string(re.sub(r"\n\s*", "", _MACROS.read_text(encoding="utf-8"))).module


def _drawn(picture: str, *values: object) -> Markup:
    return Markup(getattr(_macros(), picture)(*values))  # noqa: S704 (escaped)


def _track(places: Sequence[tuple[str, str]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in places)


def _unsigned(value: float) -> str:
    return f"{abs(value):,.0f}"


def _left(ticks: Sequence[float], shown: Format) -> float:
    """Where the plot begins: behind the longest label."""
    return max(_LEFT, 8 + max(_width(shown(value)) for value in ticks))


def _place(value: float, top: float, margin: float = 1) -> float:
    """Of a value on the scale of `bars`."""
    return min(max(value / top * WIDTH, margin), WIDTH - margin)


def _fitting(words: str, beside: str) -> str:
    """The text, or as much of its beginning as has room beside the other, with `…`."""
    words, room = " ".join(words.split()), WIDTH - _width(beside) - 12
    if _width(words) <= room:
        return words
    while words and _width(words) > room - _WIDEST:
        words = words[:-1]
    return words.rstrip() + "…"


def _width(words: str) -> float:
    """How wide a text is at most, estimated: pictures have no font to ask."""
    return sum(
        _WIDEST
        if unicodedata.east_asian_width(letter) in "WF" or letter in "MW@%"
        else _CAPITAL
        if letter.isupper()
        else _LETTER
        for letter in words
    )


def _y(value: float, ticks: Sequence[float]) -> float:
    low, high = ticks[0], ticks[-1]
    return _TOP + _PLOT_HEIGHT - (value - low) / (high - low) * _PLOT_HEIGHT


def _ticks(low: float, high: float, *, unit: float = 1) -> list[float]:
    """Two to six round values that hold the range, multiples of the `unit` in which labels are written, so
    that no label is rounded."""
    first, last = low / unit, high / unit
    if first == last:
        last += 1
    raw = max((last - first) / 3, 1)
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [step * place * unit for place in range(math.floor(first / step), math.ceil(last / step) + 1)]


def _n(value: float, digits: int = 1) -> str:
    """A coordinate, short."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
