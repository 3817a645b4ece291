"""Charts as small SVG pictures, as wide as a phone, so that two stand side by side;
`templates/charts.html` draws their figures."""

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

from home.formatting import UNKNOWN, format_day, format_number

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
    """One week or month: its name, the mark below it, and its one or two values, None where not
    known; a running one is paler."""

    name: str
    mark: str
    first: float | None
    second: float | None = None
    is_running: bool = False


class Series(NamedTuple):
    """A line: its name, and (day, value), oldest first."""

    name: str
    points: Sequence[tuple[dt.date, float]]


def draw_bars(
    title: str,
    items: Sequence[Bar],
    *,
    axis: Format,
    unit: float = 1,
    top: int = 0,
) -> Markup:
    """Labelled bars on one scale from 0, whose ticks are multiples of `unit`, or 0 … `top`."""
    if not items:
        return Markup()
    most = max(item.value or 0 for item in items)
    ticks = (
        list(map(float, range(top + 1)))
        if top and most <= top
        else _round_ticks(0, most, unit=unit)
    )
    label = f"{title}: {'; '.join(f'{item.label}: {item.shown}' for item in items)}"
    return _draw_picture("bars", title, items, ticks, axis, label)


def draw_lines(title: str, series: Sequence[Series], *, shown: Format) -> Markup:
    """Up to two values over time, each named at its end. The axis need not begin at 0: it shows
    change."""
    series = [each for each in series if len(each.points) > 1]
    if not series:
        return Markup()
    values = [value for each in series for _, value in each.points]
    ticks = _round_ticks(min(values), max(values))
    left = _plot_left(ticks, shown)
    first = min(each.points[0][0] for each in series)
    last = max(each.points[-1][0] for each in series)
    days = max((last - first).days, 1)

    def place_points(points: Sequence[tuple[dt.date, float]]) -> list[tuple[str, str]]:
        spread = (WIDTH - 5 - left) / days
        return [
            (
                _format_coordinate(left + (on - first).days * spread),
                _format_coordinate(_place_y(value, ticks)),
            )
            for on, value in points
        ]

    drawn = []
    for name, points in series:
        is_rising = points[-1][1] >= points[0][1]
        words = f"{name} {shown(points[-1][1])}"
        drawn.append((words, is_rising, _draw_track(place_points(points)), place_points(points)))
    tips = [_of_day(on, series, shown) for on, _ in series[0].points]
    told = [
        f"{each.name} from {shown(each.points[0][1])} to {shown(each.points[-1][1])}"
        for each in series
    ]
    label = f"{title}, {format_day(first)} to {format_day(last)}: {'; '.join(told)}"
    return _draw_picture("lines", title, drawn, tips, (first, last), left, ticks, shown, label)


def _of_day(on: dt.date, series: Sequence[Series], shown: Format) -> str:
    """What all lines say of it."""
    values = {each.name: dict(each.points).get(on) for each in series}
    told = [f"{name} {shown(value)}" for name, value in values.items() if value is not None]
    return f"{format_day(on)}: {', '.join(told)}"


def draw_sparkline(name: str, values: Sequence[float]) -> Markup:
    """A series without an axis, called by its name; nothing when it never changed."""
    low, high = min(values, default=0), max(values, default=0)
    if low == high:
        return Markup()
    step = (_SPARK[0] - 6) / (len(values) - 1)
    places = [
        (
            _format_coordinate(3 + place * step),
            _format_coordinate(3 + (high - value) / (high - low) * (_SPARK[1] - 6)),
        )
        for place, value in enumerate(values)
    ]
    return _draw_picture(
        "sparkline",
        *_SPARK,
        f"{name}: from {values[0]:g} to {values[-1]:g}",
        _draw_track(places),
        places[-1],
    )


def _format_unsigned(value: float) -> str:
    return f"{abs(value):,.0f}"


def draw_columns(
    title: str,
    items: Sequence[Column],
    *,
    names: Sequence[str],
    is_inside: bool = False,
    shown: Format = format_number,
    axis: Format = _format_unsigned,
    unit: float = 1,
) -> Markup:
    """One or two values by week or month, each with a name: the second one below the axis, or
    inside of the first, of which it is a part. From the first on of which either is known; nothing
    where all are 0."""
    items = list(dropwhile(lambda item: item.first is None and item.second is None, items))
    if not any(item.first or item.second for item in items):
        return Markup()
    below = 0 if is_inside else max(item.second or 0 for item in items)
    ticks = _round_ticks(-below, max(item.first or 0 for item in items), unit=unit)
    tips = [_describe_column(item, names, shown) for item in items]
    looks = ("second", "accent") if is_inside else ("accent", "second")
    legend = list(zip(looks, names, strict=False))
    label, left = f"{title}, from {tips[0]} to {tips[-1]}", _plot_left(ticks, axis)
    return _draw_picture(
        "columns",
        title,
        items,
        tips,
        ticks,
        left,
        axis,
        is_inside,
        looks,
        label,
        _draw_picture("legend", legend),
    )


def _describe_column(item: Column, names: Sequence[str], shown: Format) -> str:
    """What a column says in words."""
    values = zip(names, (item.first, item.second), strict=False)
    told = [f"{name} {UNKNOWN if value is None else shown(value)}" for name, value in values]
    return f"{item.name}{' so far' if item.is_running else ''}: {', '.join(told)}"


def draw_stack(title: str, parts: Sequence[tuple[str, float]], *, unit: str) -> Markup:
    """Parts of a whole in one bar over the whole width, from the strongest colour to the faintest;
    `draw_swatch` says which is which."""
    if not parts:
        return Markup()
    whole = sum(value for _, value in parts) or 1
    label = "; ".join(
        f"{name}: {value:,.0f} {unit}, {100 * value / whole:.1f} %" for name, value in parts
    )
    return _draw_picture("stack", parts, whole, f"{title}: {label}")


def draw_swatch(colour: str, opacity: float = 1) -> Markup:
    """A colour of a chart, to stand before the name of what it means."""
    return _draw_picture("swatch", colour, opacity)


def stack_opacity(place: int, count: int) -> float:
    """The opacity of a part of a `draw_stack`."""
    return round(1 - 0.7 * place / max(count - 1, 1), 2)


@cache
def _load_macros() -> Any:
    """By name. Every text is escaped by itself."""
    made = Environment(autoescape=True, undefined=StrictUndefined)
    made.filters |= {
        "n": _format_coordinate,
        "y": _place_y,
        "place": _place_value,
        "fitting": _fit_text,
        "day": format_day,
    }
    made.globals |= {
        "WIDTH": WIDTH,
        "ROW": _ROW,
        "PLOT_BOTTOM": _TOP + _PLOT_HEIGHT,
        "strength": stack_opacity,
        "marked": _marked_columns,
    }
    return made.from_string(re.sub(r"\n\s*", "", _MACROS.read_text(encoding="utf-8"))).module


def _draw_picture(picture: str, *values: object) -> Markup:
    return Markup(getattr(_load_macros(), picture)(*values))  # noqa: S704 (escaped)


def _draw_track(places: Sequence[tuple[str, str]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in places)


def _plot_left(ticks: Sequence[float], shown: Format) -> float:
    """Where the plot begins: behind the longest label."""
    return max(_LEFT, 8 + max(_text_width(shown(value)) for value in ticks))


def _place_value(value: float, top: float, margin: float = 1) -> float:
    """Of a value on the scale of `draw_bars`."""
    return min(max(value / top * WIDTH, margin), WIDTH - margin)


def _fit_text(words: str, beside: str) -> str:
    """The text, or as much of its beginning as has room beside the other, with `…`."""
    words, room = " ".join(words.split()), WIDTH - _text_width(beside) - 12
    if _text_width(words) <= room:
        return words
    while words and _text_width(words) > room - _WIDEST:
        words = words[:-1]
    return words.rstrip() + "…"


def _text_width(words: str) -> float:
    """How wide a text is at most, estimated: pictures have no font to ask."""
    return sum(
        _WIDEST
        if unicodedata.east_asian_width(letter) in "WF" or letter in "MW@%"
        else _CAPITAL
        if letter.isupper()
        else _LETTER
        for letter in words
    )


def _place_y(value: float, ticks: Sequence[float]) -> float:
    low, high = ticks[0], ticks[-1]
    return _TOP + _PLOT_HEIGHT - (value - low) / (high - low) * _PLOT_HEIGHT


def _round_ticks(low: float, high: float, *, unit: float = 1) -> list[float]:
    """Two to six round values that hold the range, multiples of the `unit` in which labels are
    written, so that no label is rounded."""
    first, last = low / unit, high / unit
    if first == last:
        last += 1
    raw = max((last - first) / 3, 1)
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [
        step * place * unit for place in range(math.floor(first / step), math.ceil(last / step) + 1)
    ]


def _marked_columns(count: int) -> list[int]:
    """The columns below which a mark has room: five at most, the last one of them."""
    step = -(-count // 5)
    return [place for place in range(count) if (count - 1 - place) % step == 0]


def _format_coordinate(value: float, digits: int = 1) -> str:
    """A coordinate, short."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
