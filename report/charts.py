"""Charts as small SVG pictures, as wide as a phone, so that a page has two per row. The shapes are
in `templates/charts.html`."""

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

from home.formatting import UNKNOWN, format_day, format_number, format_share

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
    """One labelled bar; `text` is its value in words, a dash when `value` is None."""

    label: str
    value: float | None
    text: str


class Column(NamedTuple):
    """One week or month: its name, the mark below it, and one or two values, None when unknown. A
    running one is drawn paler."""

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
    top: int = 0,
) -> Markup:
    """Labelled bars on one scale from 0. Its ticks are round numbers, or the integers up to
    `top`."""
    if not items:
        return Markup()
    largest = max(item.value or 0 for item in items)
    if top and largest <= top:
        ticks = [float(value) for value in range(top + 1)]
    else:
        ticks = _round_ticks(0, largest)
    texts = [f"{item.label}: {item.text}" for item in items]
    label = f"{title}: {'; '.join(texts)}"
    return _draw_picture("bars", title, items, ticks, axis, label)


def draw_lines(title: str, series: Sequence[Series], *, format_value: Format) -> Markup:
    """Up to two lines over time, each named at its end. The axis need not begin at 0, since the
    chart is about change."""
    lines = [line for line in series if len(line.points) > 1]
    if not lines:
        return Markup()
    values = [value for line in lines for _, value in line.points]
    ticks = _round_ticks(min(values), max(values))
    left = _plot_left(ticks, format_value)
    first = min(line.points[0][0] for line in lines)
    last = max(line.points[-1][0] for line in lines)
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
    changes = []
    for name, points in lines:
        first_value = points[0][1]
        last_value = points[-1][1]
        places = place_points(points)
        end_label = f"{name} {format_value(last_value)}"
        drawn.append((end_label, last_value >= first_value, _draw_track(places), places))
        changes.append(f"{name} from {format_value(first_value)} to {format_value(last_value)}")
    tips = [_describe_day(on, lines, format_value) for on, _ in lines[0].points]
    label = f"{title}, {format_day(first)} to {format_day(last)}: {'; '.join(changes)}"
    first_and_last = (first, last)
    return _draw_picture(
        "lines", title, drawn, tips, first_and_last, left, ticks, format_value, label
    )


def _describe_day(on: dt.date, lines: Sequence[Series], format_value: Format) -> str:
    """The values of all lines on that day."""
    values = {line.name: dict(line.points).get(on) for line in lines}
    texts = [f"{name} {format_value(value)}" for name, value in values.items() if value is not None]
    return f"{format_day(on)}: {', '.join(texts)}"


def draw_sparkline(label: str, values: Sequence[float]) -> Markup:
    """A line without an axis; nothing when its values never change, or there are only two."""
    low = min(values, default=0)
    high = max(values, default=0)
    if low == high or len(values) < 3:
        return Markup()
    step = (_SPARK[0] - 6) / (len(values) - 1)
    places = [
        (
            _format_coordinate(3 + place * step),
            _format_coordinate(3 + (high - value) / (high - low) * (_SPARK[1] - 6)),
        )
        for place, value in enumerate(values)
    ]
    return _draw_picture("sparkline", *_SPARK, label, _draw_track(places), places[-1])


def draw_columns(
    title: str,
    items: Sequence[Column],
    *,
    names: Sequence[str],
    is_inside: bool = False,
    format_value: Format = format_number,
    axis: Format = lambda value: f"{abs(value):,.0f}",
    unit: float = 1,
) -> Markup:
    """One or two values by week or month, each with a name. The second one is drawn below the axis,
    or inside the first one if it is a part of it. The chart begins with the first known value;
    nothing when all are 0."""
    items = list(dropwhile(lambda item: item.first is None and item.second is None, items))
    if not any(item.first or item.second for item in items):
        return Markup()
    below = 0 if is_inside else max(item.second or 0 for item in items)
    ticks = _round_ticks(-below, max(item.first or 0 for item in items), unit=unit)
    tips = [_describe_column(item, names, format_value) for item in items]
    looks = ("second", "accent") if is_inside else ("accent", "second")
    legend = list(zip(looks, names, strict=False))
    label = f"{title}, from {tips[0]} to {tips[-1]}"
    left = _plot_left(ticks, axis)
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


def _describe_column(item: Column, names: Sequence[str], format_value: Format) -> str:
    """A column's values in words."""
    values = zip(names, (item.first, item.second), strict=False)
    texts = [
        f"{name} {UNKNOWN if value is None else format_value(value)}" for name, value in values
    ]
    return f"{item.name}{' so far' if item.is_running else ''}: {', '.join(texts)}"


def draw_stack(title: str, parts: Sequence[tuple[str, float]]) -> Markup:
    """Parts of a whole in one bar over the full width, from the strongest colour to the faintest.
    Mark their names with `draw_swatch`."""
    if not parts:
        return Markup()
    whole = sum(value for _, value in parts) or 1
    texts = [
        f"{name}: {format_number(value)}, {format_share(value / whole)}" for name, value in parts
    ]
    return _draw_picture("stack", parts, whole, f"{title}: {'; '.join(texts)}")


def draw_swatch(colour: str, opacity: float = 1) -> Markup:
    """A colour of a chart, for a legend."""
    return _draw_picture("swatch", colour, opacity)


def stack_opacity(place: int, count: int) -> float:
    """The opacity of a part of a `draw_stack`."""
    return round(1 - 0.7 * place / max(count - 1, 1), 2)


@cache
def _load_macros() -> Any:
    """The macros as attributes. Every text is escaped automatically."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters |= {
        "n": _format_coordinate,
        "y": _place_y,
        "place": _place_value,
        "fitting": _fit_text,
        "day": format_day,
    }
    environment.globals |= {
        "WIDTH": WIDTH,
        "ROW": _ROW,
        "PLOT_BOTTOM": _TOP + _PLOT_HEIGHT,
        "strength": stack_opacity,
        "marked": _marked_columns,
    }
    return environment.from_string(re.sub(r"\n\s*", "", _MACROS.read_text(encoding="utf-8"))).module


def _draw_picture(picture: str, *values: object) -> Markup:
    return Markup(getattr(_load_macros(), picture)(*values))  # noqa: S704 (escaped)


def _draw_track(places: Sequence[tuple[str, str]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in places)


def _plot_left(ticks: Sequence[float], format_value: Format) -> float:
    """Where the plot begins: right of the longest label."""
    return max(_LEFT, 8 + max(_text_width(format_value(value)) for value in ticks))


def _place_value(value: float, top: float, margin: float = 1) -> float:
    """The x coordinate of a value on the scale of `draw_bars`."""
    return min(max(value / top * WIDTH, margin), WIDTH - margin)


def _fit_text(words: str, beside: str) -> str:
    """The text, cut with `…` if there is no room for it next to the other one."""
    words = " ".join(words.split())
    room = WIDTH - _text_width(beside) - 12
    if _text_width(words) <= room:
        return words
    while words and _text_width(words) > room - _WIDEST:
        words = words[:-1]
    return words.rstrip() + "…"


def _text_width(words: str) -> float:
    """An upper estimate of a text's width: pictures can't measure their font."""
    return sum(map(_letter_width, words))


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF" or letter in "MW@%":
        return _WIDEST
    return _CAPITAL if letter.isupper() else _LETTER


def _place_y(value: float, ticks: Sequence[float]) -> float:
    low = ticks[0]
    high = ticks[-1]
    return _TOP + _PLOT_HEIGHT - (value - low) / (high - low) * _PLOT_HEIGHT


def _round_ticks(low: float, high: float, *, unit: float = 1) -> list[float]:
    """Two to six round values that cover the range. They are multiples of the labels' `unit`, so
    that no label is rounded."""
    first = low / unit
    last = high / unit
    if first == last:
        last += 1
    raw = max((last - first) / 3, 1)
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [
        step * place * unit for place in range(math.floor(first / step), math.ceil(last / step) + 1)
    ]


def _marked_columns(count: int) -> list[int]:
    """The columns that have a mark below them: up to five, always with the last one."""
    step = -(-count // 5)
    return [place for place in range(count) if (count - 1 - place) % step == 0]


def _format_coordinate(value: float, digits: int = 1) -> str:
    """A coordinate with few digits."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
